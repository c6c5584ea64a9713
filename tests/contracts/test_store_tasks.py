"""What ports/store.py promises of tasks and attempts, on every engine."""

from datetime import timedelta

import pytest

from builders import NOON, a_publication, a_task, an_attempt, an_execution, an_id, at
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.domain.outbox import TaskOutboxStatus
from sellerwatch.domain.tasks import AttemptStatus, Task, TaskKind, TaskStatus
from sellerwatch.ports.store import Store


async def put(store: Store, *tasks: Task) -> None:
    await store.transact(lambda unit: unit.tasks.add(tasks))


async def got(store: Store, task: Task) -> Task:
    found = await store.read(lambda unit: unit.tasks.get(task.task_id))
    assert found is not None
    return found


@pytest.mark.parametrize("state", TaskStatus)
async def test_a_task_comes_back_as_it_was_added(store: Store, state: TaskStatus) -> None:
    task = a_task(7, state=state, retry_count=2, abandon_count=1, error_message="why 왜")
    await put(store, task)
    assert await got(store, task) == task


async def test_a_task_that_exists_is_left_as_it_is_and_is_not_new(store: Store) -> None:
    running = a_task(7, state=TaskStatus.RUNNING)
    await put(store, running)
    again = [a_task(7), a_task(8), a_task(8), a_task(7, kind=TaskKind.OPTION)]
    assert await store.transact(lambda unit: unit.tasks.add(again)) == 2
    assert await got(store, running) == running


async def test_a_task_that_nobody_knows_is_none(store: Store) -> None:
    assert await store.read(lambda unit: unit.tasks.get(an_id("nobody"))) is None


async def test_lock_gives_those_that_exist_by_their_id(store: Store) -> None:
    tasks = [a_task(item_no) for item_no in range(1, 700)]
    await put(store, *tasks)
    ids = [*(task.task_id for task in tasks), an_id("nobody"), tasks[0].task_id]
    assert await store.transact(lambda unit: unit.tasks.lock(ids)) == {task.task_id: task for task in tasks}
    assert await store.transact(lambda unit: unit.tasks.lock([])) == {}


async def test_save_writes_what_a_task_has_become(store: Store) -> None:
    task = a_task(7)
    other = a_task(8)
    await put(store, task, other)
    task.claim(an_id("attempt"), "worker-1", at(60), at(1))
    await store.transact(lambda unit: unit.tasks.save([task]))
    assert await got(store, task) == task
    task.succeed(at(2))
    await store.transact(lambda unit: unit.tasks.save([task]))
    assert await got(store, task) == task
    assert await got(store, other) == other


async def test_what_is_too_long_for_its_column_is_cut(store: Store) -> None:
    task = a_task(7, error_message="왜" * 5000)
    await put(store, task)
    assert (await got(store, task)).error_message == "왜" * 2048
    await store.transact(lambda unit: unit.tasks.save([task]))
    assert (await got(store, task)).error_message == "왜" * 2048


async def test_mark_published_meets_waiting_and_retry_only(store: Store) -> None:
    tasks = {state: a_task(number, state=state) for number, state in enumerate(TaskStatus, start=1)}
    await put(store, *tasks.values())
    await store.transact(lambda unit: unit.tasks.mark_published([each.task_id for each in tasks.values()], at(5)))
    for task in tasks.values():
        task.publish(at(5))
        assert await got(store, task) == task


async def test_extend_lengthens_claims_that_are_still_held(store: Store) -> None:
    held, passed_on, ended = (a_task(number, state=TaskStatus.RUNNING) for number in (1, 2, 3))
    rows = [(task.task_id, str(task.attempt_id)) for task in (held, ended)]
    ended.succeed(at(1))
    await put(store, held, passed_on, ended)
    await store.transact(lambda unit: unit.tasks.extend([*rows, (passed_on.task_id, an_id("another"))], at(500)))
    assert (await got(store, held)).claimed_until == at(500)
    assert await got(store, passed_on) == passed_on
    assert await got(store, ended) == ended


async def test_open_items_are_those_with_an_open_task_of_that_execution(store: Store) -> None:
    other = an_execution("shop-2")
    await put(
        store,
        a_task(1, state=TaskStatus.SUCCESS),
        a_task(1, kind=TaskKind.OPTION, state=TaskStatus.RETRY),
        a_task(2, state=TaskStatus.SUCCESS),
        a_task(2, kind=TaskKind.OPTION, state=TaskStatus.FAILED),
        a_task(2, execution=other, state=TaskStatus.RUNNING),
        a_task(3, execution=other),
    )
    first, second = an_execution().execution_id, other.execution_id
    pairs = [(first, 1), (first, 2), (first, 3), (second, 2), (second, 3)]
    found = await store.read(lambda unit: unit.tasks.open_items(pairs))
    assert found == {(first, 1), (second, 2), (second, 3)}


async def test_list_pages_are_the_list_tasks_of_an_execution_by_page(store: Store) -> None:
    pages = [a_task(page_no=page) for page in (2, 0, 1)]
    search = a_task(kind=TaskKind.SEARCH, page_no=3)
    await put(store, *pages, search, a_task(5), a_task(page_no=0, execution=an_execution("shop-2")))
    found = await store.read(lambda unit: unit.tasks.list_pages(an_execution().execution_id))
    assert found == [pages[1], pages[2], pages[0], search]


