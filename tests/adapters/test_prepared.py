"""What differs between databases, and prepared statements, on SQLite; MySQL's words are compiled and read."""

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.dialects import mysql

from doors import new_database, upgraded
from sellerwatch.adapters.sql import schema
from sellerwatch.adapters.sql.dialect import (
    database_url,
    engine,
    insert_or_ignore,
    reading,
    skip_locked,
    times,
    upsert,
)
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.tables import field_drift, locks, sweeps
from sellerwatch.domain.errors import Invalid

NOW = datetime(2026, 11, 18, 9, 30, 0, 123456, tzinfo=UTC)
TO_DB, FROM_DB = times("sqlite")


@pytest.fixture(params=["memory", "file"])
def database(request, tmp_path):
    made = upgraded() if request.param == "memory" else on_file(tmp_path)
    yield made
    made.dispose()


def on_file(folder, **options):
    (folder / "a.db").write_bytes(new_database())
    return engine(f"sqlite:///{folder}/a.db", **options)


def fill(database, names):
    with database.begin() as connection:
        rows = [(name, "me", TO_DB(NOW)) for name in names]
        assert Prepared(insert(locks), ("name", "owner", "until")).many(connection, rows) == len(names)


def names_of(database):
    with reading(database) as connection:
        return sorted(connection.execute(select(locks.c.name)).scalars())


def test_what_prepared_statements_write_core_statements_read(database):
    fill(database, ["a"])
    with reading(database) as connection:
        assert connection.execute(select(locks)).one() == ("a", "me", NOW)


def test_what_core_statements_write_prepared_statements_read(database):
    with database.begin() as connection:
        connection.execute(insert(locks), [{"name": "a", "owner": "me", "until": NOW}])
    statement = Prepared(select(locks.c.owner, locks.c.until).where(locks.c.name == bindparam("wanted")), ("wanted",))
    with reading(database) as connection:
        [(owner, until)] = statement.rows(connection, ("a",))
        assert (owner, FROM_DB(until)) == ("me", NOW)
        assert statement.rows(connection, ("b",)) == []


def test_parameters_come_in_the_callers_order_and_constants_stay_where_they_are(database):
    fill(database, ["a", "b", "c"])
    statement = Prepared(
        update(locks)
        .values(owner=bindparam("new_owner"), until=NOW + timedelta(hours=1))
        .where(locks.c.name == bindparam("wanted"), locks.c.owner == "me"),
        ("wanted", "new_owner"),
    )
    with database.begin() as connection:
        assert statement.many(connection, [("a", "x"), ("b", "y"), ("none", "z")]) == 2
        assert statement.run(connection, ("a", "x")) == 0
        found = connection.execute(select(locks).order_by(locks.c.name)).all()
    later = NOW + timedelta(hours=1)
    assert found == [("a", "x", later), ("b", "y", later), ("c", "me", NOW)]


def test_a_parameter_that_stands_twice_is_given_once(database):
    fill(database, ["a", "me"])
    either = Prepared(
        select(locks.c.name).where((locks.c.name == bindparam("it")) | (locks.c.owner == bindparam("it"))), ("it",)
    )
    with reading(database) as connection:
        assert len(either.rows(connection, ("me",))) == 2
        assert either.rows(connection, ("a",)) == [("a",)]


def test_a_single_constant_is_a_parameter_nobody_gives(database):
    fill(database, ["a", "b"])
    with database.begin() as connection:
        assert Prepared(select(locks.c.name).where(locks.c.name == "b")).rows(connection) == [("b",)]
        assert Prepared(delete(locks)).run(connection) == 2


def test_a_write_outside_a_transaction_is_refused(database):
    with database.connect() as connection, pytest.raises(RuntimeError, match="transaction"):
        Prepared(delete(locks)).run(connection)


def test_no_rows_send_nothing(database):
    with database.connect() as connection:
        assert Prepared(insert(locks), ("name", "owner", "until")).many(connection, []) == 0


@pytest.mark.parametrize(
    ("statement", "columns", "message"),
    [
        (select(locks.c.name), ("name",), "has no parameter"),
        (select(locks.c.name).where(locks.c.name == bindparam("wanted")), (), "nobody gives"),
        (select(locks.c.name).where(locks.c.name.in_(["a"])), (), "PreparedIn"),
    ],
)
def test_a_statement_that_does_not_fit_its_parameters_is_refused(database, statement, columns, message):
    with reading(database) as connection, pytest.raises(ValueError, match=message):
        Prepared(statement, columns).rows(connection, tuple(columns))


def test_lists_of_any_length_are_looked_up_in_chunks(database):
    names = [f"n{number:04d}" for number in range(1205)]
    fill(database, names)
    among = PreparedIn(
        lambda listed: select(locks.c.name).where(locks.c.owner == bindparam("owner"), locks.c.name.in_(listed)),
        ("owner",),
    )
    gone = PreparedIn(lambda listed: delete(locks).where(locks.c.name.in_(listed)))
    with database.begin() as connection:
        for length in (0, 1, 2, 8, 9, 500, 501, 1205):
            assert [row[0] for row in among.rows(connection, names[:length], ("me",))] == names[:length]
        assert among.rows(connection, names, ("you",)) == []
        assert gone.run(connection, names[:1003]) == 1003
    assert names_of(database) == names[1003:]


