"""What a database's error means: try again, or it is away. Everything else is a mistake of ours and is raised as it is.

Prepared statements bypass SQLAlchemy, so the driver's own errors arrive here as often as the wrapped ones.
"""

from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sellerwatch.domain.errors import Unavailable

T = TypeVar("T")
TRIES = 8

# Deadlock, lock wait, and MariaDB's "changed since it was read".
_MYSQL_AGAIN = frozenset({1020, 1205, 1213, 3572})
# Shutting down, killed, too many connections, refused, gone, lost.
_MYSQL_AWAY = frozenset(
    {1040, 1053, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2005, 2006, 2013, 2014, 2055, 4031}
)
# SQLITE_BUSY, SQLITE_LOCKED; and SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN.
_SQLITE_AGAIN = frozenset({5, 6})
_SQLITE_AWAY = frozenset({10, 13, 14})


class Meaning(Enum):
    AGAIN = auto()
    AWAY = auto()
    MISTAKE = auto()


def meaning(error: BaseException) -> Meaning:
    if isinstance(error, PoolTimeout):
        return Meaning.AWAY
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return Meaning.AWAY
        error = error.orig or error
    kind = type(error).__name__
    if kind not in {"OperationalError", "InterfaceError", "InternalError"}:
        return Meaning.MISTAKE
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _of(code & 0xFF, _SQLITE_AGAIN, _SQLITE_AWAY)
    first = error.args[0] if error.args else None
    if kind == "InterfaceError" and not first:
        # What the MySQL drivers say of a connection that was closed under them.
        return Meaning.AWAY
    return _of(first, _MYSQL_AGAIN, _MYSQL_AWAY)


def _of(code: object, again: frozenset[int], away: frozenset[int]) -> Meaning:
    if code in again:
        return Meaning.AGAIN
    return Meaning.AWAY if code in away else Meaning.MISTAKE


def watched(work: Callable[[Connection], T]) -> Callable[[Connection], T]:
    """`work`, telling the pool when the connection is lost: of the driver's own errors it would not know."""

    def run(connection: Connection) -> T:
        try:
            return work(connection)
        except Exception as error:
            if meaning(error) is Meaning.AWAY and not connection.invalidated:
                connection.invalidate(error)
            raise

    return run


async def persisting(run: Callable[[], Awaitable[T]]) -> T:
    """Deadlocks and lock waits are tried again, a few times; Unavailable when the database is away."""
    for left in reversed(range(TRIES)):
        try:
            return await run()
        except Exception as error:
            match meaning(error):
                case Meaning.AGAIN if left:
                    continue
                case Meaning.AGAIN | Meaning.AWAY:
                    raise Unavailable(f"database: {error}") from error
            raise
    raise AssertionError("unreachable: the last try returns or raises")
