"""What ports/store.py promises of a transaction, on every engine; and what a database's errors are taken for."""

import sqlite3

import pymysql
import pytest
from sqlalchemy.exc import OperationalError

from builders import a_seller, a_task
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.adapters.sql.trouble import Meaning, meaning
from sellerwatch.domain.errors import Conflict, Unavailable
from sellerwatch.ports.store import Store, Unit


def locked() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


def of_mysql(code: int) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(code, "as the server says it")


CLOSED_PORT = 9
REFUSALS = [locked(), OperationalError("INSERT", {}, locked()), of_mysql(1213), of_mysql(1205)]


async def test_what_work_returns_is_returned_and_kept(store: Store) -> None:
    assert await store.transact(lambda unit: unit.sellers.add(a_seller())) is True
    assert await store.read(lambda unit: unit.sellers.get("shop-1")) == a_seller()


async def test_raised_out_of_it_nothing_has_happened(store: Store) -> None:
    def work(unit: Unit) -> None:
        unit.sellers.add(a_seller())
        unit.tasks.add([a_task(1)])
        raise Conflict("NO", "not like this")

    with pytest.raises(Conflict):
        await store.transact(work)
    assert await store.read(lambda unit: unit.sellers.get("shop-1")) is None
    assert await store.read(lambda unit: unit.tasks.get(a_task(1).task_id)) is None


@pytest.mark.parametrize("error", REFUSALS)
async def test_what_others_locks_broke_off_is_done_again_from_the_start_and_counted(
    store: Store, database: Database, error: Exception
) -> None:
    calls = []

    def work(unit: Unit) -> bool:
        calls.append(unit)
        added = unit.sellers.add(a_seller())
        if len(calls) < 3:
            raise error
        return added

    assert await store.transact(work) is True
    assert len(calls) == 3
    assert sum(database.tries_again.values()) == 2


@pytest.mark.parametrize("error", REFUSALS)
async def test_locks_that_stay_are_unavailable_after_a_few_tries(
    store: Store, database: Database, error: Exception
) -> None:
    def work(unit: Unit) -> None:
        unit.sellers.add(a_seller())
        raise error

    with pytest.raises(Unavailable, match="database: "):
        await store.transact(work)
    assert 1 < sum(database.tries_again.values()) < 8
    assert await store.read(lambda unit: unit.sellers.get("shop-1")) is None


@pytest.mark.parametrize("address", ["sqlite:////nowhere/at/all.db", f"mysql://root@127.0.0.1:{CLOSED_PORT}/house"])
async def test_a_database_that_is_away_is_unavailable(address: str) -> None:
    database = Database(engine(address))
    with pytest.raises(Unavailable, match="database: "):
        await SqlStore(database).transact(lambda unit: unit.sellers.get("shop-1"))
    with pytest.raises(Unavailable, match="database: "):
        await SqlStore(database).read(lambda unit: unit.sellers.get("shop-1"))
    assert not database.tries_again
    database.close()


async def test_a_mistake_of_ours_is_raised_as_it_is(store: Store) -> None:
    def work(unit: Unit) -> None:
        task = a_task(1)
        task.retry_count = None  # type: ignore[assignment]
        unit.tasks.save([task])

    await store.transact(lambda unit: unit.tasks.add([a_task(1)]))
    with pytest.raises((sqlite3.IntegrityError, pymysql.err.IntegrityError)):
        await store.transact(work)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1213, Meaning.DEADLOCK),
        (1020, Meaning.DEADLOCK),
        (1205, Meaning.LOCKED),
        (2006, Meaning.LOST),
        (2013, Meaning.LOST),
        (1040, Meaning.AWAY),
        (2003, Meaning.AWAY),
        (1146, Meaning.MISTAKE),
    ],
)
def test_errors_of_mysql_drivers_mean_what_their_number_says(code: int, expected: Meaning) -> None:
    assert meaning(of_mysql(code)) is expected
    assert meaning(OperationalError("SELECT 1", {}, of_mysql(code))) is expected


async def test_a_lost_connection_is_told_to_the_pool(store: Store, database: Database) -> None:
    def work(unit: Unit) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    with pytest.raises(Unavailable):
        await store.transact(work)
    assert await store.transact(lambda unit: unit.sellers.add(a_seller()))


async def test_a_reader_sees_one_moment(database: Database, store: Store) -> None:
    seen = []

    def watch(unit: Unit) -> None:
        seen.append(unit.sellers.get("shop-1"))
        with database.engine.begin() as other:
            other.exec_driver_sql("UPDATE sellers SET name = 'renamed'")
        seen.append(unit.sellers.get("shop-1"))

    await store.transact(lambda unit: unit.sellers.add(a_seller()))
    await store.read(watch)
    assert seen == [a_seller(), a_seller()]
