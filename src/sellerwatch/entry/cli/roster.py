"""A roster: sellers in a CSV file, read row by row; a row that is wrong is one with its line and reason, not an end.

Promises: names of columns in any case and in the API's spelling too; a byte order mark, quoted line breaks and empty
lines are nothing wrong. Refuses: a file without the columns id and name, or one that is not UTF-8.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.ids import checked_seller_id
from sellerwatch.domain.sellers import CrawlSource, checked_interval, checked_name

_NAMES = {
    "id": "id",
    "sellerid": "id",
    "name": "name",
    "interval": "interval",
    "intervaldays": "interval",
    "crawlingintervaldays": "interval",
    "source": "source",
    "crawlsource": "source",
}


class Entry(NamedTuple):
    line: int
    seller_id: str
    name: str
    interval_days: int
    source: CrawlSource


@dataclass(frozen=True, slots=True)
class BadRow:
    line: int
    reason: str


def roster(file: Path) -> Iterator[Entry | BadRow]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.reader(lines, strict=True)
        try:
            columns = _columns(file, next(rows, []))
            for row in rows:
                if any(cell.strip() for cell in row):
                    yield _entry(rows.line_num, columns, row)
        except csv.Error as error:
            yield BadRow(rows.line_num, f"not CSV from here on: {error}")
        except UnicodeDecodeError:
            yield BadRow(rows.line_num + 1, "not UTF-8 from here on")


def _columns(file: Path, titles: list[str]) -> list[str]:
    plain = [title.strip().casefold().replace("_", "").replace(" ", "") for title in titles]
    columns = [_NAMES.get(title, "") for title in plain]
    for title, column in zip(titles, columns, strict=True):
        if not column:
            raise Invalid(f"{file}:1: column", title, "one of id, name, interval, source")
    if missing := {"id", "name"} - set(columns):
        raise Invalid(f"{file}:1: columns", ", ".join(titles), f"complete without {' and '.join(sorted(missing))}")
    if len(set(columns)) < len(columns):
        raise Invalid(f"{file}:1: columns", ", ".join(titles), "a list of different columns")
    return columns


def _entry(line: int, columns: list[str], row: list[str]) -> Entry | BadRow:
    if len(row) != len(columns):
        return BadRow(line, f"{len(row)} cells where there are {len(columns)} columns")
    cells = {column: cell.strip() for column, cell in zip(columns, row, strict=True)}
    interval, source = cells.get("interval") or "1", (cells.get("source") or CrawlSource.MINI_SHOP).upper()
    if not (interval.isascii() and interval.isdecimal() and len(interval) < 10):
        return BadRow(line, str(Invalid("interval", interval, "a number of days, 1 to 30")))
    try:
        seller_id, name = checked_seller_id(cells["id"]), checked_name(cells["name"])
        return Entry(line, seller_id, name, checked_interval(int(interval)), CrawlSource(source.replace("-", "_")))
    except Invalid as refused:
        return BadRow(line, str(Invalid(_NAMES[refused.field.casefold()], refused.value, refused.expected)))
    except ValueError:
        return BadRow(line, str(Invalid("source", cells["source"], "mini_shop or search")))
