"""Forgetting: what nobody needs any more is deleted in small batches, each found through an index.

A batch costs the same however much there is to keep. Two tables have no index that tells the old from the needed:
of the task outbox, which is pruned in the order it was written, only its oldest rows are looked at; of the raws those
that turned out to be needed (the newest of an item and kind) are put aside for a month, by their `next_attempt_at`,
which means nothing once a raw is PROCESSED, or has been FAILED for months.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from sqlalchemy import Column, Select, Table, and_, delete, false, or_, select, update

from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.tables import (
    circuit_breaker_event,
    crawl_executions,
    crawler_task_outbox,
    crawler_tasks,
    crawling_schedule_executions,
    processes,
    product_outbox,
    product_raw_data,
    queue_messages,
    scheduler_outbox,
    token_refresh_schedule,
    token_usage_log,
    user_agent_token,
)
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.tasks import CLOSED, NO_ITEM, AttemptStatus

LOOKED_AT = 10
"""Times the batch: so many rows are looked at, at most, where no index tells which may go."""
PUT_ASIDE = timedelta(days=30)

Found = Iterable[Select[Any]]
_has_ended = crawling_schedule_executions.c.status.in_([ExecutionStatus.COMPLETED, ExecutionStatus.FAILED])


def prune(session: Session, what: str, before: datetime, count: int) -> int:
    """Delete up to `count` rows of one kind; how many."""
    if what == "raws":
        return _prune_raws(session, before, count)
    try:
        key, found = _KINDS[what]
    except KeyError:
        raise Unknown("kind of rows to prune", what) from None
    deleted = 0
    for each in found(before, count):
        if deleted < count:
            ids = [row[0] for row in session.execute(each.limit(count - deleted))]
            deleted += _delete(session, key, ids)
    return deleted


def _delete(session: Session, key: "Column[Any]", ids: list[Any]) -> int:
    if not ids:
        return 0
    gone: int = session.execute(delete(key.table).where(key.in_(ids))).rowcount
    return gone


def _ended(table: Table, status: str, moment: str, states: Iterable[str]) -> Callable[[datetime, int], Found]:
    """Rows in one of these states since before then: one range of the index (status, moment) each."""

    def found(before: datetime, _count: int) -> Found:
        key = next(iter(table.primary_key.columns))
        return [select(key).where(table.c[status] == each, table.c[moment] < before) for each in sorted(states)]

    return found


def _tasks(before: datetime, _count: int) -> Found:
    c = crawler_tasks.c
    ended = crawler_tasks.join(
        crawling_schedule_executions, crawling_schedule_executions.c.execution_id == c.execution_id
    )
    return [
        select(c.id).select_from(ended).where(c.status == status.value, c.created_at < before, _has_ended)
        for status in sorted(CLOSED)
    ]


def _task_outbox(before: datetime, count: int) -> Found:
    """Of ended executions, whatever became of it, and what belongs to no task any more."""
    c, task = crawler_task_outbox.c, crawler_tasks.c
    oldest = select(c.id, c.task_id, c.status, c.created_at).order_by(c.id).limit(LOOKED_AT * count).subquery()
    told = oldest.outerjoin(crawler_tasks, task.task_id == oldest.c.task_id).outerjoin(
        crawling_schedule_executions, crawling_schedule_executions.c.execution_id == task.execution_id
    )
    is_old = and_(oldest.c.created_at < before, oldest.c.status != TaskOutboxStatus.PROCESSING.value)
    return [select(oldest.c.id).select_from(told).where(is_old, or_(task.id.is_(None), _has_ended))]


def _processes(before: datetime, _count: int) -> Found:
    return [select(processes.c.owner).where(processes.c.seen_at < before)]


def _tokens(before: datetime, _count: int) -> Found:
    """Those that another has replaced, and that are no good any more."""
    c = user_agent_token.c
    return [select(c.token_id).where(c.expires_at < before, c.is_active == false())]


def _refreshes(before: datetime, _count: int) -> Found:
    c = token_refresh_schedule.c
    return [select(c.schedule_id).where(c.is_enabled == false(), c.next_refresh_time < before)]


def _queue(before: datetime, _count: int) -> Found:
    """What was acked. The queue remembers its id for a while; dead letters are a person's business."""
    c = queue_messages.c
    return [select(c.message_id).where(c.state == "DONE", c.done_at < before).order_by(c.message_id)]


