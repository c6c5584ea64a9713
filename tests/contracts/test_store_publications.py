"""What ports/store.py promises of the task outbox, on every engine."""

from collections import Counter
from collections.abc import Sequence
from typing import cast

from builders import a_publication, a_task, an_execution, an_id, at
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.outbox import Publication, TaskOutboxStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.flows.repair import Repair
from sellerwatch.ports.queue import Queue
from sellerwatch.ports.store import Claim, FailedRow, Store

OWNER = "relay-1"


def a_claim(seconds: float = 0, *, owner: str = OWNER) -> Claim:
    return Claim(owner, until=at(seconds + 30), at=at(seconds))


async def a_backlog(store: Store, shop: str, items: int, *, pages: int = 0, due: float = 0) -> None:
    """An open execution with so many tasks waiting to be published."""
    execution = an_execution(shop)
    tasks = [a_task(page_no=page, execution=execution) for page in range(pages)]
    tasks += [a_task(item_no, execution=execution) for item_no in range(1, items + 1)]
    rows = [a_publication(task, at=at(due)) for task in tasks]
    await store.transact(
        lambda unit: (unit.executions.add(execution), unit.tasks.add(tasks), unit.publications.add(rows))
    )


async def one(store: Store, **other: object) -> Publication:
    row = a_publication(a_task(1), **other)
    await store.transact(
        lambda unit: (
            unit.executions.add(an_execution()),
            unit.tasks.add([a_task(1)]),
            unit.publications.add([row]),
        )
    )
    return row


async def claimed(store: Store, count: int, seconds: float = 0, *, owner: str = OWNER) -> list[Publication]:
    return await store.transact(lambda unit: unit.publications.claim(a_claim(seconds, owner=owner), count))


async def finish(store: Store, rows: Sequence[Publication], seconds: float = 0, *, owner: str = OWNER) -> set[str]:
    for row in rows:
        row.sent(at(seconds))
    return await store.transact(lambda unit: unit.publications.save(rows, owner))


async def test_a_row_that_exists_is_left_alone_and_is_not_new(store: Store) -> None:
    row = await one(store)
    assert await store.transact(lambda unit: unit.publications.add([row, a_publication(a_task(2))])) == 1


async def test_a_claimed_row_is_processing_under_its_owner_until_its_deadline(store: Store) -> None:
    row = await one(store)
    [mine] = await claimed(store, 10, 1)
    row.status, row.next_attempt_at = TaskOutboxStatus.PROCESSING, at(1)
    row.claimed_by, row.claimed_until = OWNER, at(31)
    assert mine == row


async def test_nobody_else_gets_a_claimed_row(store: Store) -> None:
    await a_backlog(store, "shop-1", 5)
    mine = await claimed(store, 3)
    theirs = await claimed(store, 10, owner="relay-2")
    assert len(mine) == 3
    assert len(theirs) == 2
    assert not {row.task_id for row in mine} & {row.task_id for row in theirs}


async def test_what_is_not_due_yet_waits(store: Store) -> None:
    await a_backlog(store, "shop-1", 2, due=10)
    assert await claimed(store, 10, 9) == []
    assert not await store.read(lambda unit: unit.publications.is_due(at(9)))
    assert await store.read(lambda unit: unit.publications.is_due(at(10)))
    assert len(await claimed(store, 10, 10)) == 2
    assert not await store.read(lambda unit: unit.publications.is_due(at(10)))


async def test_sellers_without_an_open_execution_have_no_share(store: Store) -> None:
    await a_backlog(store, "shop-1", 2)
    ended = an_execution("shop-1", status=ExecutionStatus.FAILED)
    await store.transact(lambda unit: unit.executions.save([ended]))
    assert await claimed(store, 10) == []


async def test_sellers_share_equally_and_what_one_does_not_use_goes_to_the_others(store: Store) -> None:
    await a_backlog(store, "large", 100)
    await a_backlog(store, "middle", 30)
    await a_backlog(store, "small", 4)
    assert shares(await claimed(store, 60)) == {"large": 28, "middle": 28, "small": 4}
    assert shares(await claimed(store, 60)) == {"large": 58, "middle": 2}


async def test_a_large_shop_does_not_hold_up_many_small_ones_however_little_is_given(store: Store) -> None:
    await a_backlog(store, "large", 50, due=-100)
    for number in range(4):
        await a_backlog(store, f"small-{number}", 3)
    served: Counter[str] = Counter()
    for second in range(8):
        rows = await claimed(store, 2, second)
        served += shares(rows)
        await finish(store, rows, second)
    assert min(served.values()) == 3
    assert len(served) == 5


async def test_lists_come_before_items_and_the_longest_due_first(store: Store) -> None:
    await a_backlog(store, "shop-1", 3, pages=2)
    await a_backlog(store, "shop-2", 3, due=-10)
    rows = await claimed(store, 8)
    assert [(row.seller_id, row.priority) for row in rows] == [
        *[("shop-1", 0)] * 2,
        *[("shop-2", 1)] * 3,
        *[("shop-1", 1)] * 3,
    ]


async def test_save_writes_what_is_still_claimed_by_its_owner(store: Store) -> None:
    await a_backlog(store, "shop-1", 3)
    rows = await claimed(store, 3)
    await store.transact(lambda unit: unit.publications.free_zombies(at(31), 10))
    theirs = await claimed(store, 1, 31, owner="relay-2")
    assert await finish(store, rows, 32) == set()
    assert await finish(store, theirs, 32, owner="relay-2") == {theirs[0].task_id}
    assert len(await claimed(store, 10, 40)) == 2


