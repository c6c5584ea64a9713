"""Statements for hot paths: written with SQLAlchemy, compiled once per database, run by the driver.

Promises: they say what the Core statement says, at the driver's speed (1 to 3 µs a row instead of 5 to 8), inside
the transaction of the connection they are given. Refuses: to write outside a transaction, where the driver would
commit row by row. Values go to the driver as they are: times through `dialect.times`, flags as 0 and 1, JSON as
text; what comes back is what the driver gave.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

from sqlalchemy import BinaryExpression, BindParameter, BooleanClauseList, Column, Connection, Table, Update, bindparam
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.sql import ClauseElement, operators
from sqlalchemy.sql.compiler import SQLCompiler

from sellerwatch.adapters.sql.dialect import JoinedUpdate, joined_update

T = TypeVar("T")
JOINED_ROWS, JOINED_CHARACTERS = 200, 20_000
"""So many rows together, and no longer texts: a statement stays far below what a server takes."""
Row = tuple[Any, ...]


class Prepared:
    """A statement whose parameters are `columns`: those of an insert, or the names of its `bindparam`s, in the order
    of the rows that will come. What else the statement holds is constant.
    """

    __slots__ = ("_columns", "_compiled", "_joins", "_statement")

    def __init__(self, statement: ClauseElement, columns: Sequence[str] = ()) -> None:
        self._statement = statement
        self._columns = tuple(columns)
        self._compiled: dict[str, tuple[str, Callable[[Row], Row] | None]] = {}
        self._joins: dict[str, _Joined | None] = {}

    def many(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Run it for every row; how many rows of the database it met. No rows: nothing is sent."""
        if not rows:
            return 0
        sql, arrange = self._sql(connection.dialect)
        joined = self._joined(connection.dialect, sql) if len(rows) > 1 else None
        if joined and all(_is_small(row) for row in rows):
            return sum(self._together(connection, joined, each, arrange) for each in joined.batches(rows))
        cursor = _cursor(connection, writes=True)
        try:
            cursor.executemany(sql, rows if arrange is None else [arrange(row) for row in rows])
            return cursor.rowcount
        finally:
            cursor.close()

    def run(self, connection: Connection, params: Row = ()) -> int:
        """Run it once; how many rows of the database it met."""
        sql, arrange = self._sql(connection.dialect)
        cursor = _cursor(connection, writes=True)
        try:
            cursor.execute(sql, params if arrange is None else arrange(params))
            return cursor.rowcount
        finally:
            cursor.close()

    def rows(self, connection: Connection, params: Row = ()) -> list[Row]:
        """What it selects (or, where the database can, returns)."""
        sql, arrange = self._sql(connection.dialect)
        cursor = _cursor(connection, writes=not getattr(self._statement, "is_select", False))
        try:
            cursor.execute(sql, params if arrange is None else arrange(params))
            return cast("list[Row]", list(cursor.fetchall()))
        finally:
            cursor.close()

    def _together(
        self, connection: Connection, joined: "_Joined", rows: Sequence[Row], arrange: Callable[[Row], Row] | None
    ) -> int:
        sql, params = joined.update.of([arrange(row) for row in rows] if arrange else rows)
        cursor = _cursor(connection, writes=True)
        try:
            cursor.execute(sql, params)
            return cursor.rowcount
        finally:
            cursor.close()

    def _joined(self, dialect: Dialect, sql: str) -> "_Joined | None":
        if dialect.name not in self._joins:
            self._joins[dialect.name] = _join(self._statement, self._columns, dialect.name, sql)
        return self._joins[dialect.name]

    def _sql(self, dialect: Dialect) -> tuple[str, Callable[[Row], Row] | None]:
        known = self._compiled.get(dialect.name)
        if known is None:
            known = self._compiled[dialect.name] = _compile(self._statement, self._columns, dialect)
        return known


