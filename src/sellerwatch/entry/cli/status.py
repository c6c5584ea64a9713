"""`sellerwatch status`: what runs, what waits, what failed."""

from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import group, run
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.status import status as drawing
from sellerwatch.entry.console.tables import draw, put_json, terminal
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
    seen, figures, depth = run(ctx, look)
    if as_json:
        put_json(shapes.overview(seen, figures, depth))
    else:
        draw(drawing(seen, figures, depth))


async def look(house: "House") -> tuple[Overview, PoolFigures, Depth]:
    if not (await house.pool.figures()).total:
        # Nothing has run yet: the pool is told whom the record knows.
        await house.load_pool()
    return await house.reports.overview(house.clock.now()), await house.pool.figures(), await house.queue.depth()


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
