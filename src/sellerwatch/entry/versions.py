"""What a receiver says it holds, read line by line: JSON lines `{"itemNo": 1, "version": 2}`, or CSV `itemNo,version`.

Refused: the first line that is neither, by its number. Nothing is guessed: a page of HTML or half a line is no version.
Blank lines and a line of titles are passed over; other names in an object and further cells are ignored.
"""

import csv
import json
from collections.abc import Iterator
from typing import IO

from sellerwatch.domain.errors import Invalid

LINE_MAX = 4096
_LARGEST = 2**63 - 1
_LIKE = '{"itemNo": 118005032, "version": 7} or 118005032,7'


def versions_in(text: IO[str]) -> Iterator[tuple[int, int]]:
    number = 0
    places = (0, 1)
    while line := text.readline(LINE_MAX):
        number += 1
        if len(line) == LINE_MAX and not line.endswith("\n"):
            raise _refused(number, line)
        line = line.strip()
        if not line:
            continue
        if line.startswith("{"):
            yield _object(line, number)
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if number == 1 and {"itemNo", "version"} <= set(cells):
            places = (cells.index("itemNo"), cells.index("version"))
            continue
        if len(cells) <= max(places) or not all(cells[place].isdecimal() for place in places):
            raise _refused(number, line)
        yield _checked(int(cells[places[0]]), int(cells[places[1]]), number, line)


def _object(line: str, number: int) -> tuple[int, int]:
    try:
        found = json.loads(line)
    except ValueError:
        raise _refused(number, line) from None
    return _checked(found.get("itemNo"), found.get("version"), number, line)


def _checked(item_no: object, version: object, number: int, line: str) -> tuple[int, int]:
    # Not isinstance: a flag is an int as well.
    if type(item_no) is not int or type(version) is not int:
        raise _refused(number, line)
    if not (0 < item_no <= _LARGEST and 0 <= version <= _LARGEST):
        raise _refused(number, line)
    return item_no, version


def _refused(number: int, line: str) -> Invalid:
    return Invalid(f"line {number}", line[:80], _LIKE)
