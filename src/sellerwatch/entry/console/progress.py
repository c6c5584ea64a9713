"""Progress of what one waits for: crawls, a bar per seller on a terminal, a line now and then elsewhere; other long work,
a bar on a terminal and nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sellerwatch.entry.console.tables import say, terminal
from sellerwatch.entry.console.text import grouped, visible
from sellerwatch.ports.reports import ExecutionRow

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_STEP_PERCENT = 25


class CrawlProgress:
    """Shown executions as bars; those not seen before get one. Nothing is drawn that did not change."""

    def __init__(self, bars: "Progress | None") -> None:
        self._bars = bars
        self._known: dict[str, TaskID] = {}
        self._told: dict[str, int] = {}

    def show(self, executions: Sequence[ExecutionRow]) -> None:
        for row in executions:
            if self._bars is None:
                self._tell(row)
            else:
                self._move(self._bars, row)

    def _move(self, bars: "Progress", row: ExecutionRow) -> None:
        if row.execution_id not in self._known:
            self._known[row.execution_id] = bars.add_task(visible(row.seller_id), total=None, failed="")
        bars.update(
            self._known[row.execution_id],
            # How much there is to do is known when the first list page has been read.
            total=row.total_tasks or (1 if not row.is_open else None),
            completed=row.completed_tasks + row.failed_tasks or (1 if not row.is_open else 0),
            failed=f"[red]{row.failed_tasks} failed" if row.failed_tasks else "",
        )

    def _tell(self, row: ExecutionRow) -> None:
        """While it lasts; how it ended is told by who waits for it."""
        step = int(row.progress_rate // _STEP_PERCENT)
        if row.is_open and self._told.get(row.execution_id) != step:
            self._told[row.execution_id] = step
            done = grouped(row.completed_tasks + row.failed_tasks)
            say(f"{row.seller_id}: {row.status}, {done} of {grouped(row.total_tasks)} tasks done")


@contextmanager
def crawl_progress() -> Iterator[CrawlProgress]:
    console = terminal()
    if not console.is_terminal:
        yield CrawlProgress(None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        yield CrawlProgress(bars)


@contextmanager
def steps_done(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on stderr, moved by telling it how much is done of how much."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415 - slow to load
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bars:
        bar = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
