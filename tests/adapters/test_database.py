"""The database's door: who waits for whom on one SQLite file."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.domain.errors import Unavailable


def put(connection: Connection) -> int:
    return connection.execute(text("INSERT INTO things (name) VALUES ('a')")).rowcount


def count(connection: Connection) -> int:
    return connection.execute(text("SELECT count(*) FROM things")).scalar_one()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "house.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE things (name TEXT)")
    connection.close()
    return path


async def test_while_another_process_writes_the_loop_goes_on_and_the_write_comes_after(file: Path) -> None:
    clock = SystemClock()
    database = Database(engine(f"sqlite:///{file}"), wait=clock.sleep)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(database.write(put))
    for _ in range(5):
        await clock.sleep(0.002)
    assert not writing.done()
    assert await database.read(count) == 0
    other.execute("COMMIT")
    assert await writing == 1
    assert await database.read(count) == 1
    other.close()
    database.close()


async def test_what_raises_leaves_nothing_behind_and_is_not_tried_again(file: Path) -> None:
    database = Database(engine(f"sqlite:///{file}"), wait=SystemClock().sleep)
    tries = []

    def broken(connection: Connection) -> None:
        tries.append(put(connection))
        raise ValueError

    with pytest.raises(ValueError):
        await database.write(broken)
    assert tries == [1]
    assert await database.read(count) == 0
    assert await database.write(put) == 1
    database.close()


async def test_a_database_that_is_away_is_told_in_one_line_without_the_statement() -> None:
    away = Database(engine("mysql://somebody:of-no-use@127.0.0.1:1/nowhere"))
    with pytest.raises(Unavailable) as refusal:
        await away.read(count)
    away.close()
    said = str(refusal.value)
    assert said.startswith("database: Can't connect to MySQL server on '127.0.0.1'")
    assert [word for word in ("\n", "SELECT", "of-no-use", "http") if word in said] == []
