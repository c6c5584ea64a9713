"""A day's requests out of the log, in the order of time, so many at a time: as much room for any day."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from heapq import merge
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, and_, func, or_, select

from sellerwatch.adapters.sql.tables import token_usage_log
from sellerwatch.domain.politeness import HOUR, Counting, Left, Politeness

AT_ONCE = 5000
_L = token_usage_log.c
_ROW = select(
    _L.log_id,
    _L.agent_id,
    _L.request_timestamp,
    _L.response_time_ms,
    _L.http_status_code,
    _L.is_rate_limited,
    _L.retry_after_seconds,
)


def politeness(connection: Connection, start: datetime, end: datetime) -> Politeness:
    counting = Counting(start)
    # What went out in the hour before belongs to the first spans. Each of the two is a range of one index.
    both = (_left(connection, start - HOUR, end, is_success=flag) for flag in (True, False))
    counting.note(merge(*both, key=attrgetter("at")))
    counting.follow(_came_back(connection, counting.waiting, end))
    return counting.result()


def _left(connection: Connection, start: datetime, end: datetime, *, is_success: bool) -> Iterator[Left]:
    """A page behind the other, by moment and number: nothing is held open but the snapshot."""
    behind: Any = _L.request_timestamp >= start
    while True:
        wanted = _ROW.where(_L.is_success.is_(is_success), behind, _L.request_timestamp < end)
        rows = connection.execute(wanted.order_by(_L.request_timestamp, _L.log_id).limit(AT_ONCE)).all()
        for _, agent_id, at, took_ms, status, is_limited, seconds in rows:
            patience = None if seconds is None else timedelta(seconds=seconds)
            yield Left(agent_id, at, timedelta(milliseconds=took_ms or 0), status, bool(is_limited), patience)
        if len(rows) < AT_ONCE:
            return
        last_id, last_at = rows[-1][0], rows[-1][2]
        same = and_(_L.request_timestamp == last_at, _L.log_id > last_id)
        behind = and_(_L.request_timestamp >= last_at, or_(_L.request_timestamp > last_at, same))


def _came_back(connection: Connection, agent_ids: list[int], end: datetime) -> dict[int, datetime]:
    firsts: dict[int, datetime] = {}
    for begin in range(0, len(agent_ids), AT_ONCE // 10):
        some = agent_ids[begin : begin + AT_ONCE // 10]
        found = select(_L.agent_id, func.min(_L.request_timestamp)).where(
            _L.agent_id.in_(some), _L.request_timestamp >= end
        )
        firsts |= {agent_id: at for agent_id, at in connection.execute(found.group_by(_L.agent_id))}  # noqa: C416
    return firsts
