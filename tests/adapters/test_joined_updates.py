"""Many rows with values of their own are updated by one statement on MariaDB, and it says what one by one would."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import bindparam, event, select, update

import servers
from builders import NOON, a_task, an_id, at
from sellerwatch.adapters.sql import prepared, tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.prepared import Prepared
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.store import SqlStore

pytestmark = pytest.mark.slow
_T = tables.crawler_tasks.c
SAVE = Prepared(
    update(tables.crawler_tasks).where(_T.task_id == bindparam("key"), _T.created_at <= bindparam("upto")),
    ("status", "error_message", "claimed_until", "key", "upto"),
)


@pytest.fixture
async def database(mariadb: servers.MariaDb) -> AsyncIterator[Database]:
    made = Database(engine(mariadb.database("house"), busy_seconds=1))
    await SqlStore(made).transact(lambda unit: unit.tasks.add([a_task(item) for item in range(1, 601)]))
    yield made
    made.close()


@pytest.fixture
def asked(database: Database) -> list[str]:
    """What is sent, past SQLAlchemy too."""
    sent: list[str] = []

    def listen(connection: Any, _record: object, _proxy: object) -> None:
        query = connection.query
        connection.query = lambda sql, *rest, **more: sent.append(str(sql)) or query(sql, *rest, **more)

    event.listen(database.engine, "checkout", listen)
    return sent


def task_id(item: int) -> str:
    return a_task(item).task_id


async def save(database: Database, *rows: tuple[Any, ...]) -> int:
    def work(connection: Any) -> int:
        to_db = Session(connection, database.dialect).to_db
        return SAVE.many(
            connection, [(status, error, to_db(until), key, to_db(upto)) for status, error, until, key, upto in rows]
        )

    return await database.write(work)


async def kept(database: Database, item: int) -> tuple[Any, ...]:
    row = select(_T.status, _T.error_message, _T.claimed_until).where(_T.task_id == task_id(item))
    return tuple(await database.read(lambda connection: connection.execute(row).one()))


async def test_each_row_gets_its_own_values_by_few_statements(database: Database, asked: list[str]) -> None:
    rows = [("RUNNING", f"오류 {item} % \\ '", at(item), task_id(item), NOON) for item in range(1, 601)]
    assert await save(database, *rows) == 600
    for item in (1, 300, 600):
        assert await kept(database, item) == ("RUNNING", f"오류 {item} % \\ '", at(item))
    assert sum("UPDATE" in sql[:7] for sql in asked) == 3


async def test_what_is_unknown_in_some_rows_is_null_in_those(database: Database) -> None:
    await save(database, ("RETRY", None, None, task_id(1), NOON), ("RETRY", "why", at(9), task_id(2), NOON))
    assert [await kept(database, item) for item in (1, 2)] == [("RETRY", None, None), ("RETRY", "why", at(9))]


async def test_of_two_rows_for_one_the_later_counts(database: Database) -> None:
    rows = [("RETRY", "first", None, task_id(1), NOON), ("FAILED", "last", None, task_id(1), NOON)]
    assert await save(database, *rows, ("RETRY", "other", None, task_id(2), NOON)) == 3
    assert (await kept(database, 1))[:2] == ("FAILED", "last")


async def test_rows_that_do_not_meet_its_conditions_stay_and_are_not_counted(database: Database) -> None:
    rows = [("FAILED", "x", None, task_id(1), at(-1)), ("FAILED", "x", None, task_id(2), NOON)]
    assert await save(database, *rows, ("FAILED", "x", None, an_id("nobody"), NOON)) == 1
    assert (await kept(database, 1))[0] == "WAITING"


async def test_texts_that_are_long_go_one_by_one(
    database: Database, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "JOINED_CHARACTERS", 100)
    rows = [("FAILED", "x" * 101, None, task_id(item), NOON) for item in (1, 2)]
    assert await save(database, *rows) == 2
    assert (await kept(database, 2))[1] == "x" * 101
    assert sum("UPDATE" in sql[:7] for sql in asked) == 2


async def test_nothing_is_locked_but_the_rows_that_are_meant(database: Database) -> None:
    with database.engine.begin() as other:
        other.exec_driver_sql(f"UPDATE crawler_tasks SET status = 'RETRY' WHERE task_id = '{task_id(600)}'")
        rows = [("RUNNING", None, None, task_id(item), NOON) for item in range(1, 100)]
        assert await save(database, *rows) == 99
    assert not database.tries_again
