"""Closing tasks: whatever ends a task counts it in its execution, in the same transaction, and may end that too.

Executions are locked first and by id, in every transaction that closes tasks: so their counters are exact, and two
workers that close the last two tasks of an item see each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.executions import LIST_ROUND, Execution, ListState, list_verdict
from sellerwatch.domain.outbox import Publication
from sellerwatch.domain.tasks import Task, TaskStatus, list_tasks
from sellerwatch.ports.meter import Meter
from sellerwatch.ports.store import Unit


@dataclass(slots=True)
class Closing:
    """The executions touched by one transaction, and what their tasks came to."""

    unit: Unit
    addresses: Addresses | None
    """None where the marketplace is not known: then no further round over a list is begun."""
    page_size: int
    at: datetime
    executions: dict[str, Execution] = field(default_factory=dict)
    list_ended: set[str] = field(default_factory=set)
    items_ended: dict[tuple[str, int], None] = field(default_factory=dict)
    tasks_ended: list[Task] = field(default_factory=list)
    ended: list[Execution] = field(default_factory=list)

    def begin(self, execution_ids: Iterable[str]) -> None:
        """Lock them, before any task is locked."""
        self.executions = self.unit.executions.lock(sorted(set(execution_ids)))

    def closed(self, task: Task) -> None:
        self.tasks_ended.append(task)
        execution = self.executions.get(task.execution_id)
        if execution is None:
            # It can't be read, and is set aside with all its tasks.
            return
        is_success = task.status is TaskStatus.SUCCESS
        execution.count(int(is_success), int(not is_success))
        if task.kind.is_list:
            self.list_ended.add(task.execution_id)
        else:
            self.items_ended[task.execution_id, task.item_no] = None

    def add_tasks(self, execution: Execution, tasks: list[Task]) -> None:
        """Follow-ups with their outbox rows; those that exist already are not counted again."""
        if not tasks or not execution.is_open:
            return
        added = self.unit.tasks.add(tasks)
        self.unit.publications.add([Publication.of(task, self.at) for task in tasks])
        execution.grow(added)

    def end(self) -> list[Execution]:
        """Write the executions; those that ended by this."""
        for execution_id in sorted(self.list_ended):
            self._look_at_list(self.executions[execution_id])
        if self.items_ended:
            pairs = list(self.items_ended)
            still_open = self.unit.tasks.open_items(pairs)
            self.unit.raws.ripen([pair for pair in pairs if pair not in still_open], self.at)
        self.ended = [execution for execution in self.executions.values() if execution.complete_if_done(self.at)]
        self.unit.executions.save(self.executions.values())
        clear_overdue(self.unit, self.ended, self.at)
        return self.ended

    def tell(self, meter: Meter) -> None:
        """What ended by it, once that is committed."""
        for task in self.tasks_ended:
            meter.task(task.kind, task.status)
        for execution in self.ended:
            meter.execution(execution.status)

    def _look_at_list(self, execution: Execution) -> None:
        """When no list page is open any more: is the list whole, or is another round over it due?"""
        pages = self.unit.tasks.list_pages(execution.execution_id)
        if not execution.is_open or execution.list_state is not ListState.OPEN:
            return
        if not pages or any(page.is_open for page in pages):
            return
        rounds = max(page.page_no for page in pages) // LIST_ROUND + 1
        last_round = [page for page in pages if page.page_no // LIST_ROUND == rounds - 1]
        listed = self.unit.listings.count(execution.execution_id)
        state, is_round_due = list_verdict(
            listed=listed,
            expected=execution.expected_items,
            has_failed_pages=any(page.status is TaskStatus.FAILED for page in last_round),
            rounds=rounds,
        )
        if is_round_due and self.addresses:
            first_no = rounds * LIST_ROUND
            count = execution.expected_items or 0
            self.add_tasks(
                execution,
                list_tasks(
                    execution.execution_id,
                    execution.seller_id,
                    count,
                    self.page_size,
                    self.addresses,
                    self.at,
                    first_no=first_no,
                ),
            )
        elif state is not ListState.OPEN:
            execution.end_list(is_complete=state is ListState.COMPLETE)
            if state is ListState.INCOMPLETE:
                execution.error_message = f"list incomplete: {listed} of {execution.expected_items} items seen"


def clear_overdue(unit: Unit, executions: Iterable[Execution], at: datetime) -> None:
    """However they ended: they last no longer."""
    for execution in executions:
        if not execution.is_open:
            unit.chores.clear_alert(f"execution_overdue:{execution.seller_id}", at)


def cancel_tasks(closing: Closing, tasks: list[Task], reason: str) -> None:
    """Tasks that will not be made: FAILED with the reason, their outbox rows never sent, attempts under way ended."""
    closing.unit.attempts.abandon([task.attempt_id for task in tasks if task.attempt_id], closing.at)
    for task in tasks:
        task.cancel(reason, closing.at)
        closing.closed(task)
    closing.unit.tasks.save(tasks)
    closing.unit.publications.cancel([task.task_id for task in tasks])
