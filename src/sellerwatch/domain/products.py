"""Products: what is known of an item, from its three documents.

    (first document) ─▶ ACTIVE, version 0 ── all three seen ─▶ version 1 ── each change ─▶ version + 1
                          │   ▲
        two absences in a row │ seen again
                          ▼   │
                         DELISTED

Each field has one owner document and each document its moment, so neither the order nor the repetition of what
arrives makes a difference: a document older than the one already applied changes nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sellerwatch.domain.changes import Change, FieldChange, Proof, difference
from sellerwatch.domain.documents import ChangeKind, Document, DocumentKind
from sellerwatch.domain.ids import derived
from sellerwatch.domain.meaning import MEANING, Meaning
from sellerwatch.domain.outbox import EventType, OutboxStatus, ProductEvent

ABSENCES_MAX = 2
"""So many in a row, each in an execution of its own, and the product is DELISTED."""


class ProductStatus(StrEnum):
    ACTIVE = "ACTIVE"
    DELISTED = "DELISTED"


@dataclass(frozen=True, slots=True)
class Seen:
    """The document of one kind that a product's state rests on."""

    digest: str
    raw_hash: str
    at: datetime
    """When the newest answer that said the same was fetched."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document as it came: what it says, the hash of its bytes, and when it was fetched."""

    document: Document
    raw_hash: str
    at: datetime


@dataclass(slots=True)
class Product:
    product_id: str
    item_no: int
    seller_id: str
    first_seen_at: datetime
    last_seen_at: datetime
    created_at: datetime
    updated_at: datetime
    last_changed_at: datetime | None = None
    status: ProductStatus = ProductStatus.ACTIVE
    version: int = 0
    absences: int = 0
    fields: dict[str, Any] = field(default_factory=dict)
    """The business fields by name, in normal form."""
    seen: dict[DocumentKind, Seen] = field(default_factory=dict)

    @classmethod
    def discover(cls, item_no: int, seller_id: str, at: datetime) -> "Product":
        return cls(
            product_id=derived(str(item_no), "product"),
            item_no=item_no,
            seller_id=seller_id,
            first_seen_at=at,
            last_seen_at=at,
            created_at=at,
            updated_at=at,
        )

    @property
    def is_complete(self) -> bool:
        return len(self.seen) == len(DocumentKind)

    def apply(
        self,
        observation: Iterable[Fetched],
        at: datetime,
        execution_id: str | None = None,
        meaning: Meaning = MEANING,
    ) -> Change | None:
        """What the documents of one observation change together: one version and one change, or none."""
        before = self._state()
        was_complete = self.is_complete
        for fetched in observation:
            self._take(fetched, meaning)
        self.updated_at = at
        if not self.is_complete:
            return None
        if not was_complete:
            return self._change((ChangeKind.CREATED,), (), at, execution_id, self._proofs(tuple(DocumentKind)))
        return self._change_since(before, at, execution_id, meaning, is_read=True)

    def spell_seller(self, seller_id: str) -> None:
        """Sellers are told apart without regard to case; by its own crawl one is spelled as it was registered."""
        if self.seller_id.casefold() == seller_id.casefold():
            self.seller_id = seller_id

    def copy(self) -> "Product":
        """To be tried on: what is applied to it changes nothing here. Spelled out, for `replace` costs five times that."""
        return Product(
            self.product_id,
            self.item_no,
            self.seller_id,
            self.first_seen_at,
            self.last_seen_at,
            self.created_at,
            self.updated_at,
            self.last_changed_at,
            self.status,
            self.version,
            self.absences,
            dict(self.fields),
            dict(self.seen),
        )

    @property
    def is_about_to_go(self) -> bool:
        """One more absence, and it is DELISTED."""
        return self.status is ProductStatus.ACTIVE and self.absences + 1 >= ABSENCES_MAX

    def miss(self, at: datetime, execution_id: str | None = None) -> Change | None:
        """Absent from a complete list, or its page is gone, in one more execution."""
        self.updated_at = at
        if self.status is ProductStatus.DELISTED:
            return None
        self.absences += 1
        if self.absences < ABSENCES_MAX:
            return None
        before = self._state()
        self.status = ProductStatus.DELISTED
        return self._change_since(before, at, execution_id) if self.is_complete else None

    def relist(self, at: datetime, execution_id: str | None = None) -> Change | None:
        """Seen again. Also ends a row of absences that never became two."""
        self.absences, self.updated_at = 0, at
        if self.status is ProductStatus.ACTIVE:
            return None
        before = self._state()
        self.status = ProductStatus.ACTIVE
        return self._change_since(before, at, execution_id) if self.is_complete else None

    def data(self, meaning: Meaning = MEANING) -> dict[str, Any]:
        """`productData` of the outgoing event and of the API."""
        return meaning.product_data(self.fields, self.item_no, self.status.value)

    def _take(self, fetched: Fetched, meaning: Meaning) -> None:
        document, known = fetched.document, self.seen.get(fetched.document.kind)
        if known and not _is_newer(fetched, known):
            return
        at = max(fetched.at, known.at) if known else fetched.at
        self.last_seen_at = max(self.last_seen_at, at)
        self.seen[document.kind] = Seen(document.digest, fetched.raw_hash, at)
        if document.kind is DocumentKind.DETAIL:
            if (known is None or at > known.at) and not self._was_missed_since(at):
                self.status, self.absences = ProductStatus.ACTIVE, 0
            if document.seller_id and document.seller_id.casefold() != self.seller_id.casefold():
                self.seller_id = document.seller_id
        if known and known.digest == document.digest:
            return
        self.fields.update(meaning.owned(document, self.fields))
        if DocumentKind.DETAIL not in self.seen:
            self.fields.update(meaning.stand_ins(document))

    def _was_missed_since(self, at: datetime) -> bool:
        """A page that was fetched before is no sighting, however late it is read. What is missed was written then, or
        later; a list that shows it again relists it in any case."""
        return self.absences > 0 and at <= self.updated_at

    def _state(self) -> dict[str, Any]:
        return {**self.fields, "sellerId": self.seller_id, "status": self.status.value}

    def _change_since(
        self,
        before: Mapping[str, Any],
        at: datetime,
        execution_id: str | None,
        meaning: Meaning = MEANING,
        *,
        is_read: bool = False,
    ) -> Change | None:
        """`is_read`: documents tell of it, so what changed rests on those that own it."""
        changed = difference(before, self._state())
        if not changed:
            return None
        kinds = {_kind_of(change, meaning): None for change in changed}
        owners = {_owner_of(change.field, meaning) for change in changed} if is_read else ()
        return self._change(tuple(kinds), changed, at, execution_id, self._proofs(owners))

    def _proofs(self, kinds: Collection[DocumentKind]) -> tuple[Proof, ...]:
        known = ((kind, self.seen[kind]) for kind in DocumentKind if kind in kinds)
        return tuple(Proof(kind, seen.raw_hash, seen.at) for kind, seen in known)

    def _change(
        self,
        kinds: tuple[ChangeKind, ...],
        fields: tuple[FieldChange, ...],
        at: datetime,
        execution_id: str | None,
        proofs: tuple[Proof, ...],
    ) -> Change:
        self.version += 1
        self.last_changed_at = at
        return Change(
            change_id=derived(self.product_id, f"change/{self.version}"),
            product_id=self.product_id,
            item_no=self.item_no,
            seller_id=self.seller_id,
            version=self.version,
            kinds=kinds,
            fields=fields,
            changed_at=at,
            proofs=proofs,
            execution_id=execution_id,
        )


