"""What doors ask about, from the database: each question a fixed number of statements on one snapshot.

Promises what ports/reports says. Counts that grow with the years are bounded by an index or a day; nothing here
opens the wide columns (bodies, payloads) of a row that is only counted or listed. Refuses nothing of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, func

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.outboxes import OUTBOXES, outbox_row
from sellerwatch.adapters.sql.overview import EXECUTION, counts, execution_row, overview, runs
from sellerwatch.adapters.sql.reports.crawling import crawling
from sellerwatch.adapters.sql.reports.history import difference_between, lags_since, product_at, versions_after
from sellerwatch.adapters.sql.reports.politeness import politeness
from sellerwatch.adapters.sql.reports.reading import every, first
from sellerwatch.adapters.sql.reports.rows import (
    CHANGE,
    IDENTITY,
    PRODUCT,
    SELLER,
    TASK,
    change_shown,
    changes_of,
    identity_row,
    newest,
    product_row,
    product_shown,
    seller_row,
    task_row,
    wanted_changes,
    wanted_products,
)
from sellerwatch.adapters.sql.reports.seller import seller_detail
from sellerwatch.adapters.sql.reports.trust import drift_since, quarantine_of, quarantine_row, quarantines_of
from sellerwatch.adapters.sql.tables import (
    crawler_tasks,
    crawling_schedule_executions,
    product_changes,
    products,
    sellers,
    user_agent_pool,
)
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.domain.politeness import Politeness
from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.domain.sellers import SellerStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.reports import (
    Box,
    ChangeRow,
    CrawlingFigures,
    Difference,
    DriftReport,
    ExecutionDetail,
    ExecutionRow,
    IdentityRow,
    Lags,
    OutboxRow,
    Overview,
    Page,
    ProductRow,
    QuarantineRow,
    Runs,
    SellerDetail,
    SellerRow,
    TaskRow,
    VersionRow,
)

T = TypeVar("T")
_S = sellers.c
_E = crawling_schedule_executions.c
_T = crawler_tasks.c
_P = products.c
_C = product_changes.c


class SqlReports:
    """`ports.reports.Reports` on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sellers(self, *, status: SellerStatus | None = None, page: int = 0, size: int = 20) -> Page[SellerRow]:
        wanted = [] if status is None else [_S.status == status.value]
        return await self._page(SELLER.where(*wanted).order_by(_S.seller_id), seller_row, page, size)

    async def seller(self, seller_id: str) -> SellerDetail | None:
        return await self._glance(lambda connection: seller_detail(connection, seller_id))

    async def executions(self, seller_id: str | None = None, *, page: int = 0, size: int = 20) -> Page[ExecutionRow]:
        wanted = [] if seller_id is None else [_E.seller_id == seller_id]
        return await self._page(newest(EXECUTION.where(*wanted)), execution_row, page, size)

    async def execution(self, execution_id: str) -> ExecutionDetail | None:
        def work(connection: Connection) -> ExecutionDetail | None:
            found = first(connection, EXECUTION.where(_E.execution_id == execution_id))
            if found is None:
                return None
            known = counts(connection, _T.status, _T.execution_id == execution_id)
            return ExecutionDetail(execution_row(found), {status: known.get(status, 0) for status in TaskStatus})

        return await self._read(work)

    async def tasks(
        self, execution_id: str, *, status: TaskStatus | None = None, page: int = 0, size: int = 20
    ) -> Page[TaskRow]:
        wanted = [_T.execution_id == execution_id] + ([] if status is None else [_T.status == status.value])
        return await self._page(TASK.where(*wanted).order_by(_T.id), task_row, page, size)

    async def overview(self, at: datetime) -> Overview:
        return await self._read(lambda connection: overview(connection, at))

    async def runs(self, at: datetime) -> Runs:
        return await self._read(lambda connection: runs(connection, at))

    async def product(self, item_no: int, at: datetime | None = None) -> ProductRow | None:
        if at is not None:
            return await self._read(lambda connection: product_at(connection, item_no, at))
        found = await self._read(lambda connection: first(connection, PRODUCT.where(_P.item_no == item_no)))
        return product_row(found) if found else None

    async def products(
        self,
        *,
        seller_id: str | None = None,
        complete: bool | None = None,
        changed_since: datetime | None = None,
        page: int = 0,
        size: int = 20,
    ) -> Page[ProductRow]:
        wanted = wanted_products(seller_id, complete, changed_since)
        return await self._page(PRODUCT.where(*wanted).order_by(_P.id), product_shown, page, size)

    async def products_after(
        self,
        number: int,
        count: int,
        *,
        seller_id: str | None = None,
        complete: bool | None = None,
        changed_since: datetime | None = None,
    ) -> Sequence[ProductRow]:
        wanted = wanted_products(seller_id, complete, changed_since)
        return await self._rows(PRODUCT.where(_P.id > number, *wanted).order_by(_P.id).limit(count), product_shown)

    async def changes(self, item_no: int, *, page: int = 0, size: int = 20) -> Page[ChangeRow]:
        return await self._page(changes_of(item_no), change_shown, page, size)

    async def changes_after(self, item_no: int, version: int, count: int) -> Sequence[ChangeRow]:
        return await self._rows(changes_of(item_no).where(_C.version > version).limit(count), change_shown)

    async def all_changes_after(
        self, number: int, count: int, *, seller_id: str | None = None, since: datetime | None = None
    ) -> Sequence[ChangeRow]:
        rows = CHANGE.where(_C.id > number, *wanted_changes(seller_id, since)).order_by(_C.id)
        return await self._rows(rows.limit(count), change_shown)

    async def versions_after(self, item_no: int, version: int, count: int) -> Sequence[VersionRow]:
        return await self._read(lambda connection: versions_after(connection, item_no, version, count))

    async def difference(self, item_no: int, start: datetime, end: datetime) -> Difference | None:
        return await self._read(lambda connection: difference_between(connection, item_no, start, end))

    async def lags(self, since: datetime) -> Lags:
        return await self._read(lambda connection: lags_since(connection, since))

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

    async def outbox_row(self, outbox_id: str) -> OutboxRow | None:
        def work(connection: Connection) -> OutboxRow | None:
            for box, (rows, _, columns) in OUTBOXES.items():
                found = first(connection, rows.where(columns["outbox_id"] == outbox_id))
                if found is not None:
                    return outbox_row(box)(found)
            return None

        return await self._read(work)

    async def identities(
        self, *, status: IdentityStatus | None = None, page: int = 0, size: int = 20
    ) -> Page[IdentityRow]:
        wanted = [] if status is None else [user_agent_pool.c.status == status.value]
        return await self._page(IDENTITY.where(*wanted).order_by(user_agent_pool.c.agent_id), identity_row, page, size)

    async def identity(self, name: int | str) -> IdentityRow | None:
        column = user_agent_pool.c.agent_id if isinstance(name, int) else user_agent_pool.c.user_agent_id
        rows = await self._rows(IDENTITY.where(column == name), identity_row)
        return rows[0] if rows else None

    async def quarantines(
        self, *, status: QuarantineStatus | None = None, page: int = 0, size: int = 20
    ) -> Page[QuarantineRow]:
        return await self._page(quarantines_of(status), quarantine_row, page, size)

    async def quarantine(self, quarantine_id: str) -> QuarantineRow | None:
        rows = await self._rows(quarantine_of(quarantine_id), quarantine_row)
        return rows[0] if rows else None

    async def drift(self, since: datetime) -> DriftReport:
        return await self._read(lambda connection: drift_since(connection, since))

    async def crawling(self, seller_id: str | None, day: date, start: datetime, end: datetime) -> CrawlingFigures:
        return await self._read(lambda connection: crawling(connection, seller_id, day, start, end))

    async def politeness(self, start: datetime, end: datetime) -> Politeness:
        return await self._read(lambda connection: politeness(connection, start, end))

    async def _page(
        self, statement: Select[Any], make: Callable[[Mapping[str, Any]], T], page: int, size: int
    ) -> Page[T]:
        def work(connection: Connection) -> Page[T]:
            counted = statement.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)
            total: int = connection.execute(counted).scalar_one()
            rows = every(connection, statement.limit(size).offset(page * size), make)
            return Page(tuple(rows), page, size, total)

        return await self._read(work)

    async def _rows(self, statement: Select[Any], make: Callable[[Mapping[str, Any]], T]) -> list[T]:
        return await self._read(lambda connection: every(connection, statement, make))

    async def _glance(self, work: Callable[[Connection], T]) -> T:
        return await self._database.glance(work)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._database.read(work)
