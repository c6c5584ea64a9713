"""What goes to the scripts and what comes back: limits, identities and reports as JSON; faces, standings, events read.

A face is what an identity shows: two bytes of length, its name, and its sealed token. The scripts store it and hand it
on; only this module reads it. Moments are whole microseconds since 1970; Redis keeps them exactly until the year 2255.
"""

import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState, Transition
from sellerwatch.domain.identities import Identity, IdentityStatus, SealedToken
from sellerwatch.domain.recollection import Above, Memory
from sellerwatch.ports.pool import Limits, PoolEvent, PoolEventKind, Report, Standing

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
RETRY_AFTER_MAX = timedelta(hours=24)
WINDOW_SECONDS_MAX = 365 * 86_400.0
Fields = dict[bytes, bytes]
Reply = Any
"""What redis-py gives: nested lists of bytes and int, as the script's header says."""

_pack = msgspec.json.Encoder().encode
_read_name = msgspec.json.Decoder(tuple[str, str]).decode
_read_token = msgspec.json.Decoder(tuple[str, str | None, str, int, int]).decode


class Face(NamedTuple):
    user_agent_id: str
    user_agent: str
    token: SealedToken | None


def us(moment: datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


def moment(at_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=at_us)


def moment_or_none(at_us: bytes | int | None) -> datetime | None:
    """-1, nothing and an empty text: never."""
    return None if at_us in {None, b"", -1} else moment(int(at_us or 0))


def span(seconds: float) -> int:
    return round(seconds * SECOND)


def limits_of(limits: Limits) -> bytes:
    """As `prelude.lua` names them."""
    rate = limits.site_requests_per_second
    # Below one a second: one, in a longer window.
    rate_limit = max(1, int(rate)) if rate > 0 else 0
    reach = span(limits.window_seconds + limits.guard_seconds)
    return struct.pack(
        ">15d",
        limits.hourly_limit,
        reach,
        span(limits.min_interval_seconds),
        span(limits.lease_seconds),
        limits.concurrency,
        rate_limit,
        span(rate_limit / rate) if rate > 0 else 0,
        limits.is_paced_evenly,
        reach // max(1, limits.hourly_limit),
        limits.min_available_percent,
        span(limits.breaker_open_seconds),
        limits.site_failure_percent,
        limits.identity_failure_threshold,
        span(limits.probation.total_seconds()) if limits.probation else -1,
        rate,
    )


def sealed_of(token: SealedToken | None) -> bytes:
    if token is None:
        return b""
    return _pack((token.sealed, token.cookies, token.fingerprint, us(token.issued_at), us(token.expires_at)))


def reports_of(reports: Sequence[Report]) -> bytes:
    return _pack([_report(each) for each in reports])


def _report(each: Report) -> tuple[object, ...]:
    retry_after, token = each.retry_after, each.token
    patience = int(min(retry_after, RETRY_AFTER_MAX).total_seconds() * SECOND) if retry_after else 0
    said = (each.lease_id, each.agent_id, each.verdict.value, patience, each.is_token_refused, each.is_issue)
    if token is None:
        return (*said, "", 0, "")
    return (*said, token.fingerprint, us(token.expires_at), sealed_of(token).decode())


def leases_of(lease_ids: Iterable[tuple[str, int]]) -> bytes:
    return _pack(list(lease_ids))


def joining_of(identities: Iterable[Identity]) -> bytes:
    return _pack(
        [
            (
                each.agent_id,
                _pack((each.user_agent_id, each.user_agent)).decode(),
                sealed_of(each.token).decode(),
                _fields(each),
            )
            for each in identities
        ]
    )


def memories_of(memories: Iterable[Memory]) -> bytes:
    return _pack([_memory(each) for each in memories])


def _memory(memory: Memory) -> tuple[object, ...]:
    its, fields = memory.identity, _fields(memory.identity)
    if memory.paused_until is not None:
        fields["pausedUntil"] = us(memory.paused_until)
    if memory.breaker is not None:
        fields |= _breaker_fields("breaker", memory.breaker)
    name = _pack((its.user_agent_id, its.user_agent)).decode()
    return its.agent_id, name, sealed_of(its.token).decode(), fields, [us(at) for at in memory.leased_at]


def above_of(above: Above) -> bytes:
    """Texts: a number of so many digits would not stay what it is on its way into the head."""
    fields: dict[str, str | int] = {}
    for prefix, its in (("pool", above.pool), ("site", above.site)):
        if its is not None:
            fields |= _breaker_fields(prefix, its)
    if above.paused_until is not None:
        fields["pausedUntil"] = us(above.paused_until)
    return _pack({name: str(value) for name, value in fields.items()})


def _breaker_fields(prefix: str, its: Breaker) -> dict[str, str | int]:
    """CLOSED and never are not said. Whose trial was under way is not known any more: the next request is one."""
    known: dict[str, str | int | None] = {
        "State": None if its.state is BreakerState.CLOSED else its.state.value,
        "Failures": its.failure_count,
        "OpenedAt": us(its.opened_at) if its.opened_at else None,
        "HalfOpenAt": us(its.half_open_at) if its.half_open_at else None,
        "ClosedAt": us(its.closed_at) if its.closed_at else None,
    }
    return {f"{prefix}{name}": value for name, value in known.items() if value}


def leaving_of(agent_ids: Sequence[int]) -> bytes:
    return _pack(agent_ids)


def _fields(identity: Identity) -> dict[str, str | int]:
    """Those that say something; what is not there is zero, no or never."""
    known: dict[str, str | int | None] = {
        "tokenFailures": identity.token_failures,
        "isBlockedByHand": "1" if identity.is_blocked_by_hand else None,
        "suspendedAt": us(identity.suspended_at) if identity.suspended_at else None,
        "lastUsedAt": us(identity.last_used_at) if identity.last_used_at else None,
        "usageCount": identity.usage_count,
        "successCount": identity.success_count,
        "failureCount": identity.failure_count,
        "today": identity.requests_per_day,
    }
    if identity.token is not None:
        known |= {"token": identity.token.fingerprint, "tokenExpiresAt": us(identity.token.expires_at)}
    said = {name: value for name, value in known.items() if value}
    return {"status": identity.status.value, "healthScore": identity.health_score} | said


@lru_cache(maxsize=8192)
def face(packed: bytes) -> Face:
    """Kept, for a sealed token is checked anew each time it is made."""
    begin = 2 + int.from_bytes(packed[:2], "big")
    name, sealed = packed[2:begin], packed[begin:]
    token = None
    if sealed:
        text, cookies, fingerprint, issued_us, expires_us = _read_token(sealed)
        token = SealedToken(text, fingerprint, moment(issued_us), moment(expires_us), cookies)
    return Face(*_read_name(name), token)


def fields(flat: Sequence[bytes]) -> Fields:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def breaker(scope: BreakerScope, limits: Limits, known: Fields) -> Breaker:
    """One of the two that stand in the head."""
    its = {name.removeprefix(scope.value.lower().encode()): value for name, value in known.items()}
    return Breaker(
        scope,
        # Tripped by a share, not by failures in a row.
        20,
        timedelta(seconds=limits.breaker_open_seconds),
        None,
        BreakerState((its.get(b"State") or b"CLOSED").decode()),
        int(its.get(b"Failures") or 0),
        moment_or_none(its.get(b"OpenedAt")),
        moment_or_none(its.get(b"HalfOpenAt")),
        moment_or_none(its.get(b"ClosedAt")),
        its.get(b"Trial", b"").decode() or None,
        moment_or_none(its.get(b"TrialUntil")),
    )


def standing(agent_id: int, revision: int, spent: int, its_face: Face, known: Fields, at: "At") -> Standing:
    def number(name: bytes) -> int:
        return int(known.get(name, 0))

    is_out = b"lease" in known
    its_breaker = _breaker_of(agent_id, known, at.limits)
    paused_until = moment_or_none(known.get(b"pausedUntil"))
    status = IdentityStatus(known[b"status"].decode())
    identity = Identity(
        agent_id,
        its_face.user_agent_id,
        its_face.user_agent,
        status,
        number(b"healthScore"),
        b"isBlockedByHand" in known,
        its_face.token,
        number(b"tokenFailures"),
        moment_or_none(known.get(b"suspendedAt")),
        moment_or_none(known.get(b"lastUsedAt")),
        number(b"usageCount"),
        number(b"successCount"),
        number(b"failureCount"),
        number(b"today"),
    )
    free_us = max(number(b"nextFreeAt"), number(b"pausedUntil"))
    if its_breaker.state is BreakerState.OPEN:
        free_us = max(free_us, number(b"breakerOpenedAt") + span(at.limits.breaker_open_seconds))
    next_free_at: datetime | None = moment(free_us)
    if status is IdentityStatus.BLOCKED:
        next_free_at = None
    elif status is IdentityStatus.SUSPENDED and not is_out:
        next_free_at = identity.recovers_at(at.limits.probation)
    return Standing(
        identity=identity,
        remaining=max(0, at.limits.hourly_limit - spent),
        next_free_at=next_free_at,
        leased_until=_lease(known)[1],
        paused_until=paused_until if paused_until is not None and paused_until > at.now else None,
        breaker=its_breaker,
        revision=revision,
    )


class At(NamedTuple):
    now: datetime
    limits: Limits


def _breaker_of(agent_id: int, known: Fields, limits: Limits) -> Breaker:
    state = BreakerState(known.get(b"breakerState", b"CLOSED").decode())
    is_tried = state is BreakerState.HALF_OPEN and b"lease" in known
    return Breaker(
        BreakerScope.IDENTITY,
        limits.identity_failure_threshold,
        timedelta(seconds=limits.breaker_open_seconds),
        agent_id,
        state,
        int(known.get(b"breakerFailures", 0)),
        moment_or_none(known.get(b"breakerOpenedAt")),
        moment_or_none(known.get(b"breakerHalfOpenAt")),
        moment_or_none(known.get(b"breakerClosedAt")),
        # One lease at a time: while it is half open, every lease is its trial.
        *(_lease(known) if is_tried else (None, None)),
    )


def _lease(known: Fields) -> tuple[str | None, datetime | None]:
    """The id and the deadline of the lease that is out."""
    packed = known.get(b"lease")
    if packed is None:
        return None, None
    return packed[28:].decode(), moment(int.from_bytes(packed[7:14], "big"))


def event(entry: Sequence[Reply]) -> PoolEvent:
    number = int(entry[0].split(b"-")[0])
    said = {name.decode(): value.decode() for name, value in fields(entry[1]).items()}
    agent_id = int(said["agent"]) if said["agent"] else None
    at = moment(int(said["at"]))
    transition = None
    if "scope" in said:
        states = (BreakerState(said["from"]), BreakerState(said["to"]))
        scope, failures = BreakerScope(said["scope"]), int(said["failures"])
        transition = Transition(scope, agent_id, *states, failures, at, said["reason"])
    return PoolEvent(number, PoolEventKind(said["kind"]), at, agent_id, said["reason"], transition)
