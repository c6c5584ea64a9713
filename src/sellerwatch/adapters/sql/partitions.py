"""The partitions of `token_usage_log` on MySQL and MariaDB; SQLite has none.

Promises what ports/partitions.py says. The table is changed only while nobody else changes it, which a named lock of
the server says; whoever does not get that lock at once leaves it to the other. Nothing is moved as long as the last
partition is empty, and it is, for a year's months lie before it.
"""

from datetime import UTC, datetime

from sqlalchemy import Connection, text

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import SQLITE
from sellerwatch.ports.partitions import Kept, Partition

TABLE = "token_usage_log"
LAST = "p_future"
MONTHS = 12
"""The current one and the following eleven."""

_ALL = text(
    "SELECT partition_name, partition_description, table_rows FROM information_schema.partitions"
    " WHERE table_schema = DATABASE() AND table_name = :name AND partition_name IS NOT NULL"
    " ORDER BY partition_ordinal_position"
)
_LOCK = text("SELECT GET_LOCK(LEFT(CONCAT('partitions of ', DATABASE()), 64), 0)")
_UNLOCK = text("SELECT RELEASE_LOCK(LEFT(CONCAT('partitions of ', DATABASE()), 64))")


class SqlPartitions:
    """`ports.partitions.Partitions` on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[Partition]:
        return [] if self._database.dialect == SQLITE else await self._database.read(_all)

    async def keep(self, at: datetime, kept_since: datetime) -> Kept:
        if self._database.dialect == SQLITE:
            return Kept()
        return await self._database.write(lambda connection: _kept(connection, at, kept_since))


def _kept(connection: Connection, at: datetime, kept_since: datetime) -> Kept:
    if not connection.execute(_LOCK).scalar_one():
        return Kept()
    try:
        found = _all(connection)
        if not found:
            return Kept()
        made = _missing(found, at)
        begins = _month(at, 0)
        dropped = [each.name for each in found if each.before and each.before <= min(kept_since, begins)]
        if made:
            parts = ", ".join(f"PARTITION {name} VALUES LESS THAN ('{end:%F} 00:00:00')" for name, end in made)
            last = f"PARTITION {LAST} VALUES LESS THAN (MAXVALUE)"
            connection.exec_driver_sql(f"ALTER TABLE {TABLE} REORGANIZE PARTITION {LAST} INTO ({parts}, {last})")
        if dropped:
            connection.exec_driver_sql(f"ALTER TABLE {TABLE} DROP PARTITION {', '.join(dropped)}")
        return Kept([name for name, _ in made], dropped)
    finally:
        connection.execute(_UNLOCK)


def _missing(found: list[Partition], at: datetime) -> list[tuple[str, datetime]]:
    """(name, end) of each month that is still to be split off the last partition; all come after those that are."""
    ends = [each.before for each in found if each.before]
    latest = max(ends, default=_month(at, 0))
    wanted = [(f"p{_month(at, ahead):%Y%m}", _month(at, ahead + 1)) for ahead in range(MONTHS)]
    return [(name, end) for name, end in wanted if end > latest]


def _all(connection: Connection) -> list[Partition]:
    rows = connection.execute(_ALL, {"name": TABLE})
    return [Partition(name, _end(description), count or 0) for name, description, count in rows]


def _end(description: str) -> datetime | None:
    if description.upper() == "MAXVALUE":
        return None
    return datetime.fromisoformat(description.strip("'")).replace(tzinfo=UTC)


def _month(at: datetime, ahead: int) -> datetime:
    """The beginning of the month, in UTC, so many months after `at`'s."""
    at = at.astimezone(UTC)
    year, month = divmod(at.year * 12 + at.month - 1 + ahead, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)
