"""What is remembered of crawling: sellers, their schedules and executions, tasks and their outbox."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sellerwatch.domain.executions import Balance, Execution
from sellerwatch.domain.outbox import Publication, ScheduleNotice
from sellerwatch.domain.schedules import Schedule
from sellerwatch.domain.sellers import Seller
from sellerwatch.domain.tasks import Attempt, Task
from sellerwatch.ports.store.claims import Claim


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
    def active(self, after: str, count: int) -> list[Schedule]:
        """Those that run, FAILED ones too, by seller, of sellers whose ids come after that one."""

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

    def balances(self, after: int, since: datetime, tasks_max: int) -> tuple[list[Balance], int]:
        """Of the newest executions, begun since, the next ones behind that number: their counters beside their tasks;
        as many as have about so many tasks, and one at least. And the last one's number; 0: there are no more."""

    def lock_unsettled(self, count: int) -> list[Execution]:
        """Ended, its list neither SETTLED nor UNCONFIRMED, no raw of it still PENDING or HELD, and not quarantined."""

    def lock_unconfirmed(self, seller_id: str) -> list[Execution]:
        """The seller's whose absences wait for a person's word."""


class Listings(Protocol):
    """Which items the lists of an execution showed."""

    def add(self, execution_id: str, seller_id: str, rows: Sequence[tuple[int, int]]) -> set[int]:
        """(item no, page no). Which items had not been listed in this execution yet."""

    def count(self, execution_id: str) -> int: ...
    def own(self, execution_id: str, seller_id: str) -> int:
        """How many of the listed items are products of the seller."""

    def mark_gone(self, pairs: Sequence[tuple[str, int]]) -> None:
        """(execution id, item no): its detail answered that it is gone."""

    def absent(self, execution_id: str, seller_id: str, *, is_complete: bool, before: datetime) -> list[int]:
        """ACTIVE items of the seller, known before this moment, that were not seen: marked gone, or, when the list
        is complete, not listed."""

    def returned(self, execution_id: str) -> list[int]:
        """Listed and not gone, but DELISTED or with an absence counted."""

    def active(self, seller_id: str) -> int:
        """How many products of the seller are ACTIVE."""

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

    def orphans(self, before: datetime, count: int) -> list[Task]:
        """PUBLISHED since before this moment, their outbox row SENT, and not looked at by `note_orphans` since; nothing is locked."""

    def note_orphans(self, task_ids: Sequence[str], at: datetime) -> None: ...


class Attempts(Protocol):
    def add(self, attempts: Sequence[Attempt]) -> None: ...
    def finish(self, attempts: Sequence[Attempt]) -> None: ...
    def abandon(self, attempt_ids: Sequence[str], at: datetime) -> None: ...


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A FAILED row of the task outbox."""

    outbox_id: str
    task_id: str
    retry_count: int
    is_spoilt: bool
    """It can't be read: no retry will send it."""


class Publications(Protocol):
    """The task outbox."""

    def add(self, publications: Sequence[Publication]) -> int: ...
    def claim(self, claim: Claim, count: int) -> list[Publication]:
        """Due PENDING rows become PROCESSING, drawn fairly: the sellers with an open execution share `count`, lists
        before items, the longest due first. Nobody else gets them before the claim ends."""

    def save(self, publications: Sequence[Publication], owner: str) -> set[str]:
        """Write what is still claimed by `owner`; the task ids of what was."""

    def again(self, rows: Sequence[tuple[str, datetime]]) -> int:
        """(task id, when due): published anew, under the next number. Who is sending a row just now loses it: an attempt
        has ended before the mark, so that message had been accepted. How many rows changed."""

    def cancel(self, task_ids: Sequence[str]) -> None:
        """Their tasks are closed: PENDING rows are never sent. FAILED ones stay that, to be seen."""

    def are_out(self, task_ids: Sequence[str]) -> set[str]:
        """Whose row is PROCESSING or SENT: their message may have arrived before the mark did."""

    def free_zombies(self, at: datetime, count: int) -> int:
        """PROCESSING past the claim's deadline: PENDING again, under the same publication number."""

    def lock_failed(self, count: int) -> list[FailedRow]:
        """FAILED whose task is still open."""

    def lock(self, outbox_ids: Sequence[str]) -> list[Publication]: ...

    def is_due(self, at: datetime) -> bool: ...