_KINDS: Mapping[str, tuple[Any, Callable[[datetime, int], Found]]] = {
    "attempts": (
        crawl_executions.c.id,
        _ended(crawl_executions, "status", "started_at", set(AttemptStatus) - {AttemptStatus.RUNNING}),
    ),
    "breaker_events": (
        circuit_breaker_event.c.event_id,
        _ended(circuit_breaker_event, "event_type", "event_timestamp", ["STATE_CHANGE", "FAILURE", "SUCCESS"]),
    ),
    "tasks": (crawler_tasks.c.id, _tasks),
    "task_outbox": (crawler_task_outbox.c.id, _task_outbox),
    "product_outbox": (
        product_outbox.c.id,
        _ended(product_outbox, "status", "created_at", [OutboxStatus.COMPLETED]),
    ),
    "scheduler_outbox": (
        scheduler_outbox.c.id,
        _ended(scheduler_outbox, "status", "created_at", [OutboxStatus.COMPLETED]),
    ),
    "usage": (token_usage_log.c.log_id, lambda before, _count: _usage(before)),
    "queue": (queue_messages.c.message_id, _queue),
    "processes": (processes.c.owner, _processes),
    "tokens": (user_agent_token.c.token_id, _tokens),
    "refreshes": (token_refresh_schedule.c.schedule_id, _refreshes),
}


def _usage(before: datetime) -> Found:
    c = token_usage_log.c
    return [select(c.log_id).where(c.is_success.is_(flag), c.request_timestamp < before) for flag in (False, True)]


def _prune_raws(session: Session, before: datetime, count: int) -> int:
    deleted = 0
    for status, kind in product((RawStatus.PROCESSED, RawStatus.FAILED), DocumentKind):
        for _ in range(LOOKED_AT):
            if deleted >= count:
                return deleted
            old = _old_raws(session, status, kind, before, count - deleted)
            if not old:
                break
            gone = [row_id for row_id, is_superseded in old if is_superseded]
            needed = [row_id for row_id, is_superseded in old if not is_superseded]
            deleted += _delete(session, product_raw_data.c.id, gone)
            _put_aside(session, needed, before)
    return deleted


def _old_raws(
    session: Session, status: RawStatus, kind: DocumentKind, before: datetime, count: int
) -> list[tuple[int, bool]]:
    """(row, whether it belongs to no item, or a newer one of its item and kind was understood and says as much)."""
    c, newer = product_raw_data.c, product_raw_data.alias("newer")
    is_newer = or_(newer.c.crawled_at > c.crawled_at, and_(newer.c.crawled_at == c.crawled_at, newer.c.id > c.id))
    same = and_(newer.c.item_no == c.item_no, newer.c.data_type == c.data_type)
    # A product is rebuilt from what was applied to it: what was skipped or discarded stands in for none of that.
    says_as_much = or_(newer.c.product_id.is_not(None), c.product_id.is_(None))
    is_superseded = (
        select(newer.c.id)
        .where(same, newer.c.status == RawStatus.PROCESSED.value, says_as_much, is_newer)
        .correlate(product_raw_data)
    )
    old = select(c.id, or_(c.item_no == NO_ITEM, is_superseded.exists())).where(
        c.status == status.value,
        c.data_type == kind.value,
        c.next_attempt_at < before,
        c.crawled_at < before,
    )
    rows: list[Any] = list(session.execute(old.order_by(c.next_attempt_at).limit(count).with_for_update()))
    return [(row[0], bool(row[1])) for row in rows]


def _put_aside(session: Session, ids: list[int], before: datetime) -> None:
    c = product_raw_data.c
    if ids:
        session.execute(update(product_raw_data).where(c.id.in_(ids)).values(next_attempt_at=before + PUT_ASIDE))
