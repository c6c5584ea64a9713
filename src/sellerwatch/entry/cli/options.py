"""Options that several commands share, by one name and one meaning, and what they have in common.

Promises: what is wrong with an option or an argument by itself is wrong use, told with its name: exit 2. What fails when
it is done is exit 1.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer

from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.console.text import grouped

T = TypeVar("T")
SIZE_MAX = 1000
_UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}
_EARLIEST = datetime.min.replace(tzinfo=UTC)

Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
PageNo = Annotated[int, typer.Option("--page", min=0, help="Which page, from 0.")]
Size = Annotated[int, typer.Option("--size", min=1, max=SIZE_MAX, help="So many on a page.")]


def checked(check: Callable[[Any], object]) -> Callable[[Any], Any]:
    """The callback of an option or an argument: what `check` refuses is wrong use."""

    def callback(value: Any) -> Any:
        if value is not None:
            try:
                check(value)
            except Invalid as refused:
                raise typer.BadParameter(str(refused).removeprefix(f"{refused.field}: ")) from None
        return value

    return callback


def meant(ctx: typer.Context, name: str, make: Callable[[], T]) -> T:
    """What is made of that option; what is refused then is wrong use."""
    try:
        return make()
    except Invalid as refused:
        raise typer.BadParameter(str(refused).removeprefix(f"{refused.field}: "), ctx, param_hint=name) from None


def check_one(ctx: typer.Context, names: str, *, first: bool, second: bool) -> None:
    """Of two ways to say what is meant, one."""
    if first == second:
        raise typer.BadParameter("give one of the two" + (", not both" if first else ""), ctx, param_hint=names)


def moment_of(text: str, now: datetime) -> datetime:
    """A moment as one types it: `2026-11-18`, `2026-11-18T09:30` (UTC), or so long ago: `90min`, `6h`, `2d`."""
    said = time_of(text)
    if isinstance(said, datetime):
        return said
    try:
        return now - said
    except OverflowError:
        return _EARLIEST


def time_of(text: str) -> datetime | timedelta:
    for unit, name in _UNITS.items():
        number = text.removesuffix(unit)
        if number != text and number.isdecimal() and len(number) < 7:
            return timedelta(**{name: int(number)})
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid("time", text, "a time like 2026-11-18T09:30, or so long ago: 90min, 6h, 2d") from None


def footer(page: int, size: int, shown: int, total: int) -> str | None:
    """Which part of a longer list was shown; None when it was all of it."""
    if shown == total:
        return None
    first = page * size
    part = f"{grouped(first + 1)} to {grouped(first + shown)}" if shown else "none"
    return f"{part} of {grouped(total)} (--page, --size)"
