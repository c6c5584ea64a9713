"""Reading rows and making something of each."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, Select

T = TypeVar("T")


def first(connection: Connection, statement: Select[Any]) -> Mapping[Any, Any] | None:
    rows = every(connection, statement, dict)
    return rows[0] if rows else None


def every(connection: Connection, statement: Select[Any], make: Callable[[Mapping[Any, Any]], T]) -> list[T]:
    # Plain dicts: SQLAlchemy's own mappings look each name up anew, which costs more than the row.
    found = connection.execute(statement)
    names = tuple(found.keys())
    return [make(dict(zip(names, row, strict=True))) for row in found]
