"""The meter: told of what happens as it happens, so that it can be counted.

Whoever counts is handed in by a door; a house that is not told by whom counts nothing. Telling costs next to nothing,
never fails and changes nothing. What is told has happened: it was committed, or it left. Every word that is told is one
of few; no item, task, identity or seller is named.
"""

from typing import Final, Protocol


class Meter(Protocol):
    def request(self, kind: str, status: str, seconds: float) -> None:
        """A request to the marketplace has ended: with an HTTP status, or with why there was no answer."""

    def lease(self, result: str, count: int = 1) -> None:
        """GRANTED, CANCELLED (given back unused), EXPIRED, or why there was none."""

    def lease_wait(self, seconds: float) -> None:
        """How long somebody who had something to ask waited for the lease that he got."""

    def task(self, kind: str, result: str, count: int = 1) -> None:
        """Attempts that ended: in SUCCESS, in FAILED, or in RETRY; or tasks that were cancelled: FAILED."""

    def execution(self, status: str, count: int = 1) -> None:
        """Begun: STARTED; ended: COMPLETED or FAILED."""

    def change(self, kind: str) -> None: ...

    def delivery(self, status: str, lag_seconds: float | None) -> None:
        """With an HTTP status, or NO_ANSWER; accepted, how long after the change."""

    def swept(self, sweep: str, found: int) -> None: ...

    def led(self, step: str) -> None:
        """The lead of the pool went on to another step than being kept."""

    def schedule_delay(self, seconds: float) -> None:
        """How long after its time a schedule's execution began."""

    def done_again(self, why: str) -> None:
        """A transaction was broken off and is done again from its start: for a deadlock, a lock that others held, or a
        connection that was lost."""


class Unmetered:
    """Counts nothing."""

    def request(self, kind: str, status: str, seconds: float) -> None: ...
    def lease(self, result: str, count: int = 1) -> None: ...
    def lease_wait(self, seconds: float) -> None: ...
    def task(self, kind: str, result: str, count: int = 1) -> None: ...
    def execution(self, status: str, count: int = 1) -> None: ...
    def change(self, kind: str) -> None: ...
    def delivery(self, status: str, lag_seconds: float | None) -> None: ...
    def swept(self, sweep: str, found: int) -> None: ...
    def led(self, step: str) -> None: ...
    def schedule_delay(self, seconds: float) -> None: ...
    def done_again(self, why: str) -> None: ...


UNMETERED: Final[Meter] = Unmetered()
GRANTED: Final = "GRANTED"
CANCELLED: Final = "CANCELLED"
EXPIRED: Final = "EXPIRED"
TOKEN: Final = "TOKEN"  # noqa: S105  the kind of request that asks for one
ROBOTS: Final = "ROBOTS"
NO_ANSWER: Final = "NO_ANSWER"
