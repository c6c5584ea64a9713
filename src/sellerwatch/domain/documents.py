"""Documents: what the marketplace says of an item, brought to a normal form, and the kinds of change it can make.

Two documents that mean the same have the same fields and the same digest, however they were written down. What a
document doesn't say is not in it as a zero or an empty text: it was refused before it became a document (meaning.py).
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TypeAlias

from sellerwatch.domain.errors import Unreadable

Value: TypeAlias = "str | int | bool | tuple[Value, ...] | dict[str, Value] | None"
"""What a field can hold in normal form. `frozen` makes it again of what a store gave back as JSON."""


class DocumentKind(StrEnum):
    MINI_SHOP = "MINI_SHOP"
    DETAIL = "DETAIL"
    OPTION = "OPTION"


class ChangeKind(StrEnum):
    CREATED = "CREATED"
    PRICE = "PRICE"
    STOCK = "STOCK"
    SOLD_OUT = "SOLD_OUT"
    OPTIONS = "OPTIONS"
    IMAGES = "IMAGES"
    INFO = "INFO"
    CATEGORY = "CATEGORY"
    SHIPPING = "SHIPPING"
    SELLER = "SELLER"
    DELISTED = "DELISTED"
    RELISTED = "RELISTED"


@dataclass(frozen=True, slots=True)
class Document:
    kind: DocumentKind
    item_no: int
    seller_id: str | None
    """As the document writes it; only a DETAIL knows."""
    fields: dict[str, Value]
    """By name, in normal form. A name that is not here is one the document doesn't speak of."""
    digest: str
    """`content_hash` of the fields' canonical form: equal when, and only when, the fields are."""
    missing: tuple[str, ...] = ()
    """Fields that are nearly always there and weren't."""
    unknown: tuple[str, ...] = ()
    """Names that were never declared, at most `UNKNOWN_MAX` of them."""


def content_hash(content: bytes) -> str:
    """BLAKE2b of 128 bits, as 32 hexadecimal digits."""
    return blake2b(content, digest_size=16).hexdigest()


def frozen(value: object) -> Value:
    """A value that went through JSON, as it was before: arrays are tuples."""
    if isinstance(value, list | tuple):
        return tuple(frozen(one) for one in value)
    if isinstance(value, dict):
        return {name: frozen(one) for name, one in value.items()}
    if value is None or isinstance(value, str | int):
        return value
    raise Unreadable("field", f"{type(value).__name__} is no value of a field")
