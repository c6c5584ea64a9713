"""`sellerwatch queue …`: the queues in SQS."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import group, settings_of
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console.deviations import tell

if TYPE_CHECKING:
    from sellerwatch.ports.layout import Deviation
    from sellerwatch.settings import Settings

app = group("The queues in SQS, where tasks and triggers are carried by it.")


@app.callback()
def _several() -> None:
    """The queues in SQS, where tasks and triggers are carried by it."""


@app.command(epilog="Example: sellerwatch queue setup --dry-run")
def setup(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """Make the queues with their dead-letter queues, and mend what is not as it should be; harmless when all is."""
    settings = settings_of(ctx)
    found = asyncio.run(_set_up(settings, is_dry=dry_run))
    right = "the queues are as they should be"
    if settings.queue is None and settings.trigger_queue is None:
        right = "the queue is in the database: there is nothing to set up"
    tell(found, right, is_mended=not dry_run, as_json=as_json)


async def _set_up(settings: "Settings", *, is_dry: bool) -> "list[Deviation]":
    from sellerwatch.wiring.engines import layouts_of  # noqa: PLC0415 - slow to load

    found: list[Deviation] = []
    for layout in layouts_of(settings):
        try:
            some = await layout.deviations()
            for deviation in some if not is_dry else ():
                await layout.mend(deviation)
            found += some
        finally:
            await layout.close()
    return found
