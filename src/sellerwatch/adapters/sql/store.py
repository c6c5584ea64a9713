"""The store in a database: a transaction is a plain function that is handed all stores on one connection.

Promises what ports/store.py says. A commit whose answer is lost is told as Unavailable although it may have happened:
work is written so that doing it again changes nothing. What a transaction could not read is set aside after it, in one
of its own: also when the first one was rolled back.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection

from sellerwatch.adapters.sql.aside import set_aside
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.shelves import Spoilt
from sellerwatch.adapters.sql.stores import (
    chores,
    events,
    executions,
    identities,
    leaderships,
    listings,
    products,
    publications,
    raws,
    robots,
    schedules,
    sellers,
    tasks,
    trust,
)
from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports import store as port
from sellerwatch.ports.leading import Leaderships
from sellerwatch.ports.robots import RobotsKept

T = TypeVar("T")


class SqlUnit:
    """All stores of one transaction."""

    __slots__ = (
        "attempts",
        "breakers",
        "changes",
        "chores",
        "drift",
        "events",
        "executions",
        "identities",
        "leaderships",
        "listings",
        "notices",
        "products",
        "publications",
        "quarantines",
        "raws",
        "robots",
        "schedules",
        "sellers",
        "tasks",
    )

    def __init__(self, session: Session, pool_name: str) -> None:
        self.sellers: port.Sellers = sellers.Sellers(session)
        self.schedules: port.SchedulesKept = schedules.SchedulesKept(session)
        self.notices: port.Notices = schedules.Notices(session)
        self.executions: port.Executions = executions.Executions(session)
        self.listings: port.Listings = listings.Listings(session)
        self.tasks: port.Tasks = tasks.Tasks(session)
        self.attempts: port.Attempts = tasks.Attempts(session)
        self.publications: port.Publications = publications.Publications(session)
        self.raws: port.Raws = raws.Raws(session)
        self.products: port.Products = products.Products(session)
        self.changes: port.Changes = products.Changes(session)
        self.events: port.Events = events.Events(session)
        self.drift: port.Drift = trust.Drift(session)
        self.quarantines: port.Quarantines = trust.Quarantines(session)
        self.identities: port.Identities = identities.Identities(session)
        self.breakers: port.Breakers = identities.Breakers(session)
        self.leaderships: Leaderships = leaderships.Leaderships(session, pool_name)
        self.robots: RobotsKept = robots.RobotsKept(session)
        self.chores: port.Chores = chores.Chores(session)


class SqlStore:
    """`ports.store.Store` on a Database."""

    def __init__(
        self, database: Database, pool_name: str = "main", *, now: Callable[[], datetime] | None = None
    ) -> None:
        """`now`: when something is set aside. Without it what can't be read is left out, and stays where it is."""
        self._database = database
        self._pool_name = pool_name
        self._now = now

    async def transact(self, work: Callable[[port.Unit], T]) -> T:
        return await self._heeding(self._database.write, work)

    async def read(self, work: Callable[[port.Unit], T]) -> T:
        return await self._heeding(self._database.read, work)

    async def _heeding(
        self, run: Callable[[Callable[[Connection], T]], Awaitable[T]], work: Callable[[port.Unit], T]
    ) -> T:
        spoilt, dialect = Spoilt(), self._database.dialect
        try:
            return await run(lambda connection: work(SqlUnit(Session(connection, dialect, spoilt), self._pool_name)))
        finally:
            if spoilt.rows and self._now:
                at = self._now()
                with suppress(Unavailable):  # whoever reads such a row next finds it again
                    await self._database.write(lambda connection: set_aside(Session(connection, dialect), spoilt, at))
