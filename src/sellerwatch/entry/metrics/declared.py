"""Every metric: its name, kind, labels and meaning. What is not declared here can't be counted or shown.

Promises: no label names an item, a task, an identity or a seller; the values of each label are few and known, so that
a year of crawling makes no more series than a day. Names and labels are public.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sellerwatch.adapters.sql.database import TRIES
from sellerwatch.domain.breakers import BreakerScope
from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.domain.leadership import LEAD_STEPS
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.tasks import OPEN, TaskKind
from sellerwatch.ports.meter import CANCELLED, EXPIRED, GRANTED, NO_ANSWER, ROBOTS, TOKEN
from sellerwatch.ports.pool import WhyNot
from sellerwatch.ports.reports import Box
from sellerwatch.ports.wire import NoAnswerWhy
from sellerwatch.settings import SWEEPS

PREFIX: Final = "sellerwatch_"


class Kind(StrEnum):
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Declared:
    name: str
    kind: Kind
    about: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each label with the values that it begins with; an HTTP status comes to be when it is first seen."""
    buckets: tuple[float, ...] = ()

    @property
    def series(self) -> str:
        """As it is shown and queried; a histogram's are made of it."""
        return PREFIX + self.name


def _values(*groups: object) -> tuple[str, ...]:
    return tuple(sorted(str(value) for group in groups for value in (group if isinstance(group, set) else {group})))


STATUSES: Final = "status"
"""The label whose values are HTTP statuses, or why there was none."""
_KINDS = _values(set(TaskKind))
_ASKED = _values(set(TaskKind), TOKEN, ROBOTS)
_QUICK = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_WAITS = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
_LAGS = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)

DECLARED: Final = (
    Declared(
        "requests_total",
        Kind.COUNTER,
        "Requests to the marketplace that have ended, by what was asked for and the HTTP status, or why there was none.",
        {"kind": _ASKED, STATUSES: _values("200", set(NoAnswerWhy))},
    ),
    Declared(
        "request_seconds",
        Kind.HISTOGRAM,
        "How long a request to the marketplace took, answered or not.",
        {"kind": _ASKED},
        _QUICK,
    ),
    Declared(
        "leases_total",
        Kind.COUNTER,
        "Leases given, given back unused and run out, and askings that were told why there was none.",
        {"result": _values(GRANTED, CANCELLED, EXPIRED, set(WhyNot))},
    ),
    Declared(
        "lease_wait_seconds", Kind.HISTOGRAM, "How long was waited for a lease that was given.", buckets=(0.0, *_WAITS)
    ),
    Declared("identities", Kind.GAUGE, "Identities in the pool.", {"status": _values(set(IdentityStatus))}),
    Declared("identity_budget_remaining", Kind.GAUGE, "Requests that the pool may still make within its hour."),
    Declared(
        "breaker_state",
        Kind.GAUGE,
        "0 CLOSED, 1 HALF_OPEN, 2 OPEN; of the identities' breakers the worst.",
        {"scope": _values(set(BreakerScope))},
    ),
    Declared(
        "tasks_total",
        Kind.COUNTER,
        "Attempts that ended, by what became of the task; tasks that were cancelled are FAILED.",
        {"kind": _KINDS, "result": ("FAILED", "RETRY", "SUCCESS")},
    ),
    Declared("tasks_open", Kind.GAUGE, "Tasks that have not ended.", {"status": _values(set(OPEN))}),
    Declared("queue_depth", Kind.GAUGE, "Messages in the queue, those under way included."),
    Declared("queue_oldest_seconds", Kind.GAUGE, "How long ago the oldest message of the queue was sent."),
    Declared("dead_letters", Kind.GAUGE, "Messages that were received too often, or not understood."),
    Declared("raws", Kind.GAUGE, "Raw documents.", {"status": _values(set(RawStatus))}),
    Declared("products", Kind.GAUGE, "Products.", {"status": _values(set(ProductStatus))}),
    Declared(
        "changes_total",
        Kind.COUNTER,
        "Changes of products; one of several kinds counts once for each.",
        {"kind": _values(set(ChangeKind))},
    ),
    Declared(
        "outbox",
        Kind.GAUGE,
        "Rows of the outboxes.",
        {"box": _values(set(Box)), "status": _values(set(OutboxStatus) | set(TaskOutboxStatus))},
    ),
    Declared(
        "outbox_oldest_seconds",
        Kind.GAUGE,
        "Age of the oldest row that has neither arrived nor been given up; of a task's row, since it has been due.",
        {"box": _values(set(Box))},
    ),
    Declared(
        "deliveries_total",
        Kind.COUNTER,
        "Events sent to the product server, by its HTTP status, or NO_ANSWER.",
        {STATUSES: _values("200", NO_ANSWER)},
    ),
    Declared("delivery_lag_seconds", Kind.HISTOGRAM, "From seeing a change to its having arrived.", buckets=_LAGS),
    Declared("staleness_seconds", Kind.GAUGE, "Age of the oldest document of any ACTIVE product."),
    Declared(
        "sweep_found_total", Kind.COUNTER, "What the sweeps found standing still.", {"sweep": _values(set(SWEEPS))}
    ),
    Declared(
        "executions_total",
        Kind.COUNTER,
        "Executions begun (STARTED) and ended.",
        {"status": ("COMPLETED", "FAILED", "STARTED")},
    ),
    Declared(
        "schedule_delay_seconds",
        Kind.HISTOGRAM,
        "From a schedule's moment to the beginning of its execution.",
        buckets=(0.0, *_WAITS),
    ),
    Declared(
        "transactions_again_total",
        Kind.COUNTER,
        "Transactions that were broken off and done again: for a deadlock, for others' locks, for a lost connection.",
        {"why": _values(set(TRIES))},
    ),
    Declared(
        "pool_leads_total",
        Kind.COUNTER,
        "Steps by which the lead of the identity pool passed between Redis and the database.",
        {"step": _values(set(LEAD_STEPS))},
    ),
    Declared("loops_late", Kind.GAUGE, "Loops and sweeps that nobody has run for too long."),
    Declared("ledger_breaks", Kind.GAUGE, "Executions of which planned is not succeeded + failed + open."),
    Declared(
        "up",
        Kind.GAUGE,
        "1 when that component answered the last look at the gauges; at 0 its gauges are left out.",
        {"component": ("database", "pool", "queue")},
    ),
)
BY_NAME: Final[Mapping[str, Declared]] = {one.name: one for one in DECLARED}


def page() -> str:
    """docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "What `GET /metrics` shows, in every process: the API and `up` on their port, workers and schedulers on the one",
        "that they name when they start. Counters and histograms are a process's own: add them up over processes.",
        "Gauges are of the whole system and the same everywhere: take the maximum. No label names an item, a task, an",
        "identity or a seller. Made from `entry/metrics/declared.py`; dashboard and alert rules are in `deploy/`.",
        "",
        "| metric | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    for one in DECLARED:
        labels = ", ".join(f"`{label}`" for label in one.labels) or "–"
        lines.append(f"| `{one.series}` | {one.kind} | {labels} | {one.about} |")
    return "\n".join([*lines, ""])
