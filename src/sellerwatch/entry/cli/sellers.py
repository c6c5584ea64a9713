"""`sellerwatch seller …`: whose shops are watched, and how often."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.errors import Refused, Unknown
from sellerwatch.domain.ids import checked_seller_id
from sellerwatch.domain.sellers import (
    INTERVAL_DAYS_MAX,
    INTERVAL_DAYS_MIN,
    CrawlSource,
    Seller,
    SellerStatus,
    checked_name,
)
from sellerwatch.entry.cli.door import end_badly, group, run
from sellerwatch.entry.cli.options import Json, PageNo, Size, checked, footer
from sellerwatch.entry.cli.roster import BadRow, roster
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.tables import complain, draw, put_json, right, say, table
from sellerwatch.entry.console.text import count, grouped, moment
from sellerwatch.ports.reports import ExecutionRow, SellerDetail

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Sellers: whose shops are watched, and how often.")

SellerId = Annotated[
    str, typer.Argument(metavar="ID", help="The marketplace's id of the seller.", callback=checked(checked_seller_id))
]
DAYS = {"min": INTERVAL_DAYS_MIN, "max": INTERVAL_DAYS_MAX}


@app.command(epilog="Example: sellerwatch seller add dmont --name 'D. Mont' --interval 2 --crawl")
def add(
    ctx: typer.Context,
    seller_id: SellerId,
    name: Annotated[
        str,
        typer.Option("--name", help="What people call it: 1 to 200 characters.", callback=checked(checked_name)),
    ],
    interval: Annotated[int, typer.Option("--interval", **DAYS, help="Days from one crawl to the next.")] = 1,
    source: Annotated[
        CrawlSource, typer.Option("--source", case_sensitive=False, help="Which list of the marketplace is read.")
    ] = CrawlSource.MINI_SHOP,
    crawl: Annotated[bool, typer.Option("--crawl", help="Crawl it at once, not one interval from now.")] = False,
) -> None:
    """Register a seller; its schedule starts with it."""

    async def work(house: "House") -> str | None:
        await house.sellers.register(seller_id, name, crawl_source=source, interval_days=interval)
        return (await house.trigger.crawl_now(seller_id)).execution_id if crawl else None

    execution_id = run(ctx, work, makes=True)
    say(f"seller {seller_id} is registered and crawled every {count(interval, 'day')}")
    if execution_id:
        say(f"its first crawl is execution {execution_id}")


@app.command("list", epilog="Example: sellerwatch seller list --status ACTIVE --json")
def list_sellers(
    ctx: typer.Context,
    status: Annotated[
        SellerStatus | None, typer.Option("--status", case_sensitive=False, help="Only those that are so.")
    ] = None,
    page: PageNo = 0,
    size: Size = 100,
    as_json: Json = False,
) -> None:
    """List the sellers, by id."""
    found = run(ctx, lambda house: house.reports.sellers(status=status, page=page, size=size))
    if as_json:
        put_json([shapes.seller(row) for row in found.rows])
        return
    rows = [
        (row.seller_id, row.name, row.status, row.crawl_source, row.interval_days, grouped(row.total_product_count))
        for row in found.rows
    ]
    draw(table(["id", "name", "status", "source", right("days"), right("products")], rows))
    if more := footer(page, size, len(rows), found.total):
        say(more)


@app.command(epilog="Example: sellerwatch seller show dmont")
def show(ctx: typer.Context, seller_id: SellerId, as_json: Json = False) -> None:
    """Show a seller, its schedule, its last crawl and how many products are known of it."""

    async def work(house: "House") -> SellerDetail:
        found = await house.reports.seller(seller_id)
        if found is None:
            raise Unknown("seller", seller_id)
        return found

    detail = run(ctx, work)
    if as_json:
        put_json(shapes.seller_detail(detail))
    else:
        draw(table(["", ""], _told(detail)))


@app.command(epilog="Example: sellerwatch seller rename dmont 'Maison D. Mont'")
def rename(
    ctx: typer.Context,
    seller_id: SellerId,
    name: Annotated[str, typer.Argument(metavar="NAME", callback=checked(checked_name))],
) -> None:
    """Give a seller another name."""
    seller = run(ctx, lambda house: house.sellers.rename(seller_id, name))
    say(f"seller {seller_id} is called {seller.name}")


@app.command(epilog="Example: sellerwatch seller interval dmont 3")
def interval(
    ctx: typer.Context, seller_id: SellerId, days: Annotated[int, typer.Argument(metavar="DAYS", **DAYS)]
) -> None:
    """Crawl a seller every so many days, 1 to 30."""
    run(ctx, lambda house: house.sellers.change_interval(seller_id, days))
    say(f"seller {seller_id} is crawled every {count(days, 'day')}")


@app.command(epilog="Example: sellerwatch seller activate dmont")
def activate(ctx: typer.Context, seller_id: SellerId) -> None:
    """Crawl a seller again; nothing happens if it is crawled already."""
    _say_state(run(ctx, lambda house: house.sellers.activate(seller_id)))


@app.command(epilog="Example: sellerwatch seller deactivate dmont")
def deactivate(ctx: typer.Context, seller_id: SellerId) -> None:
    """Crawl a seller no more, until it is activated; what is known of its products stays."""
    _say_state(run(ctx, lambda house: house.sellers.deactivate(seller_id)))


@app.command(epilog="Example: sellerwatch seller deactivate dmont && sellerwatch seller remove dmont")
def remove(ctx: typer.Context, seller_id: SellerId) -> None:
    """Remove an INACTIVE seller; what is known of its products stays."""
    run(ctx, lambda house: house.sellers.remove(seller_id))
    say(f"seller {seller_id} is removed")


@app.command("confirm-delisting", epilog="Example: sellerwatch seller confirm-delisting dmont")
def confirm_delisting(ctx: typer.Context, seller_id: SellerId) -> None:
    """Let the products go that the last crawl did not show, although they are much of the shop."""
    changes = run(ctx, lambda house: house.decide.confirm_delisting(seller_id))
    gone = sum(ChangeKind.DELISTED in change.kinds for change in changes)
    say(f"{count(gone, 'product')} of {seller_id} delisted")


@app.command("import", epilog="Example: sellerwatch seller import sellers.csv   (columns: id,name,interval,source)")
def import_csv(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="CSV", exists=True, dir_okay=False, help="With a line of names.")],
) -> None:
    """Register sellers from a CSV file with the columns id and name, and perhaps interval and source.

    A bad row is named with its line and reason, and the others go on; then the exit code is 1.
    """
    bad: list[str] = []

    async def work(house: "House") -> int:
        registered = 0
        for row in roster(file):
            if isinstance(row, BadRow):
                bad.append(f"{file}:{row.line}: {row.reason}")
                continue
            try:
                await house.sellers.register(
                    row.seller_id, row.name, crawl_source=row.source, interval_days=row.interval_days
                )
            except Refused as error:
                bad.append(f"{file}:{row.line}: {error}")
            else:
                registered += 1
        return registered

    registered = run(ctx, work, makes=True)
    say(f"{count(registered, 'seller')} registered")
    for line in bad:
        complain(line)
    if bad:
        end_badly()


def _say_state(seller: Seller) -> None:
    say(f"seller {seller.seller_id} is {seller.status}")


def _told(detail: SellerDetail) -> list[tuple[str, object]]:
    seller, schedule, last, products = detail.seller, detail.schedule, detail.last_execution, detail.products
    rows: list[tuple[str, object]] = [
        ("seller", seller.seller_id),
        ("name", seller.name),
        ("status", seller.status),
        ("source", seller.crawl_source),
        ("crawled every", count(seller.interval_days, "day")),
        ("products in the shop", grouped(seller.total_product_count)),
        (
            "products known",
            f"{grouped(products.total)}, {grouped(products.complete)} complete, {grouped(products.delisted)} delisted",
        ),
        ("registered", moment(seller.created_at)),
    ]
    if schedule:
        rows += [
            ("schedule", schedule.status),
            ("next crawl", moment(schedule.next_run_at)),
            ("rule", f"{schedule.rule_name}, {schedule.expression}"),
        ]
    rows.append(("last crawl", _crawl(last) if last else "none yet"))
    return rows


def _crawl(last: ExecutionRow) -> str:
    done = f"{last.status}, {last.progress_rate:.1f} % of {count(last.total_tasks, 'task')}, {last.failed_tasks} failed"
    error = f": {last.error_message}" if last.error_message else ""
    return f"{moment(last.started_at)} {done}{error}"
