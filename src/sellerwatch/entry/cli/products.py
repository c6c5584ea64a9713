"""`sellerwatch product …`: what is known of the products, and how it came to be so."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sellerwatch.domain.errors import Refused, Unknown
from sellerwatch.entry.cli.door import group, run
from sellerwatch.entry.cli.options import Json, checked, moment_of, time_of
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.tables import apart, draw, json_text, put_json, say, short, table
from sellerwatch.entry.console.text import count, moment, visible
from sellerwatch.ports.reports import ChangeRow, Difference, ProductRow, VersionRow

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Products: what is known of them, and how it came to be so.")

BATCH = 500
_TIME = "2026-11-18T09:30 (UTC), or 6h, 2d."
R = TypeVar("R", ProductRow, ChangeRow)

ItemNo = Annotated[int, typer.Argument(metavar="ITEM", min=1, help="The marketplace's number of the item.")]


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


@app.command(epilog="Example: sellerwatch product show 118005032 --at 2026-11-18T09:30")
def show(
    ctx: typer.Context,
    item_no: ItemNo,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help=f"As it was then: {_TIME}", callback=checked(time_of))
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a product as it is known now, or as it was."""

    async def work(house: "House") -> ProductRow:
        if at is None:
            return await _known(house, item_no)
        then = moment_of(at, house.clock.now())
        found = await house.reports.product(item_no, then)
        if found is None:
            await _known(house, item_no)
            raise Refused(f"product of item {item_no} has no version as old as {moment(then)} (UTC)")
        return found

    shape = shapes.product(run(ctx, work))
    if as_json:
        put_json(shape)
    else:
        draw(table(["", ""], [(name, short(value)) for name, value in shape.items()]))


