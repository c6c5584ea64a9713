"""One door to the database: a transaction is a plain function, run where it can't hold up the event loop.

SQLite has one writer, so there is one writing thread and writers never meet; readers have threads of their own and,
in WAL, never wait; each thread keeps its connection. On a virtual clock everything runs inline, on the caller's
thread, the same way each time.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine

from sellerwatch.adapters.sql.dialect import SQLITE, opened, reading, writing

T = TypeVar("T")
SQLITE_READERS = 2


class Database:
    """Shared by the store, the pool and the queue when they live in the same database."""

    def __init__(self, engine: Engine, *, inline: bool = False, threads: int = 10) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        # In memory there is one connection, and one at a time may use it.
        self._inline = inline or engine.url.database in {None, "", ":memory:"}
        self._is_sqlite = self.dialect == SQLITE
        writers, readers = (1, SQLITE_READERS) if self._is_sqlite else (threads, threads)
        self._writers = ThreadPoolExecutor(writers, thread_name_prefix="sql-write")
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="sql-read")
        self._mine = threading.local()
        self._all_kept: list[Connection] = []

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction of its own: committed when it returns, rolled back when it raises."""
        if self._inline:
            return self._write(work)
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
            mine[for_reading] = opened(self.engine, for_reading=for_reading)
            self._all_kept.append(mine[for_reading])
        return mine[for_reading]
