"""A day of crawling, counted; when its tasks are forgotten, as it was noted."""

from datetime import date, datetime

from sqlalchemy import Connection, func, or_, select

from sellerwatch.adapters.sql.overview import complete_in_shop, counts
from sellerwatch.adapters.sql.reports.reading import first
from sellerwatch.adapters.sql.stores.chores import ALL_SELLERS
from sellerwatch.adapters.sql.tables import crawler_tasks, crawling_metrics_daily, sellers
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.reports import CrawlingFigures, percent

_S = sellers.c
_T = crawler_tasks.c


def crawling(
    connection: Connection, seller_id: str | None, day: date, start: datetime, end: datetime
) -> CrawlingFigures:
    mine = [] if seller_id is None else [_T.seller_id == seller_id]
    # All statuses are named, so that the index on status and time serves without a seller.
    in_the_day = or_(*(_T.status == status.value for status in TaskStatus))
    tasks = counts(connection, _T.status, in_the_day, _T.created_at >= start, _T.created_at < end, *mine)
    total, completed = sum(tasks.values()), tasks.get(TaskStatus.SUCCESS, 0)
    if not total:
        noted = _noted(connection, seller_id, day)
        if noted is not None:
            return noted
    shops = select(complete_in_shop().label("known"), _S.total_product_count.label("counted"))
    wanted = (shops if seller_id is None else shops.where(_S.seller_id == seller_id)).subquery()
    sums = (func.coalesce(func.sum(column), 0) for column in (wanted.c.known, wanted.c.counted))
    known, in_shops = connection.execute(select(*sums)).one()
    return CrawlingFigures(
        seller_id,
        day,
        success_rate=percent(completed, total),
        progress_rate=percent(int(known), int(in_shops)),
        total=total,
        completed=completed,
        failed=tasks.get(TaskStatus.FAILED, 0),
    )


def _noted(connection: Connection, seller_id: str | None, day: date) -> CrawlingFigures | None:
    figures = crawling_metrics_daily.c
    wanted = (figures.date == day, figures.seller_id == (ALL_SELLERS if seller_id is None else seller_id))
    names = ("success_rate", "progress_rate", "total", "completed", "failed")
    row = first(connection, select(*(figures[name] for name in names)).where(*wanted))
    return CrawlingFigures(seller_id, day, **row) if row else None
