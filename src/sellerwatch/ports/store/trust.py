"""What is remembered to tell real changes from drift: what is usual, what a crawl shows, and what is quarantined."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from sellerwatch.domain.drift import Tally, Watch
from sellerwatch.domain.quarantines import Quarantine


class Drift(Protocol):
    """What crawls show, and what is usual for a seller."""

    def watch(self, execution_ids: Iterable[str]) -> dict[str, Watch]:
        """What was counted of these executions so far, beside what is usual for their sellers; nobody else counts
        there until the transaction ends. An execution that does not exist, or whose list is SETTLED, is not watched
        any more."""

    def save(self, watches: Iterable[Watch], at: datetime) -> None:
        """What was counted."""

    def learn(self, seller_id: str, usual: Tally, at: datetime) -> None:
        """What is usual for the seller from now on."""

    def forget(self, execution_ids: Iterable[str]) -> None:
        """What was counted of these executions."""


class Quarantines(Protocol):
    def of(self, execution_ids: Iterable[str]) -> dict[str, Quarantine]:
        """By execution, where there is one; locked, so that none ends while documents are added to it."""

    def lock(self, quarantine_ids: Iterable[str]) -> list[Quarantine]: ...
    def lock_open(self, seller_id: str | None = None) -> list[Quarantine]:
        """Those that are OPEN, of the seller or of all: of one at most one, unless two crawls tripped at the same
        moment."""

    def lock_ended(self, count: int) -> list[Quarantine]:
        """Ended, with something perhaps still waiting in them; those another process holds are skipped."""

    def save(self, quarantines: Iterable[Quarantine]) -> None:
        """New or known."""
