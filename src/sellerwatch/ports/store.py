"""The store: what is remembered. A transaction is a plain function that is handed the unit of work.

`transact(work)` runs `work(unit)` and commits when it returns; raised out of it, nothing has happened. Work is
synchronous: it can't call out while the transaction is open. Between two transactions anything may happen; inside
one, rows read with `lock` are nobody else's. Methods take and give batches: one statement for many rows.

What is too long for its column is cut by the store (lesson 18). `add` of a row whose derived id exists is no error
and makes nothing new; it says how many were new.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol, TypeVar

from sellerwatch.domain.breakers import Breaker, BreakerScope, Transition
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.executions import Execution
from sellerwatch.domain.identities import Identity, SealedToken
from sellerwatch.domain.outbox import ProductEvent, Publication, ScheduleNotice
from sellerwatch.domain.products import Product, ProductStatus, Seen
from sellerwatch.domain.raws import Raw
from sellerwatch.domain.schedules import Schedule
from sellerwatch.domain.sellers import Seller
from sellerwatch.domain.tasks import Attempt, Task
from sellerwatch.ports.leading import Leaderships

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Claim:
    """Who works on a row, and until when nobody else does."""

    owner: str
    until: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class Head:
    """Of a product, what decides whether an answer is news."""

    item_no: int
    product_id: str
    seller_id: str
    status: ProductStatus
    absences: int
    seen: Mapping[DocumentKind, Seen]


@dataclass(frozen=True, slots=True)
class Usage:
    """One request that left, for `token_usage_log`."""

    agent_id: int
    request_url: str
    at: datetime
    task_id: str | None = None
    http_status: int | None = None
    duration_ms: int | None = None
    is_success: bool = False
    error_message: str | None = None
    retry_after: timedelta | None = None
    """How long the answer asked us to wait."""


@dataclass(frozen=True, slots=True)
class Touch:
    """An answer whose bytes equal the applied document's: the product was seen, nothing more."""

    item_no: int
    kind: DocumentKind
    raw_hash: str
    at: datetime


class Sellers(Protocol):
    def add(self, seller: Seller) -> bool: ...
    def get(self, seller_id: str) -> Seller | None: ...
    def lock(self, seller_id: str) -> Seller | None: ...
    def save(self, seller: Seller) -> None: ...
    def remove(self, seller_id: str) -> None:
        """The seller and its schedule; what was learned of its products stays."""

    def inactive(self, seller_ids: Iterable[str]) -> set[str]:
        """Which of these are INACTIVE or gone."""


class SchedulesKept(Protocol):
    def add(self, schedule: Schedule) -> None: ...
    def of_seller(self, seller_id: str) -> Schedule | None: ...
    def lock(self, seller_id: str) -> Schedule | None: ...
    def lock_by_id(self, schedule_id: str) -> Schedule | None: ...
    def save(self, schedule: Schedule) -> None: ...
    def lock_due(self, at: datetime, count: int) -> list[Schedule]:
        """The longest due first; those another process holds are skipped."""


class Notices(Protocol):
    """The scheduler outbox."""

    def add(self, notice: ScheduleNotice) -> None: ...
    def claim(self, claim: Claim, count: int) -> list[ScheduleNotice]:
        """Due WAITING rows become SENDING; in order per schedule: a row waits for the older ones of its schedule."""

    def save(self, notices: Sequence[ScheduleNotice], owner: str) -> int:
        """Those still claimed by `owner`; how many."""

    def free_zombies(self, at: datetime, count: int) -> int: ...
    def lock(self, outbox_ids: Sequence[str]) -> list[ScheduleNotice]: ...
    def put(self, notices: Sequence[ScheduleNotice]) -> None:
        """Write locked rows back, whoever claims them."""


class Executions(Protocol):
    def add(self, execution: Execution) -> bool:
        """False: this trigger key, or an open execution of this seller, exists already."""

    def get(self, execution_id: str) -> Execution | None: ...
    def of_trigger(self, schedule_id: str, trigger_key: str) -> Execution | None: ...
    def open_of(self, seller_id: str) -> Execution | None: ...
    def lock(self, execution_ids: Iterable[str]) -> dict[str, Execution]: ...
    def save(self, executions: Iterable[Execution]) -> None:
        """All columns; ended ones give up `open_key` and any claim."""

    def claim_started(self, claim: Claim, count: int) -> list[Execution]:
        """STARTED, due, and nobody's."""

    def release(self, execution: Execution, owner: str) -> bool:
        """Write it back if `owner` still claims it, and end the claim."""

    def lock_idle(self, count: int) -> list[Execution]:
        """IN_PROGRESS although no task of it is open."""

    def overdue(self, at: datetime, count: int) -> list[Execution]:
        """Open for longer than their seller's interval."""

    def lock_unsettled(self, count: int) -> list[Execution]:
        """Ended, its list not SETTLED, and no raw of it still PENDING."""