def test_an_upsert_replaces_and_adds(database):
    columns = ("data_type", "field", "problem", "day", "times", "sample", "last_seen_at")
    keys = ("data_type", "field", "problem", "day")
    statement = Prepared(upsert("sqlite", field_drift, keys, ("sample", "last_seen_at"), ("times",)), columns)
    with database.begin() as connection:
        for count, sample in ((1, "a"), (2, "b")):
            statement.many(connection, [("DETAIL", "name", "missing", "2026-11-18", count, sample, TO_DB(NOW))])
        assert connection.execute(select(field_drift.c.times, field_drift.c.sample)).all() == [(3, "b")]


def test_an_insert_that_ignores_leaves_what_exists(database):
    statement = Prepared(insert_or_ignore("sqlite", sweeps), ("name", "last_found"))
    with database.begin() as connection:
        assert statement.many(connection, [("a", 1), ("a", 2), ("b", 3)]) == 2
        assert connection.execute(select(sweeps.c.name, sweeps.c.last_found)).all() == [("a", 1), ("b", 3)]


def test_mysql_is_told_the_same_in_its_own_words():
    grown = str(upsert("mysql", sweeps, ["name"], ["last_run_at"], ["last_found"]).compile(dialect=mysql.dialect()))
    assert "ON DUPLICATE KEY UPDATE last_run_at = values(last_run_at)" in grown
    assert "last_found = (sweeps.last_found + values(last_found))" in grown
    kept = str(insert_or_ignore("mysql", sweeps).compile(dialect=mysql.dialect()))
    assert kept.endswith("ON DUPLICATE KEY UPDATE name = sweeps.name")
    assert str(skip_locked(select(sweeps.c.name)).compile(dialect=mysql.dialect())).endswith("FOR UPDATE SKIP LOCKED")


def test_sqlite_locks_no_rows(database):
    with reading(database) as connection:
        assert connection.execute(skip_locked(select(sweeps.c.name))).all() == []


def test_a_transaction_that_fails_leaves_nothing(database):
    def work():
        with database.begin() as connection:
            Prepared(insert(sweeps), ("name", "last_found")).many(connection, [("a", 1)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    with reading(database) as connection:
        assert connection.execute(select(sweeps)).all() == []


def test_a_reader_sees_one_moment_and_does_not_wait_for_the_writer(tmp_path):
    made = on_file(tmp_path, busy_seconds=0.05)
    fill(made, ["a"])
    with made.begin() as writer, reading(made) as reader:
        writer.execute(delete(locks))
        assert reader.execute(select(locks.c.name)).all() == [("a",)]
    assert names_of(made) == []
    made.dispose()


def test_two_writers_meet_at_the_beginning_and_not_half_way(tmp_path):
    made = on_file(tmp_path, busy_seconds=0.05)
    with made.begin(), pytest.raises(Exception, match="locked"), made.begin():
        raise AssertionError("the second writer began")
    made.dispose()


def test_a_database_in_memory_is_one_for_all_threads():
    made = engine("sqlite:///:memory:")
    schema.upgrade(made, now=NOW)
    worker = threading.Thread(target=fill, args=(made, ["a"]))
    worker.start()
    worker.join()
    assert names_of(made) == ["a"]
    made.dispose()


def test_a_moment_without_a_time_zone_is_refused(database):
    with pytest.raises(Invalid, match="time zone"):
        TO_DB(datetime(2026, 1, 1))
    with pytest.raises(Exception, match="time zone"), database.begin() as connection:
        connection.execute(insert(locks), [{"name": "a", "owner": "b", "until": datetime(2026, 1, 1)}])


@pytest.mark.parametrize("dialect_name", ["sqlite", "mysql"])
def test_moments_come_back_as_they_were_in_utc(dialect_name):
    to_db, from_db = times(dialect_name)
    seoul = NOW.astimezone(timezone(timedelta(hours=9)))
    for moment in (NOW, NOW.replace(microsecond=0), seoul):
        assert from_db(to_db(moment)) == moment
    assert to_db(seoul) == to_db(NOW)
    assert str(to_db(NOW)) == "2026-11-18 09:30:00.123456"


@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_mysql_and_mariadb_are_one_dialect(scheme):
    address = database_url(f"{scheme}://user:secret@host:3306/db")
    assert address.drivername in {"mysql+pymysql", "mysql+mysqldb"}
    assert address.query["charset"] == "utf8mb4"
    assert database_url(f"{scheme}+asyncmy://host/db").drivername == "mysql+asyncmy"


@pytest.mark.parametrize("url", ["postgresql://me:secret@host/db", "mysql://me:secret@host", "secret"])
def test_another_database_is_refused_without_showing_a_password(url):
    with pytest.raises(Invalid, match="DATABASE_URL") as refused:
        database_url(url)
    assert "secret" not in str(refused.value)
