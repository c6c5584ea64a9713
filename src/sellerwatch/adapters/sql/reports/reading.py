"""Reading rows and making something of each."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, Select

T = TypeVar("T")


def first(connection: Connection, statement: Select[Any]) -> RowMapping | None:
    return connection.execute(statement).mappings().first()


def every(connection: Connection, statement: Select[Any], make: Callable[[RowMapping], T]) -> list[T]:
    return [make(row) for row in connection.execute(statement).mappings()]
