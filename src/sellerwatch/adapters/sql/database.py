"""One door to the database: a transaction is a plain function, run to its end.

On SQLite it runs on the event loop's own thread: there is one writer at a time anyway, a transaction is a matter of
milliseconds, and handing it to a thread costs more than the shortest ones take. Another process' writer is waited for
on the clock, so nothing stands still meanwhile. Readers have threads: a report may take its time and, in WAL, neither
waits for writers nor holds them up. Elsewhere everything runs in a pool of threads. On a virtual clock all is inline.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine

from sellerwatch.adapters.sql.dialect import SQLITE, opened, reading, writing
from sellerwatch.adapters.sql.trouble import Meaning, meaning

T = TypeVar("T")
SQLITE_READERS = 2
BUSY_SECONDS, FIRST_PAUSE, LONGEST_PAUSE = 10.0, 0.001, 0.05


class Database:
    """Shared by the store, the pool and the queue when they live in the same database."""

    def __init__(
        self,
        engine: Engine,
        *,
        inline: bool = False,
        threads: int = 10,
        wait: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        """`wait`: how to wait for another process that writes; without it SQLite itself does, holding the thread."""
        self.engine = engine
        self.dialect = engine.dialect.name
        # In memory there is one connection, and one at a time may use it.
        self._inline = inline or engine.url.database in {None, "", ":memory:"}
        self._is_sqlite = self.dialect == SQLITE
        self._wait = wait
        self._writers = ThreadPoolExecutor(threads, thread_name_prefix="sql-write")
        readers = SQLITE_READERS if self._is_sqlite else threads
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="sql-read")
        self._mine = threading.local()
        self._all_kept: list[Connection] = []

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction of its own: committed when it returns, rolled back when it raises."""
        if self._is_sqlite:
            return await self._write_here(work)
        return await asyncio.get_running_loop().run_in_executor(self._writers, self._write, work)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one consistent snapshot; it writes nothing."""
        if self._inline:
            return self._read(work)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    def close(self) -> None:
        self._writers.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        for connection in self._all_kept:
            connection.close()
        self.engine.dispose()

    async def _write_here(self, work: Callable[[Connection], T]) -> T:
        waited, pause = 0.0, FIRST_PAUSE
        while True:
            try:
                return self._write(work)
            except Exception as error:
                if self._wait is None or waited >= BUSY_SECONDS or meaning(error) is not Meaning.AGAIN:
                    raise
            # BEGIN was refused, so nothing has been done yet.
            await self._wait(pause)
            waited, pause = waited + pause, min(pause * 2, LONGEST_PAUSE)

    def _write(self, work: Callable[[Connection], T]) -> T:
        if not self._is_sqlite:
            with writing(self.engine) as connection:
                return work(connection)
        connection = self._kept(for_reading=False)
        with connection.begin():
            return work(connection)

    def _read(self, work: Callable[[Connection], T]) -> T:
        if not self._is_sqlite:
            with reading(self.engine) as connection:
                return work(connection)
        connection = self._kept(for_reading=True)
        with connection.begin():
            return work(connection)

    def _kept(self, *, for_reading: bool) -> Connection:
        """This thread's own: taking one out of the pool and putting it back costs more than most transactions do."""
        mine: dict[bool, Connection] = self._mine.__dict__.setdefault("connections", {})
        if for_reading not in mine:
            is_waited_for = self._wait is not None and not for_reading
            mine[for_reading] = opened(self.engine, for_reading=for_reading, waits=not is_waited_for)
            self._all_kept.append(mine[for_reading])
        return mine[for_reading]
