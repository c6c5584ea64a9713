"""`sellerwatch raw …`: what the marketplace answered, processed once more."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import end_badly, group, run
from sellerwatch.entry.cli.options import Json, checked, moment_of, time_of
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.progress import steps_done
from sellerwatch.entry.console.tables import apart, complain, draw, put_json, right, say, table
from sellerwatch.entry.console.text import count
from sellerwatch.flows.reprocess import FieldTally, Reprocessed

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Raws: what the marketplace answered, processed once more.")


@app.command(epilog="Example: sellerwatch raw retry")
def retry(
    ctx: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Of these raws; none: of all.")] = None,
) -> None:
    """Process raws that FAILED once more, whatever was tried before."""
    repaired = run(ctx, lambda house: house.repair.retry_raws(ids or None))
    say(f"{count(repaired.done, 'raw')} will be processed once more")
    for line in repaired.refused:
        complain(f"error: {line}")
    if repaired.refused:
        end_badly()


@app.command(epilog="Example: sellerwatch raw reprocess --since 7d --dry-run")
def reprocess(
    ctx: typer.Context,
    since: Annotated[
        str,
        typer.Option("--since", metavar="TIME", help="2026-11-18T09:30 (UTC), or 6h, 2d.", callback=checked(time_of)),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would change.")] = False,
    as_json: Json = False,
) -> None:
    """Read all raws crawled since a time once more, as after mending a parser, and deliver what really differs.

    The marketplace is not asked. Interrupted, it has done a part; run again, it does the rest.
    """

    async def work(house: "House") -> Reprocessed:
        at = moment_of(since, house.clock.now())
        with steps_done("items read") as show:
            async for done in house.reprocess.run(at, is_trial=dry_run):
                show(done.items, done.items_total)
        return done

    found = run(ctx, work)
    if as_json:
        put_json(shapes.reprocessed(found))
        return
    say(
        f"{count(found.raws, 'raw')} of {count(found.items, 'item')} read once more; "
        f"{count(found.passed_over, 'raw')} passed over: older content, or waiting anyway"
    )
    if found.quarantines:
        say(f"{count(found.quarantines, 'quarantined crawl')} will be absorbed and judged anew, besides")
    for title, column, tallies in (
        ("changed", "field", found.fields),
        ("not understood", "where", found.not_understood),
    ):
        if tallies:
            draw(_tallies(title, column, tallies))
    born = f", {found.created} of them for new products" if found.created else ""
    if dry_run:
        say(f"{count(found.events, 'event')} would be sent{born}. Nothing was changed: it was a trial.")
    else:
        say(f"{count(found.events, 'event')} will be sent{born}.")


def _tallies(title: str, column: str, tallies: Mapping[str, FieldTally]) -> object:
    rows = [
        (*((name, tally.count) if place == 0 else ("", "")), item_no, *apart(old, new))
        for name, tally in sorted(tallies.items(), key=lambda pair: (-pair[1].count, pair[0]))
        for place, (item_no, old, new) in enumerate(tally.samples)
    ]
    if column == "where":
        return table([column, right("raws"), "for example item", "why"], [row[:4] for row in rows], title=title)
    return table([column, right("products"), "for example item", "old", "new"], rows, title=title)
