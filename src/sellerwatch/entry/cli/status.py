"""`sellerwatch status`: what runs, what waits, what failed."""

from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import group, run
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.status import status as drawing
from sellerwatch.entry.console.tables import draw, put_json, terminal
from sellerwatch.flows.punctuality import Late, late
from sellerwatch.ports.pool import PoolFigures
from sellerwatch.ports.queue import Depth
from sellerwatch.ports.reports import Overview

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("The status.")


@app.command(epilog="Example: sellerwatch status --watch")
def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", help="Keep it on the screen until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between two looks.")] = 2.0,
    as_json: Json = False,
) -> None:
    """Show what runs, what waits and what failed."""
    if watch:
        _watch(ctx, every)
        return
    looked = run(ctx, look)
    if as_json:
        put_json(shapes.overview(*looked))
    else:
        draw(drawing(*looked))


async def look(house: "House") -> tuple[Overview, PoolFigures, Depth, list[Late]]:
    if not (await house.pool.figures()).total:
        # Nothing has run yet: the pool is told whom the record knows.
        await house.load_pool()
    from sellerwatch.entry.ticker import late_after  # noqa: PLC0415 - everything is behind it

    seen = await house.reports.overview(house.clock.now())
    return seen, await house.pool.figures(), await house.queue.depth(), late(seen, late_after(house))


def _watch(ctx: typer.Context, every: float) -> None:
    from rich.live import Live  # noqa: PLC0415 - slow to load

    async def work(house: "House") -> None:
        console = terminal()
        with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
            while True:
                live.update(drawing(*await look(house)), refresh=True)
                await house.clock.sleep(every)

    try:
        run(ctx, work)
    except KeyboardInterrupt:
        return
