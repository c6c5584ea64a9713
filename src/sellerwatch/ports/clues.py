"""Clues: what the database knows of somebody who seems to stand still. Read only, one snapshot each, found by indexes.

None when nothing of that name exists. Unavailable when the database is away.
"""

from datetime import datetime
from typing import Protocol

from sellerwatch.domain.clues import TaskClue, Trail


class Clues(Protocol):
    async def seller(self, seller_id: str, at: datetime) -> Trail | None: ...

    async def task(self, task_id: str, at: datetime) -> tuple[TaskClue, Trail] | None:
        """With the trail of its seller; of a seller that was removed, None."""

    async def identity(self, agent: str) -> tuple[int, bool] | None:
        """By its number or its UUID: its number, and whether it is retired."""

    async def roles(self, at: datetime) -> frozenset[str]:
        """Of the processes that show life."""
