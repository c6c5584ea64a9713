"""What columns are made of: one kind per meaning, the same on every database.

Promises: times go in and come out aware, in UTC, with microseconds; strings compare byte by byte; what must hold
16 MB holds it. Refuses: a moment without a time zone.
"""

from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

from sellerwatch.domain.errors import Invalid

T = TypeVar("T")

metadata = MetaData()

_MYSQL = ("mysql", "mariadb")
_BYTES = "utf8mb4_bin"


class Moment(TypeDecorator[datetime]):
    """Aware UTC outside, naive UTC inside."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime]:
        kind = mysql.DATETIME(fsp=6) if dialect.name in _MYSQL else DateTime()
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002  SQLAlchemy's signature
        if value is None:
            return None
        if value.tzinfo is None:
            raise Invalid("moment", value, "a time with its time zone")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002  see above
        return None if value is None else value.replace(tzinfo=UTC)


def exact(length: int) -> TypeEngine[str]:
    """A string that compares byte by byte."""
    return String(length).with_variant(mysql.VARCHAR(length, collation=_BYTES), *_MYSQL)


def number(precision: int, scale: int) -> Numeric[float]:
    # Not Decimal: SQLite has none, and every figure kept here is rounded on purpose.
    return Numeric(precision, scale, asdecimal=False)


BIG = BigInteger()
COUNT = Integer()
FLAG = Boolean()
MOMENT = Moment()
KEY = BigInteger().with_variant(Integer(), "sqlite")
"""Only INTEGER numbers rows by itself on SQLite."""
UID = String(36).with_variant(mysql.CHAR(36, collation=_BYTES), *_MYSQL).with_variant(mysql.CHAR(36), "sqlite")
HASH = exact(64)
STATUS = exact(16)
OWNER = exact(80)
SELLER = exact(64)
ERROR = String(2048)
SHORT = Text()
"""64 KB on MySQL."""
JSON = Text().with_variant(mysql.MEDIUMTEXT(), *_MYSQL)
"""JSON as text: we write and read it ourselves. 16 MB."""
LARGE = Text().with_variant(mysql.LONGTEXT(), *_MYSQL)
"""16 MB and more: MEDIUMTEXT is one byte short of it."""


def key(name: str = "id") -> Column[int]:
    """The row's number, given by the database."""
    return Column(name, KEY, primary_key=True, autoincrement=True)


def required(name: str, kind: TypeEngine[T], default: str | int | None = None) -> Column[T]:
    """Never NULL; a default that is a number or a flag is written as a number."""
    given = text(str(int(default))) if isinstance(default, int) else default
    return Column(name, kind, nullable=False, server_default=given)


def optional(name: str, kind: TypeEngine[T]) -> Column[T]:
    """NULL while it is not known, or does not apply."""
    return Column(name, kind, nullable=True)


def unique(name: str, *columns: str) -> Index:
    return Index(name, *columns, unique=True)


def table(name: str, *items: SchemaItem, rowid: bool = True, partition_key: str | None = None) -> Table:
    """`rowid=False`: on SQLite the primary key is the table. `partition_key`: see `dialect.for_dialect`."""
    return Table(
        name,
        metadata,
        *items,
        info={"partition_key": partition_key},
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate=_BYTES,
        sqlite_with_rowid=rowid,
    )
