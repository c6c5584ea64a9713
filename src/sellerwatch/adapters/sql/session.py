"""What a store speaks through: one transaction's connection, its dialect, its moments and its JSON.

Promises: moments written here and by SQLAlchemy's types are the same; texts are cut to their columns; of rows that
are added, those that exist stay as they are and the new ones are told apart, on every database; a row that can't be
read is noted, and is left out where many are read. Refuses nothing of its own: it lives as long as its transaction
and is used by one thread.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import orjson
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    CursorResult,
    Table,
    bindparam,
    insert,
    literal_column,
    or_,
    select,
)
from sqlalchemy.sql import ClauseElement, Executable

from sellerwatch.adapters.sql.dialect import SQLITE, insert_or_ignore, times
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.shelves import SPOILT, Shelf, Spoilt
from sellerwatch.adapters.sql.trouble import Overtaken, says_twice
from sellerwatch.domain.errors import Unreadable

T = TypeVar("T")
ADD_TRIES = 5


class PerDialect:
    """A prepared statement that each database is told in other words; `build` is given the dialect's name."""

    __slots__ = ("_build", "_columns", "_prepared")

    def __init__(self, build: Callable[[str], ClauseElement], columns: Sequence[str] = ()) -> None:
        self._build = build
        self._columns = tuple(columns)
        self._prepared: dict[str, Prepared] = {}

    def on(self, dialect: str) -> Prepared:
        known = self._prepared.get(dialect)
        if known is None:
            known = self._prepared[dialect] = Prepared(self._build(dialect), self._columns)
        return known


class Session:
    """Handed to every store of one transaction."""

    __slots__ = ("_from_db", "_moments", "_spoilt", "_to_db", "_written", "connection", "dialect")

    def __init__(self, connection: Connection, dialect: str, spoilt: Spoilt | None = None) -> None:
        """`spoilt`: where what can't be read is noted."""
        self.connection = connection
        self.dialect = dialect
        self._spoilt = Spoilt() if spoilt is None else spoilt
        self._to_db, self._from_db = times(dialect)
        # A batch names few moments many times over, and to write or read one costs as much as half a row.
        self._written: dict[datetime, object] = {}
        self._moments: dict[Any, datetime] = {}

    # statements

    def many(self, statement: Prepared | PerDialect, rows: Sequence[Row]) -> int:
        """Once per row; how many rows of the database it met."""
        return self._prepared(statement).many(self.connection, rows)

    def run(self, statement: Prepared | PerDialect, params: Row = ()) -> int:
        return self._prepared(statement).run(self.connection, params)

    def rows(self, statement: Prepared | PerDialect, params: Row = ()) -> list[Row]:
        return self._prepared(statement).rows(self.connection, params)

    def first(self, statement: Prepared | PerDialect, params: Row = ()) -> Row | None:
        rows = self._prepared(statement).rows(self.connection, params)
        return rows[0] if rows else None

    def run_in(self, statement: PreparedIn, values: Iterable[object], params: Row = ()) -> int:
        """For a list of values of any length; values that repeat count once."""
        return statement.run(self.connection, self._in_order(values), params)

    def rows_in(self, statement: PreparedIn, values: Iterable[object], params: Row = ()) -> list[Row]:
        return statement.rows(self.connection, self._in_order(values), params)

    def insert(self, statement: Prepared | PerDialect, rows: Sequence[Row]) -> bool:
        """False, and nothing has happened: a unique index says that one of them exists."""
        try:
            with self.connection.begin_nested():
                self.many(statement, rows)
        except Exception as error:
            if says_twice(error):
                return False
            raise
        return True

    def insert_new(self, statement: Prepared | PerDialect, rows: Sequence[Row]) -> None:
        """For what was looked for, with a lock, and not found: a lock holds no row that is not there."""
        if rows and not self.insert(statement, rows):
            raise Overtaken(f"others made one of these {len(rows)} rows while we looked")

    def execute(self, statement: Executable, params: Any = None) -> CursorResult[Any]:
        """A Core statement, with SQLAlchemy's types, for what is not a hot path."""
        return cast("CursorResult[Any]", self.connection.execute(statement, params))

    # rows that may be spoilt; `place` is where in the row its shelf's key stands

    def each(self, shelf: Shelf, rows: Sequence[Row], make: Callable[[Row], T], place: int = 0) -> list[T]:
        """What is made of the rows, without those that can't be read."""
        try:
            return [make(row) for row in rows]
        except SPOILT:
            # One of them: found by reading row by row, which is left to the day when there is one.
            return [made for made, _ in self._readable(shelf, rows, make, place)]

    def by_key(self, shelf: Shelf, rows: Sequence[Row], make: Callable[[Row], T]) -> dict[Any, T]:
        """`each`, by the first column of each row."""
        try:
            return {row[0]: make(row) for row in rows}
        except SPOILT:
            return {row[0]: made for made, row in self._readable(shelf, rows, make, 0)}

    def one(self, shelf: Shelf, row: Row, make: Callable[[Row], T], place: int = 0) -> T:
        """A row that somebody asked for by name: Unreadable when it can't be read."""
        try:
            return make(row)
        except SPOILT as error:
            problem = self._spoilt.note(shelf, row[place], error)
            raise Unreadable(f"{shelf.name} {row[place]}", problem) from error

    def _readable(
        self, shelf: Shelf, rows: Sequence[Row], make: Callable[[Row], T], place: int
    ) -> Iterator[tuple[T, Row]]:
        for row in rows:
            try:
                yield make(row), row
            except SPOILT as error:
                self._spoilt.note(shelf, row[place], error)

    # values that prepared statements take and give

    def to_db(self, at: datetime | None) -> object:
        """A moment as the driver wants it; None stays None."""
        if at is None:
            return None
        known = self._written.get(at)
        if known is None:
            known = self._written[at] = self._to_db(at)
        return known

    def from_db(self, value: Any) -> datetime:
        """A moment of a column that is never NULL."""
        known = self._moments.get(value)
        if known is None:
            known = self._moments[value] = self._from_db(value)
        return known

    def from_db_or_none(self, value: Any) -> datetime | None:
        return None if value is None else self.from_db(value)

    def _prepared(self, statement: Prepared | PerDialect) -> Prepared:
        return statement if isinstance(statement, Prepared) else statement.on(self.dialect)

    @staticmethod
    def _in_order(values: Iterable[object]) -> list[Any]:
        # Sorted, so that transactions lock rows in one order and do not meet in a deadlock.
        distinct: set[Any] = set(values)
        return sorted(distinct)


