"""What doors ask about, from the database: each question a fixed number of statements on one snapshot.

Promises what ports/reports.py says. Counts that grow with the years are bounded by an index or a day; nothing here
opens the wide columns (bodies, payloads) of a row that is only counted or listed. Refuses nothing of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, func, or_, select

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.outboxes import OUTBOXES, outbox_row
from sellerwatch.adapters.sql.overview import EXECUTION, counts, execution_row, overview, product_counts
from sellerwatch.adapters.sql.session import loads
from sellerwatch.adapters.sql.stores.chores import ALL_SELLERS
from sellerwatch.adapters.sql.stores.products import COLUMN_OF
from sellerwatch.adapters.sql.tables import (
    circuit_breaker_state,
    crawler_tasks,
    crawling_metrics_daily,
    crawling_schedule_executions,
    crawling_schedules,
    product_changes,
    products,
    rate_limit_bucket,
    sellers,
    user_agent_pool,
    user_agent_token,
)
from sellerwatch.adapters.sql.tables.columns import JSON
from sellerwatch.adapters.sql.trouble import persisting, watched
from sellerwatch.domain.changes import FieldChange
from sellerwatch.domain.documents import ChangeKind, frozen
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.sellers import CrawlSource, SellerStatus
from sellerwatch.domain.tasks import NO_ITEM, NO_PAGE, TaskKind, TaskStatus
from sellerwatch.ports.reports import (
    Box,
    ChangeRow,
    CrawlingFigures,
    ExecutionDetail,
    ExecutionRow,
    IdentityRow,
    OutboxRow,
    Overview,
    Page,
    ProductRow,
    ScheduleRow,
    SellerDetail,
    SellerRow,
    TaskRow,
    percent,
)

T = TypeVar("T")

_S = sellers.c
_E = crawling_schedule_executions.c
_T = crawler_tasks.c
_P = products.c
_C = product_changes.c
_JSON_COLUMNS = frozenset(column for column in COLUMN_OF.values() if _P[column].type is JSON)

_SELLER = select(
    _S.seller_id,
    _S.name,
    _S.crawl_source,
    _S.crawling_interval_days.label("interval_days"),
    _S.status,
    _S.total_product_count,
    _S.created_at,
    _S.updated_at,
)
_SCHEDULE = select(
    crawling_schedules.c.schedule_id,
    crawling_schedules.c.schedule_rule.label("rule_name"),
    crawling_schedules.c.schedule_expression.label("expression"),
    crawling_schedules.c.status,
    crawling_schedules.c.next_run_at,
    crawling_schedules.c.last_triggered_at,
)
_TASK = select(
    _T.task_id,
    _T.execution_id,
    _T.seller_id,
    _T.task_type.label("kind"),
    _T.request_url,
    _T.item_no,
    _T.page_no,
    _T.status,
    _T.retry_count,
    _T.abandon_count,
    _T.error_message,
    _T.created_at,
    _T.published_at,
    _T.started_at,
    _T.completed_at,
)
_PRODUCT = select(
    _P.id.label("number"),
    _P.product_id,
    _P.item_no,
    _P.seller_id,
    _P.status,
    _P.version,
    _P.is_complete,
    _P.first_seen_at,
    _P.last_seen_at,
    _P.last_changed_at,
    *(_P[column].label(f"field_{column}") for column in COLUMN_OF.values()),
)
_CHANGE = select(_C.item_no, _C.seller_id, _C.version, _C.changed_at, _C.kinds, _C.fields)
_IDENTITY = (
    select(
        user_agent_pool.c.agent_id,
        user_agent_pool.c.user_agent_id,
        user_agent_pool.c.user_agent,
        user_agent_pool.c.status,
        user_agent_pool.c.is_active,
        user_agent_pool.c.health_score,
        func.coalesce(circuit_breaker_state.c.circuit_state, "CLOSED").label("breaker"),
        rate_limit_bucket.c.current_tokens.label("remaining"),
        user_agent_token.c.issued_at.label("token_issued_at"),
        user_agent_token.c.expires_at.label("token_expires_at"),
        user_agent_pool.c.suspended_at,
        user_agent_pool.c.last_used_at,
        user_agent_pool.c.requests_per_day,
        user_agent_pool.c.usage_count,
        user_agent_pool.c.success_count,
        user_agent_pool.c.failure_count,
    )
    .outerjoin(rate_limit_bucket, rate_limit_bucket.c.agent_id == user_agent_pool.c.agent_id)
    .outerjoin(
        user_agent_token,
        and_(user_agent_token.c.agent_id == user_agent_pool.c.agent_id, user_agent_token.c.is_active.is_(True)),
    )
    .outerjoin(
        circuit_breaker_state,
        and_(
            circuit_breaker_state.c.scope == "IDENTITY",
            circuit_breaker_state.c.agent_id == user_agent_pool.c.agent_id,
        ),
    )
    .order_by(user_agent_pool.c.agent_id)
)


class SqlReports:
    """`ports.reports.Reports` on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sellers(self, *, status: SellerStatus | None = None, page: int = 0, size: int = 20) -> Page[SellerRow]:
        wanted = [] if status is None else [_S.status == status.value]
        return await self._page(_SELLER.where(*wanted).order_by(_S.seller_id), _seller, page, size)

    async def seller(self, seller_id: str) -> SellerDetail | None:
        def work(connection: Connection) -> SellerDetail | None:
            found = _first(connection, _SELLER.where(_S.seller_id == seller_id))
            if found is None:
                return None
            schedule = _first(connection, _SCHEDULE.where(crawling_schedules.c.seller_id == seller_id))
            last = _first(connection, _newest(EXECUTION.where(_E.seller_id == seller_id)).limit(1))
            return SellerDetail(
                _seller(found),
                ScheduleRow(**{**schedule, "status": ScheduleStatus(schedule["status"])}) if schedule else None,
                execution_row(last) if last else None,
                product_counts(connection, seller_id),
            )

        return await self._read(work)

    async def executions(self, seller_id: str | None = None, *, page: int = 0, size: int = 20) -> Page[ExecutionRow]:
        wanted = [] if seller_id is None else [_E.seller_id == seller_id]
        return await self._page(_newest(EXECUTION.where(*wanted)), execution_row, page, size)

    async def execution(self, execution_id: str) -> ExecutionDetail | None:
        def work(connection: Connection) -> ExecutionDetail | None:
            found = _first(connection, EXECUTION.where(_E.execution_id == execution_id))
            if found is None:
                return None
            known = counts(connection, _T.status, _T.execution_id == execution_id)
            return ExecutionDetail(execution_row(found), {status: known.get(status, 0) for status in TaskStatus})

        return await self._read(work)

    async def tasks(
        self, execution_id: str, *, status: TaskStatus | None = None, page: int = 0, size: int = 20
    ) -> Page[TaskRow]:
        wanted = [_T.execution_id == execution_id] + ([] if status is None else [_T.status == status.value])
        return await self._page(_TASK.where(*wanted).order_by(_T.id), _task, page, size)

    async def overview(self, at: datetime) -> Overview:
        return await self._read(lambda connection: overview(connection, at))

    async def product(self, item_no: int) -> ProductRow | None:
        found = await self._read(lambda connection: _first(connection, _PRODUCT.where(_P.item_no == item_no)))
        return _product(found) if found else None

    async def products(
        self,
        *,
        seller_id: str | None = None,
        complete: bool | None = None,
        changed_since: datetime | None = None,
        page: int = 0,
        size: int = 20,
    ) -> Page[ProductRow]:
        wanted = _wanted_products(seller_id, complete, changed_since)
        return await self._page(_PRODUCT.where(*wanted).order_by(_P.id), _product, page, size)

    async def products_after(
        self,
        number: int,
        count: int,
        *,
        seller_id: str | None = None,
        complete: bool | None = None,
        changed_since: datetime | None = None,
    ) -> Sequence[ProductRow]:
        wanted = _wanted_products(seller_id, complete, changed_since)
        return await self._rows(_PRODUCT.where(_P.id > number, *wanted).order_by(_P.id).limit(count), _product)

    async def changes(self, item_no: int, *, page: int = 0, size: int = 20) -> Page[ChangeRow]:
        return await self._page(_changes_of(item_no), _change, page, size)

    async def changes_after(self, item_no: int, version: int, count: int) -> Sequence[ChangeRow]:
        return await self._rows(_changes_of(item_no).where(_C.version > version).limit(count), _change)

    async def outbox(self, box: Box, *, status: str | None = None, page: int = 0, size: int = 20) -> Page[OutboxRow]:
        rows, number, columns = OUTBOXES[box]
        wanted = rows if status is None else rows.where(columns["status"] == status)
        return await self._page(wanted.order_by(number), outbox_row(box), page, size)

    async def outbox_after(
        self, box: Box, number: int, count: int, *, status: str, since: datetime | None = None
    ) -> Sequence[OutboxRow]:
        rows, place, columns = OUTBOXES[box]
        rows = rows.where(place > number, columns["status"] == status)
        if since is not None:
            rows = rows.where(columns["created_at"] >= since)
        return await self._rows(rows.order_by(place).limit(count), outbox_row(box))

    async def identities(self, *, retired: bool = False) -> Sequence[IdentityRow]:
        wanted = _IDENTITY if retired else _IDENTITY.where(user_agent_pool.c.is_active.is_(True))
        return await self._rows(wanted, _identity)

    async def crawling(self, seller_id: str | None, day: date, start: datetime, end: datetime) -> CrawlingFigures:
        return await self._read(lambda connection: _crawling(connection, seller_id, day, start, end))

    async def _page(self, statement: Select[Any], make: Callable[[RowMapping], T], page: int, size: int) -> Page[T]:
        def work(connection: Connection) -> Page[T]:
            counted = statement.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)
            total: int = connection.execute(counted).scalar_one()
            rows = _all(connection, statement.limit(size).offset(page * size), make)
            return Page(tuple(rows), page, size, total)

        return await self._read(work)

    async def _rows(self, statement: Select[Any], make: Callable[[RowMapping], T]) -> list[T]:
        return await self._read(lambda connection: _all(connection, statement, make))

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await persisting(lambda: self._database.read(watched(work)))


