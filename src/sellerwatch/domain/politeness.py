"""How polite a stretch of time was, from the requests that left in it: counted in one pass, in the order of time.

Kept while counting: the moments of the last hour, and a little for each identity; so a day of any length takes the
same room. Windows slide: a peak is the most that went out in any such span that ended within the stretch.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
TOLD_MAX = 1000


class Left(NamedTuple):
    """A request that left."""

    agent_id: int
    at: datetime
    took: timedelta
    status: int | None
    asked_for_patience: bool
    """429, or a `Retry-After` of whatever status."""
    retry_after: timedelta | None


@dataclass(frozen=True, slots=True)
class Peak:
    requests: int = 0
    at: datetime | None = None
    """The end of the first span that held so many."""


@dataclass(frozen=True, slots=True)
class Manners:
    """Of one identity, or of all of them: the site."""

    requests: int
    failed: int
    """Without an answer, or answered 400 and more."""
    asked_for_patience: int
    in_a_second: Peak
    in_an_hour: Peak
    smallest_gap: timedelta | None
    smallest_gap_at: datetime | None

    def exceeds(self, per_second: float) -> bool:
        """Requests leave up to a moment after their lease, so two seconds' worth may meet in one: more than that may not."""
        return self.in_a_second.requests > 2 * max(1.0, per_second)


@dataclass(slots=True)
class Plea:
    """An answer that asked for patience, and what followed."""

    agent_id: int
    at: datetime
    """When the request left."""
    status: int | None
    retry_after: timedelta | None
    answered_at: datetime
    next_at: datetime | None = None
    """The identity's first request after it; None: there was none yet."""

    @property
    def rested(self) -> timedelta | None:
        return self.next_at - self.answered_at if self.next_at else None

    @property
    def is_heeded(self) -> bool:
        """Not asked again before it was over."""
        return self.next_at is None or self.next_at >= self.answered_at + (self.retry_after or timedelta(0))


@dataclass(frozen=True, slots=True)
class Politeness:
    site: Manners
    identities: Mapping[int, Manners]
    pleas: tuple[Plea, ...]
    """The first TOLD_MAX of them; `site.asked_for_patience` counts all."""


@dataclass(slots=True)
class _Span:
    """The most in any span of one length."""

    length: timedelta
    moments: deque[datetime] = field(default_factory=deque)
    peak: Peak = field(default_factory=Peak)

    def note(self, at: datetime, *, counts: bool) -> None:
        moments, since = self.moments, at - self.length
        while moments and moments[0] <= since:
            moments.popleft()
        moments.append(at)
        if counts and len(moments) > self.peak.requests:
            self.peak = Peak(len(moments), at)


@dataclass(slots=True)
class _Tally:
    second: _Span = field(default_factory=lambda: _Span(SECOND))
    hour: _Span = field(default_factory=lambda: _Span(HOUR))
    requests: int = 0
    failed: int = 0
    asked_for_patience: int = 0
    last_at: datetime | None = None
    smallest_gap: timedelta | None = None
    smallest_gap_at: datetime | None = None
    waiting: list[Plea] = field(default_factory=list)

    def note(self, left: Left, *, counts: bool) -> None:
        at = left.at
        self.second.note(at, counts=counts)
        self.hour.note(at, counts=counts)
        if counts:
            self.requests += 1
            self.failed += left.status is None or left.status >= 400
            self.asked_for_patience += left.asked_for_patience
            if self.last_at is not None and (self.smallest_gap is None or at - self.last_at < self.smallest_gap):
                self.smallest_gap, self.smallest_gap_at = at - self.last_at, at
        self.last_at = at

    def manners(self) -> Manners:
        return Manners(
            self.requests,
            self.failed,
            self.asked_for_patience,
            self.second.peak,
            self.hour.peak,
            self.smallest_gap,
            self.smallest_gap_at,
        )


class Counting:
    """Requests go in, in the order of time; those before `start` count in the spans that reach back to them only."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._site = _Tally()
        self._identities: dict[int, _Tally] = {}
        self._pleas: list[Plea] = []

    def note(self, requests: Iterable[Left]) -> None:
        for left in requests:
            counts = left.at >= self._start
            its = self._identities.get(left.agent_id)
            if its is None:
                its = self._identities[left.agent_id] = _Tally()
            self._site.note(left, counts=counts)
            its.note(left, counts=counts)
            if its.waiting:
                self._followed(its, left.at)
            if counts and left.asked_for_patience and len(self._pleas) < TOLD_MAX:
                plea = Plea(left.agent_id, left.at, left.status, left.retry_after, left.at + left.took)
                self._pleas.append(plea)
                its.waiting.append(plea)

    @property
    def waiting(self) -> list[int]:
        """Identities that asked nothing more after they were told to wait."""
        return [agent_id for agent_id, its in self._identities.items() if its.waiting]

    def follow(self, firsts: Mapping[int, datetime]) -> None:
        """When those came back, after the stretch."""
        for agent_id, at in firsts.items():
            self._followed(self._identities[agent_id], at)

    def result(self) -> Politeness:
        seen = {agent_id: its.manners() for agent_id, its in self._identities.items() if its.requests}
        return Politeness(self._site.manners(), seen, tuple(self._pleas))

    @staticmethod
    def _followed(its: _Tally, at: datetime) -> None:
        for plea in its.waiting:
            plea.next_at = at
        its.waiting.clear()
