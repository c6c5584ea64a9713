"""Values that are only shown: of a row that can't be read whole a report shows what can be, and the list goes on."""

from enum import StrEnum
from typing import Any, TypeVar

from sellerwatch.adapters.sql.session import loads
from sellerwatch.adapters.sql.shelves import SPOILT

T = TypeVar("T")
W = TypeVar("W", bound=StrEnum)


def word(kind: type[W], value: str) -> W:
    """As it stands there, also when it is none of ours: a person sees it."""
    try:
        return kind(value)
    except ValueError:
        stranger = str.__new__(kind, value)
        stranger._name_ = stranger._value_ = value
        return stranger


def opened(text: str | None, otherwise: T) -> Any | T:
    """JSON of the same shape as `otherwise` (None: of any), which stands for what can't be read."""
    try:
        value = otherwise if text is None else loads(text)
    except SPOILT:
        return otherwise
    return value if otherwise is None or isinstance(value, type(otherwise)) else otherwise
