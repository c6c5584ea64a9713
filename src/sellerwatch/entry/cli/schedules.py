"""`sellerwatch schedule …`: what fires the triggers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import group, run
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console.deviations import tell

if TYPE_CHECKING:
    from sellerwatch.ports.layout import Deviation
    from sellerwatch.wiring import House

app = group("The rules of EventBridge, where they fire the triggers.")


@app.callback()
def _several() -> None:
    """The rules of EventBridge, where they fire the triggers."""


@app.command(epilog="Example: sellerwatch schedule sync --dry-run")
def sync(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """Bring EventBridge in line with the schedules here: rules that are missing, left over, or not as they should."""

    async def work(house: "House") -> "Sequence[Deviation] | None":
        if house.sync is None:
            return None
        found = await house.sync.deviations()
        for misfit in found if not dry_run else ():
            await house.sync.mend(misfit)
        return found

    found = run(ctx, work)
    right = "EventBridge has the rules that the schedules want"
    if found is None:
        right = "the schedule is built in: there is nothing to bring in line"
    tell(found or [], right, is_mended=not dry_run, as_json=as_json)
