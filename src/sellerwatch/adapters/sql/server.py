"""What a MySQL or MariaDB server says of itself and of our session with it: what a diagnosis wants to know."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import SQLITE

LEAST = {"MySQL": (8, 0), "MariaDB": (10, 6)}
"""The first that know SKIP LOCKED and what else the statements need."""
PACKET_BYTES_MIN = 32 << 20
"""A document of 16 MB, escaped, and the rows beside it."""
_VARIABLES = ("time_zone", "sql_mode", "max_allowed_packet", "max_connections", "log_bin", "binlog_format")
_ISOLATION = ("transaction_isolation", "tx_isolation")


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    """MySQL or MariaDB."""
    version: str
    at: datetime
    """Its clock."""
    variables: dict[str, str]

    @property
    def is_old(self) -> bool:
        numbers = tuple(int(number) for number in re.findall(r"\d+", self.version)[:2])
        return numbers < LEAST[self.name]

    @property
    def packet_bytes(self) -> int:
        return int(self.variables["max_allowed_packet"])

    def faults(self, connections: int) -> list[tuple[str, str]]:
        """(what is so, what would be right)."""
        values = self.variables
        isolation = next(values[name] for name in _ISOLATION if name in values)
        least = ".".join(map(str, LEAST[self.name]))
        found = [
            (self.is_old, f"{self.name} {self.version}", f"upgrade it to {self.name} {least} or newer"),
            (isolation != "READ-COMMITTED", f"isolation is {isolation}", "let sessions set READ COMMITTED"),
            (values["time_zone"] != "+00:00", f"its time zone is {values['time_zone']}", "let sessions set +00:00"),
            (
                "STRICT_TRANS_TABLES" not in values["sql_mode"],
                f"sql_mode is {values['sql_mode'] or 'empty'}: what does not fit would be cut in silence",
                "let sessions set STRICT_TRANS_TABLES",
            ),
            (
                self.packet_bytes < PACKET_BYTES_MIN,
                f"max_allowed_packet is {self.packet_bytes >> 20} MB: large pages cannot be stored",
                f"set max_allowed_packet={PACKET_BYTES_MIN >> 20}M or more on the server",
            ),
            (
                values["log_bin"] == "ON" and values["binlog_format"] == "STATEMENT",
                "its binary log is kept by STATEMENT, which READ COMMITTED cannot write to",
                "set binlog_format=ROW or MIXED on the server",
            ),
            (
                int(values["max_connections"]) < connections,
                f"it takes {values['max_connections']} connections, and this process alone may open {connections}",
                "raise max_connections on the server, or lower SELLERWATCH_DATABASE_POOL_MAX",
            ),
        ]
        return [(said, advice) for is_wrong, said, advice in found if is_wrong]


async def server_of(database: Database) -> Server | None:
    """None: SQLite has none."""
    return None if database.dialect == SQLITE else await database.write(_look)


def _look(connection: Connection) -> Server:
    # By a writer's session: a reader asks for another isolation.
    version, at = connection.exec_driver_sql("SELECT VERSION(), UTC_TIMESTAMP(6)").one()
    names = ", ".join(f"'{name}'" for name in (*_VARIABLES, *_ISOLATION))
    rows = connection.exec_driver_sql(f"SHOW SESSION VARIABLES WHERE variable_name IN ({names})")
    name = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    return Server(
        name, version.partition("-")[0], at.replace(tzinfo=UTC), {str(name): str(value) for name, value in rows}
    )
