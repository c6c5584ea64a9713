"""A day of figures: from one midnight to the next, where the operators live."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 1, tzinfo=UTC)
"""Nothing is known of what lies outside; every database can hold these, in any zone."""


def bounds(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """When it begins and when the next one does; 23 or 25 hours where clocks are changed."""
    if not FIRST.date() < day < LAST.date():
        never = FIRST if day <= FIRST.date() else LAST
        return never, never
    after = day + timedelta(days=1)
    return (
        datetime(day.year, day.month, day.day, tzinfo=zone),
        datetime(after.year, after.month, after.day, tzinfo=zone),
    )
