"""`sellerwatch drift`: how the marketplace's answers differ from what is declared, and what was kept back for it."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import group, run
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console.tables import draw, put_json, say
from sellerwatch.entry.console.text import count
from sellerwatch.entry.console.trust import drift_shape, drift_tables
from sellerwatch.ports.reports import DriftReport

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Drift.")


@app.command(epilog="Example: sellerwatch drift --days 1")
def drift(
    ctx: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="Of so many days, today among them.")] = 7,
    as_json: Json = False,
) -> None:
    """Show which fields are not as declared, what is quarantined, and which changes were not told."""

    async def work(house: "House") -> DriftReport:
        today = house.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        return await house.reports.drift(today - timedelta(days=days - 1))

    report = run(ctx, work)
    if as_json:
        put_json(drift_shape(report))
        return
    tables = drift_tables(report)
    for one in tables:
        draw(one)
    if not tables:
        say(f"no drift in {count(days, 'day')}: every field was as declared")