class Additions:
    """Inserts into a table whose rows are named by their cause: those that exist are left alone.

    `columns` are those of the rows that will come; `key` the one of them that names a row, alone or within `scope`.
    """

    __slots__ = ("_insert", "_key", "_known")

    def __init__(self, table: Table, columns: Sequence[str], key: str, scope: str | None = None) -> None:
        self._insert = PerDialect(
            lambda dialect: insert_or_ignore(dialect, table) if dialect == SQLITE else insert(table), columns
        )
        self._key = list(columns).index(key)
        if scope is None:
            self._known = PreparedIn(lambda keys: select(table.c[key]).where(table.c[key].in_(keys)))
        else:
            within = table.c[scope] == bindparam("scope")
            self._known = PreparedIn(
                lambda keys: select(table.c[key]).where(within, table.c[key].in_(keys)), ("scope",)
            )

    def put(self, session: Session, rows: Sequence[Row]) -> int:
        """How many were new."""
        if session.dialect == SQLITE:
            return session.many(self._insert, rows)
        return len(self.put_new(session, rows))

    def put_new(self, session: Session, rows: Sequence[Row], scope: Row = ()) -> list[Row]:
        """Which were new."""
        by_key = {row[self._key]: row for row in reversed(rows)}
        for _ in range(ADD_TRIES if by_key else 0):
            known = {row[0] for row in session.rows_in(self._known, by_key, scope)}
            new = [row for key, row in reversed(by_key.items()) if key not in known]
            if session.dialect == SQLITE:
                session.many(self._insert, new)
                return new
            # Where others write at the same time one of them may add a row after we looked: look again.
            if session.insert(self._insert, new):
                return new
        if not by_key:
            return []
        # Of another unique index, perhaps: what led to these rows has to be decided anew.
        raise Overtaken(f"others added some of these {len(rows)} rows while we looked")


def said(value: str) -> ColumnElement[str]:
    """A constant in the statement itself: nothing is sent for it with every row."""
    assert value.replace("_", "").isalnum(), value
    return literal_column(f"'{value}'")


def also(column: "Column[str]") -> ColumnElement[str]:
    """The column as a condition beside the ids that find the rows. SQLite, which has no statistics here, would take
    an index on it to find them: all that are WAITING, to look for eight.
    """
    return literal_column(f"+{column.table.name}.{column.name}")


def among(column: "ColumnElement[str]", values: Iterable[str]) -> ColumnElement[bool]:
    """One of a few constants; sorted, so that the statement is the same every time."""
    return or_(*(column == said(value) for value in sorted(values)))


def length(column: "Column[Any]") -> int:
    """How many characters fit."""
    most = getattr(column.type, "length", None)
    assert isinstance(most, int), f"{column} has no length"
    return most


def cut(text: str | None, column: "Column[Any]") -> str | None:
    """What fits; None stays None."""
    return None if text is None else text[: length(column)]


def dumps(value: object) -> str:
    return orjson.dumps(value).decode()


def loads(text: str) -> Any:
    return orjson.loads(text)


def loads_object(text: str, needed: str) -> dict[str, Any]:
    """A payload, which says at least that."""
    value = orjson.loads(text)
    if not isinstance(value, dict) or needed not in value:
        raise ValueError(f"its payload is no object with {needed!r}")
    return value
