"""What differs between databases, and nothing else: how to open one, upserts, locks, names of indexes, times.

Promises: on SQLite a writer holds the write lock from its first statement (BEGIN IMMEDIATE, so it never fails
half-way for having read first) and a reader sees one moment of the database without holding up anybody; on MySQL
and MariaDB sessions are UTC and READ COMMITTED, or SKIP LOCKED would wait for inserts. Refuses: other databases.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import count, takewhile
from sqlite3 import Connection as SqliteConnection
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Insert,
    MetaData,
    PrimaryKeyConstraint,
    Select,
    Table,
    column,
    create_engine,
    event,
    func,
)
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool, QueuePool, StaticPool
from sqlalchemy.sql import quoted_name

from sellerwatch.domain.errors import Invalid

S = TypeVar("S", bound=Select[*tuple[Any, ...]])
NewValue = Callable[[str], ColumnElement[Any]]
"""Of a column, what the row that is to be inserted brings."""

SQLITE = "sqlite"
_MYSQL = ("mysql", "mariadb")
_READING = "sellerwatch_reading"
CONNECT_SECONDS = 5
ANSWER_SECONDS = 60
"""The longest statement, with its wait for others' locks, needs a part of that."""
SQL_MODE = "STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO"

# Measured on 60 000 rows with three indexes: a cache of 16 MB and checkpoints every 16 MB save a tenth; larger
# caches save nothing more, and mmap only adds its pages to the process' memory.
_PRAGMAS = (
    "PRAGMA page_size = 8192",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA cache_size = -16000",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA temp_store = MEMORY",
)


def database_url(url: str) -> URL:
    """The address with its driver: mysqlclient when it is installed, else PyMySQL; a driver that is named is kept.

    MariaDB is spoken to as MySQL, so that one name stands for both in every statement.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Not shown: an address that cannot be read may hold a password anywhere.
        raise Invalid(
            "SELLERWATCH_DATABASE_URL", "(hidden)", "sqlite:///file.db or mysql://user:pass@host:3306/db"
        ) from None
    name, _, driver = parsed.drivername.partition("+")
    if name == SQLITE and driver in {"", "pysqlite"}:
        return parsed
    if name not in _MYSQL or not parsed.database:
        shown = parsed.render_as_string(hide_password=True)
        raise Invalid(
            "SELLERWATCH_DATABASE_URL", shown, "sqlite:///file.db, mysql://… or mariadb://user:pass@host:3306/db"
        )
    driver = driver or ("mysqldb" if find_spec("MySQLdb") else "pymysql")
    return parsed.set(drivername=f"mysql+{driver}").update_query_dict({"charset": "utf8mb4"})


def engine(url: str, *, pool_min: int = 10, pool_max: int = 50, busy_seconds: float = 10.0) -> Engine:
    """An engine that begins every transaction as its database needs it. Nothing connects before the first use.

    `busy_seconds`: how long a statement waits for what another transaction holds.
    """
    address = database_url(url)
    if address.get_backend_name() != SQLITE:
        answer = {"read_timeout": ANSWER_SECONDS, "write_timeout": ANSWER_SECONDS}
        kept = {"pool_size": pool_min, "max_overflow": max(0, pool_max - pool_min), "pool_recycle": 1800}
        return _mysql(address, busy_seconds, answer, **kept)
    if address.database in {None, "", ":memory:"}:
        # One connection, or every thread would see a database of its own.
        return _sqlite(address, busy_seconds, poolclass=StaticPool)
    return _sqlite(address, busy_seconds, poolclass=QueuePool, pool_size=5, max_overflow=max(0, pool_max - 5))


def in_shared_memory(name: str) -> Engine:
    """A SQLite database of this process, for as long as a connection to it is open. For one thread: those of several
    would refuse each other where on a file they wait.
    """
    return _sqlite(make_url(f"sqlite:///file:{name}?mode=memory&cache=shared&uri=true"), 0.0, poolclass=QueuePool)


def _sqlite(address: URL, busy_seconds: float, **pool: Any) -> Engine:
    # Without a level of its own the driver begins nothing by itself; `_begin` does.
    arguments: dict[str, Any] = {
        "isolation_level": None,
        "timeout": busy_seconds,
        "check_same_thread": False,
        "cached_statements": 512,
    }
    made = create_engine(address, connect_args=arguments, **pool)
    event.listen(made, "connect", _prepare_sqlite)
    event.listen(made, "begin", _begin)
    return made


def for_definitions(engine: Engine) -> Engine:
    """Another one, for changes of shape: these may take as long as they take, but are not waited for in line, where
    they would hold up everybody behind them.
    """
    return engine if engine.dialect.name == SQLITE else _mysql(engine.url, 10.0, {}, poolclass=NullPool)


def _mysql(address: URL, busy_seconds: float, arguments: dict[str, Any], **pool: Any) -> Engine:
    made = create_engine(
        address,
        # Positional, whatever the driver would prefer: prepared statements are given rows.
        paramstyle="format",
        isolation_level="READ COMMITTED",
        # Every transaction ends before its connection goes back, so that needs no statement of its own.
        pool_reset_on_return=None,
        connect_args={"connect_timeout": CONNECT_SECONDS} | arguments,
        **pool,
    )
    seconds = max(1, round(busy_seconds))
    session = {
        "time_zone": "'+00:00'",
        "sql_mode": f"'{SQL_MODE}'",
        "collation_connection": "utf8mb4_bin",
        "innodb_lock_wait_timeout": seconds,
        "lock_wait_timeout": seconds,
    }
    told = f"SET {', '.join(f'{name} = {value}' for name, value in session.items())}"

    # After SQLAlchemy's own words to a new connection, which set a collation by themselves.
    @event.listens_for(made, "connect")
    def _tell(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(told)

    return made


def opened(engine: Engine, *, for_reading: bool, waits: bool = True) -> Connection:
    """A SQLite connection for somebody to keep: each of its transactions begins as a reader's or a writer's.

    One that does not wait is refused at once while another writes.
    """
    connection = engine.connect().execution_options(**{_READING: for_reading})
    if not waits:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA busy_timeout = 0")
    return connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One snapshot of the database, for work that writes nothing; on SQLite it never waits for the writer."""
    with engine.connect() as connection:
        if engine.dialect.name == SQLITE:
            connection.execution_options(**{_READING: True})
        with connection.begin():
            if engine.dialect.name != SQLITE:
                # For this transaction only, so nothing has to be undone.
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection


