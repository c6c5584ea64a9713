"""`sellerwatch agents report`: how polite a day was, by the log of what really left."""

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.cli.door import run
from sellerwatch.entry.cli.options import Json, checked
from sellerwatch.entry.console.politeness import Allowed, Day, drawn, shown
from sellerwatch.entry.console.tables import draw, put_json

if TYPE_CHECKING:
    from sellerwatch.wiring import House


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.max
    # Its beginning and end must be moments in every time zone.
    if not 1970 <= day.year < 9999:
        raise Invalid("day", text, "a day like 2026-11-18")
    return day


def report(
    ctx: typer.Context,
    on: Annotated[
        str | None,
        typer.Option(
            "--date",
            metavar="YYYY-MM-DD",
            help="Which day, in METRICS_TIMEZONE; today if none.",
            callback=checked(_day),
        ),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Every identity and every 429.")] = False,
    as_json: Json = False,
) -> None:
    """Show how polite a day was: requests, peaks, gaps, and what followed each 429."""
    day = None if on is None else _day(on)
    found = run(ctx, lambda house: _look(house, day))
    if as_json:
        put_json(shown(found))
    else:
        draw(drawn(found, everyone=everyone))


async def _look(house: "House", day: date | None) -> Day:
    settings = house.settings
    zone = settings.timezone
    day = day or house.clock.now().astimezone(zone).date()
    start, end = (datetime.combine(day + timedelta(days=ahead), time(), zone).astimezone(UTC) for ahead in (0, 1))
    allowed = Allowed(settings.identity_hourly_limit, settings.identity_min_interval, settings.site_requests_per_second)
    return Day(day, zone, await house.reports.politeness(start, end), allowed)
