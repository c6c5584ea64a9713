"""Traces: what was done for a task, told to whoever draws it.

Telling costs a flow nothing that could be noticed and never fails it; what can't be sent in time is forgotten. Where
nobody listens (`is_on` is False) nothing is made up to be told. No secret, no body and no address with a query is told.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Span:
    """One step, over. Contexts are texts of `domain.traces`."""

    name: str
    context: str
    parent: str | None
    began: datetime
    ended: datetime
    facts: Mapping[str, str | int] = field(default_factory=dict)
    error: str | None = None
    links: tuple[str, ...] = ()
    """Steps of other traces that this one also follows from."""
    is_call: bool = False
    """A request to somebody else."""


class Traces(Protocol):
    is_on: bool

    def tell(self, spans: Iterable[Span]) -> None: ...

    async def send(self) -> int:
        """On to whoever draws them, a batch at a time; how many. Never raises: while nobody takes them they are kept,
        as many as there is room for."""

    async def close(self) -> None:
        """Send what is left, if that is quickly done."""


class Untraced:
    """Nobody listens."""

    is_on = False

    def tell(self, spans: Iterable[Span]) -> None: ...

    async def send(self) -> int:
        return 0

    async def close(self) -> None: ...


UNTRACED: Final[Traces] = Untraced()
