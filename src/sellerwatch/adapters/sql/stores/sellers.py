"""Sellers.

Promises what the port says. What was learned of a seller's products, its executions and what is still to be
announced of its schedule outlive it.
"""

from collections.abc import Iterable

from sqlalchemy import bindparam, delete, insert, select, update

from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Session, also, cut, said
from sellerwatch.adapters.sql.shelves import SELLERS
from sellerwatch.adapters.sql.tables import crawling_schedules, sellers
from sellerwatch.domain.sellers import CrawlSource, Seller, SellerStatus

_S = sellers.c
_COLUMNS = (
    "seller_id",
    "name",
    "crawl_source",
    "crawling_interval_days",
    "status",
    "total_product_count",
    "created_at",
    "updated_at",
)
_CHANGING = ("name", "crawl_source", "crawling_interval_days", "status", "total_product_count", "updated_at")
_whole = select(*(_S[name] for name in _COLUMNS)).where(_S.seller_id == bindparam("key"))

_ADD = Prepared(insert(sellers), _COLUMNS)
_GET = Prepared(_whole, ("key",))
_LOCK = Prepared(_whole.with_for_update(), ("key",))
_SAVE = Prepared(update(sellers).where(_S.seller_id == bindparam("key")), (*_CHANGING, "key"))
_REMOVE = Prepared(delete(sellers).where(_S.seller_id == bindparam("key")), ("key",))
_REMOVE_SCHEDULE = Prepared(
    delete(crawling_schedules).where(crawling_schedules.c.seller_id == bindparam("key")), ("key",)
)
_ACTIVE = PreparedIn(
    lambda ids: select(_S.seller_id).where(_S.seller_id.in_(ids), also(_S.status) == said(SellerStatus.ACTIVE))
)


class Sellers:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, seller: Seller) -> bool:
        name, source, days, status, count, updated_at = self._changing(seller)
        created_at = self._session.to_db(seller.created_at)
        row = (seller.seller_id, name, source, days, status, count, created_at, updated_at)
        return self._session.insert(_ADD, [row])

    def get(self, seller_id: str) -> Seller | None:
        return self._one(_GET, seller_id)

    def lock(self, seller_id: str) -> Seller | None:
        return self._one(_LOCK, seller_id)

    def save(self, seller: Seller) -> None:
        self._session.run(_SAVE, (*self._changing(seller), seller.seller_id))

    def remove(self, seller_id: str) -> None:
        self._session.run(_REMOVE_SCHEDULE, (seller_id,))
        self._session.run(_REMOVE, (seller_id,))

    def inactive(self, seller_ids: Iterable[str]) -> set[str]:
        asked = set(seller_ids)
        return asked - {row[0] for row in self._session.rows_in(_ACTIVE, asked)}

    def _changing(self, seller: Seller) -> Row:
        return (
            cut(seller.name, _S.name),
            seller.crawl_source.value,
            seller.interval_days,
            seller.status.value,
            seller.total_product_count,
            self._session.to_db(seller.updated_at),
        )

    def _one(self, statement: Prepared, seller_id: str) -> Seller | None:
        row = self._session.first(statement, (seller_id,))
        return None if row is None else self._session.one(SELLERS, row, self._seller)

    def _seller(self, row: Row) -> Seller:
        seller_id, name, source, days, status, count, created_at, updated_at = row
        return Seller(
            seller_id=seller_id,
            name=name,
            crawl_source=CrawlSource(source),
            interval_days=days,
            status=SellerStatus(status),
            total_product_count=count,
            created_at=self._session.from_db(created_at),
            updated_at=self._session.from_db(updated_at),
        )
