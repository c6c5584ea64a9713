"""The queue: what is to be done next, at least once, in order within a group.

The backlog lives in the store; the queue holds little. Within a group a message is not received while an earlier one
of the group is out or waiting for its next delivery. A message is out from `receive` until its visibility ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Outgoing:
    body: Mapping[str, Any]
    group: str
    dedup_id: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that was received. `receipt` is good for this receive only, with the queue that gave it."""

    receipt: str
    body: Mapping[str, Any]
    group: str
    receives: int
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    letter_id: str
    body: str
    group: str
    receives: int
    sent_at: datetime
    error: str | None
    task_id: str | None


@dataclass(frozen=True, slots=True)
class Depth:
    waiting: int
    out: int
    dead: int
    oldest_seconds: float


class Queue(Protocol):
    async def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        """For each, None when it was accepted, else why not. Unavailable when the outcome is not known.

        A dedup id that was accepted within the last five minutes is accepted again and delivers nothing.
        """

    async def receive(self, count: int, wait_seconds: float) -> list[Delivery]:
        """Up to `count`, as soon as there is one, waiting at most so long. Each counts one receive; a message that
        was received `max_receives` times already is a dead letter instead. A body that is no JSON object is one at
        once."""

    async def ack(self, receipts: Sequence[str]) -> None:
        """Done. A receipt whose visibility has ended, or an unknown one, changes nothing."""

    async def nack(self, receipt: str, delay_seconds: float) -> None:
        """Not now: visible again after the delay. The receive stays counted."""

    async def give_back(self, receipts: Sequence[str]) -> None:
        """Never begun: visible again at once, and, where the engine can, the receive is not counted."""

    async def extend(self, receipts: Sequence[str], seconds: float) -> None:
        """Out for so long from now. Late or unknown receipts change nothing."""

    async def bury(self, receipt: str, error: str) -> None:
        """Into the dead letters, with why: the message can't be understood."""

    async def depth(self) -> Depth:
        """What there is, as nearly as the engine can tell; the oldest's age is 0 where it can't."""

    async def missing(self, task_ids: Sequence[str]) -> list[str]:
        """Which of these tasks have no message waiting or out; where the engine can't tell, all of them: a message
        too many finds its task done, one too few is a task that stands still."""

    async def dead_letters(self, count: int) -> list[DeadLetter]: ...

    async def redrive(self, letter_ids: Sequence[str]) -> int:
        """Back into the queue as new messages; how many."""

    async def drop_dead(self, letter_ids: Sequence[str]) -> int:
        """Forget them: their tasks have been published anew or are closed."""
