"""A day of crawling, counted; when its tasks are forgotten, as it was noted."""

from datetime import date, datetime

from sqlalchemy import Connection, func, or_, select

from sellerwatch.adapters.sql.overview import counts, product_counts
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
    row = first(connection, select(*(figures[name] for name in names)).where(*wanted))
    return CrawlingFigures(seller_id, day, **row) if row else None