class _Joined(NamedTuple):
    """How rows are updated together: each in its place of a join, those of one key one after the other."""

    update: JoinedUpdate
    keys: Sequence[int]
    """Where in a row stands what it is known by."""

    def batches(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        # A join meets a row once: what comes later for the same one is another statement. Sorted, as all locks are.
        turns: dict[int, list[Row]] = {}
        seen: Counter[Row] = Counter()
        for row in sorted(rows, key=self._key):
            key = self._key(row)
            turns.setdefault(seen[key], []).append(row)
            seen[key] += 1
        for turn in turns.values():
            yield from chunks(turn, JOINED_ROWS)

    def _key(self, row: Row) -> Row:
        return tuple(str(row[place]) for place in self.keys)


def _join(statement: ClauseElement, columns: tuple[str, ...], dialect_name: str, sql: str) -> _Joined | None:
    if not isinstance(statement, Update) or not isinstance(statement.table, Table):
        return None
    known = {name: key for name, key in _equal(statement.whereclause) if key in columns}
    update = joined_update(dialect_name, sql, statement.table, known)
    return _Joined(update, [columns.index(key) for key in known.values()]) if update else None


def _equal(clause: Any) -> Iterator[tuple[str, str]]:
    """The columns that a row must equal, with the parameters they are equal to."""
    if isinstance(clause, BooleanClauseList) and clause.operator is operators.and_:
        for each in clause.clauses:
            yield from _equal(each)
        return
    is_equal = isinstance(clause, BinaryExpression) and clause.operator is operators.eq
    if is_equal and isinstance(clause.left, Column) and isinstance(clause.right, BindParameter):
        yield clause.left.name, clause.right.key


def _is_small(row: Row) -> bool:
    return not any(isinstance(value, str) and len(value) > JOINED_CHARACTERS for value in row)


class PreparedIn:
    """A statement about a list of values: `build` gets the placeholders for `column.in_(…)` and gives the statement.

    Long lists go in chunks; the last chunk is filled up to one of a few lengths with its last value, so that only
    a few statements are ever compiled.
    """

    __slots__ = ("_build", "_columns", "_lengths", "_prepared")

    def __init__(
        self,
        build: Callable[[list[BindParameter[Any]]], ClauseElement],
        columns: Sequence[str] = (),
        lengths: Sequence[int] = (1, 8, 64, 500),
    ) -> None:
        self._build = build
        self._columns = tuple(columns)
        self._lengths = sorted(lengths)
        self._prepared: dict[int, Prepared] = {}

    def rows(self, connection: Connection, values: Sequence[object], params: Row = ()) -> list[Row]:
        """What it selects for all values; chunk by chunk, so an order or a limit holds within a chunk only."""
        return [row for prepared, chunk in self._chunks(values) for row in prepared.rows(connection, params + chunk)]

    def run(self, connection: Connection, values: Sequence[object], params: Row = ()) -> int:
        """How many rows of the database it met, over all values."""
        return sum(prepared.run(connection, params + chunk) for prepared, chunk in self._chunks(values))

    def _chunks(self, values: Sequence[object]) -> Iterator[tuple[Prepared, Row]]:
        for chunk in chunks(values, self._lengths[-1]):
            length = next(length for length in self._lengths if length >= len(chunk))
            yield self._of(length), (*chunk, *[chunk[-1]] * (length - len(chunk)))

    def _of(self, length: int) -> Prepared:
        if length not in self._prepared:
            names = [f"in_{number}" for number in range(length)]
            statement = self._build([bindparam(name) for name in names])
            self._prepared[length] = Prepared(statement, (*self._columns, *names))
        return self._prepared[length]


def chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _cursor(connection: Connection, *, writes: bool) -> DBAPICursor:
    if writes and not connection.in_transaction():
        raise RuntimeError("a prepared statement writes inside a transaction only: begin one")
    return connection.connection.cursor()


def _compile(
    statement: ClauseElement, columns: tuple[str, ...], dialect: Dialect
) -> tuple[str, Callable[[Row], Row] | None]:
    """The driver's SQL, and how a row becomes its parameters (None: it is them already)."""
    compiled = statement.compile(dialect=dialect, column_keys=list(columns))
    assert isinstance(compiled, SQLCompiler)
    order = compiled.positiontup
    if order is None:
        raise ValueError(f"{dialect.name}: its driver takes no positional parameters")
    if compiled.post_compile_params or compiled.literal_execute_params:
        raise ValueError("a list of values is not fixed in a prepared statement: use PreparedIn")
    if unknown := set(columns) - set(order):
        raise ValueError(f"the statement has no parameter {sorted(unknown)}")
    constants = [name for name in dict.fromkeys(order) if name not in columns]
    if missing := [name for name in constants if compiled.binds[name].required]:
        raise ValueError(f"nobody gives the parameters {missing}")
    if tuple(order) == columns:
        return compiled.string, None
    return compiled.string, _arrangement((*columns, *constants), order, _values(compiled, constants, dialect))


def _arrangement(names: tuple[str, ...], order: Sequence[str], constants: Row) -> Callable[[Row], Row]:
    places = [names.index(name) for name in order]
    if len(places) == 1:
        only = places[0]
        return lambda row: ((row + constants)[only],)
    if not places:
        return lambda row: row
    pick = cast("Callable[[Row], Row]", itemgetter(*places))
    return pick if not constants else lambda row: pick(row + constants)


def _values(compiled: SQLCompiler, names: Iterable[str], dialect: Dialect) -> Row:
    """Constants as the driver wants them: they are the only values that SQLAlchemy's types still see."""
    values = []
    for name in names:
        bind = compiled.binds[name]
        process = bind.type.dialect_impl(dialect).bind_processor(dialect)
        values.append(process(bind.effective_value) if process else bind.effective_value)
    return tuple(values)
