"""Reading raws: what each says, as a product takes it, or why it can't be understood; and whether it is anyone's of ours."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from sellerwatch.domain.documents import Document
from sellerwatch.domain.errors import Trouble, Unreadable
from sellerwatch.domain.products import Fetched
from sellerwatch.domain.raws import Raw
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.ports.marketplace import Reader
from sellerwatch.ports.store import Unit


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    where: str
    """The field, or the kind of document."""
    why: str


def read(reader: Reader, raw: Raw) -> Fetched | NotUnderstood:
    try:
        document = reader.document(raw.kind, raw.item_no, raw.body)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this raw's and must stop no other
        why = str(error) if isinstance(error, Trouble) else f"{type(error).__name__}: {error}"
        return NotUnderstood(getattr(error, "where", raw.kind.value), why)
    return Fetched(_spelled(document, raw.seller_id), raw.raw_hash, raw.crawled_at)


def sources_of(unit: Unit, raws: Iterable[Raw]) -> dict[str, CrawlSource]:
    """How the sellers are crawled whose lists showed these."""
    sources = {}
    for seller_id in sorted({raw.seller_id for raw in raws}):
        with suppress(Unreadable):  # the store tells of it; whose an item is, its detail says
            if seller := unit.sellers.get(seller_id):
                sources[seller_id] = seller.crawl_source
    return sources


def is_foreign(sources: Mapping[str, CrawlSource], seller_id: str, documents: Iterable[Fetched]) -> bool:
    """A keyword search also shows other sellers' items; whose an item is, its detail says."""
    if sources.get(seller_id) is not CrawlSource.SEARCH:
        return False
    owners = [fetched.document.seller_id for fetched in documents if fetched.document.seller_id]
    return any(owner.casefold() != seller_id.casefold() for owner in owners)


def _spelled(document: Document, seller_id: str) -> Document:
    """Sellers are told apart without regard to case; ours is spelled as it was registered."""
    if document.seller_id and document.seller_id.casefold() == seller_id.casefold():
        return replace(document, seller_id=seller_id)
    return document
