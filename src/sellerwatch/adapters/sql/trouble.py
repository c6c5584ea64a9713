"""What a database's error means: try again, or it is away. Everything else is a mistake of ours and is raised as it is.

Prepared statements bypass SQLAlchemy, so the driver's own errors arrive here as often as the wrapped ones.
"""

from enum import StrEnum

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout


class Overtaken(Exception):
    """Others made, while we looked, what we found missing and were about to make: begin again, and find it."""


class Meaning(StrEnum):
    DEADLOCK = "deadlock"
    """Two wanted what the other held, or made the same at once; this one begins again."""
    LOCKED = "locked"
    """Somebody held it for longer than one waits."""
    LOST = "lost"
    """The connection is gone: what was not committed has not happened."""
    AWAY = "away"
    """There is no database, no room in it, or no connection left."""
    MISTAKE = "mistake"


# MariaDB's "changed since it was read" counts as a deadlock, too.
_MYSQL = dict.fromkeys((1020, 1213), Meaning.DEADLOCK)
_MYSQL |= dict.fromkeys((1205, 3572), Meaning.LOCKED)
# Shutting down, killed, gone, lost, out of step, idle for too long.
_MYSQL |= dict.fromkeys((1053, 1152, 1158, 1159, 1160, 1161, 1927, 2006, 2013, 2014, 2055, 4031), Meaning.LOST)
# Too many connections, refused, no such host, no room.
_MYSQL |= dict.fromkeys((1021, 1040, 1114, 2002, 2003, 2005), Meaning.AWAY)
# SQLITE_BUSY, SQLITE_LOCKED; and SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN.
_SQLITE = {5: Meaning.LOCKED, 6: Meaning.LOCKED, 10: Meaning.AWAY, 13: Meaning.AWAY, 14: Meaning.AWAY}


def meaning(error: BaseException) -> Meaning:
    if isinstance(error, Overtaken):
        return Meaning.DEADLOCK
    if isinstance(error, PoolTimeout):
        return Meaning.AWAY
    if isinstance(error, DBAPIError):
        error = error.orig or error
    kind = type(error).__name__
    if kind not in {"OperationalError", "InterfaceError", "InternalError"}:
        return Meaning.MISTAKE
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _SQLITE.get(code & 0xFF, Meaning.MISTAKE)
    first = error.args[0] if error.args else None
    if kind == "InterfaceError" and not first:
        # What the MySQL drivers say of a connection that was closed under them.
        return Meaning.LOST
    return _MYSQL.get(first, Meaning.MISTAKE) if isinstance(first, int) else Meaning.MISTAKE


def said(error: Exception) -> str:
    """What the database itself said, in one line: neither the statement nor what it was given."""
    told = getattr(error, "orig", None) or error
    text = next((part for part in reversed(told.args) if isinstance(part, str)), "") or str(told)
    return " ".join(text.split()) or type(told).__name__


def says_twice(error: Exception) -> bool:
    """Whether a unique index refused it: SQLite's UNIQUE and PRIMARYKEY, MySQL's ER_DUP_ENTRY."""
    told = getattr(error, "orig", None) or error
    if code := getattr(told, "sqlite_errorcode", None):
        return code in {2067, 1555}
    return type(told).__name__ == "IntegrityError" and told.args[:1] == (1062,)
