"""Changes: the difference between two states of a product, what proves it, and the arithmetic of differences.

Changes in a row are a history: with them a state is taken back to any moment since the first of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sellerwatch.domain.documents import ChangeKind, DocumentKind
from sellerwatch.domain.raws import raw_id


@dataclass(frozen=True, slots=True)
class FieldChange:
    field: str
    old: Any
    new: Any

    def shown(self) -> dict[str, Any]:
        return {"field": self.field, "old": self.old, "new": self.new}


@dataclass(frozen=True, slots=True)
class Proof:
    """A document that a change rests on. The hash of its bytes names its raw, whether that is still kept or not."""

    kind: DocumentKind
    raw_hash: str
    at: datetime
    """When this answer was fetched; the same bytes may have been seen before and since."""

    def raw_id(self, item_no: int) -> str:
        return raw_id(item_no, self.kind, self.raw_hash)


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
    proofs: tuple[Proof, ...] = ()
    """None where a list proved it: by what it showed, or did not show."""
    execution_id: str | None = None
    """The crawl in which it was found."""

    @property
    def seen_at(self) -> datetime:
        """When the answer that told of it was received: the first of them, or, of a product that had to become
        complete, the last."""
        moments = [proof.at for proof in self.proofs] or [self.changed_at]
        return max(moments) if ChangeKind.CREATED in self.kinds else min(moments)


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


def rewound(state: Mapping[str, Any], changes: Iterable[Iterable[FieldChange]]) -> dict[str, Any]:
    """The state before these changes, told newest first. A field that was not known then is not in it."""
    result = dict(state)
    for fields in changes:
        for change in fields:
            result[change.field] = change.old
    return {name: value for name, value in result.items() if value is not None}
