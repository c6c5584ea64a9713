"""`sellerwatch raw …`: what the marketplace answered, processed once more."""

from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import end_badly, group, moment_of, run
from sellerwatch.entry.console.tables import complain, say
from sellerwatch.entry.console.text import count
from sellerwatch.flows.repair import Reprocessed

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
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="2026-11-18T09:30 (UTC), or 6h, 2d.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
) -> None:
    """Process all raws crawled since a time once more, as after mending a parser: of each item the newest content."""

    async def work(house: "House") -> Reprocessed:
        return await house.repair.reprocess(moment_of(since, house.clock.now()), dry_run=dry_run)

    found = run(ctx, work)
    would = "would be" if dry_run else "will be"
    say(
        f"{count(found.raws, 'raw')} of {count(found.items, 'item')} {would} processed once more; "
        f"{count(found.passed_over, 'raw')} passed over: older content, or waiting anyway"
    )
