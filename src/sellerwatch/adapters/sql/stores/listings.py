"""Which items the lists of an execution showed, and what follows for the seller's products.

Promises what the port says. Rows live as long as their execution's list is not settled.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import and_, bindparam, delete, func, or_, select, update

from sellerwatch.adapters.sql.prepared import Prepared
from sellerwatch.adapters.sql.session import Additions, Session, said
from sellerwatch.adapters.sql.tables import listings, products
from sellerwatch.domain.products import ProductStatus

_L = listings.c
_P = products.c
_of_execution = _L.execution_id == bindparam("execution")
_seen_there = and_(_L.item_no == _P.item_no, _of_execution)
_known = (
    _P.seller_id == bindparam("seller"),
    _P.status == said(ProductStatus.ACTIVE),
    _P.first_seen_at < bindparam("before"),
)

_LIST = Additions(listings, ("execution_id", "item_no", "seller_id", "page_no"), "item_no", scope="execution_id")
_COUNT = Prepared(select(func.count()).select_from(listings).where(_of_execution), ("execution",))
_OWN = Prepared(
    select(func.count())
    .select_from(listings.join(products, _P.item_no == _L.item_no))
    .where(_of_execution, _P.seller_id == bindparam("seller")),
    ("execution", "seller"),
)
_MARK_GONE = Prepared(
    update(listings).where(_of_execution, _L.item_no == bindparam("item")), ("is_gone", "execution", "item")
)
_GONE = Prepared(
    select(_P.item_no).join(listings, _seen_there).where(*_known, _L.is_gone == bindparam("yes")).order_by(_P.item_no),
    ("execution", "seller", "before", "yes"),
)
_UNLISTED = Prepared(
    select(_P.item_no)
    .outerjoin(listings, _seen_there)
    .where(*_known, or_(_L.item_no.is_(None), _L.is_gone == bindparam("yes")))
    .order_by(_P.item_no),
    ("execution", "seller", "before", "yes"),
)
_RETURNED = Prepared(
    select(_L.item_no)
    .join(products, _P.item_no == _L.item_no)
    .where(
        _of_execution,
        _L.is_gone == bindparam("no"),
        or_(_P.status == said(ProductStatus.DELISTED), _P.absences > bindparam("no")),
    )
    .order_by(_L.item_no),
    ("execution", "no"),
)
_ACTIVE = Prepared(
    select(func.count())
    .select_from(products)
    .where(_P.seller_id == bindparam("seller"), _P.status == said(ProductStatus.ACTIVE)),
    ("seller",),
)
_FORGET = Prepared(delete(listings).where(_of_execution), ("execution",))


class Listings:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, execution_id: str, seller_id: str, rows: Sequence[tuple[int, int]]) -> set[int]:
        listed = [(execution_id, item_no, seller_id, page_no) for item_no, page_no in rows]
        return {row[1] for row in _LIST.put_new(self._session, listed, (execution_id,))}

    def count(self, execution_id: str) -> int:
        counted: int = self._session.rows(_COUNT, (execution_id,))[0][0]
        return counted

    def own(self, execution_id: str, seller_id: str) -> int:
        counted: int = self._session.rows(_OWN, (execution_id, seller_id))[0][0]
        return counted

    def mark_gone(self, pairs: Sequence[tuple[str, int]]) -> None:
        self._session.many(_MARK_GONE, [(1, execution_id, item_no) for execution_id, item_no in pairs])

    def absent(self, execution_id: str, seller_id: str, *, is_complete: bool, before: datetime) -> list[int]:
        statement = _UNLISTED if is_complete else _GONE
        params = (execution_id, seller_id, self._session.to_db(before), 1)
        return [row[0] for row in self._session.rows(statement, params)]

    def returned(self, execution_id: str) -> list[int]:
        return [row[0] for row in self._session.rows(_RETURNED, (execution_id, 0))]

    def active(self, seller_id: str) -> int:
        counted: int = self._session.rows(_ACTIVE, (seller_id,))[0][0]
        return counted

    def forget(self, execution_id: str) -> None:
        self._session.run(_FORGET, (execution_id,))
