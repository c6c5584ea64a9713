"""One seller, its schedule, its newest execution and its products' counts: what is looked at most, in one statement.

Each count is answered by an index alone, for rows of products are wide.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, select

from sellerwatch.adapters.sql.prepared import Prepared, Row
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.shown import word
from sellerwatch.adapters.sql.tables import crawling_schedule_executions, crawling_schedules, products, sellers
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.sellers import CrawlSource, SellerStatus
from sellerwatch.ports.reports import ExecutionRow, ProductCounts, ScheduleRow, SellerDetail, SellerRow

_S, _C, _E, _P = sellers.c, crawling_schedules.c, crawling_schedule_executions.c, products.c
_SELLER = (
    _S.seller_id,
    _S.name,
    _S.crawl_source,
    _S.crawling_interval_days,
    _S.status,
    _S.total_product_count,
    _S.created_at,
    _S.updated_at,
)
_SCHEDULE = (
    _C.schedule_id,
    _C.schedule_rule,
    _C.schedule_expression,
    _C.status,
    _C.next_run_at,
    _C.last_triggered_at,
)
_EXECUTION = (
    _E.execution_id,
    _E.seller_id,
    _E.status,
    _E.total_tasks_created,
    _E.completed_tasks,
    _E.failed_tasks,
    _E.started_at,
    _E.completed_at,
    _E.error_message,
    _E.expected_items,
)
_TO_SCHEDULE, _TO_EXECUTION = len(_SELLER), len(_SELLER) + len(_SCHEDULE)
_TO_COUNTS = _TO_EXECUTION + len(_EXECUTION)


def _counted(*wanted: Any) -> Any:
    return select(func.count()).where(_P.seller_id == bindparam("key"), *wanted).scalar_subquery()


def _newest() -> Any:
    executions = crawling_schedule_executions.alias()
    mine = select(executions.c.id).where(executions.c.seller_id == bindparam("key"))
    return mine.order_by(executions.c.started_at.desc(), executions.c.id.desc()).limit(1).scalar_subquery()


_DETAIL = Prepared(
    select(
        *(
            column.label(f"{place}_{column.name}")
            for place, columns in enumerate((_SELLER, _SCHEDULE, _EXECUTION))
            for column in columns
        ),
        _counted().label("total"),
        _counted(_P.is_complete.is_(True)).label("complete"),
        _counted(_P.status == bindparam("delisted")).label("delisted"),
    )
    .select_from(sellers)
    .outerjoin(crawling_schedules, _C.seller_id == _S.seller_id)
    .outerjoin(crawling_schedule_executions, and_(_E.id == _newest()))
    .where(_S.seller_id == bindparam("key")),
    ("key", "delisted"),
)


def seller_detail(connection: Connection, seller_id: str) -> SellerDetail | None:
    session = Session(connection, connection.dialect.name)
    row = session.first(_DETAIL, (seller_id, ProductStatus.DELISTED.value))
    if row is None:
        return None
    return SellerDetail(
        _seller(session, row),
        _schedule(session, row[_TO_SCHEDULE:_TO_EXECUTION]),
        _execution(session, row[_TO_EXECUTION:_TO_COUNTS]),
        ProductCounts(*row[_TO_COUNTS:]),
    )


def _seller(session: Session, row: Row) -> SellerRow:
    seller_id, name, source, days, status, count, created_at, updated_at = row[:_TO_SCHEDULE]
    at = session.from_db
    return SellerRow(
        seller_id,
        name,
        word(CrawlSource, source),
        days,
        word(SellerStatus, status),
        count,
        at(created_at),
        at(updated_at),
    )


def _schedule(session: Session, row: Sequence[Any]) -> ScheduleRow | None:
    schedule_id, rule, expression, status, next_run_at, last_triggered_at = row
    if schedule_id is None:
        return None
    at = session.from_db_or_none
    return ScheduleRow(
        schedule_id, rule, expression, word(ScheduleStatus, status), at(next_run_at), at(last_triggered_at)
    )


def _execution(session: Session, row: Sequence[Any]) -> ExecutionRow | None:
    execution_id, seller_id, status, total, completed, failed, started_at, completed_at, error, expected = row
    if execution_id is None:
        return None
    at = session.from_db
    return ExecutionRow(
        execution_id, seller_id, word(ExecutionStatus, status), total, completed, failed,
        at(started_at), session.from_db_or_none(completed_at), error, expected,
    )  # fmt: skip
