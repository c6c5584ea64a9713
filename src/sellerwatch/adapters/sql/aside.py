"""Setting aside: rows that could not be read no longer hold up anything, and somebody is told.

Promises: a row is set aside as its shelf says, however often and by however many it is found; each table with such rows
has one open alert, with the newest of them. It is over a day after the last of them was met.
"""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from sellerwatch.adapters.sql.session import Session, length
from sellerwatch.adapters.sql.shelves import UNREADABLE, Shelf, Spoilt
from sellerwatch.adapters.sql.stores.chores import Chores
from sellerwatch.adapters.sql.tables import crawler_tasks
from sellerwatch.ports.store.keeping import UNREADABLE_ROW

LOOK_AGAIN = timedelta(hours=1)
"""So long a row that has to be looked at again is left alone."""
_SHOWN = 10
_NOTE_LENGTH = length(crawler_tasks.c.error_message)


def set_aside(session: Session, spoilt: Spoilt, at: datetime) -> None:
    tables: dict[str, list[tuple[str, str]]] = defaultdict(list)
    # Sorted, so that transactions lock rows in one order and do not meet in a deadlock.
    for (table, key), (shelf, problem) in sorted(spoilt.rows.items(), key=lambda each: each[0]):
        _put_aside(session, shelf, key, problem, at)
        tables[table].append((key, problem))
    for table, rows in tables.items():
        key, problem = rows[0]
        more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
        text = f"a row of {table} can't be read: {key}: {problem}{more}"
        details = {"rows": [{"key": key, "error": problem} for key, problem in rows[:_SHOWN]], "lastAt": at.isoformat()}
        Chores(session).raise_alert(f"{UNREADABLE_ROW}:{table}", "critical", text, details, at)


def _put_aside(session: Session, shelf: Shelf, key: str, problem: str, at: datetime) -> None:
    params: dict[str, Any] = {"of": key, "note": f"{UNREADABLE}{problem}"[:_NOTE_LENGTH], "at": at}
    for statement in shelf.aside:
        named = {
            name: value for name, value in (params | {"later": at + LOOK_AGAIN}).items() if name in _asked(statement)
        }
        session.execute(statement, named)


def _asked(statement: Any) -> set[str]:
    return set(statement.compile().params)
