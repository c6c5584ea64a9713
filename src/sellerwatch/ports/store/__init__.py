"""The store: what is remembered. A transaction is a plain function that is handed the unit of work.

`transact(work)` runs `work(unit)` and commits when it returns; raised out of it, nothing has happened. Work is
synchronous: it can't call out while the transaction is open. Between two transactions anything may happen; inside
one, rows read with `lock` are nobody else's. Methods take and give batches: one statement for many rows.

A row that can't be read holds up no other. Where many are asked for it is left out; a row that is asked for by its own
name is Unreadable. Either way it is set aside afterwards, FAILED where it has such a state and had not ended, and an
alert tells of it: `unreadable_row:{table}`.

What is too long for its column is cut by the store (lesson 18). `add` of a row whose derived id exists is no error
and makes nothing new; it says how many were new.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from sellerwatch.ports.leading import Leaderships
from sellerwatch.ports.robots import RobotsKept
from sellerwatch.ports.store.catalogue import Changes, Events, Head, Products, Raws, RawSign, Standing, Touch
from sellerwatch.ports.store.claims import Claim
from sellerwatch.ports.store.crawling import (
    Attempts,
    Executions,
    FailedRow,
    Listings,
    Notices,
    Publications,
    SchedulesKept,
    Sellers,
    Tasks,
)
from sellerwatch.ports.store.keeping import Breakers, Chores, Identities, Usage
from sellerwatch.ports.store.trust import Drift, Quarantines

__all__ = [
    "Attempts",
    "Breakers",
    "Changes",
    "Chores",
    "Claim",
    "Drift",
    "Events",
    "Executions",
    "FailedRow",
    "Head",
    "Identities",
    "Leaderships",
    "Listings",
    "Notices",
    "Products",
    "Publications",
    "Quarantines",
    "RawSign",
    "Raws",
    "RobotsKept",
    "SchedulesKept",
    "Sellers",
    "Standing",
    "Store",
    "Tasks",
    "Touch",
    "Unit",
    "Usage",
]

T = TypeVar("T")


class Unit(Protocol):
    sellers: Sellers
    schedules: SchedulesKept
    notices: Notices
    executions: Executions
    listings: Listings
    tasks: Tasks
    attempts: Attempts
    publications: Publications
    raws: Raws
    products: Products
    changes: Changes
    events: Events
    drift: Drift
    quarantines: Quarantines
    identities: Identities
    breakers: Breakers
    leaderships: Leaderships
    robots: RobotsKept
    chores: Chores


class Store(Protocol):
    async def transact(self, work: Callable[[Unit], T]) -> T:
        """Run `work` in one transaction. Deadlocks and lock waits are tried again; Unavailable when the database is
        away."""

    async def read(self, work: Callable[[Unit], T]) -> T:
        """The same on one consistent snapshot; it must not write."""
