"""Products and changes as sheets: CSV with one row a product, or a changed field, the columns the same in every export.

Promises: a cell that a spreadsheet would take for a formula (= + - @, tab, carriage return) gets an apostrophe before
it; what is a list or an object is JSON in its cell. Numbers stay numbers.
"""

import csv
from collections.abc import Iterator
from typing import IO, Any

from sellerwatch.domain.meaning import MEANING
from sellerwatch.domain.products import ProductStatus
from sellerwatch.entry.console.shapes import product, time
from sellerwatch.entry.console.tables import json_text
from sellerwatch.ports.reports import ChangeRow, ProductRow

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ABOUT = (
    "itemNo",
    "sellerId",
    "status",
    "version",
    "complete",
    "firstSeenAt",
    "lastSeenAt",
    "lastChangedAt",
)


class ProductSheet:
    """Writes its line of titles when it is made."""

    def __init__(self, target: IO[str]) -> None:
        self._rows = csv.writer(target)
        self._titles = [*_ABOUT, *(title for title in _data_titles() if title not in _ABOUT)]
        self._rows.writerow(self._titles)

    def write(self, row: ProductRow) -> None:
        cells = dict(_flat(product(row)))
        self._rows.writerow([cell(cells.get(title)) for title in self._titles])


class ChangeSheet:
    """A row for each field of a change; one with empty cells for a change that names none (CREATED)."""

    def __init__(self, target: IO[str]) -> None:
        self._rows = csv.writer(target)
        self._rows.writerow(("itemNo", "sellerId", "version", "changedAt", "kinds", "field", "old", "new"))

    def write(self, row: ChangeRow) -> None:
        about = (row.item_no, row.seller_id, row.version, time(row.changed_at), " ".join(row.kinds))
        told: list[tuple[Any, ...]] = [(one.field, one.old, one.new) for one in row.fields] or [(None, None, None)]
        self._rows.writerows([cell(value) for value in (*about, *each)] for each in told)


def cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json_text(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _flat(shape: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """`brand` has a column for each of its parts; other objects stay whole."""
    for name, value in shape.items():
        if name == "brand":
            yield from ((f"{name}.{part}", inner) for part, inner in value.items())
        else:
            yield name, value


def _data_titles() -> list[str]:
    return [title for title, _ in _flat(MEANING.product_data({}, 0, ProductStatus.ACTIVE.value))]
