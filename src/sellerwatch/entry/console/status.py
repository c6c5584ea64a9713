"""The status as it is drawn: what runs, what waits, what failed; what needs attention is coloured and comes first."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sellerwatch.domain.breakers import BreakerState
from sellerwatch.domain.sellers import SellerStatus
from sellerwatch.entry.console.tables import Column, right, table
from sellerwatch.entry.console.text import age, count, grouped, since, until, visible
from sellerwatch.flows.punctuality import Late
from sellerwatch.ports.pool import PoolFigures
from sellerwatch.ports.queue import Depth
from sellerwatch.ports.reports import Overview

if TYPE_CHECKING:
    from rich.console import Group

_BAR = 20


def status(seen: Overview, figures: PoolFigures, depth: Depth, late: Sequence[Late]) -> "Group":
    from rich.console import Group  # noqa: PLC0415 - slow to load
    from rich.text import Text  # noqa: PLC0415

    parts: list[object] = [Text(headline(seen), style="bold" if seen.processes else "bold yellow")]
    if seen.alerts:
        rows = [(one.severity, one.text, since(one.since, seen.at), one.times) for one in seen.alerts]
        parts.append(table(["alert", "", right("for"), right("times")], rows))
    if seen.executions_open:
        parts.append(_executions(seen))
    parts += [_work(seen, depth), Text(pool_line(figures, seen.at))]
    failed = [one for one in seen.sweeps if one.last_error]
    if late:
        rows_late = [(one.name, age(one.seconds)) for one in late]
        parts.append(table(["loop that is late", right("last ran ago")], rows_late))
    if failed:
        rows_failed = [(one.name, since(one.last_run_at, seen.at), one.last_error) for one in failed]
        parts.append(table(["sweep that failed", right("ago"), "error"], rows_failed))
    return Group(*parts)  # type: ignore[arg-type]  # all of them are drawings


def headline(seen: Overview) -> str:
    active, all_sellers = seen.sellers.get(SellerStatus.ACTIVE, 0), sum(seen.sellers.values())
    roles = ", ".join(sorted({one.role for one in seen.processes}))
    alive = f"{count(len(seen.processes), 'process', 'processes')} alive ({roles})" if roles else "nothing is running"
    products = seen.products
    return visible(
        f"{alive} · {count(all_sellers, 'seller')}, {grouped(active)} active · {count(products.total, 'product')}, "
        f"{grouped(products.complete)} complete, {grouped(products.delisted)} delisted"
    )


def pool_line(figures: PoolFigures, at: datetime) -> str:
    """What of the identities an operator has to know, on one line."""
    breakers = f"pool breaker {figures.pool_breaker.state}, site breaker {figures.site_breaker.state}"
    by_status = f"{grouped(figures.available)} available, {grouped(figures.suspended)} suspended"
    parts = [
        f"{count(figures.total, 'identity', 'identities')}: {by_status}, {grouped(figures.blocked)} blocked",
        f"health {figures.health_min} to {figures.health_max}, {figures.health_avg:.0f} on average",
        f"{count(figures.remaining_requests, 'request')} left this hour",
        breakers,
    ]
    if figures.why:
        when = until(figures.next_available_at, at) if figures.next_available_at else "when someone steps in"
        parts.append(f"none free ({figures.why}): next {when}")
    retry_at = figures.pool_breaker.retry_at()
    if figures.pool_breaker.state is BreakerState.OPEN and retry_at:
        parts.append(f"tried again {until(retry_at, at)}")
    return " · ".join(parts)


def _executions(seen: Overview) -> object:
    rows = [
        (
            row.seller_id,
            row.status,
            bar(row.progress_rate),
            f"{row.progress_rate:.1f} %",
            f"{grouped(row.completed_tasks)} of {grouped(row.total_tasks)}",
            row.failed_tasks or "",
            since(row.started_at, seen.at),
        )
        for row in seen.executions_open
    ]
    columns: list[Column | str] = ["seller", "crawl", "", right("done"), right("tasks"), right("failed"), right("for")]
    return table(columns, rows)


def _work(seen: Overview, depth: Depth) -> object:
    rows: list[tuple[str, str, str | None]] = [("tasks (open, or ended in a day)", _told(seen.tasks), None)]
    rows += [
        (f"{box} outbox", _told(found.by_status), since(found.oldest_at, seen.at) if found.oldest_at else None)
        for box, found in seen.outboxes.items()
    ]
    in_queue = f"{grouped(depth.waiting)} waiting, {grouped(depth.out)} out, {grouped(depth.dead)} dead"
    rows += [
        ("queue", in_queue, age(depth.oldest_seconds) if depth.oldest_seconds else None),
        ("raws", _told(seen.raws), None),
    ]
    return table(["", Column("how many"), right("oldest")], rows)


def _told(numbers: Mapping[Any, int]) -> str:
    return ", ".join(f"{grouped(number)} {status}" for status, number in numbers.items() if number) or "none"


def bar(percent: float) -> str:
    full = min(_BAR, int(percent * _BAR / 100))
    return "━" * full + "╌" * (_BAR - full)