@app.command(epilog="Example: sellerwatch product history 118005032 --between 7d 1d")
def history(
    ctx: typer.Context,
    item_no: ItemNo,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--between",
            metavar="TIME TIME",
            help=f"What it became between two moments: {_TIME}",
            callback=checked(lambda pair: [time_of(text) for text in pair]),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show every version of a product, the oldest first: what changed, which document proved it, which delivery
    carried it. With --between, only what differs between the two moments."""
    if between is None:
        _tell_versions(run(ctx, lambda house: _versions(house, item_no)), as_json=as_json)
    else:
        _tell_difference(run(ctx, lambda house: _difference(house, item_no, *between)), as_json=as_json)


@app.command(epilog="Example: sellerwatch product export --changes --since 7d --format csv > changes.csv")
def export(
    ctx: typer.Context,
    form: Annotated[Format, typer.Option("--format", case_sensitive=False, help="JSON lines, or CSV.")] = Format.JSONL,
    changes: Annotated[
        bool, typer.Option("--changes", help="The changes, not the products: one a line, in CSV one field a line.")
    ] = False,
    seller: Annotated[str | None, typer.Option("--seller", metavar="ID", help="Only of this seller.")] = None,
    complete: Annotated[
        bool | None, typer.Option("--complete/--incomplete", help="Only those whose documents were all seen, or not.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            "--changed-since",
            metavar="TIME",
            help=f"Changed since then: {_TIME}",
            callback=checked(time_of),
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", dir_okay=False, help="Into this file, not to stdout.")
    ] = None,
) -> None:
    """Write all products, or all changes, as they are read: however many there are, memory stays small."""
    if changes and complete is not None:
        raise typer.BadParameter("it is about products, --changes is not", ctx, param_hint="--complete/--incomplete")

    async def work(house: "House") -> int:
        then = moment_of(since, house.clock.now()) if since else None
        if seller is not None and await house.reports.seller(seller) is None:
            raise Unknown("seller", seller)
        reports = house.reports
        with _target(output) as target:
            write = _writer(form, target, changes=changes)
            if changes:
                return await _write_all(partial(reports.all_changes_after, seller_id=seller, since=then), write)
            read = partial(reports.products_after, seller_id=seller, complete=complete, changed_since=then)
            return await _write_all(read, write)

    written = run(ctx, work)
    if output:
        say(f"{count(written, 'change' if changes else 'product')} written to {output}")


async def _write_all(read: "Callable[[int, int], Awaitable[Sequence[R]]]", write: Callable[[R], object]) -> int:
    number = written = 0
    while rows := await read(number, BATCH):
        for row in rows:
            write(row)
        number, written = rows[-1].number, written + len(rows)
    return written


async def _versions(house: "House", item_no: int) -> list[VersionRow]:
    await _known(house, item_no)
    versions: list[VersionRow] = []
    while some := await house.reports.versions_after(item_no, versions[-1].change.version if versions else 0, BATCH):
        versions += some
    return versions


async def _difference(house: "House", item_no: int, start: str, end: str) -> Difference:
    await _known(house, item_no)
    first, last = (moment_of(text, house.clock.now()) for text in (start, end))
    if first > last:
        raise typer.BadParameter(f"'{start} {end}' is not two moments, the earlier one first", param_hint="--between")
    found = await house.reports.difference(item_no, first, last)
    assert found is not None, item_no
    return found


def _tell_versions(versions: Sequence[VersionRow], *, as_json: bool) -> None:
    if as_json:
        put_json([shapes.version(row) for row in versions])
        return
    if not versions:
        say("no version yet: not all of its three documents have been seen")
    for row in versions:
        change = row.change
        about = f"version {change.version}   {moment(change.changed_at)}   {', '.join(change.kinds)}"
        rows = [(one.field, "  →  ".join(apart(one.old, one.new))) for one in change.fields]
        rows += [("proved by", line) for line in _proofs(row)]
        draw(table(["", ""], [*rows, ("delivered", _delivered(row))], title=visible(about)))


def _proofs(row: VersionRow) -> list[str]:
    if not row.proofs:
        return [f"the list of crawl {row.execution_id}" if row.execution_id else "– (noted by an older version)"]
    forgotten = {True: "", False: " (forgotten since)"}
    return [
        f"{proof.kind} fetched {moment(proof.fetched_at)}, raw {proof.raw_id}{forgotten[proof.is_kept]}"
        for proof in row.proofs
    ]


def _delivered(row: VersionRow) -> str:
    delivery = row.delivery
    if delivery is None:
        return "yes (its event has been forgotten since)"
    as_other = "" if delivery.version == row.change.version else f" with version {delivery.version}"
    if delivery.confirmed_at is not None:
        return f"{moment(delivery.confirmed_at)}{as_other}, event {delivery.outbox_id}"
    note = f": {delivery.note}" if delivery.note else ""
    return f"not yet{as_other}: event {delivery.outbox_id} is {delivery.status}{note}"


def _tell_difference(found: Difference, *, as_json: bool) -> None:
    if as_json:
        put_json(shapes.difference(found))
        return
    say(f"from version {found.from_version} to version {found.to_version}")
    if found.fields:
        rows = [(one.field, *apart(one.old, one.new)) for one in found.fields]
        draw(table(["field", "old", "new"], rows))
    else:
        say("no difference")


async def _known(house: "House", item_no: int) -> ProductRow:
    found = await house.reports.product(item_no)
    if found is None:
        raise Unknown("product of item", item_no)
    return found


@contextmanager
def _target(output: Path | None) -> Iterator[IO[str]]:
    if output is None:
        yield typer.get_text_stream("stdout", encoding="utf-8")
        return
    with output.open("w", encoding="utf-8", newline="") as target:
        yield target


def _writer(form: Format, target: IO[str], *, changes: bool) -> Callable[[Any], object]:
    from sellerwatch.entry.console.sheets import ChangeSheet, ProductSheet  # noqa: PLC0415 - only here

    if form is Format.CSV:
        return (ChangeSheet if changes else ProductSheet)(target).write
    shape: Callable[[Any], shapes.Shape] = shapes.change_of if changes else shapes.product
    return lambda row: target.write(json_text(shape(row)) + "\n")
