"""What is remembered of products: the documents that prove them, their changes, and the events that tell of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.outbox import ProductEvent
from sellerwatch.domain.products import Product, ProductStatus, Seen
from sellerwatch.domain.raws import Raw
from sellerwatch.ports.store.claims import Claim


@dataclass(frozen=True, slots=True)
class Head:
    """Of a product, what decides whether an answer is news."""

    item_no: int
    product_id: str
    seller_id: str
    status: ProductStatus
    absences: int
    seen: Mapping[DocumentKind, Seen]


@dataclass(frozen=True, slots=True)
class Standing:
    """Of a complete product, which version it has come to."""

    number: int
    """Its place in the order of `standings_after`."""
    item_no: int
    version: int


@dataclass(frozen=True, slots=True)
class RawSign:
    """Of a raw, what tells whether it is the one to be read."""

    raw_id: str
    item_no: int
    kind: DocumentKind
    crawled_at: datetime


@dataclass(frozen=True, slots=True)
class Touch:
    """An answer whose bytes equal the applied document's: the product was seen, nothing more."""

    item_no: int
    kind: DocumentKind
    raw_hash: str
    at: datetime


class Raws(Protocol):
    def put(self, raws: Sequence[Raw]) -> None:
        """New content is stored; known content becomes PENDING again with the new execution, task and moment, unless
        what is known is newer."""

    def ripen(self, pairs: Sequence[tuple[str, int]], at: datetime) -> None:
        """(execution id, item no): its crawl has ended, its PENDING raws may be processed."""

    def lock_ripe(self, at: datetime, count: int) -> list[Raw]:
        """Whole observations: about `count` ripe raws, with all PENDING siblings of their (execution, item)."""

    def save(self, raws: Sequence[Raw]) -> None:
        """Everything but the content."""

    def lock_failed(self, at: datetime, retries_max: int, count: int) -> list[Raw]: ...
    def lock_by_id(self, raw_ids: Sequence[str]) -> list[Raw]: ...
    def lock_held(self, execution_id: str, count: int, *, failed: bool = False) -> list[Raw]:
        """HELD raws of the execution; with `failed` also those that FAILED."""

    def items_since(self, since: datetime, after_item: int, count: int) -> list[int]:
        """The next items behind that one, in the order of their numbers, of which anything was crawled since."""

    def count_items_since(self, since: datetime, after_item: int = 0) -> int: ...
    def signs_since(self, item_nos: Iterable[int], since: datetime) -> list[RawSign]:
        """What these items' raws crawled since are known by; no content is read."""


class Products(Protocol):
    def heads(self, item_nos: Iterable[int]) -> dict[int, Head]: ...
    def touch(self, touches: Sequence[Touch]) -> None:
        """Seen again, the same to the byte; changes nothing where the applied document is another by now."""

    def standings(self, item_nos: Iterable[int]) -> dict[int, Standing]:
        """Of those that are complete."""

    def standings_after(self, number: int, count: int, seller_id: str | None = None) -> list[Standing]:
        """The next complete ones behind that number, of one seller or of all; from 0 on, all of them."""

    def lock(self, item_nos: Iterable[int]) -> dict[int, Product]: ...
    def spoilt(self) -> set[int]:
        """Which of those asked for by `lock` are there, but can't be read: they are not new."""

    def get(self, item_no: int) -> Product | None: ...
    def save(self, products: Sequence[Product]) -> None: ...


class Changes(Protocol):
    def add(self, changes: Sequence[Change]) -> None: ...
    def of_item(self, item_no: int) -> list[Change]:
        """By version."""


class Events(Protocol):
    """The product outbox. HELD rows of a quarantine foretell what it would tell: they stand in nobody's way."""

    def add(self, events: Sequence[ProductEvent]) -> None: ...
    def lock_waiting(self, product_ids: Iterable[str]) -> list[ProductEvent]:
        """WAITING rows of these products."""

    def foretell(self, events: Sequence[ProductEvent]) -> None:
        """HELD rows of a quarantine, in place of those that were foretold under the same ids, also if they had ended."""

    def lock_foretold(self, quarantine_id: str, count: int) -> list[ProductEvent]:
        """HELD rows of the quarantine."""

    def claim(self, claim: Claim, count: int) -> list[list[ProductEvent]]:
        """Per product with a due row, the oldest due first: its first WAITING row and, when that was never tried, those
        behind it that weren't either and are due, by version: they may be told as one. All of them are SENDING now. A product with
        a row SENDING or HELD before them is skipped; rows whose first is not due yet wait."""

    def save(self, events: Sequence[ProductEvent], owner: str) -> int:
        """The state of those still claimed by `owner`, and what ends the claim of those no longer SENDING."""

    def restate(self, events: Sequence[ProductEvent]) -> None:
        """What locked rows say: a newer one took over what an older one would have said."""

    def free_zombies(self, at: datetime, count: int) -> int: ...
    def lock(self, outbox_ids: Sequence[str]) -> list[ProductEvent]: ...
    def lock_failed_since(self, since: datetime, count: int) -> list[ProductEvent]: ...
    def has_failed(self) -> bool: ...
    def newer_sent(self, event: ProductEvent) -> int | None:
        """The version of a newer row of the same product that was sent already."""

    def put(self, events: Sequence[ProductEvent]) -> None: ...
