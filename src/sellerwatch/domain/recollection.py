"""What a new leader of the pool is told of the last hour, when only the record is left of the old one.

Fail closed: what can't be known counts as spent, and at the latest moment at which it can have been. Known is every
request in the log, and what each budget had left when the books were last kept. Between the last books and the end of
the old lead an identity may have gone out as often as its minimum interval allows; what of that is not in the log is
counted at the end. A 429 of that time that never reached the record suspends; patience that was asked for is kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sellerwatch.domain.breakers import Breaker
from sellerwatch.domain.identities import TOO_MANY_REQUESTS, Identity, IdentityStatus, Verdict

BOOKS_TAKE = timedelta(seconds=5)
"""So much later than they say at the most the books were read: what is that old may have left the window by then."""
SITE_PATIENCE_OF = 3
SITE_PATIENCE_WITHIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Budget:
    """What the rules of the budget are."""

    limit: int
    interval: timedelta
    reach: timedelta
    """How long a lease counts."""
    lease: timedelta


@dataclass(frozen=True, slots=True)
class Bucket:
    """How much of an identity's budget was spent at some moment, or a little later."""

    spent: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Plea:
    """An answer that asked for patience."""

    agent_id: int
    at: datetime
    """When the request went out."""
    status: int | None
    until: datetime | None
    """None: it did not say for how long."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What must not be forgotten of an identity."""

    identity: Identity
    leased_at: tuple[datetime, ...]
    """Rising: those that still count."""
    paused_until: datetime | None = None
    breaker: Breaker | None = None
    """None: CLOSED, and nothing counted."""


@dataclass(frozen=True, slots=True)
class Above:
    """What must not be forgotten of what stands above the identities."""

    pool: Breaker | None = None
    site: Breaker | None = None
    paused_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The time of which little is known: from the last books to the end of the old lead."""

    since: datetime | None
    """None: no books were ever kept."""
    until: datetime


def recollect(
    identity: Identity,
    logged: Sequence[datetime],
    bucket: Bucket | None,
    pleas: Iterable[Plea],
    breaker: Breaker | None,
    lost: Lost | None,
    budget: Budget,
    now: datetime,
) -> Memory:
    """`logged`: when its requests went out, back to twice the reach. `lost`: None when nobody led before."""
    moments = sorted(logged)
    if bucket is not None:
        counted = sum(bucket.at - budget.reach + BOOKS_TAKE < at <= bucket.at for at in moments)
        moments += [bucket.at] * max(0, min(bucket.spent, budget.limit) - counted)
    if lost is not None:
        moments += [lost.until] * _unknown(logged, lost, budget)
    paused_until = None
    for plea in pleas:
        if plea.until is not None:
            paused_until = max(plea.until, paused_until or plea.until)
        if plea.status == TOO_MANY_REQUESTS and lost is not None and _is_news(plea, lost, budget):
            identity = _suspended(identity, plea.at)
    return Memory(identity, tuple(sorted(at for at in moments if at > now - budget.reach)), paused_until, breaker)


def site_pause(pleas: Mapping[int, Sequence[Plea]]) -> datetime | None:
    """Until when the site is left alone: several identities were asked for patience within a minute."""
    timed = sorted((plea for its in pleas.values() for plea in its if plea.until), key=lambda plea: plea.at)
    paused_until: datetime | None = None
    for number, last in enumerate(timed):
        recent = [each for each in timed[: number + 1] if each.at > last.at - SITE_PATIENCE_WITHIN]
        if len({each.agent_id for each in recent}) >= SITE_PATIENCE_OF:
            longest = max(each.until for each in recent if each.until)
            paused_until = max(longest, paused_until or longest)
    return paused_until


def _unknown(logged: Sequence[datetime], lost: Lost, budget: Budget) -> int:
    """How often it may have gone out without a trace."""
    if lost.since is None or budget.interval <= timedelta():
        return budget.limit
    if lost.until <= lost.since:
        return 0
    could = (lost.until - lost.since) // budget.interval + 1
    return max(0, min(could, budget.limit) - sum(at > lost.since for at in logged))


def _is_news(plea: Plea, lost: Lost, budget: Budget) -> bool:
    """Whether the record may not know of it: it was reported, if at all, after the last books."""
    return lost.since is None or plea.at > lost.since - budget.lease


def _suspended(identity: Identity, at: datetime) -> Identity:
    if identity.status is not IdentityStatus.AVAILABLE:
        return identity
    copy = replace(identity)
    copy.record_failure(Verdict.RATE_LIMITED, at)
    return copy
