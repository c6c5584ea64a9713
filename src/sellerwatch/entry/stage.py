"""What a spectator of the demonstration sees: live bars and figures on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sellerwatch.entry.account import Check
from sellerwatch.entry.console.text import count
from sellerwatch.ports.reports import ExecutionRow

LINE_SECONDS: Final = 5.0
BAR_WIDTH: Final = 30


@dataclass(frozen=True, slots=True)
class Scene:
    """One look at the work under way."""

    executions: tuple[ExecutionRow, ...]
    seconds: float
    requests: int
    identities: int
    leased: int
    products: int
    complete: int
    delivered: int

    @property
    def work(self) -> tuple[int, ...]:
        """What moves when anything does."""
        ended = sum(row.completed_tasks + row.failed_tasks for row in self.executions)
        return (self.requests, self.complete, self.delivered, ended)


Show = Callable[[Scene], None]


@dataclass(slots=True)
class Stage:
    console: Console
    _rate: list[tuple[float, int]] = field(default_factory=list)

    def open(self, shops: Mapping[str, int], address: str, database: Path | None) -> None:
        total = sum(shops.values())
        self.say(
            f"a sandbox marketplace answers at {address}: {count(len(shops), 'seller')}, {count(total, 'product')},"
        )
        self.say("80 requests an hour for each identity; 100 identities; a database of its own" + _at(database))

    def say(self, line: str) -> None:
        self.console.print(Text(line))

    @contextmanager
    def scene(self, title: str) -> Iterator[Show]:
        self._rate = []
        if not self.console.is_terminal:
            yield self._lines(title)
            return
        with Live(console=self.console, refresh_per_second=8, transient=False) as live:
            yield lambda scene: live.update(self._drawn(title, scene))

    def close(self, checks: Sequence[Check], requests: int, seconds: float) -> None:
        self.console.print()
        for line in self._account(checks):
            self.console.print(line)
        wrong = [line for check in checks for line in check.wrong]
        for line in wrong:
            self.console.print(Text(f"  {line}", style="red"))
        verdict = "everything is there" if not wrong else "something is missing"
        style = "bold green" if not wrong else "bold red"
        self.console.print(Text(f"{verdict}: {requests} requests in {seconds:.0f} s", style=style))

    def _account(self, checks: Sequence[Check]) -> list[RenderableType]:
        if not self.console.is_terminal:
            return [
                Text(
                    f"{'ok   ' if check.is_right else 'WRONG'} {check.what}: "
                    f"wanted {check.wanted}, found {check.found} ({check.how})"
                )
                for check in checks
            ]
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("")
        table.add_column("the account")
        table.add_column("wanted", justify="right", no_wrap=True)
        table.add_column("found", justify="right", no_wrap=True)
        table.add_column("how it was checked", style="dim")
        for check in checks:
            mark = Text("✓", style="green") if check.is_right else Text("✗", style="bold red")
            table.add_row(mark, check.what, check.wanted, check.found, check.how)
        return [table]

    def _drawn(self, title: str, scene: Scene) -> RenderableType:
        bars = Table.grid(padding=(0, 2))
        for row in scene.executions:
            done = row.completed_tasks + row.failed_tasks
            # Until its first list page is read nobody knows how much there is to do.
            bar = ProgressBar(
                total=max(1, row.total_tasks),
                completed=done,
                width=BAR_WIDTH,
                complete_style="cyan",
                finished_style="green",
            )
            bars.add_row(
                Text(row.seller_id), bar, Text(f"{done}/{row.total_tasks} tasks"), Text(row.status.value, "dim")
            )
        return Group(Text(title, style="bold"), bars, Text(self._figures(scene), style="cyan"), Text(""))

    def _lines(self, title: str) -> Show:
        told = -LINE_SECONDS

        def show(scene: Scene) -> None:
            nonlocal told
            self._note(scene)
            if scene.seconds - told >= LINE_SECONDS or (
                not any(row.is_open for row in scene.executions) and _ends(scene)
            ):
                told = scene.seconds
                done = sum(row.completed_tasks + row.failed_tasks for row in scene.executions)
                total = sum(row.total_tasks for row in scene.executions)
                self.say(f"{title}: {done} of {total} tasks; {self._figures(scene)}")

        return show

    def _figures(self, scene: Scene) -> str:
        self._note(scene)
        return (
            f"{self._per_second():.0f} requests/s, {scene.complete} of {scene.products} products complete, "
            f"{scene.identities} identities in use ({scene.leased} right now), {scene.delivered} events delivered"
        )

    def _note(self, scene: Scene) -> None:
        if not self._rate or self._rate[-1][0] != scene.seconds:
            self._rate = [*self._rate[-8:], (scene.seconds, scene.requests)]

    def _per_second(self) -> float:
        (began, before), (now, after) = self._rate[0], self._rate[-1]
        return (after - before) / (now - began) if now > began else 0.0


def _ends(scene: Scene) -> bool:
    return scene.complete == scene.products and scene.delivered >= scene.products


def _at(database: Path | None) -> str:
    return f", kept in {database}" if database else ""