def _prepare_sqlite(connection: SqliteConnection, _record: object) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin(connection: Connection) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute("BEGIN" if connection.get_execution_options().get(_READING) else "BEGIN IMMEDIATE")


def index_name(dialect_name: str, table: str, name: str) -> str:
    """On SQLite index names are global, elsewhere they belong to their table."""
    return f"{table}__{name}" if dialect_name == SQLITE else name


def for_dialect(metadata: MetaData, dialect_name: str) -> MetaData:
    """A copy of the tables as this database has them: its names of indexes, its primary keys.

    A table whose `info` names a "partition_key" has that column in its primary key where tables have partitions.
    """
    copies = MetaData()
    for table in metadata.tables.values():
        copy = table.to_metadata(copies)
        for index in copy.indexes:
            index.name = quoted_name(index_name(dialect_name, table.name, str(index.name)), None)
        if dialect_name in _MYSQL and (partition_key := table.info.get("partition_key")):
            copy.c[partition_key].primary_key = True
            copy.append_constraint(PrimaryKeyConstraint(*copy.primary_key.columns, copy.c[partition_key]))
    return copies


def upsert(
    dialect_name: str, table: Table, keys: Sequence[str], replace: Sequence[str] = (), add: Sequence[str] = ()
) -> Insert:
    """Insert, or where a row with these `keys` (a unique index) exists: `replace` its columns, `add` to its counts."""
    if dialect_name == SQLITE:
        lite = sqlite.insert(table)
        new = {name: lite.excluded[name] for name in replace}
        grown = {name: table.c[name] + lite.excluded[name] for name in add}
        return lite.on_conflict_do_update(index_elements=list(keys), set_=new | grown)
    # VALUES(), not a row alias: MariaDB knows no alias, and PyMySQL puts many rows into one statement only so.
    values: dict[str, Any] = {name: func.values(column(name)) for name in replace}
    values |= {name: table.c[name] + func.values(column(name)) for name in add}
    return mysql.insert(table).on_duplicate_key_update(values)


def upsert_by(
    dialect_name: str, table: Table, keys: Sequence[str], decide: Callable[[NewValue], Sequence[tuple[str, Any]]]
) -> Insert:
    """Insert, or where a row with these `keys` exists: set what `decide` says, given what the new row brings.

    MySQL sets from left to right and sees what it has set: a column that others are decided by comes last.
    """
    if dialect_name == SQLITE:
        lite = sqlite.insert(table)
        return lite.on_conflict_do_update(
            index_elements=list(keys), set_=dict(decide(lambda name: lite.excluded[name]))
        )
    return mysql.insert(table).on_duplicate_key_update(list(decide(lambda name: func.values(table.c[name]))))


