"""What is particular to the store on a server of its own: sessions, lost connections, restarts, locks that cross."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection

import servers
from builders import a_seller
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.server import server_of
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.adapters.sql.trouble import Meaning
from sellerwatch.domain.errors import Unavailable

pytestmark = pytest.mark.slow


@pytest.fixture
def address(mariadb: servers.MariaDb) -> str:
    return mariadb.database("house")


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    made = Database(engine(address, busy_seconds=1), wait=SystemClock().sleep)
    yield made
    made.close()


def one(connection: Connection, sql: str) -> Any:
    return connection.exec_driver_sql(sql).one()


async def test_a_session_is_strict_in_utc_and_read_committed_and_waits_for_nobody_for_long(database: Database) -> None:
    row = await database.write(
        lambda connection: one(
            connection,
            "SELECT @@time_zone, @@tx_isolation, @@character_set_connection, @@collation_connection,"
            " @@sql_mode LIKE '%%STRICT_TRANS_TABLES%%', @@innodb_lock_wait_timeout, @@lock_wait_timeout",
        )
    )
    assert tuple(row) == ("+00:00", "READ-COMMITTED", "utf8mb4", "utf8mb4_bin", 1, 1, 1)


async def test_a_reader_sees_one_moment_and_may_not_write(database: Database) -> None:
    with pytest.raises(Exception, match="READ ONLY"):
        await database.read(lambda connection: connection.exec_driver_sql("DELETE FROM sellers"))
    # What the reader asked for ends with it.
    assert await database.write(lambda connection: one(connection, "SELECT @@tx_read_only, @@tx_isolation")) == (
        0,
        "READ-COMMITTED",
    )


async def test_connections_that_the_server_closed_are_replaced_and_nobody_hears_of_it(
    mariadb: servers.MariaDb, database: Database
) -> None:
    store = SqlStore(database)
    await asyncio.gather(*(store.read(lambda unit: unit.sellers.get("nobody")) for _ in range(4)))
    for (number,) in mariadb.run("SELECT id FROM information_schema.processlist WHERE db = 'house'"):
        mariadb.run(f"KILL {number}")
    assert await store.transact(lambda unit: unit.sellers.add(a_seller()))
    assert await store.read(lambda unit: unit.sellers.get("shop-1")) == a_seller()
    assert database.tries_again == {Meaning.LOST: 1}


async def test_a_commit_whose_answer_is_lost_is_told_and_not_repeated(
    mariadb: servers.MariaDb, database: Database
) -> None:
    calls = []

    def work(connection: Connection) -> None:
        calls.append(one(connection, "SELECT CONNECTION_ID()")[0])
        mariadb.run(f"KILL {calls[-1]}")

    with pytest.raises(Unavailable, match="not known"):
        await database.write(work)
    assert len(calls) == 1


async def test_while_the_server_is_away_it_is_unavailable_and_afterwards_all_goes_on() -> None:
    with servers.a_mariadb() as server:
        database = Database(engine(server.database("house")), wait=SystemClock().sleep)
        store = SqlStore(database)
        assert await store.transact(lambda unit: unit.sellers.add(a_seller()))
        server.stop()
        for _ in range(2):
            with pytest.raises(Unavailable):
                await store.transact(lambda unit: unit.sellers.get("shop-1"))
        server.start(anew=False)
        assert await store.read(lambda unit: unit.sellers.get("shop-1")) == a_seller()
        database.close()


async def test_two_that_lock_crosswise_both_come_to_their_end(database: Database) -> None:
    store = SqlStore(database)
    for name in ("a", "b"):
        await store.transact(lambda unit, name=name: unit.sellers.add(a_seller(name)))
    meet = threading.Barrier(2)
    tried: list[str] = []

    async def cross(first: str, second: str) -> None:
        def work(unit: Any) -> None:
            unit.sellers.lock(first)
            if first not in tried:
                tried.append(first)
                meet.wait(10)
            unit.sellers.lock(second)

        await store.transact(work)

    await asyncio.gather(cross("a", "b"), cross("b", "a"))
    assert database.tries_again == {Meaning.DEADLOCK: 1}


async def test_doctor_hears_what_the_server_is_and_what_is_wrong_with_it(database: Database) -> None:
    server = await server_of(database)
    assert server is not None
    assert (server.name, server.is_old, server.faults(50)) == ("MariaDB", False, [])
    told = dict(replace(server, version="10.5.9").faults(1_000_000))
    assert len(told) == 2
    bad = {
        "time_zone": "SYSTEM",
        "sql_mode": "",
        "max_allowed_packet": str(16 << 20),
        "log_bin": "ON",
        "binlog_format": "STATEMENT",
        "tx_isolation": "REPEATABLE-READ",
    }
    ill = replace(server, variables={**server.variables, **bad})
    ill.variables.pop("transaction_isolation", None)
    assert len(ill.faults(50)) == 5
    assert replace(server, name="MySQL", version="5.7.44").is_old
    assert not replace(server, name="MySQL", version="9.1.0").is_old
