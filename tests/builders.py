"""Things as tests need them: plain functions with defaults, of which a test names only what it is about."""

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.executions import Execution, ExecutionStatus
from sellerwatch.domain.outbox import Publication, ScheduleNotice
from sellerwatch.domain.schedules import Schedule, ScheduleEvent
from sellerwatch.domain.sellers import Seller, SellerStatus
from sellerwatch.domain.tasks import NO_ITEM, NO_PAGE, Attempt, AttemptStatus, Task, TaskKind, TaskStatus, new_task

Thing = TypeVar("Thing")
NOON = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)
ADDRESSES = Addresses("https://shop.test")


def an_id(name: object) -> str:
    """The same name, the same UUID."""
    return str(uuid5(NAMESPACE_URL, str(name)))


def at(seconds: float) -> datetime:
    """So long after noon."""
    return NOON + timedelta(seconds=seconds)


def a_seller(seller_id: str = "shop-1", *, status: SellerStatus = SellerStatus.ACTIVE, **other: Any) -> Seller:
    seller = Seller.register(seller_id, other.pop("name", f"Shop {seller_id}"), other.pop("at", NOON), **other)
    seller.status = status
    return seller


def a_schedule(seller_id: str = "shop-1", *, days: int = 1, at: datetime = NOON) -> Schedule:
    schedule, _ = Schedule.create(an_id(f"schedule/{seller_id}"), seller_id, days, at)
    return schedule


def a_notice(
    schedule_id: str = "shop-1", *, event: ScheduleEvent = ScheduleEvent.REGISTERED, at: datetime = NOON
) -> ScheduleNotice:
    return ScheduleNotice.of(
        an_id(f"schedule/{schedule_id}"), event, {"ruleName": f"rule-{schedule_id}", "days": 1}, at
    )


def an_execution(
    seller_id: str = "shop-1",
    *,
    name: object = 1,
    status: ExecutionStatus = ExecutionStatus.IN_PROGRESS,
    at: datetime = NOON,
    **other: Any,
) -> Execution:
    """`name` tells the executions of one seller apart."""
    execution = Execution.start(
        an_id(f"execution/{seller_id}/{name}"), an_id(f"schedule/{seller_id}"), seller_id, f"run-{name}", at
    )
    execution.status = status
    if status is not ExecutionStatus.STARTED:
        execution.next_attempt_at = None
    if not execution.is_open:
        execution.completed_at = at
    return _with(execution, other)


def a_task(
    item_no: int = NO_ITEM,
    *,
    state: TaskStatus = TaskStatus.WAITING,
    execution: Execution | None = None,
    kind: TaskKind | None = None,
    page_no: int = NO_PAGE,
    at: datetime = NOON,
    **other: Any,
) -> Task:
    """A DETAIL when it is given an item, else a list page; RUNNING ones bear the claim of "worker-1" for a minute."""
    execution = execution or an_execution()
    kind = kind or (TaskKind.DETAIL if item_no else TaskKind.MINI_SHOP)
    page_no = max(page_no, 0) if kind.is_list else page_no
    url = {
        TaskKind.MINI_SHOP: lambda: ADDRESSES.mini_shop(execution.seller_id, page_no, 500),
        TaskKind.SEARCH: lambda: ADDRESSES.search(execution.seller_id),
        TaskKind.DETAIL: lambda: ADDRESSES.detail(item_no),
        TaskKind.OPTION: lambda: ADDRESSES.option(item_no),
    }[kind]()
    task = new_task(
        execution.execution_id, execution.seller_id, kind, url, ADDRESSES, at, item_no=item_no, page_no=page_no
    )
    if state is not TaskStatus.WAITING:
        task.publish(at)
    if state in {TaskStatus.RUNNING, TaskStatus.SUCCESS}:
        task.claim(an_id(f"attempt/{task.task_id}"), "worker-1", at + timedelta(seconds=60), at)
    if state is TaskStatus.SUCCESS:
        task.succeed(at)
    if state is TaskStatus.FAILED:
        task.cancel("cancelled", at)
    task.status = state
    return _with(task, other)


def an_attempt(task: Task, **other: Any) -> Attempt:
    """The attempt that a RUNNING task bears."""
    attempt_id = task.attempt_id or an_id(f"attempt/{task.task_id}")
    return _with(
        Attempt(attempt_id, task.task_id, task.seller_id, 1, AttemptStatus.RUNNING, task.started_at or NOON), other
    )


def a_publication(task: Task, *, at: datetime = NOON, **other: Any) -> Publication:
    return _with(Publication.of(task, at), other)


def _with(thing: Thing, values: dict[str, Any]) -> Thing:
    for name, value in values.items():
        setattr(thing, name, value)
    return thing
