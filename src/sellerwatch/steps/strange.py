"""Strange: the marketplace answers otherwise than was declared, and somebody should know.

What answers lack, or say though nobody declared it, is counted; a name that is new on a day is told on that day. A name
that was moved shows first as a new one. Nothing is held up by it: what is missing for it trips its own guard.
"""

from collections.abc import Sequence
from datetime import datetime

from sellerwatch.domain.documents import DocumentKind
from sellerwatch.ports.store import Unit

TOLD_FROM = 20
"""Seen in fewer answers on a day it is a product's whim, not the marketplace's word."""
_TOLD_MAX = 5
_PATH_MOVED = "marketplace_path_moved"


def note_drift(unit: Unit, rows: Sequence[tuple[DocumentKind, str, str, str]], at: datetime) -> None:
    """(kind, field, problem, sample)."""
    unit.chores.note_drift(rows, at)
    for kind in sorted({kind for kind, _, problem, _ in rows if problem == "unknown"}):
        if names := unit.chores.new_names(kind, TOLD_FROM, at):
            told = ", ".join(names[:_TOLD_MAX]) + (f" and {more} more" if (more := len(names) - _TOLD_MAX) > 0 else "")
            text = f"{kind.value} documents have names that nobody declared, since today: {told}"
            unit.chores.raise_alert(_alert(kind), "warning", text, {"document": kind.value, "names": names}, at)


def forget_names(unit: Unit, at: datetime) -> None:
    """A day has ended: what was new on it is new no more."""
    for kind in DocumentKind:
        unit.chores.clear_alert(_alert(kind), at)


def raise_path_moved(unit: Unit, url: str, http_status: int | None, at: datetime) -> None:
    """A shop isn't gone because its list is: it is asked for again, and a person looks at the address."""
    text = f"a list of the marketplace answered {http_status}: has its path moved?"
    unit.chores.raise_alert(_PATH_MOVED, "critical", text, {"requestUrl": url}, at)


def clear_path_moved(unit: Unit, at: datetime) -> None:
    unit.chores.clear_alert(_PATH_MOVED, at)


def _alert(kind: DocumentKind) -> str:
    return f"new_names:{kind.value}"
