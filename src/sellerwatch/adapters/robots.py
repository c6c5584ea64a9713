"""robots.txt read by Protego, which matches wildcards without trying twice and normalises percent-encodings.

Promises what `ports.robots.RobotsReader` says. Groups of other crawlers are renamed to one before they are read: a file
of thirty thousand names would otherwise take minutes.
"""

import re
from typing import Final

from protego import Protego

from sellerwatch.domain.robots import CRAWLER

SECONDS_MAX: Final = 86_400.0
_LINES: Final = re.compile(r"\r\n|\r|\n")
_NAME: Final = re.compile(r"\s*user[- ]?agent\s*:?\s*(?P<name>[^#]*)", re.IGNORECASE)
_OTHERS: Final = "User-agent: another-crawler"


class ProtegoReader:
    def rules(self, text: str) -> "ProtegoRules":
        return ProtegoRules(Protego.parse("\n".join(_for_us(line) for line in _LINES.split(text))))


class ProtegoRules:
    def __init__(self, file: Protego) -> None:
        self._file = file
        rate = file.request_rate(CRAWLER)
        by_rate = rate.seconds / rate.requests if rate and rate.requests > 0 else 0.0
        self.seconds_between = min(max(file.crawl_delay(CRAWLER) or 0.0, by_rate, 0.0), SECONDS_MAX)

    def allows(self, url: str) -> bool:
        return self._file.can_fetch(url, CRAWLER)


def _for_us(line: str) -> str:
    """The line, unless it names somebody else. A shorter name is somebody else's too, though Protego would take it."""
    found = _NAME.match(line)
    if found is None or found["name"].strip().casefold() in {"*", CRAWLER}:
        return line
    return _OTHERS
