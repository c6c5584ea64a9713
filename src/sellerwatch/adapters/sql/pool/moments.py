"""Moments as the ledger keeps them: whole microseconds since 1970, which compare and add up without surprises."""

from datetime import UTC, datetime, timedelta
from typing import overload

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
NEVER = 1 << 62
"""A due moment that no clock reaches."""
_MICROSECOND = timedelta(microseconds=1)
_LATEST = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // _MICROSECOND


@overload
def us(moment: datetime) -> int: ...
@overload
def us(moment: datetime | None) -> int | None: ...
def us(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


@overload
def moment(at_us: int) -> datetime: ...
@overload
def moment(at_us: int | None) -> datetime | None: ...
def moment(at_us: int | None) -> datetime | None:
    return None if at_us is None else EPOCH + timedelta(microseconds=min(at_us, _LATEST))


def span(seconds: float) -> int:
    """So many seconds in microseconds."""
    return round(seconds * SECOND)
