"""`sellerwatch agents status`: how the identities stand, and why nobody is free."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.breakers import Breaker, BreakerScope
from sellerwatch.domain.errors import Unavailable
from sellerwatch.entry.cli.door import run
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console.standings import Look, drawn, shown
from sellerwatch.entry.console.tables import draw, put_json, terminal
from sellerwatch.ports.pool import Standing

if TYPE_CHECKING:
    from sellerwatch.wiring import House

BATCH = 1000


def status(
    ctx: typer.Context,
    everyone: Annotated[bool, typer.Option("--all", help="All of them, not the first 40.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Keep it on the screen until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between two looks.")] = 2.0,
    as_json: Json = False,
) -> None:
    """Show how the identities stand, those that need attention first, and why nobody is free."""
    if watch:
        _watch(ctx, every, everyone=everyone)
        return
    look = run(ctx, _look)
    if as_json:
        put_json(shown(look))
    else:
        draw(drawn(look, terminal().width, everyone=everyone))


def _watch(ctx: typer.Context, every: float, *, everyone: bool) -> None:
    from rich.live import Live  # noqa: PLC0415 - slow to load

    async def work(house: "House") -> None:
        console = terminal()
        with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
            while True:
                live.update(drawn(await _look(house), console.width, everyone=everyone), refresh=True)
                await house.clock.sleep(every)

    try:
        run(ctx, work)
    except KeyboardInterrupt:
        return


async def _look(house: "House") -> Look:
    figures = await house.pool.figures()
    if not figures.total:
        # Nothing has run yet: the pool is told whom the record knows.
        await house.load_pool()
        figures = await house.pool.figures()
    try:
        standings = await _standings(house)
    except Unavailable:
        standings = await _recorded(house)
    outlook, now = await house.pool.outlook(), house.clock.now()
    return Look(now, figures, outlook, standings, house.settings.identity_hourly_limit)


async def _standings(house: "House") -> list[Standing]:
    found: dict[int, Standing] = {}
    revision = 0
    while some := await house.pool.standings(revision, BATCH):
        found |= {standing.identity.agent_id: standing for standing in some}
        revision = some[-1].revision
    return list(found.values())


async def _recorded(house: "House") -> list[Standing]:
    """As the record has them while no pool can be asked; what they have left nobody knows."""
    identities = await house.store.read(lambda unit: unit.identities.all())
    closed = Breaker(BreakerScope.IDENTITY, 0, timedelta())
    return [Standing(each, 0, None, None, None, closed, 0) for each in identities]