async def test_a_refused_row_is_pending_again_when_it_is_due(store: Store) -> None:
    await one(store)
    [row] = await claimed(store, 1)
    row.refused("queue full " * 900, 5, at(20))
    assert await store.transact(lambda unit: unit.publications.save([row], OWNER)) == {row.task_id}
    assert await claimed(store, 1, 19) == []
    [again] = await claimed(store, 1, 20)
    assert (again.retry_count, again.error_message) == (1, ("queue full " * 900)[:2048])


async def test_again_publishes_anew_under_the_next_number(store: Store) -> None:
    row = await one(store)
    await finish(store, await claimed(store, 1))
    pairs = [(row.task_id, at(5)), (an_id("nobody"), at(5))]
    assert await store.transact(lambda unit: unit.publications.again(pairs)) == 1
    [again] = await claimed(store, 1, 5)
    assert again.publish_count == 1
    assert again.dedup_id == f"outbox-{row.task_id}-2"


async def test_who_is_sending_a_row_that_is_published_anew_loses_it(store: Store) -> None:
    row = await one(store)
    [mine] = await claimed(store, 1)
    assert await store.transact(lambda unit: unit.publications.again([(row.task_id, at(5))])) == 1
    assert await finish(store, [mine]) == set()
    assert await claimed(store, 1, 4) == []
    [again] = await claimed(store, 1, 5)
    assert again.dedup_id == f"outbox-{row.task_id}-2"


async def test_cancelled_rows_are_never_sent(store: Store) -> None:
    row = await one(store)
    await store.transact(lambda unit: unit.publications.cancel([row.task_id]))
    assert await claimed(store, 1, 100) == []
    [kept] = await store.transact(lambda unit: unit.publications.lock([row.outbox_id]))
    assert (kept.status, kept.error_message) == (TaskOutboxStatus.SENT, "never sent: its task is closed")


async def test_failed_rows_stay_failed_when_their_task_is_closed(store: Store) -> None:
    row = await one(store, status=TaskOutboxStatus.FAILED, error_message="queue full")
    await store.transact(lambda unit: unit.publications.cancel([row.task_id]))
    [kept] = await store.transact(lambda unit: unit.publications.lock([row.outbox_id, an_id("nothing")]))
    assert (kept.status, kept.error_message) == (TaskOutboxStatus.FAILED, "queue full")
    assert await claimed(store, 1, 100) == []


async def test_are_out_tells_whose_message_may_have_arrived(store: Store) -> None:
    tasks = [a_task(number) for number in range(1, 5)]
    rows = [a_publication(task, status=status) for task, status in zip(tasks, TaskOutboxStatus, strict=True)]
    await store.transact(lambda unit: unit.publications.add(rows))
    ids = [task.task_id for task in tasks]
    out = await store.read(lambda unit: unit.publications.are_out(ids))
    assert out == {row.task_id for row in rows if row.status in {TaskOutboxStatus.PROCESSING, TaskOutboxStatus.SENT}}


async def test_zombies_are_freed_under_the_same_publication_number(store: Store) -> None:
    await a_backlog(store, "shop-1", 3)
    before = await claimed(store, 3)
    assert await store.transact(lambda unit: unit.publications.free_zombies(at(29), 10)) == 0
    assert await store.transact(lambda unit: unit.publications.free_zombies(at(30), 2)) == 2
    assert await store.transact(lambda unit: unit.publications.free_zombies(at(30), 10)) == 1
    after = await claimed(store, 3, 30)
    assert {row.dedup_id for row in after} == {row.dedup_id for row in before}


async def test_failed_rows_are_given_while_their_task_is_open(store: Store) -> None:
    open_one, closed = a_task(1), a_task(2, state=TaskStatus.FAILED)
    rows = [a_publication(task, status=TaskOutboxStatus.FAILED) for task in (open_one, closed)]
    await store.transact(
        lambda unit: (
            unit.executions.add(an_execution()),
            unit.tasks.add([open_one, closed]),
            unit.publications.add(rows),
        )
    )
    found = await store.transact(lambda unit: unit.publications.lock_failed(10))
    assert found == [FailedRow(rows[0].outbox_id, open_one.task_id, 0, is_spoilt=False)]


async def test_failed_rows_are_retried_by_their_ids_however_many_others_there_are(store: Store) -> None:
    tasks = [a_task(number) for number in range(1, 1201)]
    closed, sent = a_task(2001, state=TaskStatus.FAILED), a_task(2002)
    failed = [a_publication(task, status=TaskOutboxStatus.FAILED) for task in [*tasks, closed]]
    other = a_publication(sent, status=TaskOutboxStatus.SENT)
    await store.transact(
        lambda unit: (
            unit.executions.add(an_execution()),
            unit.tasks.add([*tasks, closed, sent]),
            unit.publications.add([*failed, other]),
        )
    )
    clock = SystemClock()
    repair = Repair(store, cast("Queue", None), clock, AsyncBell(clock))
    repaired = await repair.retry([row.outbox_id for row in [*reversed(failed), other]])
    assert repaired.done == 1200
    assert set(repaired.refused) == {
        f"the task of outbox row {failed[1200].outbox_id} has ended: crawl shop-1 again",
        f"no FAILED outbox row {other.outbox_id}",
    }
    assert await store.transact(lambda unit: unit.publications.lock_failed(10)) == []
    again = await repair.retry([row.outbox_id for row in failed[:2]])
    assert (again.done, len(again.refused)) == (0, 2)


def shares(rows: Sequence[Publication]) -> Counter[str]:
    return Counter(row.seller_id for row in rows)
