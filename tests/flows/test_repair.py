"""What an operator's repairs promise: each row by its own rules, refused rows named, nothing done twice."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders import NOON, a_publication, a_schedule, a_seller, a_task, an_attempt, an_execution, an_id, at
from desk import a_product, a_raw, an_event, new_house
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.errors import Unknown, WrongVerb
from sellerwatch.domain.executions import ExecutionStatus, ListState
from sellerwatch.domain.outbox import OutboxStatus, ProductEvent, ScheduleNotice, TaskOutboxStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.schedules import ScheduleEvent
from sellerwatch.domain.tasks import Attempt, Task, TaskStatus
from sellerwatch.flows import repair as repairing
from sellerwatch.flows.repair import Repair
from sellerwatch.ports.queue import DeadLetter
from sellerwatch.ports.store import Unit

WAITING, COMPLETED, FAILED, HELD = (
    OutboxStatus.WAITING,
    OutboxStatus.COMPLETED,
    OutboxStatus.FAILED,
    OutboxStatus.HELD,
)


class Letters:
    """A queue that holds dead letters only; what is redriven dies at once, as a new letter."""

    def __init__(self, count: int) -> None:
        self.letters = [_letter(number, NOON) for number in range(count)]
        self.redriven: list[str] = []

    async def dead_letters(self, count: int) -> list[DeadLetter]:
        return self.letters[:count]

    async def redrive(self, letter_ids: list[str]) -> int:
        self.redriven += letter_ids
        self.letters = [one for one in self.letters if one.letter_id not in letter_ids]
        self.letters += [_letter(1000 + int(one), datetime.max.replace(tzinfo=UTC)) for one in letter_ids]
        return len(letter_ids)


def _letter(number: int, sent_at: datetime) -> DeadLetter:
    return DeadLetter(str(number), "{}", "group", 3, sent_at, "received 3 times", None)


class Place:
    """A store, and the repairs on it."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.queue = Letters(3)
        clock = SystemClock()
        self.bell = AsyncBell(clock)
        self.repair = Repair(store, self.queue, clock, self.bell)  # type: ignore[arg-type]

    async def rings(self, name: str) -> bool:
        return await self.bell.wait(name, 0)

    async def events(self, *events: ProductEvent) -> list[ProductEvent]:
        found = await self.store.read(lambda unit: unit.events.lock([event.outbox_id for event in events]))
        by_id = {event.outbox_id: event for event in found}
        return [by_id[event.outbox_id] for event in events]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with new_house(tmp_path) as database:
        yield Place(SqlStore(database))


async def test_a_failed_row_is_sent_again_and_starts_its_retries_anew(place: Place) -> None:
    event = an_event(a_product(), 1, FAILED, retry_count=5, error_message="HTTP 500")
    await place.store.transact(lambda unit: unit.events.add([event]))
    repaired = await place.repair.retry([event.outbox_id])
    assert (repaired.done, repaired.superseded, repaired.refused) == (1, 0, [])
    [kept] = await place.events(event)
    assert (kept.status, kept.retry_count) == (WAITING, 0)
    assert await place.rings("deliver")


async def test_a_failed_row_is_not_sent_after_a_newer_one_has_arrived(place: Place) -> None:
    product = a_product()
    old, new = an_event(product, 1, FAILED), an_event(product, 3, COMPLETED, sent_at=NOON)
    await place.store.transact(lambda unit: unit.events.add([old, new]))
    repaired = await place.repair.retry([old.outbox_id])
    assert (repaired.done, repaired.superseded) == (0, 1)
    [kept] = await place.events(old)
    assert (kept.status, kept.error_message) == (COMPLETED, "superseded by 3")


async def test_a_newer_row_that_was_discarded_has_not_arrived(place: Place) -> None:
    product = a_product()
    old = an_event(product, 1, FAILED)
    new = an_event(product, 2, COMPLETED, sent_at=NOON, error_message="discarded")
    await place.store.transact(lambda unit: unit.events.add([old, new]))
    assert (await place.repair.retry([old.outbox_id])).done == 1


async def test_rows_that_may_not_be_retried_are_named_and_the_others_go_on(place: Place) -> None:
    good, sent = an_event(a_product(1), 1, FAILED), an_event(a_product(2), 1, COMPLETED)
    await place.store.transact(lambda unit: unit.events.add([good, sent]))
    repaired = await place.repair.retry([sent.outbox_id, "nonsense", good.outbox_id])
    assert repaired.done == 1
    assert repaired.refused == [
        f"outbox row {sent.outbox_id} is COMPLETED: it cannot be tried again",
        "no FAILED outbox row nonsense",
    ]


