"""Lists on a terminal: a table for people, JSON for programs, a line for each piece of news.

Promises: colours on a terminal only; away from one a table is as wide as it needs to be; what others wrote is shown
visible and never read as markup. Rich is loaded when the first table is drawn.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

from sellerwatch.entry.console.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_AWAY = 240
_LONG = 120
_BEFORE = 30
# What JSON may hold and a terminal should not be sent: C1 controls, bidirectional and other formatting characters.
_UNSEEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")

GOOD = frozenset({"ACTIVE", "AVAILABLE", "COMPLETED", "SUCCESS", "PROCESSED", "SENT", "CLOSED"})
BAD = frozenset({"FAILED", "BLOCKED", "OPEN", "critical"})
WARNING = frozenset({"SUSPENDED", "HELD", "HALF_OPEN", "INACTIVE", "DELISTED", "RETRY", "warning"})


class Column(NamedTuple):
    title: str
    justify: Literal["left", "right"] = "left"


def right(title: str) -> Column:
    return Column(title, "right")


def table(columns: Sequence[Column | str], rows: Iterable[Sequence[object]], title: str | None = None) -> "Table":
    """Ready to be drawn. Cells are plain values; the words for good and bad states are coloured."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - slow to load
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    has_titles = any(column if isinstance(column, str) else column.title for column in columns)
    drawn = Table(
        box=SIMPLE_HEAD, show_header=has_titles, title=title, title_justify="left", title_style="bold", pad_edge=False
    )
    for column in columns:
        each = Column(column) if isinstance(column, str) else column
        drawn.add_column(Text(each.title), justify=each.justify, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(visible("–" if cell is None else cell), style=style_of(cell)) for cell in row))
    return drawn


def draw(*drawings: Any) -> None:
    console = terminal()
    for drawing in drawings:
        console.print(drawing)


def terminal() -> "Console":
    from rich.console import Console  # noqa: PLC0415 - slow to load

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_AWAY)
    return console


def style_of(cell: object) -> str:
    word = str(cell)
    if word in BAD:
        return "red"
    return "yellow" if word in WARNING else ("green" if word in GOOD else "")


def say(line: str) -> None:
    """A line of news."""
    typer.echo(visible(line))


def complain(line: str) -> None:
    """A line of what went wrong, on stderr."""
    typer.secho(visible(line), err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)


def put_json(value: object) -> None:
    typer.echo(json_text(value, indent=2))


def short(value: object) -> str:
    """A value as a cell shows it: what is long is cut."""
    return _cut(_text(value))


def apart(old: object, new: object) -> tuple[str, str]:
    """Two values side by side: of long ones what is shown begins shortly before they part."""
    texts = _text(old), _text(new)
    parting = (place for place, (one, other) in enumerate(zip(*texts, strict=False)) if one != other)
    begin = next(parting, min(map(len, texts))) - _BEFORE
    if begin <= 0 or max(map(len, texts)) <= _LONG:
        return _cut(texts[0]), _cut(texts[1])
    return _cut("…" + texts[0][begin:]), _cut("…" + texts[1][begin:])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def json_text(value: object, *, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
