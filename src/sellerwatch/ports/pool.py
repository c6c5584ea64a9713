"""The identity pool: the right to make one request as somebody, now.

Every engine keeps the same promises; the numbers are those of `Limits`. An operation is atomic: callers in any
number of processes may race, and the outcome is that of some order of their calls.

Budget. In no interval of `window_seconds` (plus guard) are more than `hourly_limit` leases of one identity counted,
nor two within `min_interval_seconds`, nor one so soon after a report: the request it tells of may have arrived but then.
A lease counts from the moment it is given; only `cancel` gives it back.
A lost, expired or unreported lease stays spent.
Site. At most `concurrency` leases are out at once, and `site_requests_per_second` are given in any second, over all.
Order. The identity that has been free longest goes first among those with a token; those without one come next.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from sellerwatch.domain.breakers import Breaker, Transition
from sellerwatch.domain.identities import Identity, SealedToken, Verdict


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator allows. `hourly_limit` 0 means: nobody may ask at all."""

    hourly_limit: int = 80
    window_seconds: float = 3600.0
    guard_seconds: float = 30.0
    min_interval_seconds: float = 1.0
    lease_seconds: float = 30.0
    concurrency: int = 100
    site_requests_per_second: float = 10.0
    is_paced_evenly: bool = False
    min_available_percent: float = 20.0
    breaker_open_seconds: float = 600.0
    site_failure_percent: float = 50.0
    identity_failure_threshold: int = 3
    probation: timedelta | None = None
    """How long an identity of health below 30 rests before it is tried again; None: for ever."""

    def spaced_out(self, seconds: float) -> "Limits":
        """The same with a lower rate of the site, if so long between two leases is longer than it asks for."""
        if seconds * self.site_requests_per_second <= 1:
            return self
        return replace(self, site_requests_per_second=1 / seconds)


class WhyNot(StrEnum):
    """Why nothing is free, the most lasting reason first."""

    AWAY = "AWAY"
    """No engine of the pool leads just now, or the one that does can't be reached."""
    EMPTY = "EMPTY"
    """The pool holds no identity that could ever be lent."""
    CIRCUIT_OPEN = "CIRCUIT_OPEN"
    """The breaker of the pool or of the site is open, or its one trial is under way."""
    SUSPENDED = "SUSPENDED"
    """All that are not blocked are suspended."""
    PAUSED = "PAUSED"
    """The marketplace asked for patience (`Retry-After`): the site, or every identity that is left."""
    SPENT = "SPENT"
    """Every identity that is left has used its budget, or rests for its minimum interval."""
    SITE_RATE = "SITE_RATE"
    SITE_BUSY = "SITE_BUSY"
    """So many requests are under way as may be."""
    BUSY = "BUSY"
    """Every identity that has budget is lent."""


_LASTING = frozenset({WhyNot.AWAY, WhyNot.EMPTY, WhyNot.CIRCUIT_OPEN, WhyNot.SUSPENDED, WhyNot.PAUSED})


@dataclass(frozen=True, slots=True)
class Lease:
    lease_id: str
    agent_id: int
    user_agent: str
    token: SealedToken | None
    """None: nothing may be asked with this lease but a token."""
    leased_at: datetime
    deadline: datetime
    is_trial: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """What `lease` gave. Fewer than asked for: `why` and `next_at` say what holds the rest up, and until when."""

    leases: tuple[Lease, ...]
    why: WhyNot | None = None
    next_at: datetime | None = None
    """The earliest moment at which asking again may help; None: only a person can help."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the request of a lease."""

    lease_id: str
    agent_id: int
    verdict: Verdict
    http_status: int | None = None
    retry_after: timedelta | None = None
    """As the marketplace asked; it never shortens our own waiting."""
    token: SealedToken | None = None
    """A token that was issued by this request."""
    is_token_refused: bool = False
    """The token was answered 401 or 403 and is discarded; or, asked for one, the marketplace gave none (`is_issue`)."""
    is_issue: bool = False


