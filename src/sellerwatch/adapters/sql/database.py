"""One door to the database: a transaction is a plain function, run to its end.

On SQLite it runs on the event loop's own thread: there is one writer at a time anyway, a transaction is a matter of
milliseconds, and handing it to a thread costs more than the shortest ones take. Another process' writer is waited for
on the clock, so nothing stands still meanwhile. Readers have threads: a report may take its time and, in WAL, neither
waits for writers nor holds them up. Elsewhere everything runs in a pool of threads. On a virtual clock all is inline.

Promises: what others' locks broke off is done again from the start, a few times, each time after a longer pause by
chance, and counted; Unavailable when the database is away, or others hold what is needed for too long. Work that was
broken off before its commit has not happened; of a commit whose answer is lost nobody knows, and it is not repeated.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine

from sellerwatch.adapters.sql.dialect import SQLITE, opened, reading
from sellerwatch.adapters.sql.trouble import Meaning, meaning, said
from sellerwatch.domain.errors import Unavailable

T = TypeVar("T")
SQLITE_READERS = 2
BUSY_SECONDS, FIRST_PAUSE, LONGEST_PAUSE = 10.0, 0.001, 0.05
TRIES = {Meaning.DEADLOCK: 8, Meaning.LOCKED: 3, Meaning.LOST: 2}
"""How often in all, by what went wrong. A lock has been waited for before it is told, a lost connection had been idle."""


class Database:
    """Shared by the store, the pool and the queue when they live in the same database."""

    def __init__(
        self,
        engine: Engine,
        *,
        inline: bool = False,
        threads: int = 10,
        wait: Callable[[float], Awaitable[None]] | None = None,
        chance: Callable[[], float] = lambda: 1.0,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`wait`: how to wait for another process that writes; without it SQLite itself does, holding the thread.
        `chance`: 0 ≤ x < 1, so that those who met do not meet again. `told`: who is told why something is done again.
        """
        self.engine = engine
        self.dialect = engine.dialect.name
        self.tries_again: Counter[Meaning] = Counter()
        """What was done again, by why, since this process began."""
        # In memory there is one connection, and one at a time may use it.
        self._inline = inline or engine.url.database in {None, "", ":memory:"}
        self._is_sqlite = self.dialect == SQLITE
        self._wait = wait
        self._chance = chance
        self._told = told
        self._threads = ThreadPoolExecutor(SQLITE_READERS if self._is_sqlite else threads, thread_name_prefix="sql")
        self._mine = threading.local()
        self._all_kept: list[Connection] = []

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction of its own: committed when it returns, rolled back when it raises."""
        return await self._persist(self._write, work, is_here=self._is_sqlite)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one consistent snapshot; it writes nothing."""
        return await self._persist(self._read, work, is_here=self._inline)

    async def glance(self, work: Callable[[Connection], T]) -> T:
        """As `read`, for one prepared statement, as short as a write: on SQLite on the spot and in no transaction, either
        of which costs more than the statement."""
        return await self._persist(self._glance, work, is_here=True) if self._is_sqlite else await self.read(work)

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        for connection in self._all_kept:
            connection.close()
        self.engine.dispose()

    async def _persist(
        self, run: Callable[[Callable[[Connection], T]], T], work: Callable[[Connection], T], *, is_here: bool
    ) -> T:
        tries, waited = 0, 0.0
        while True:
            try:
                if is_here:
                    return run(work)
                return await asyncio.get_running_loop().run_in_executor(self._threads, run, work)
            except Exception as error:
                what = meaning(error)
                if what is Meaning.MISTAKE:
                    raise
                tries += 1
                if not self._may_go_on(what, tries, waited):
                    raise Unavailable(f"database: {said(error)}") from error
            self.tries_again[what] += 1
            self._told(what)
            waited += await self._pause(tries)

    def _may_go_on(self, what: Meaning, tries: int, waited: float) -> bool:
        if self._is_sqlite and what is Meaning.LOCKED:
            # BEGIN was refused: nothing has been done yet, and another writer needs milliseconds.
            return tries < TRIES[Meaning.DEADLOCK] if self._wait is None else waited < BUSY_SECONDS
        return tries < TRIES.get(what, 0)

    async def _pause(self, tries: int) -> float:
        seconds = min(FIRST_PAUSE * 2.0**tries, LONGEST_PAUSE) * (0.5 + self._chance() / 2)
        if self._wait is not None:
            await self._wait(seconds)
        return seconds

    def _write(self, work: Callable[[Connection], T]) -> T:
        if not self._is_sqlite:
            return self._write_elsewhere(work)
        return self._run_kept(work, for_reading=False)

    def _write_elsewhere(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect() as connection:
            transaction = connection.begin()
            try:
                result = work(connection)
            except Exception as error:
                self._let_go(connection, error)
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except Exception as error:
                self._let_go(connection, error)
                if meaning(error) is Meaning.LOST:
                    raise Unavailable(f"database: whether it was committed is not known ({said(error)})") from error
                raise
            return result

    def _read(self, work: Callable[[Connection], T]) -> T:
        if not self._is_sqlite:
            with reading(self.engine) as connection:
                try:
                    return work(connection)
                except Exception as error:
                    self._let_go(connection, error)
                    raise
        return self._run_kept(work, for_reading=True)

    def _let_go(self, connection: Connection, error: Exception) -> None:
        """Of a connection that is lost: prepared statements go past SQLAlchemy, so it does not know. The idle ones
        are as old; the next one is new.
        """
        if meaning(error) is Meaning.LOST:
            if not connection.invalidated:
                connection.invalidate(error)
            self.engine.dispose()

    def _run_kept(self, work: Callable[[Connection], T], *, for_reading: bool) -> T:
        connection = self._kept(for_reading=for_reading)
        try:
            with connection.begin():
                return work(connection)
        except Exception as error:
            if meaning(error) is Meaning.AWAY:
                # What is opened next finds out for itself.
                del self._mine.connections[for_reading]
                connection.invalidate(error)
            raise

    def _glance(self, work: Callable[[Connection], T]) -> T:
        connection = self._kept(for_reading=True)
        seen = work(connection)
        if connection.in_transaction():
            connection.rollback()
            raise RuntimeError("a glance is one prepared statement: SQLAlchemy's begin a transaction that nobody ends")
        return seen

    def _kept(self, *, for_reading: bool) -> Connection:
        """This thread's own: taking one out of the pool and putting it back costs more than most transactions do."""
        mine: dict[bool, Connection] = self._mine.__dict__.setdefault("connections", {})
        if for_reading not in mine:
            is_waited_for = self._wait is not None and not for_reading
            mine[for_reading] = opened(self.engine, for_reading=for_reading, waits=not is_waited_for)
            self._all_kept.append(mine[for_reading])
        return mine[for_reading]
