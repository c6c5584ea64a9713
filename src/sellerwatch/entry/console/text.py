r"""Texts as a terminal may show them: what others wrote can't move the cursor, colour, reorder or hide anything.

Promises: control, bidirectional and other invisible characters come out as `\x1b` or `\u202e`; everything else stays
as it is. Moments are UTC; ages and counts are short.
"""

import unicodedata
from collections.abc import Sequence
from datetime import datetime

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def visible(text: object) -> str:
    said = str(text)
    if said.isascii() and said.isprintable():
        return said
    return "".join(_escaped(char) if unicodedata.category(char) in _HIDDEN else char for char in said)


def moment(at: datetime | None) -> str:
    return "–" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def age(seconds: float | None) -> str:
    """How long, in the one unit that says it."""
    if seconds is None:
        return "–"
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def since(at: datetime | None, now: datetime) -> str:
    return "–" if at is None else age((now - at).total_seconds())


def until(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "–"
    return "now" if at <= now else f"in {age((at - now).total_seconds())}"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 product`, `1 200 products`."""
    return f"{grouped(number)} {one if number == 1 else many or one + 's'}"


def left_out(names: Sequence[object], found: int) -> str:
    """Who of those named is missing, when so many were found: `7 is`, `none of the 3 is`, `2 of the 3 are`."""
    named = list(dict.fromkeys(names))
    missing = len(named) - found
    if len(named) == 1:
        return f"{named[0]} is"
    if not found:
        return f"none of the {grouped(len(named))} is"
    return f"{grouped(missing)} of the {grouped(len(named))} {'is' if missing == 1 else 'are'}"


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _escaped(char: str) -> str:
    point = ord(char)
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