def _first(connection: Connection, statement: Select[Any]) -> RowMapping | None:
    return connection.execute(statement).mappings().first()


def _all(connection: Connection, statement: Select[Any], make: Callable[[RowMapping], T]) -> list[T]:
    return [make(row) for row in connection.execute(statement).mappings()]


def _newest(statement: Select[Any]) -> Select[Any]:
    return statement.order_by(_E.started_at.desc(), _E.id.desc())


def _wanted_products(
    seller_id: str | None, complete: bool | None, changed_since: datetime | None
) -> Iterable[ColumnElement[bool]]:
    if seller_id is not None:
        yield _P.seller_id == seller_id
    if complete is not None:
        yield _P.is_complete.is_(complete)
    if changed_since is not None:
        yield _P.last_changed_at >= changed_since


def _changes_of(item_no: int) -> Select[Any]:
    # By way of the product's id: changes have no index of their own on the item.
    product_id = select(_P.product_id).where(_P.item_no == item_no).scalar_subquery()
    return _CHANGE.where(_C.product_id == product_id).order_by(_C.version)


def _seller(row: RowMapping) -> SellerRow:
    source, status = CrawlSource(row["crawl_source"]), SellerStatus(row["status"])
    return SellerRow(**{**row, "crawl_source": source, "status": status})


