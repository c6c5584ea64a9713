"""The marketplace's doorkeeper: guest tokens, and how many requests a User-Agent may make.

The window is exact: a request is let in when fewer than the limit were let in during the `window_seconds` before it. What
arrives beyond that is a violation, is answered 429 and spends nothing. All arrivals count for the peaks and gaps, those of
`/` and robots.txt included, so that a checker can see what really left the crawler.
"""

from collections import deque
from dataclasses import dataclass, field

from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.conditions import Conditions

_TOKENS_KEPT = 4
_ARRIVALS_KEPT = 20_000


@dataclass(slots=True)
class Visitor:
    """One User-Agent, as the marketplace sees it."""

    tokens: dict[str, float] = field(default_factory=dict)
    """When each ends."""
    issued: int = 0
    admitted: deque[float] = field(default_factory=deque)
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=_ARRIVALS_KEPT))
    requests: int = 0
    violations: int = 0
    too_close: int = 0
    unauthorized: int = 0
    peak_window: int = 0
    smallest_gap: float | None = None
    last_at: float | None = None

    def arrive(self, at: float, window: float, min_interval: float) -> None:
        """Note an arrival in the figures."""
        self.requests += 1
        if self.last_at is not None:
            gap = at - self.last_at
            if gap < min_interval:
                self.too_close += 1
            if self.smallest_gap is None or gap < self.smallest_gap:
                self.smallest_gap = gap
        self.last_at = at
        _slide(self.recent, at, window)
        self.recent.append(at)
        self.peak_window = max(self.peak_window, len(self.recent))

    def shown(self) -> dict[str, object]:
        return {
            "requests": self.requests,
            "violations": self.violations,
            "tooClose": self.too_close,
            "unauthorized": self.unauthorized,
            "tokens": self.issued,
            "peakWindow": self.peak_window,
            "smallestGap": self.smallest_gap,
        }


class Gate:
    """Who comes in. Time never goes back here: an earlier moment counts as the latest seen."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._last_second: deque[float] = deque()
        self._latest = 0.0
        self.visitors: dict[str, Visitor] = {}
        self.peak_second = 0

    def admit(self, user_agent: str, now: float) -> float | None:
        """None: come in. Otherwise the seconds until there is room again."""
        self._latest = now = max(now, self._latest)
        conditions = self._conditions
        visitor = self.visitors.get(user_agent)
        if visitor is None:
            visitor = self.visitors[user_agent] = Visitor()
        visitor.arrive(now, conditions.window_seconds, conditions.min_interval_seconds)
        _slide(self._last_second, now, 1.0)
        self._last_second.append(now)
        self.peak_second = max(self.peak_second, len(self._last_second))
        if not conditions.hourly_limit:
            return None
        _slide(visitor.admitted, now, conditions.window_seconds)
        if len(visitor.admitted) >= conditions.hourly_limit:
            visitor.violations += 1
            return visitor.admitted[0] + conditions.window_seconds - now
        visitor.admitted.append(now)
        return None

    def issue(self, user_agent: str, now: float) -> list[tuple[str, str]]:
        """A new guest token and its companions, as cookies."""
        visitor = self.visitors[user_agent]
        visitor.issued += 1
        chance = Chance(self._conditions.seed, "token", user_agent, visitor.issued)
        token = "gt." + "".join(f"{chance.draw():016x}" for _ in range(8))
        visitor.tokens[token] = now + self._conditions.token_seconds
        while len(visitor.tokens) > _TOKENS_KEPT:
            del visitor.tokens[next(iter(visitor.tokens))]
        life = f"Max-Age={self._conditions.token_seconds}; Path=/; SameSite=Lax"
        return [
            ("set-cookie", f"token={token}; {life}"),
            ("set-cookie", f"nid={chance.draw():016x}; {life}; HttpOnly"),
            ("set-cookie", f"mustit_uid={chance.draw():016x}; Max-Age=31536000; Path=/"),
        ]

    def knows(self, user_agent: str, authorization: str, now: float) -> bool:
        """Is this a token that was given to this User-Agent and is still good?"""
        visitor = self.visitors[user_agent]
        scheme, _, token = authorization.partition(" ")
        good = scheme.lower() == "bearer" and visitor.tokens.get(token.strip(), 0.0) > max(now, self._latest)
        visitor.unauthorized += not good
        return good

    def revoke(self, user_agent: str | None = None) -> int:
        """The tokens of one visitor, or of all, are no longer good. How many that were."""
        chosen = self.visitors.values() if user_agent is None else [self.visitors[user_agent]]
        count = 0
        for visitor in chosen:
            count += len(visitor.tokens)
            visitor.tokens.clear()
        return count

    def shown(self) -> dict[str, object]:
        """The figures, with the worst of all visitors on top."""
        visitors = self.visitors.values()
        gaps = [visitor.smallest_gap for visitor in visitors if visitor.smallest_gap is not None]
        return {
            "violations": sum(visitor.violations for visitor in visitors),
            "tooClose": sum(visitor.too_close for visitor in visitors),
            "peakSecond": self.peak_second,
            "peakWindow": max((visitor.peak_window for visitor in visitors), default=0),
            "smallestGap": min(gaps, default=None),
            "identities": {name: visitor.shown() for name, visitor in sorted(self.visitors.items())},
        }


def _slide(moments: deque[float], now: float, window: float) -> None:
    while moments and now - moments[0] >= window:
        moments.popleft()
