"""What ports/store.py promises of a transaction, on every engine; and what a database's errors are taken for."""

import sqlite3

import pytest
from sqlalchemy.exc import OperationalError

from builders import a_seller, a_task
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.adapters.sql.trouble import TRIES, Meaning, meaning
from sellerwatch.domain.errors import Conflict, Unavailable
from sellerwatch.ports.store import Store, Unit


def locked() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return error


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


@pytest.mark.parametrize("wrapped", [False, True])
async def test_lock_waits_are_tried_again_from_the_start(store: Store, wrapped: bool) -> None:
    calls = []

    def work(unit: Unit) -> bool:
        calls.append(unit)
        added = unit.sellers.add(a_seller())
        if len(calls) < 3:
            raise OperationalError("INSERT", {}, locked()) if wrapped else locked()
        return added

    assert await store.transact(work) is True
    assert len(calls) == 3


async def test_locks_that_stay_are_unavailable_after_a_few_tries(store: Store) -> None:
    calls = []

    def work(unit: Unit) -> None:
        calls.append(unit)
        raise locked()

    with pytest.raises(Unavailable, match="locked"):
        await store.transact(work)
    assert len(calls) == TRIES


async def test_a_database_that_is_away_is_unavailable(database: Database) -> None:
    class Away:
        dialect = "sqlite"

        async def write(self, work: object) -> None:
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise OperationalError("BEGIN", {}, error)

    with pytest.raises(Unavailable, match="unable to open"):
        await SqlStore(Away()).transact(lambda unit: unit.sellers.get("shop-1"))  # type: ignore[arg-type]


async def test_a_mistake_of_ours_is_raised_as_it_is(store: Store) -> None:
    def work(unit: Unit) -> None:
        task = a_task(1)
        task.retry_count = None  # type: ignore[assignment]
        unit.tasks.save([task])

    await store.transact(lambda unit: unit.tasks.add([a_task(1)]))
    with pytest.raises(sqlite3.IntegrityError):
        await store.transact(work)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1213, Meaning.AGAIN),
        (1205, Meaning.AGAIN),
        (1020, Meaning.AGAIN),
        (2006, Meaning.AWAY),
        (2013, Meaning.AWAY),
        (1040, Meaning.AWAY),
        (1146, Meaning.MISTAKE),
    ],
)
def test_errors_of_mysql_drivers_mean_what_their_number_says(code: int, expected: Meaning) -> None:
    driver_error = type("OperationalError", (Exception,), {})(code, "as the server says it")
    assert meaning(driver_error) is expected
    assert meaning(OperationalError("SELECT 1", {}, driver_error)) is expected


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
