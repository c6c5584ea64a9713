"""The store in a database: a transaction is a plain function that is handed all stores on one connection.

Promises what ports/store.py says. A commit whose answer is lost is told as Unavailable although it may have happened:
work is written so that doing it again changes nothing.
"""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.session import Session
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

    def __init__(self, database: Database, pool_name: str = "main") -> None:
        self._database = database
        self._pool_name = pool_name

    async def transact(self, work: Callable[[port.Unit], T]) -> T:
        return await self._database.write(self._on_unit(work))

    async def read(self, work: Callable[[port.Unit], T]) -> T:
        return await self._database.read(self._on_unit(work))

    def _on_unit(self, work: Callable[[port.Unit], T]) -> Callable[[Connection], T]:
        dialect = self._database.dialect
        return lambda connection: work(SqlUnit(Session(connection, dialect), self._pool_name))
