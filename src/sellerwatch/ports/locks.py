"""Locks: what only one process need do is done by one, and the others save the work. Nothing more.

No correctness rests on them. A lock may be lost with its engine, or outlived by a holder that is slow: then two do the
same at once, which everything under a lock must bear. So there is no token to check and nothing is ever waited for.
"""

from collections.abc import Iterable
from typing import Protocol


class Locks(Protocol):
    """Of one process: who asks is always the same owner, and no other process is."""

    async def take(self, name: str, seconds: float) -> bool:
        """Ours for so long from now on: it was nobody's, or its holder's time had run out, or it was ours and lasts
        longer now. False: it is another's, and stays so. Of several who ask at once for what is nobody's, one is told
        True. Unavailable when the engine is away: nobody knows whose it is."""

    async def give_back(self, names: Iterable[str]) -> None:
        """Those of them that are ours are nobody's from now on; another's stay with him."""
