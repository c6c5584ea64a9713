"""What the revisions' columns are made of. Nothing here ever changes its meaning: a new kind gets a new name.

The live kinds are in `tables.columns`; a test holds the last revision against the live tables.
"""

from typing import Any, TypeVar

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Index,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    desc,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateIndex, CreateTable, DropTable, SchemaItem
from sqlalchemy.types import TypeEngine

from sellerwatch.adapters.sql.dialect import for_dialect

T = TypeVar("T")

_MYSQL = ("mysql", "mariadb")
_BYTES = "utf8mb4_bin"


def exact(length: int) -> TypeEngine[str]:
    return String(length).with_variant(mysql.VARCHAR(length, collation=_BYTES), *_MYSQL)


def words(length: int) -> TypeEngine[str]:
    return String(length)


def number(precision: int, scale: int) -> TypeEngine[float]:
    return Numeric(precision, scale, asdecimal=False)


BIG = BigInteger()
COUNT = Integer()
FLAG = Boolean()
DAY = Date()
MOMENT = DateTime().with_variant(mysql.DATETIME(fsp=6), *_MYSQL)
KEY = BigInteger().with_variant(Integer(), "sqlite")
UID = String(36).with_variant(mysql.CHAR(36, collation=_BYTES), *_MYSQL).with_variant(mysql.CHAR(36), "sqlite")
HASH = exact(64)
STATUS = exact(16)
OWNER = exact(80)
SELLER = exact(64)
ERROR = words(2048)
SHORT = Text()
JSON = Text().with_variant(mysql.MEDIUMTEXT(), *_MYSQL)
LARGE = Text().with_variant(mysql.LONGTEXT(), *_MYSQL)


def key(name: str = "id") -> Column[int]:
    return Column(name, KEY, primary_key=True, autoincrement=True)


def named(name: str, kind: TypeEngine[T]) -> Column[T]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def required(name: str, kind: TypeEngine[T], default: str | int | None = None) -> Column[T]:
    given = text(str(default)) if isinstance(default, int) else default
    return Column(name, kind, nullable=False, server_default=given)


def optional(name: str, kind: TypeEngine[T]) -> Column[T]:
    return Column(name, kind, nullable=True)


def index(name: str, *columns: str) -> Index:
    """A column that begins with "-" runs downwards."""
    ways: list[Any] = [desc(column[1:]) if column[0] == "-" else column for column in columns]
    return Index(name, *ways)


def unique(name: str, *columns: str) -> Index:
    return Index(name, *columns, unique=True)


def table(
    within: MetaData, name: str, *items: SchemaItem, rowid: bool = True, partition_key: str | None = None
) -> Table:
    return Table(
        name,
        within,
        *items,
        info={"partition_key": partition_key},
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate=_BYTES,
        sqlite_with_rowid=rowid,
    )


def create(tables: MetaData, partitions: dict[str, str] | None = None) -> None:
    """Make the tables with their indexes; `partitions`: the clause after PARTITION BY, by table, where there are any."""
    dialect_name = op.get_context().dialect.name
    for made in for_dialect(tables, dialect_name).tables.values():
        if dialect_name in _MYSQL and partitions and made.name in partitions:
            made.dialect_options["mysql"]["partition_by"] = partitions[made.name]
        op.execute(CreateTable(made))
        for its in sorted(made.indexes, key=lambda each: str(each.name)):
            op.execute(CreateIndex(its))


def drop(tables: MetaData) -> None:
    """Last made, first dropped; indexes go with their tables."""
    for made in reversed(tables.tables.values()):
        op.execute(DropTable(made))
