"""The operators' what-if: how many products these identities can keep fresh, before anything is bought or promised."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sellerwatch.domain.errors import Refused
from sellerwatch.entry.cli.door import run, settings_of
from sellerwatch.entry.cli.options import SIZE_MAX, meant
from sellerwatch.entry.console.tables import draw, put_json, say

if TYPE_CHECKING:
    from sellerwatch.simulation.scale import Operation
    from sellerwatch.wiring import House

DEFAULTS = {"sellers": 1, "products": 1000, "identities": 100, "days": 7, "interval": 1}


def tell_forecast(
    ctx: typer.Context,
    operation: "Operation",
    level: str,
    factor: float | None,
    picture: Path | None,
    *,
    seed: int,
    json: bool,
) -> None:
    """Live it, and tell what came of it; nothing of the operator's own is touched."""
    from sellerwatch.entry.console.forecast import drawn, shown  # noqa: PLC0415 - everything is behind it
    from sellerwatch.entry.console.forecast_picture import pictured  # noqa: PLC0415
    from sellerwatch.simulation.forecast import forecast  # noqa: PLC0415
    from sellerwatch.simulation.miniature import OWN  # noqa: PLC0415
    from sellerwatch.simulation.weather import rates_of  # noqa: PLC0415

    rates = meant(ctx, "--faults", lambda: rates_of(level))
    settings = settings_of(ctx, **OWN)
    if picture:
        # What can't be written is better known before than after.
        picture.touch()
    found = forecast(operation, settings, rates, live, factor=factor, seed=seed)
    if picture:
        picture.write_text(pictured(found, level), encoding="utf-8")
    if json:
        put_json(shown(found, level))
        return
    draw(drawn(found, level))
    if picture:
        say(f"drawn: {picture}")


def operation_of(
    ctx: typer.Context, given: dict[str, int | None], per_seller: int | None, *, mine: bool
) -> "Operation":
    """What is asked about; what was not said is as in the operator's own database, or as usual."""
    from sellerwatch.simulation.scale import Operation  # noqa: PLC0415 - everything is behind it

    known = DEFAULTS | (run(ctx, _mine) if mine else {})
    said = known | {name: value for name, value in given.items() if value is not None}
    if per_seller is not None:
        if given["products"] is not None:
            raise typer.BadParameter("give one of the two, not both", ctx, param_hint="--products or --per-seller")
        said["products"] = said["sellers"] * per_seller
    return meant(
        ctx,
        "--products",
        lambda: Operation(
            sellers=said["sellers"],
            products=said["products"],
            identities=said["identities"],
            days=said["days"],
            interval_days=said["interval"],
        ),
    )


async def _mine(house: "House") -> dict[str, int]:
    """The ACTIVE sellers, the shortest of their intervals, their products and the identities."""
    from sellerwatch.domain.sellers import SellerStatus  # noqa: PLC0415 - everything is behind it

    sellers = await house.reports.sellers(status=SellerStatus.ACTIVE, size=SIZE_MAX)
    overview = await house.reports.overview(house.clock.now())
    if not sellers.total or not overview.products.total:
        raise Refused("no product of an ACTIVE seller is known yet: say --sellers and --products instead of --mine")
    identities = await house.store.read(lambda unit: unit.identities.all())
    return {
        "sellers": sellers.total,
        "products": overview.products.total - overview.products.delisted,
        "identities": len(identities),
        "interval": min((row.interval_days for row in sellers.rows), default=1),
    }


async def live(house: "House", stop: asyncio.Event, gather_seconds: float) -> None:
    from sellerwatch.entry.up import run_up  # noqa: PLC0415 - everything is behind it

    await run_up(house, stop, unhurried_seconds=gather_seconds)