def insert_or_ignore(dialect_name: str, table: Table) -> Insert:
    """Insert, leaving a row that exists as it is. On MySQL the count of rows does not tell which of the two it was."""
    if dialect_name == SQLITE:
        return sqlite.insert(table).on_conflict_do_nothing()
    # Not INSERT IGNORE: it also takes a value that is too long or no number, and cuts or zeroes it in silence.
    first = next(iter(table.primary_key.columns))
    return mysql.insert(table).on_duplicate_key_update({first.name: first})


class JoinedUpdate(NamedTuple):
    """On MySQL an update of many rows, each with values of its own, is one statement only as a join with those values.

    The values come first and the table by its index, in that order, so that no row is locked but those that are meant.
    """

    head: str
    """Up to the values."""
    tail: str
    """Behind them; `{0}`, `{1}` … are places in a row."""

    def of(self, rows: Sequence[tuple[Any, ...]]) -> tuple[str, list[Any]]:
        places = range(len(rows[0]))
        first = ", ".join(f"%s AS p{place}" for place in places)
        further = f" UNION ALL SELECT {', '.join('%s' for _ in places)}" * (len(rows) - 1)
        moments = {place for place in places if any(isinstance(row[place], datetime) for row in rows)}
        names = (f"CAST(v.p{place} AS DATETIME(6))" if place in moments else f"v.p{place}" for place in places)
        return f"{self.head}SELECT {first}{further}{self.tail.format(*names)}", [each for row in rows for each in row]


def joined_update(dialect_name: str, sql: str, table: Table, columns: Collection[str]) -> JoinedUpdate | None:
    """`sql` updates one row of `table`, known by these columns. None: SQLite, where it costs the same one by one; or
    there is no index on them.
    """
    index = _index_on(table, columns)
    if dialect_name == SQLITE or index is None or not sql.startswith(f"UPDATE {table.name} SET "):
        return None
    numbers = count()
    named = re.sub("%s", lambda _: f"{{{next(numbers)}}}", re.sub(r"([{}])", r"\1\1", sql))
    body = named.removeprefix(f"UPDATE {table.name} SET ")
    return JoinedUpdate("UPDATE (", f") AS v STRAIGHT_JOIN {table.name} FORCE INDEX ({index}) SET {body}")


def _index_on(table: Table, columns: Collection[str]) -> str | None:
    """The unique one that they name whole, else one that begins with one of them."""
    keys = {"PRIMARY": [each.name for each in table.primary_key.columns]}
    unique = {str(index.name): [each.name for each in index.columns] for index in table.indexes if index.unique}
    others = {str(index.name): [each.name for each in index.columns] for index in table.indexes if not index.unique}
    for name, its in (keys | unique).items():
        if set(its) <= set(columns):
            return name
    leading = {name: sum(1 for _ in takewhile(columns.__contains__, its)) for name, its in (unique | others).items()}
    longest = max(leading.values(), default=0)
    return next((name for name, length in leading.items() if length == longest), None) if longest else None


def skip_locked(statement: S) -> S:
    """Lock what is selected and pass over what others hold; SQLite, with its one writer, has no such clause."""
    return statement.with_for_update(skip_locked=True)


def by_index(statement: S, table: Table, index: str) -> S:
    """On MySQL by this index, however few rows there are; SQLite needs no telling."""
    return statement.with_hint(table, f"FORCE INDEX ({index})", "mysql")


class Times(NamedTuple):
    """Moments as the driver wants and gives them."""

    to_db: Callable[[datetime], str | datetime]
    from_db: Callable[[Any], datetime]


def times(dialect_name: str) -> Times:
    """For statements that go past SQLAlchemy's types; what these write, those read, and the other way round."""
    return Times(_to_text, _from_text) if dialect_name == SQLITE else Times(_to_naive, _from_naive)


def _aware(at: datetime) -> datetime:
    if at.tzinfo is UTC:
        return at
    if at.tzinfo is None:
        raise Invalid("moment", at, "a time with its time zone")
    return at.astimezone(UTC)


def _to_text(at: datetime) -> str:
    return _aware(at).isoformat(" ", "microseconds")[:26]


def _from_text(value: str) -> datetime:
    return datetime.fromisoformat(value).replace(tzinfo=UTC)


def _to_naive(at: datetime) -> datetime:
    return _aware(at).replace(tzinfo=None)


def _from_naive(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)
