"""`sellerwatch product …`: what is known of the products, and how it came to be so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Unknown
from sellerwatch.entry.cli.door import group, moment_of, run
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.tables import draw, json_text, put_json, right, say, table
from sellerwatch.entry.console.text import count, moment
from sellerwatch.ports.reports import ChangeRow, ProductRow

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Products: what is known of them, and how it came to be so.")

BATCH = 500
_LONG = 120

ItemNo = Annotated[int, typer.Argument(metavar="ITEM", min=1, help="The marketplace's number of the item.")]


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


@app.command(epilog="Example: sellerwatch product show 118005032")
def show(ctx: typer.Context, item_no: ItemNo, as_json: Json = False) -> None:
    """Show a product as it is known now."""
    found = run(ctx, lambda house: _known(house, item_no))
    shape = shapes.product(found)
    if as_json:
        put_json(shape)
    else:
        draw(table(["", ""], [(name, _short(value)) for name, value in shape.items()]))


@app.command(epilog="Example: sellerwatch product history 118005032 --json")
def history(ctx: typer.Context, item_no: ItemNo, as_json: Json = False) -> None:
    """Show every change of a product, the oldest first."""

    async def work(house: "House") -> list[ChangeRow]:
        await _known(house, item_no)
        changes: list[ChangeRow] = []
        while some := await house.reports.changes_after(item_no, changes[-1].version if changes else 0, BATCH):
            changes += some
        return changes

    changes = run(ctx, work)
    if as_json:
        put_json([shapes.change(row) for row in changes])
        return
    rows: list[tuple[object, ...]] = []
    for row in changes:
        fields = row.fields or (None,)
        for place, field in enumerate(fields):
            about = (row.version, moment(row.changed_at), ", ".join(row.kinds)) if place == 0 else ("", "", "")
            what = (field.field, _short(field.old), _short(field.new)) if field else ("", "", "")
            rows.append((*about, *what))
    draw(table([right("version"), "changed", "kinds", "field", "old", "new"], rows))


@app.command(epilog="Example: sellerwatch product export --seller dmont --format csv > dmont.csv")
def export(
    ctx: typer.Context,
    form: Annotated[Format, typer.Option("--format", case_sensitive=False, help="JSON lines, or CSV.")] = Format.JSONL,
    seller: Annotated[str | None, typer.Option("--seller", metavar="ID", help="Only of this seller.")] = None,
    complete: Annotated[
        bool | None, typer.Option("--complete/--incomplete", help="Only those whose documents were all seen, or not.")
    ] = None,
    changed_since: Annotated[
        str | None, typer.Option("--changed-since", metavar="TIME", help="2026-11-18T09:30 (UTC), or 6h, 2d.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", dir_okay=False, help="Into this file, not to stdout.")
    ] = None,
) -> None:
    """Write all products, one a line, as they are read: however many there are, memory stays small."""

    async def work(house: "House") -> int:
        since = moment_of(changed_since, house.clock.now(), "--changed-since") if changed_since else None
        if seller is not None and await house.reports.seller(seller) is None:
            raise Unknown("seller", seller)
        number = written = 0
        with _target(output) as target:
            write = _writer(form, target)
            while rows := await house.reports.products_after(
                number, BATCH, seller_id=seller, complete=complete, changed_since=since
            ):
                for row in rows:
                    write(row)
                number, written = rows[-1].number, written + len(rows)
        return written

    written = run(ctx, work)
    if output:
        say(f"{count(written, 'product')} written to {output}")


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


def _writer(form: Format, target: IO[str]) -> Callable[[ProductRow], object]:
    from sellerwatch.entry.console.sheets import Sheet  # noqa: PLC0415 - only here

    if form is Format.CSV:
        return Sheet(target).write
    return lambda row: target.write(json_text(shapes.product(row)) + "\n")


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json_text(value)
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
