"""Gauges: how much there is of what, right now, as the database has it. Read only; a fixed number of statements.

What is open is counted on its own, so that it costs the same after years. What has ended is counted from indexes alone
and grows with the tables: whoever asks for the `Stock` asks as seldom as it is dear. Unavailable when the database is
away.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sellerwatch.domain.breakers import BreakerScope, BreakerState
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.reports import Box

LEDGER_ALERT = "ledger_broken"


@dataclass(frozen=True, slots=True)
class Backlog:
    """What has not come to its end, or has come to a bad one. Every status is told, those without a row as 0."""

    tasks: Mapping[TaskStatus, int]
    raws: Mapping[str, int]
    outboxes: Mapping[Box, Mapping[str, int]]
    oldest_at: Mapping[Box, datetime | None]
    """Of the oldest row that has neither arrived nor been given up: when it was written. A task's row is written once
    and sent often: since when the one that is due for longest has been due."""
    oldest_document_at: datetime | None
    """When the oldest document of any ACTIVE product was fetched."""
    breakers: Mapping[BreakerScope, BreakerState]
    """Of the product server, and the worst of the identities'."""
    ledger_breaks: int
    """Executions whose counters do not add up."""


@dataclass(frozen=True, slots=True)
class Stock:
    """What has ended well, and what is kept."""

    products: Mapping[str, int]
    raws: Mapping[str, int]
    outboxes: Mapping[Box, Mapping[str, int]]


class Gauges(Protocol):
    async def backlog(self) -> Backlog: ...

    async def stock(self) -> Stock: ...
