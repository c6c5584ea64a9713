"""What an engine needs before it can be used, laid out by an operator's word and never by accident."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something of an engine that is otherwise than it should be."""

    name: str
    """What it is called there."""
    said: str
    """What is so, and what should be, to stand after the name."""


class Layout(Protocol):
    async def deviations(self) -> list[Deviation]:
        """Where the engine differs, in the order in which it is to be mended. Changes nothing."""

    async def mend(self, deviation: Deviation) -> None:
        """Make it so. Idempotent; what belongs to others stays as it is."""

    async def close(self) -> None: ...