async def test_rows_of_the_other_outboxes_are_retried_by_their_ids_too(place: Place) -> None:
    notice = ScheduleNotice.of(an_id("schedule"), ScheduleEvent.REGISTERED, {"ruleName": "rule"}, NOON)
    notice.status = FAILED
    task, closed = a_task(7), a_task(8, state=TaskStatus.FAILED)
    row, lost = (a_publication(each, status=TaskOutboxStatus.FAILED) for each in (task, closed))

    def plant(unit: Unit) -> None:
        unit.notices.add(notice)
        unit.tasks.add([task, closed])
        unit.publications.add([row, lost])

    await place.store.transact(plant)
    repaired = await place.repair.retry([notice.outbox_id, row.outbox_id, lost.outbox_id])
    assert repaired.done == 2
    assert repaired.refused == [f"the task of outbox row {lost.outbox_id} has ended: crawl shop-1 again"]
    [kept] = await place.store.read(lambda unit: unit.notices.lock([notice.outbox_id]))
    assert kept.status is WAITING
    both = await place.store.read(lambda unit: unit.publications.lock([row.outbox_id, lost.outbox_id]))
    assert {each.outbox_id: each.status for each in both} == {
        row.outbox_id: TaskOutboxStatus.PENDING,
        lost.outbox_id: TaskOutboxStatus.FAILED,
    }


async def test_all_that_failed_since_a_time_is_retried_in_batches(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairing, "BATCH", 2)
    events = [an_event(a_product(number), 1, FAILED) for number in range(1, 6)]
    early = an_event(a_product(9), 1, FAILED, created_at=at(-100))
    await place.store.transact(lambda unit: unit.events.add([*events, early]))
    assert (await place.repair.retry_since(at(-10))).done == 5
    assert [event.status for event in await place.events(*events, early)] == [WAITING] * 5 + [FAILED]


async def test_failed_raws_are_processed_once_more_all_of_them_or_those_named(place: Place) -> None:
    failed = [a_raw(number, raw_hash="a" * 32, status=RawStatus.FAILED, retry_count=3) for number in (1, 2, 3)]
    fine = a_raw(4, raw_hash="a" * 32)
    await place.store.transact(lambda unit: unit.raws.put([*failed, fine]))
    repaired = await place.repair.retry_raws([failed[0].raw_id, fine.raw_id, "nonsense"])
    assert repaired.done == 1
    assert repaired.refused == ["no raw nonsense", f"raw {fine.raw_id} is PROCESSED: it has not failed"]
    assert (await place.repair.retry_raws()).done == 2
    kept = await place.store.read(lambda unit: unit.raws.lock_by_id([raw.raw_id for raw in failed]))
    assert {raw.status for raw in kept} == {RawStatus.PENDING}


async def test_all_dead_letters_go_back_once_even_if_they_die_again(place: Place) -> None:
    assert await place.repair.redrive() == 3
    assert place.queue.redriven == ["0", "1", "2"]
    assert await place.repair.redrive(["1000"]) == 1


@pytest.mark.parametrize("batch", [1, 2, 3, 500])
async def test_cancelling_an_execution_ends_its_open_tasks_and_its_counters_equal_its_tasks(
    place: Place, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(repairing, "BATCH", batch)
    execution = an_execution(total_tasks=4, completed_tasks=1)
    done, running, waiting, retry = (
        a_task(number, state=TaskStatus(state), execution=execution)
        for number, state in enumerate(("SUCCESS", "RUNNING", "WAITING", "RETRY"), start=1)
    )
    attempt = an_attempt(running)

    def plant(unit: Unit) -> None:
        unit.sellers.add(a_seller())
        unit.schedules.add(a_schedule())
        unit.executions.add(execution)
        tasks: list[Task] = [done, running, waiting, retry]
        attempts: list[Attempt] = [attempt]
        unit.tasks.add(tasks)
        unit.attempts.add(attempts)
        unit.publications.add([a_publication(task) for task in tasks])

    await place.store.transact(plant)
    assert await place.repair.cancel_execution(execution.execution_id) == 3

    def look(unit: Unit) -> tuple[list[TaskStatus], list[str | None]]:
        tasks = [unit.tasks.get(task.task_id) for task in (done, running, waiting, retry)]
        return [task.status for task in tasks if task], [task.error_message for task in tasks if task]

    statuses, errors = await place.store.read(look)
    assert statuses == [TaskStatus.SUCCESS, *[TaskStatus.FAILED] * 3]
    assert errors[1:] == ["cancelled"] * 3
    kept = await place.store.read(lambda unit: unit.executions.get(execution.execution_id))
    assert kept is not None
    assert (kept.status, kept.error_message) == (ExecutionStatus.FAILED, "cancelled")
    assert (kept.completed_tasks, kept.failed_tasks, kept.open_tasks) == (1, 3, 0)
    assert kept.list_state is ListState.INCOMPLETE
    assert await place.store.read(lambda unit: unit.executions.open_of("shop-1")) is None
    with pytest.raises(WrongVerb, match="is FAILED: it cannot be cancelled"):
        await place.repair.cancel_execution(execution.execution_id)


async def test_an_execution_that_nobody_knows_cannot_be_cancelled(place: Place) -> None:
    with pytest.raises(Unknown, match="no execution nonsense"):
        await place.repair.cancel_execution("nonsense")
