"""Changes: the difference between two states of a product, and the arithmetic of differences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sellerwatch.domain.documents import ChangeKind


@dataclass(frozen=True, slots=True)
class FieldChange:
    field: str
    old: Any
    new: Any

    def shown(self) -> dict[str, Any]:
        return {"field": self.field, "old": self.old, "new": self.new}


@dataclass(frozen=True, slots=True)
class Change:
    change_id: str
    product_id: str
    item_no: int
    seller_id: str
    version: int
    kinds: tuple[ChangeKind, ...]
    fields: tuple[FieldChange, ...]
    changed_at: datetime


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Field by field, in the order of `new`; a field that only one side knows differs from null."""
    names = dict.fromkeys((*new, *old))
    return tuple(FieldChange(n, old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n))


def merged(older: Iterable[Mapping[str, Any]], newer: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Two lists of changes in a row told as one: oldest old, newest new, what came back to itself dropped."""
    result = {change["field"]: dict(change) for change in older}
    for change in newer:
        known = result.get(change["field"])
        if known is None:
            result[change["field"]] = dict(change)
        else:
            known["new"] = change["new"]
    return [change for change in result.values() if change["old"] != change["new"]]