async def test_lock_open_gives_open_tasks_of_an_execution_up_to_a_count(store: Store) -> None:
    tasks = [a_task(number, state=state) for number, state in enumerate(TaskStatus, start=1)]
    await put(store, *tasks, a_task(1, execution=an_execution("shop-2")))
    execution_id = an_execution().execution_id
    found = await store.transact(lambda unit: unit.tasks.lock_open(execution_id, 100))
    assert {task.status for task in found} == {each.status for each in tasks if each.is_open}
    assert {task.execution_id for task in found} == {execution_id}
    assert len(await store.transact(lambda unit: unit.tasks.lock_open(execution_id, 2))) == 2


async def test_stuck_are_running_tasks_whose_claim_ran_out_or_that_run_too_long(store: Store) -> None:
    late = a_task(1, state=TaskStatus.RUNNING, claimed_until=at(100))
    live = a_task(2, state=TaskStatus.RUNNING, claimed_until=at(101))
    long = a_task(3, state=TaskStatus.RUNNING, claimed_until=at(900), started_at=at(-1000))
    ended = a_task(4, state=TaskStatus.SUCCESS)
    await put(store, late, live, long, ended)
    found = await store.transact(lambda unit: unit.tasks.lock_stuck(at(100), at(-500), 10))
    assert sorted(task.item_no for task in found) == [1, 3]
    assert len(await store.transact(lambda unit: unit.tasks.lock_stuck(at(100), at(-500), 1))) == 1


async def test_orphans_are_published_long_ago_sent_and_not_looked_at_since(store: Store) -> None:
    lost, unsent, young, running = (
        a_task(1, state=TaskStatus.PUBLISHED),
        a_task(2, state=TaskStatus.PUBLISHED),
        a_task(3, state=TaskStatus.PUBLISHED, at=at(100)),
        a_task(4, state=TaskStatus.RUNNING),
    )
    await put(store, lost, unsent, young, running)
    rows = [a_publication(task, status=TaskOutboxStatus.SENT) for task in (lost, young, running)]
    await store.transact(lambda unit: unit.publications.add([*rows, a_publication(unsent)]))
    assert await store.read(lambda unit: unit.tasks.orphans(at(50), 10)) == [lost]
    await store.transact(lambda unit: unit.tasks.note_orphans([lost.task_id], at(60)))
    assert await store.read(lambda unit: unit.tasks.orphans(at(50), 10)) == []
    assert await store.read(lambda unit: unit.tasks.orphans(at(61), 10)) == [lost]


async def test_an_attempt_is_written_when_it_begins_and_when_it_ends(store: Store, database: Database) -> None:
    task = a_task(1, state=TaskStatus.RUNNING)
    attempt = an_attempt(task)
    await store.transact(lambda unit: unit.attempts.add([attempt]))
    attempt.status, attempt.agent_id, attempt.http_status, attempt.duration_ms = AttemptStatus.FAILED, 9, 502, 31
    attempt.response_bytes, attempt.response_summary, attempt.completed_at = 3000, "x" * 3000, at(3)
    attempt.error_message = "bad gateway"
    await store.transact(lambda unit: unit.attempts.finish([attempt]))
    assert await attempts(database) == [
        (attempt.attempt_id, "FAILED", 9, 502, 31, 3000, "x" * 2048, "bad gateway", NOON, at(3))
    ]


async def test_an_abandoned_attempt_stays_abandoned(store: Store, database: Database) -> None:
    running, ended = (an_attempt(a_task(number, state=TaskStatus.RUNNING)) for number in (1, 2))
    ended.status, ended.completed_at = AttemptStatus.SUCCESS, at(1)
    await store.transact(lambda unit: unit.attempts.add([running, ended]))
    await store.transact(lambda unit: unit.attempts.abandon([running.attempt_id, ended.attempt_id], at(9)))
    running.status, running.completed_at = AttemptStatus.SUCCESS, at(10)
    await store.transact(lambda unit: unit.attempts.finish([running]))
    found = {row[0]: (row[1], row[-1]) for row in await attempts(database)}
    assert found == {running.attempt_id: ("ABANDONED", at(9)), ended.attempt_id: ("SUCCESS", at(1))}


async def attempts(database: Database) -> list[tuple[object, ...]]:
    columns = tables.crawl_executions.c
    names = "attempt_id status agent_id http_status duration_ms response_bytes response_summary error_message"
    picked = [columns[name] for name in [*names.split(), "started_at", "completed_at"]]
    statement = tables.crawl_executions.select().with_only_columns(*picked)
    return await database.read(lambda connection: [tuple(row) for row in connection.execute(statement)])


async def test_moments_keep_their_microseconds(store: Store) -> None:
    task = a_task(1, at=NOON + timedelta(microseconds=1), state=TaskStatus.RUNNING)
    whole = a_task(2, at=NOON.replace(microsecond=0))
    await put(store, task, whole)
    assert (await got(store, task)).created_at == NOON + timedelta(microseconds=1)
    assert (await got(store, whole)).created_at == NOON.replace(microsecond=0)