def _task(row: RowMapping) -> TaskRow:
    return TaskRow(
        **{
            **row,
            "kind": TaskKind(row["kind"]),
            "status": TaskStatus(row["status"]),
            "item_no": None if row["item_no"] == NO_ITEM else row["item_no"],
            "page_no": None if row["page_no"] == NO_PAGE else row["page_no"],
        }
    )


def _product(row: RowMapping) -> ProductRow:
    known = {name: value for name, value in row.items() if not name.startswith("field_")}
    fields = {
        name: frozen(loads(value)) if column in _JSON_COLUMNS else value
        for name, column in COLUMN_OF.items()
        if (value := row[f"field_{column}"]) is not None
    }
    return ProductRow(**{**known, "status": ProductStatus(row["status"]), "fields": fields})


def _change(row: RowMapping) -> ChangeRow:
    kinds = tuple(ChangeKind(kind) for kind in row["kinds"].split(","))
    fields = tuple(FieldChange(one["field"], one["old"], one["new"]) for one in loads(row["fields"]))
    return ChangeRow(row["item_no"], row["seller_id"], row["version"], row["changed_at"], kinds, fields)


def _identity(row: RowMapping) -> IdentityRow:
    known: dict[str, Any] = {name: value for name, value in row.items() if name != "is_active"}
    remaining = row["remaining"]
    return IdentityRow(
        **{**known, "is_retired": not row["is_active"], "remaining": None if remaining is None else int(remaining)}
    )


def _crawling(
    connection: Connection, seller_id: str | None, day: date, start: datetime, end: datetime
) -> CrawlingFigures:
    mine = [] if seller_id is None else [_T.seller_id == seller_id]
    # All statuses are named, so that the index on status and time serves without a seller.
    in_the_day = or_(*(_T.status == status.value for status in TaskStatus))
    known = counts(connection, _T.status, in_the_day, _T.created_at >= start, _T.created_at < end, *mine)
    total, completed = sum(known.values()), known.get(TaskStatus.SUCCESS, 0)
    if not total:
        noted = _noted(connection, seller_id, day)
        if noted is not None:
            return noted
    shop = select(func.coalesce(func.sum(_S.total_product_count), 0))
    in_shop: int = connection.execute(shop if seller_id is None else shop.where(_S.seller_id == seller_id)).scalar_one()
    products_known = product_counts(connection, seller_id)
    return CrawlingFigures(
        seller_id,
        day,
        success_rate=percent(completed, total),
        progress_rate=percent(products_known.complete, int(in_shop)),
        total=total,
        completed=completed,
        failed=known.get(TaskStatus.FAILED, 0),
    )


def _noted(connection: Connection, seller_id: str | None, day: date) -> CrawlingFigures | None:
    figures = crawling_metrics_daily.c
    wanted = (figures.date == day, figures.seller_id == (ALL_SELLERS if seller_id is None else seller_id))
    names = ("success_rate", "progress_rate", "total", "completed", "failed")
    row = _first(connection, select(*(figures[name] for name in names)).where(*wanted))
    return CrawlingFigures(seller_id, day, **row) if row else None