@dataclass(frozen=True, slots=True)
class Outlook:
    """Without leasing anything: how many could be leased now, and else why not and from when."""

    free: int
    why: WhyNot | None = None
    next_at: datetime | None = None

    @property
    def is_pause(self) -> bool:
        """Nothing can be lent, for another reason than that the budget is spent, which may be so day in, day out."""
        return not self.free and self.why in _LASTING


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """What an operator sees; costs the same however large the pool is."""

    total: int
    available: int
    suspended: int
    blocked: int
    health_min: int
    health_avg: float
    health_max: int
    remaining_requests: int
    leased: int
    pool_breaker: Breaker
    site_breaker: Breaker
    next_available_at: datetime | None
    why: WhyNot | None

    @property
    def available_rate(self) -> float:
        return round(self.available * 100 / self.total, 2) if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """One identity as the pool knows it; the pool leads, the record follows."""

    identity: Identity
    remaining: int
    next_free_at: datetime | None
    leased_until: datetime | None
    paused_until: datetime | None
    breaker: Breaker
    revision: int
    """Grows with every change of an identity, over the whole pool."""


class PoolEventKind(StrEnum):
    SUSPENDED = "SUSPENDED"
    RECOVERED = "RECOVERED"
    BLOCKED = "BLOCKED"
    UNBLOCKED = "UNBLOCKED"
    BREAKER = "BREAKER"
    LEASE_EXPIRED = "LEASE_EXPIRED"


@dataclass(frozen=True, slots=True)
class PoolEvent:
    """Something that must reach the record, the log and perhaps a person. Kept until `forget_events`."""

    number: int
    kind: PoolEventKind
    at: datetime
    agent_id: int | None
    reason: str
    transition: Transition | None = None


class Pool(Protocol):
    async def lease(self, count: int) -> Grant:
        """Up to `count` leases of different identities, in one step.

        While a breaker is OPEN: none, CIRCUIT_OPEN; past its time-out one lease at a time is given, the trial.
        The time never goes back: an older clock than the last one seen is not believed.
        """

    async def report(self, reports: Sequence[Report]) -> list[bool]:
        """For each, whether it was accepted: the lease was out and its id is right. Else it changed nothing.

        Accepted, it ends the lease, moves health, standing and breakers by the rules of `domain.identities` and
        `domain.breakers`, and keeps or discards the token. 5xx and network failures lower no health, and count for no
        identity's breaker, while the site's breaker is not CLOSED. That one is opened by too large a share of failures, or of
        429s, among the last minute's requests or the latest of them, twenty at least. A `retry_after` pauses the identity, and the site
        when three identities got one within a minute.
        """

    async def cancel(self, lease_ids: Iterable[tuple[str, int]]) -> int:
        """(lease id, agent id) of leases whose request did not go out: ended, the budget restored. How many were."""

    async def expire(self) -> int:
        """Take back the leases past their deadline; spent stays spent. How many there were."""

    async def outlook(self) -> Outlook: ...

    async def capacity(self, seconds: float) -> int:
        """About how many leases can be given within so many seconds from now. A guide for who fills the queue."""

    async def load(self, identities: Sequence[Identity]) -> None:
        """Make the pool's members these: new ones as they are, known ones keep what the pool knows of them (but take
        a User-Agent string), those no longer there leave when their lease ends."""

    async def suspend(self, agent_id: int, patience: timedelta = timedelta()) -> None:
        """These five: by an operator's word; Unknown or WrongVerb when it can't be. `patience`: the marketplace asked to be
        left alone for so long, by a 429 that could not be reported while its lease was out."""

    async def recover(self, agent_id: int) -> None: ...

    async def block(self, agent_id: int) -> None: ...

    async def unblock(self, agent_id: int) -> None: ...

    async def discard_token(self, agent_id: int) -> None: ...

    async def recover_due(self) -> list[int]:
        """Recover those whose rest is over (`Identity.recovers_at`); their ids."""

    async def refreshable(self, before: datetime, count: int) -> list[int]:
        """AVAILABLE identities that are not lent and whose token ends before this moment."""

    async def lease_of(self, agent_id: int) -> Lease | None:
        """A lease of this one identity, by the same rules; None: not now. For refreshing its token."""

    async def keep_token(self, agent_id: int, token: SealedToken) -> None:
        """Store the same token under another key (rekeying); ignored when the identity has another token by now."""

    def space_out(self, seconds: float) -> None:
        """What this process leases from now on goes out no sooner than so long after the last lease of anybody, where
        the Limits would let it; 0: as the Limits say."""

    async def figures(self) -> PoolFigures: ...

    async def standings(self, after_revision: int = 0, count: int = 1000) -> list[Standing]:
        """Identities changed after that revision, in its order. Unavailable, as `events`, where nobody can be asked who
        knows: that nothing is said must not read as if nothing had happened."""

    async def events(self, after: int = 0, count: int = 1000) -> list[PoolEvent]: ...

    async def forget_events(self, upto: int) -> None: ...
