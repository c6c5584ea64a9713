"""What stands in paths and queries: each of one spelling only, in ASCII, within its bounds."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final

from fastapi import Path, Query
from pydantic import BeforeValidator, Field

SELLER_PATTERN: Final = r"^[A-Za-z0-9._-]{1,64}$"
UUID_PATTERN: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
AGENT_PATTERN: Final = r"^([1-9][0-9]{0,8}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"
CURSOR_PATTERN: Final = r"^[0-9]{1,18}-[0-9]{1,9}-[0-9]{1,15}$"
VISIBLE_PATTERN: Final = r"^[!-~]+$"
NOT_BLANK_PATTERN: Final = r"\S"
PAGE_MAX: Final = 999
SIZE_MAX: Final = 100
ITEM_MAX: Final = 2**63 - 1
_WHOLE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:)([0-9]{2})(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 1, tzinfo=UTC)
"""Databases can hold these; what lies outside stands for the nearer of the two."""


def whole(text: object) -> object:
    """Digits that are digits everywhere: no sign, no blank, no underscore, no zero before others."""
    if isinstance(text, str):
        if not _WHOLE.fullmatch(text):
            raise ValueError("no whole number")
        return int(text)
    return text


def switch(text: object) -> object:
    if isinstance(text, str):
        if text not in {"true", "false"}:
            raise ValueError("neither true nor false")
        return text == "true"
    return text


def day(text: object) -> object:
    if isinstance(text, str):
        if not _DAY.fullmatch(text):
            raise ValueError("no day")
        return date.fromisoformat(text)
    return text


def moment(text: object) -> object:
    """RFC 3339, with a zone. A leap second is the one after it."""
    if not isinstance(text, str):
        return text
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError("no moment")
    on, minute, second, fraction, zone = found.groups()
    is_leap = second == "60"
    at = datetime.fromisoformat(f"{on}T{minute}{'59' if is_leap else second}{(fraction or '')[:7]}{zone.upper()}")
    try:
        return min(max(at.astimezone(UTC) + timedelta(seconds=is_leap), _EARLIEST), _LATEST)
    except OverflowError:
        return _EARLIEST if at.year < 5000 else _LATEST


SellerId = Annotated[
    str, Path(alias="sellerId", pattern=SELLER_PATTERN, description="the marketplace's own id", examples=["atelier"])
]
ExecutionId = Annotated[
    str, Path(alias="executionId", pattern=UUID_PATTERN, examples=["019a0000-0000-7000-8000-000000000000"])
]
ItemNo = Annotated[
    Annotated[int, Field(ge=1, le=ITEM_MAX), BeforeValidator(whole)],
    Path(alias="itemNo", description="the marketplace's number", examples=[118005032]),
]
AgentId = Annotated[
    str, Path(alias="id", pattern=AGENT_PATTERN, description="its number (agentId) or its userAgentId", examples=["17"])
]
TaskId = Annotated[str, Path(alias="taskId", pattern=UUID_PATTERN, examples=["019a0000-0000-7000-8000-000000000001"])]
OutboxId = Annotated[str, Path(alias="id", pattern=UUID_PATTERN, examples=["019a0000-0000-5000-8000-000000000000"])]
QuarantineId = Annotated[str, Path(alias="id", pattern=UUID_PATTERN, examples=["019a0000-0000-5000-8000-000000000000"])]
SellerFilter = Annotated[
    str | None, Query(alias="sellerId", pattern=SELLER_PATTERN, description="only of this seller", examples=["atelier"])
]
PageNo = Annotated[
    Annotated[int, Field(ge=0, le=PAGE_MAX), BeforeValidator(whole)],
    Query(description="from 0; what lies deeper is not paged to"),
]
PageSize = Annotated[Annotated[int, Field(ge=1, le=SIZE_MAX), BeforeValidator(whole)], Query()]
Cursor = Annotated[
    str | None,
    Query(pattern=CURSOR_PATTERN, description="`nextCursor` of the answer before; then `page` means nothing"),
]
Moment = Annotated[datetime, BeforeValidator(moment)]
Day = Annotated[date, BeforeValidator(day)]
Switch = Annotated[bool, BeforeValidator(switch)]


def cursor_of(number: int, page: int, total: int) -> str:
    """Behind which row the next page begins, its number, and the total as it was counted at first."""
    return f"{number}-{page}-{total}"


def read_cursor(cursor: str) -> tuple[int, int, int]:
    number, page, total = map(int, cursor.split("-"))
    return number, page, total
