"""Since when the log of requests is kept: it is deleted row by row where it has no partitions, else month by month."""

from datetime import datetime, timedelta

MONTH = timedelta(days=31)


def usage_kept_since(at: datetime, months: int) -> datetime:
    """Never less than so many calendar months."""
    return at - months * MONTH