class Listings(Protocol):
    """Which items the lists of an execution showed."""

    def add(self, execution_id: str, seller_id: str, rows: Sequence[tuple[int, int]]) -> set[int]:
        """(item no, page no). Which items had not been listed in this execution yet."""

    def count(self, execution_id: str) -> int: ...
    def mark_gone(self, pairs: Sequence[tuple[str, int]]) -> None:
        """(execution id, item no): its detail answered that it is gone."""

    def absent(self, execution_id: str, seller_id: str, *, is_complete: bool, before: datetime) -> list[int]:
        """ACTIVE items of the seller, known before this moment, that were not seen: marked gone, or, when the list
        is complete, not listed."""

    def returned(self, execution_id: str) -> list[int]:
        """Listed and not gone, but DELISTED or with an absence counted."""

    def forget(self, execution_id: str) -> None: ...


class Tasks(Protocol):
    def add(self, tasks: Sequence[Task]) -> int: ...
    def get(self, task_id: str) -> Task | None: ...
    def lock(self, task_ids: Iterable[str]) -> dict[str, Task]: ...
    def save(self, tasks: Iterable[Task]) -> None: ...
    def mark_published(self, task_ids: Sequence[str], at: datetime) -> None:
        """`Task.publish` for many: WAITING and RETRY become PUBLISHED, others stay."""

    def extend(self, held: Sequence[tuple[str, str]], until: datetime) -> None:
        """(task id, attempt id): claims that are still held last longer."""

    def open_items(self, pairs: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """Which of these (execution id, item no) still have an open task."""

    def list_pages(self, execution_id: str) -> list[Task]:
        """The list tasks of an execution, by page."""

    def lock_open(self, execution_id: str, count: int) -> list[Task]: ...
    def lock_stuck(self, at: datetime, started_before: datetime, count: int) -> list[Task]:
        """RUNNING with the claim run out, or since too long."""

    def lock_orphans(self, before: datetime, count: int) -> list[Task]:
        """PUBLISHED since before this moment, their outbox row SENT, and not looked at by `note_orphans` since."""

    def note_orphans(self, task_ids: Sequence[str], at: datetime) -> None: ...


class Attempts(Protocol):
    def add(self, attempts: Sequence[Attempt]) -> None: ...
    def finish(self, attempts: Sequence[Attempt]) -> None: ...
    def abandon(self, attempt_ids: Sequence[str], at: datetime) -> None: ...


class Publications(Protocol):
    """The task outbox."""

    def add(self, publications: Sequence[Publication]) -> int: ...
    def claim(self, claim: Claim, count: int) -> list[Publication]:
        """Due PENDING rows become PROCESSING, drawn fairly: the sellers with an open execution share `count`, lists
        before items, the longest due first. Nobody else gets them before the claim ends."""

    def save(self, publications: Sequence[Publication], owner: str) -> set[str]:
        """Write what is still claimed by `owner`; the task ids of what was."""

    def again(self, rows: Sequence[tuple[str, datetime]]) -> int:
        """(task id, when due): published anew, unless PROCESSING right now. How many rows changed."""

    def cancel(self, task_ids: Sequence[str]) -> None:
        """Their tasks are closed: PENDING and FAILED rows are never sent."""

    def are_out(self, task_ids: Sequence[str]) -> set[str]:
        """Whose row is PROCESSING or SENT: their message may have arrived before the mark did."""

    def free_zombies(self, at: datetime, count: int) -> int:
        """PROCESSING past the claim's deadline: PENDING again, under the same publication number."""

    def lock_failed(self, count: int) -> list[Publication]:
        """FAILED whose task is still open."""

    def is_due(self, at: datetime) -> bool: ...


class Raws(Protocol):
    def put(self, raws: Sequence[Raw]) -> None:
        """New content is stored; known content becomes PENDING again with the new execution, task and moment, unless
        what is known is newer."""

    def ripen(self, pairs: Sequence[tuple[str, int]], at: datetime) -> None:
        """(execution id, item no): its crawl has ended, its PENDING raws may be processed."""

    def lock_ripe(self, at: datetime, count: int) -> list[Raw]:
        """Whole observations: about `count` ripe raws, with all PENDING siblings of their (execution, item)."""

    def save(self, raws: Sequence[Raw]) -> None:
        """Everything but the content."""

    def lock_failed(self, at: datetime, retries_max: int, count: int) -> list[Raw]: ...
    def lock_by_id(self, raw_ids: Sequence[str]) -> list[Raw]: ...
    def lock_since(self, since: datetime, after_id: int, count: int) -> tuple[list[Raw], int]:
        """Raws crawled since, whatever their state, by row number; and the last row number."""


class Products(Protocol):
    def heads(self, item_nos: Iterable[int]) -> dict[int, Head]: ...
    def touch(self, touches: Sequence[Touch]) -> None:
        """Seen again, the same to the byte; changes nothing where the applied document is another by now."""

    def lock(self, item_nos: Iterable[int]) -> dict[int, Product]: ...
    def get(self, item_no: int) -> Product | None: ...
    def save(self, products: Sequence[Product]) -> None: ...


class Changes(Protocol):
    def add(self, changes: Sequence[Change]) -> None: ...
    def of_item(self, item_no: int) -> list[Change]:
        """By version."""


class Events(Protocol):
    """The product outbox."""

    def add(self, events: Sequence[ProductEvent]) -> None: ...
    def claim(self, claim: Claim, count: int) -> list[list[ProductEvent]]:
        """Per product with a due row, the oldest due first: its WAITING rows by version, all now SENDING. A product
        with a row SENDING or HELD before them is skipped; rows whose first is not due yet wait."""

    def save(self, events: Sequence[ProductEvent], owner: str) -> int:
        """The state of those still claimed by `owner`, and what ends the claim of those no longer SENDING."""

    def restate(self, events: Sequence[ProductEvent]) -> None:
        """What locked rows say: a newer one took over what an older one would have said."""

    def free_zombies(self, at: datetime, count: int) -> int: ...
    def lock(self, outbox_ids: Sequence[str]) -> list[ProductEvent]: ...
    def lock_failed_since(self, since: datetime, count: int) -> list[ProductEvent]: ...
    def has_failed(self) -> bool: ...
    def newer_sent(self, event: ProductEvent) -> int | None:
        """The version of a newer row of the same product that was sent already."""

    def put(self, events: Sequence[ProductEvent]) -> None: ...


class Identities(Protocol):
    """The record of which identities exist; the pool leads in what they do."""

    def all(self) -> list[Identity]:
        """Those that are not retired, with their tokens."""

    def add(self, user_agents: Sequence[str], at: datetime) -> int: ...
    def retire(self, agent_ids: Sequence[int], at: datetime) -> int: ...
    def save(
        self, identities: Sequence[Identity], remaining: Mapping[int, int], hourly_limit: int, at: datetime
    ) -> None:
        """Status, health, counters and what follows from them, in one statement a table; what remains of the limit
        goes to `rate_limit_bucket`. The token: see `keep_token`."""

    def keep_token(self, agent_id: int, token: SealedToken | None, at: datetime) -> None:
        """The active token, and its place in the refresh schedule; None: no longer any."""

    def refresh_due(self, at: datetime, count: int) -> list[int]:
        """AVAILABLE identities whose token's refresh is due by its schedule, the longest due first."""

    def note_refresh(self, agent_id: int, at: datetime, *, is_success: bool) -> None: ...
    def tokens(self) -> list[tuple[int, SealedToken]]:
        """Every active token: for rekeying."""


class Breakers(Protocol):
    def record(self, transitions: Sequence[Transition]) -> None:
        """Events, and the states they lead to."""

    def load(self, scope: BreakerScope) -> Breaker | None: ...
    def save(self, breaker: Breaker, at: datetime) -> None: ...


class Chores(Protocol):
    """What keeps the house: usage, drift, alerts, processes, figures, and what may be forgotten."""

    def log_usage(self, rows: Sequence[Usage]) -> None: ...
    def note_drift(self, rows: Sequence[tuple[DocumentKind, str, str, str]], at: datetime) -> None:
        """(kind, field, problem, sample), counted by day."""

    def raise_alert(self, name: str, severity: str, text: str, details: Mapping[str, Any], at: datetime) -> None:
        """Open, or still open: counted."""

    def clear_alert(self, name: str, at: datetime) -> None: ...
    def alerts_to_tell(
        self, at: datetime, repeat_seconds: float
    ) -> list[tuple[str, str, str, datetime, dict[str, Any]]]:
        """(name, severity, text, since, details) of open alerts not told within the repeat time."""

    def told(self, name: str, at: datetime) -> None: ...
    def show_life(self, owner: str, role: str, host: str, pid: int, version: str, at: datetime) -> None: ...
    def leave(self, owner: str) -> None: ...
    def note_sweep(self, name: str, found: int, error: str | None, at: datetime) -> None: ...
    def write_daily_figures(self, day: date, start: datetime, end: datetime) -> int: ...
    def figured_days(self, day: date) -> bool:
        """Whether this day's figures are written."""

    def prune(self, what: str, before: datetime, count: int) -> int:
        """Delete up to `count` rows of one kind (`attempts`, `breaker_events`, `tasks`, `task_outbox`,
        `product_outbox`, `scheduler_outbox`, `raws`, `usage`, `queue`, `processes`); how many."""


class Unit(Protocol):
    sellers: Sellers
    schedules: SchedulesKept
    notices: Notices
    executions: Executions
    listings: Listings
    tasks: Tasks
    attempts: Attempts
    publications: Publications
    raws: Raws
    products: Products
    changes: Changes
    events: Events
    identities: Identities
    breakers: Breakers
    leaderships: Leaderships
    chores: Chores


class Store(Protocol):
    async def transact(self, work: Callable[[Unit], T]) -> T:
        """Run `work` in one transaction. Deadlocks and lock waits are tried again; Unavailable when the database is
        away."""

    async def read(self, work: Callable[[Unit], T]) -> T:
        """The same on one consistent snapshot; it must not write."""
