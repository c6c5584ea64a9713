"""The operator's own neighbours: the product server, whoever is on call, and what keeps the schedule."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from sellerwatch.domain.outbox import ScheduleNotice
from sellerwatch.domain.schedules import Rule, Schedule


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the product server said. `status` None: it did not answer, and `error` says how."""

    status: int | None
    retry_after: timedelta | None = None
    error: str | None = None

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


VERSIONS_BYTES_MAX = 64 << 20
"""Some three million products."""


class ProductServer(Protocol):
    async def deliver(
        self, event_id: str, payload: Mapping[str, Any], at: datetime, traceparent: str | None = None
    ) -> Receipt:
        """One signed POST, under the event's id as idempotency key; never raises for what the other side does.

        `traceparent`, when there is one, goes as the header of that name.
        """

    async def versions(self, url: str, at: datetime) -> bytes:
        """What it says it holds: one signed GET. Refused when the url is another server's than events go to;
        Unavailable when no whole answer came, of no more than `VERSIONS_BYTES_MAX`."""


class Severity(StrEnum):
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    severity: Severity
    text: str
    since: datetime
    details: Mapping[str, Any]


class Alerts(Protocol):
    async def tell(self, alert: Alert) -> bool:
        """To whoever is on call; False when nobody could be reached (it is told again later). Never raises."""


class Schedules(Protocol):
    """What fires the triggers."""

    fires_itself: bool
    """False: the ticker looks for due schedules in the store."""

    async def announce(self, notice: ScheduleNotice) -> None:
        """Make the engine follow this schedule's change. Idempotent, in any order: an update makes what is not there
        yet, and what is gone is gone. Unavailable when it can't be reached or says later; another Trouble when it says
        no, as it will until somebody mends it."""


class Rules(Schedules, Protocol):
    """Of an engine that fires by itself: what it keeps, to be compared with the store."""

    def right(self, schedule: Schedule) -> Rule:
        """As this schedule's rule should be."""

    async def found(self) -> list[Rule]:
        """All that bear a name of ours, as they are. Those of others are not seen."""

    async def put(self, rule: Rule) -> None:
        """It fires so from now on. Idempotent."""

    async def remove(self, rule_name: str) -> None:
        """It fires no more; gone already is gone."""


class Issuer(Protocol):
    """Who issues the tokens that people come with."""

    async def key_set(self) -> bytes:
        """The public keys as published now (a JSON Web Key Set), from the configured url only, no redirect followed.
        Unavailable when there is no such answer."""
