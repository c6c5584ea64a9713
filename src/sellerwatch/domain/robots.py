"""robots.txt (RFC 9309): what the marketplace lets crawlers ask, how long that holds, and when it is asked for again.

                   told                     a day old                   another day without being told
    nothing known ──────▶ known, asked again ─────────▶ last known, tried ─────────────────────────────▶ paused
          │                      ▲                             │                                           │
          │                      └───────────── told ──────────┴───────────────────────────────────────────┤
          └── not to be had ───────────────────────────────────────────────────────────────────────────────┘

Told is a file (2xx), or that there is none (4xx: everything is allowed). A server that fails, says "later" (429) or
can't be reached tells nothing: what was known last holds for another day, then nothing is asked until it can be had.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sellerwatch.domain.outbox import backoff

CRAWLER = "sellerwatch"
"""The name by which a robots.txt may speak of us; what it says of `*` holds otherwise."""
TEXT_BYTES_MAX = 500 * 1024
FRESH_FOR = LAST_KNOWN_FOR = timedelta(hours=24)
PAGE_FOR = timedelta(hours=1)
"""A page may only stand there for as long as something is being mended."""
_AGAIN_SECONDS, _AGAIN_CEILING = 30.0, 600.0
_SAYS_LATER = frozenset({408, 429})


@dataclass(slots=True)
class RobotsFile:
    origin: str
    next_at: datetime
    """When it is to be asked for."""
    text: str | None = None
    """As it was told last; empty: nothing is forbidden."""
    told_at: datetime | None = None
    failures: int = 0
    problem: str | None = None
    """Why it could not be had the last time."""
    claimed_by: str | None = None
    claimed_until: datetime | None = None

    def holds(self, at: datetime) -> bool:
        return self.told_at is not None and at < self.told_at + FRESH_FOR + LAST_KNOWN_FOR

    def is_due(self, at: datetime) -> bool:
        return self.next_at <= at

    def claim(self, owner: str, until: datetime, at: datetime) -> bool:
        """One at a time asks for it."""
        if not self.is_due(at) or (self.claimed_until is not None and self.claimed_until > at):
            return False
        self.claimed_by, self.claimed_until = owner, until
        return True

    def tell(self, text: str, at: datetime, chance: float) -> None:
        if is_page(text) and self.text is not None and self.holds(at):
            # Maintenance shows pages in the place of everything; who always does has no robots.txt.
            self.miss("a page came in its place", at, chance)
            return
        self.text, self.told_at, self.next_at = text, at, at + (PAGE_FOR if is_page(text) else FRESH_FOR)
        self.failures, self.problem = 0, None
        self._release()

    def miss(self, problem: str, at: datetime, chance: float) -> None:
        """It could not be had."""
        self.next_at = at + backoff(self.failures, _AGAIN_SECONDS, _AGAIN_CEILING, chance)
        self.failures, self.problem = self.failures + 1, problem
        self._release()

    def put_off(self, until: datetime) -> None:
        """Nobody was free to ask."""
        self.next_at = until
        self._release()

    def _release(self) -> None:
        self.claimed_by = self.claimed_until = None


def told_by(status: int, body: bytes) -> str | None:
    """The file that an answer gives; None: it tells nothing. Of a longer one the whole lines of its beginning count."""
    if 200 <= status < 300:
        if len(body) > TEXT_BYTES_MAX:
            body = body[: max(body.rfind(b"\n", 0, TEXT_BYTES_MAX), body.rfind(b"\r", 0, TEXT_BYTES_MAX)) + 1]
        return body.decode("utf-8-sig", "replace").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return "" if 400 <= status < 500 and status not in _SAYS_LATER else None


def is_page(text: str) -> bool:
    return text.lstrip().startswith("<")
