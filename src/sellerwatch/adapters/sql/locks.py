"""Locks in the database: a row for each name, with its holder and until when.

Promises what ports/locks.py says, for any number of processes. Taking is a compare-and-set, a name that nobody ever held
a row that only one can add. Whoever is refused has read one row and written nothing. Refuses nothing: names are ours.
"""

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.tables import locks
from sellerwatch.ports.time import Clock

_L = locks.c
_HOLDER = Prepared(select(_L.owner, _L.until).where(_L.name == bindparam("of")), ("of",))
_TAKE = Prepared(
    update(locks)
    .where(_L.name == bindparam("of"), or_(_L.owner == bindparam("mine"), _L.until <= bindparam("at")))
    .values(owner=bindparam("mine"), until=bindparam("ends")),
    ("of", "mine", "at", "ends"),
)
_MAKE = Prepared(insert(locks), ("name", "owner", "until"))
_GIVE_BACK = PreparedIn(
    lambda names: delete(locks).where(_L.owner == bindparam("mine"), _L.name.in_(names)), ("mine",), lengths=(1, 20)
)


class SqlLocks:
    """`ports.locks.Locks` of one process, which is known as `owner`."""

    def __init__(self, database: Database, clock: Clock, owner: str) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner

    async def take(self, name: str, seconds: float) -> bool:
        def work(connection: Connection) -> bool:
            session = Session(connection, self._database.dialect)
            at, until = session.to_db(now), session.to_db(now + timedelta(seconds=seconds))
            held = session.first(_HOLDER, (name,))
            if held is None:
                return session.insert(_MAKE, [(name, self._owner, until)])
            owner, ends = held
            if owner != self._owner and session.from_db(ends) > now:
                return False
            return session.run(_TAKE, (name, self._owner, at, until)) == 1

        now = self._clock.now()
        return await self._database.write(work)

    async def give_back(self, names: Iterable[str]) -> None:
        def work(connection: Connection) -> None:
            Session(connection, self._database.dialect).run_in(_GIVE_BACK, given, (self._owner,))

        if given := list(names):
            await self._database.write(work)