def announce(product: Product, change: Change, meaning: Meaning = MEANING) -> ProductEvent:
    """The product outbox row of a change: it carries the whole product, so that a newer one may stand in for it."""
    outbox_id = derived(product.product_id, f"outbox/{change.version}")
    event_type = _event_type(change)
    return ProductEvent(
        outbox_id=outbox_id,
        payload={
            "eventType": event_type.value,
            "eventId": outbox_id,
            "occurredAt": shown_at(change.changed_at),
            "version": change.version,
            "itemNo": product.item_no,
            "sellerId": product.seller_id,
            "changes": [field_change.shown() for field_change in change.fields],
            "productData": product.data(meaning),
        },
        created_at=change.changed_at,
        status=OutboxStatus.WAITING,
        retry_count=0,
        next_attempt_at=change.changed_at,
        error_message=None,
        sent_at=None,
        product_id=product.product_id,
        event_type=event_type,
        version=change.version,
        seen_at=change.seen_at,
    )


def shown_at(at: datetime) -> str:
    """ISO 8601, UTC, as every answer and event shows a moment."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_newer(fetched: Fetched, known: Seen) -> bool:
    """Of two at one moment either must win, whichever came first. The same bytes are read anew, for they may be
    understood better by now; the moment they were last seen is not taken back by that."""
    return fetched.raw_hash == known.raw_hash or (fetched.at, fetched.raw_hash) > (known.at, known.raw_hash)


def _event_type(change: Change) -> EventType:
    if ChangeKind.CREATED in change.kinds:
        return EventType.CREATED
    return EventType.DELISTED if ChangeKind.DELISTED in change.kinds else EventType.UPDATED


def _owner_of(name: str, meaning: Meaning) -> DocumentKind:
    """Whose seller and status a document tells, the detail does."""
    return DocumentKind.DETAIL if name in {"sellerId", "status"} else meaning.owner_of(name)


def _kind_of(change: FieldChange, meaning: Meaning) -> ChangeKind:
    if change.field == "status":
        return ChangeKind.DELISTED if change.new == ProductStatus.DELISTED else ChangeKind.RELISTED
    return ChangeKind.SELLER if change.field == "sellerId" else meaning.change_kind(change.field)
