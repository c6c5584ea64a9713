"""The pool's door on Redis: every operation is one script, one round trip, and nothing is kept between them.

Promises what `ports.pool.Pool` promises, for any number of processes on one Redis. The time is the server's own, so no
caller's clock matters; only a simulation hands in another. Loading goes by pieces, so that no script grows with the
pool. Refuses a client that decodes its answers, and a window of more than a year; Unavailable when Redis is away.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from redis import exceptions
from redis.asyncio import Redis

from sellerwatch.adapters.redis import packing
from sellerwatch.adapters.redis.packing import Reply, moment, moment_or_none, us
from sellerwatch.adapters.redis.scripts import put_together, sources
from sellerwatch.adapters.redis.trips import Trips, Word
from sellerwatch.domain.breakers import BreakerScope
from sellerwatch.domain.errors import Invalid, Unknown, WrongVerb
from sellerwatch.domain.identities import Identity, SealedToken
from sellerwatch.domain.leadership import Pulse
from sellerwatch.domain.recollection import Above, Memory
from sellerwatch.ports.pool import Grant, Lease, Limits, Outlook, PoolEvent, PoolFigures, Report, Standing, WhyNot
from sellerwatch.ports.time import Chance

KEYS = (
    *("available", "bare", "leased", "suspended", "recovering", "breaker", "site"),
    *("rate", "tally", "patience", "health", "changed", "expiring", "events", "leader", "agent:"),
)
REMEMBER_AT_ONCE, CLEAR_AT_ONCE = 100, 500
JOIN_AT_ONCE, LEAVE_AT_ONCE, LIST_AT_ONCE, SHOW_AT_ONCE, RECOVER_AT_ONCE = 200, 500, 5000, 200, 500
EXPIRE_AT_ONCE = 1000
_WHY = {why.value.encode(): why for why in WhyNot}


class Room(NamedTuple):
    """What the server is, and what it does when its memory is full."""

    version: str
    policy: str
    bytes_max: int
    """0: all there is."""
    evicted: int

    @property
    def may_throw_away(self) -> bool:
        return self.bytes_max > 0 and self.policy != "noeviction"


class RedisPool:
    def __init__(
        self,
        client: Redis,
        chance: Chance,
        limits: Limits,
        name: str = "main",
        now: Callable[[], datetime] | None = None,
    ) -> None:
        if client.connection_pool.connection_kwargs.get("decode_responses"):
            raise Invalid("client", "decode_responses=True", "a client that leaves answers as bytes")
        if limits.window_seconds + limits.guard_seconds > packing.WINDOW_SECONDS_MAX:
            raise Invalid("window_seconds", limits.window_seconds, "at most a year")
        self._client = client
        self._trips = Trips(client)
        self._chance = chance
        self._allowed = self._limits = limits
        self._now = now
        self._seen = packing.EPOCH
        """The last moment the server told: good enough for ids, which order nothing here."""
        self._scripts = {name: (each.sha, each.text) for name, each in put_together(sources()).items()}
        prefix = f"sellerwatch:{{{name}}}:"
        self._changed, self._leader = f"{prefix}changed".encode(), f"{prefix}leader".encode()
        self._keys: tuple[Word, ...] = (len(KEYS), *(f"{prefix}{key}".encode() for key in KEYS))
        self._packed_limits = packing.limits_of(limits)
        self._lease_span = moment(packing.span(limits.lease_seconds)) - packing.EPOCH

    async def lease(self, count: int) -> Grant:
        if count <= 0:
            return Grant(())
        return await self._lease(b"", count)

    async def report(self, reports: Sequence[Report]) -> list[bool]:
        if not reports:
            return []
        return [answer == 1 for answer in await self._run("report", packing.reports_of(reports))]

    async def cancel(self, lease_ids: Iterable[tuple[str, int]]) -> int:
        wanted = list(lease_ids)
        return int(await self._run("cancel", packing.leases_of(wanted))) if wanted else 0

    async def expire(self) -> int:
        taken = 0
        while True:
            batch = int(await self._run("expire"))
            taken += batch
            if batch < EXPIRE_AT_ONCE:
                return taken

    async def outlook(self) -> Outlook:
        free, why, until = await self._run("outlook")
        return Outlook(free, _WHY.get(why), moment_or_none(until))

    async def capacity(self, seconds: float) -> int:
        return int(await self._run("capacity", packing.span(seconds))) if seconds > 0 else 0

    async def load(self, identities: Sequence[Identity]) -> None:
        wanted = {identity.agent_id: identity for identity in identities}
        leaving = [agent_id for agent_id in await self._members() if agent_id not in wanted]
        pieces = _pieces(list(wanted.values()), leaving)
        was_empty = False
        for number, (some, others) in enumerate(pieces):
            is_last = number == len(pieces) - 1
            phase = "whole" if len(pieces) == 1 else f"last {int(was_empty)}" if is_last else "more"
            answer = await self._run("load", packing.joining_of(some), packing.leaving_of(others), phase)
            was_empty = was_empty or (number == 0 and answer == 1)

    async def suspend(self, agent_id: int, patience: timedelta = timedelta()) -> None:
        await self._tell(agent_id, "suspend", packing.span(patience.total_seconds()))

    async def recover(self, agent_id: int) -> None:
        await self._tell(agent_id, "recover")

    async def block(self, agent_id: int) -> None:
        await self._tell(agent_id, "block")

    async def unblock(self, agent_id: int) -> None:
        await self._tell(agent_id, "unblock")

    async def discard_token(self, agent_id: int) -> None:
        await self._tell(agent_id, "discard_token")

    async def recover_due(self) -> list[int]:
        recovered: list[int] = []
        while True:
            batch = await self._run("recover")
            recovered += map(int, batch)
            if len(batch) < RECOVER_AT_ONCE:
                return recovered

    async def refreshable(self, before: datetime, count: int) -> list[int]:
        return [int(agent_id) for agent_id in await self._run("refreshable", us(before), count)]

    async def lease_of(self, agent_id: int) -> Lease | None:
        leases = (await self._lease(agent_id, 1)).leases
        return leases[0] if leases else None

    async def keep_token(self, agent_id: int, token: SealedToken) -> None:
        sealed = packing.sealed_of(token)
        await self._run("keep_token", agent_id, token.fingerprint, us(token.expires_at), sealed)

    def space_out(self, seconds: float) -> None:
        self._limits = self._allowed.spaced_out(seconds)
        self._packed_limits = packing.limits_of(self._limits)

    async def figures(self) -> PoolFigures:
        now_us, leased, remaining, why, until, flat, health_flat = await self._run("figures")
        known = packing.fields(flat)
        available, suspended, blocked = (int(known.get(name, 0)) for name in (b"available", b"suspended", b"blocked"))
        health = {int(score): int(many) for score, many in packing.fields(health_flat).items()}
        total = sum(health.values())
        return PoolFigures(
            total=available + suspended + blocked,
            available=available,
            suspended=suspended,
            blocked=blocked,
            health_min=min(health, default=0),
            health_avg=round(sum(score * many for score, many in health.items()) / total, 2) if total else 0.0,
            health_max=max(health, default=0),
            remaining_requests=remaining,
            leased=leased,
            pool_breaker=packing.breaker(BreakerScope.POOL, self._limits, known),
            site_breaker=packing.breaker(BreakerScope.SITE, self._limits, known),
            next_available_at=moment_or_none(until) if why else moment(now_us),
            why=_WHY.get(why),
        )

    async def standings(self, after_revision: int = 0, count: int = 1000) -> list[Standing]:
        # By pieces: who changes between two of them is told as it became, once.
        shown: dict[int, Standing] = {}
        seen, left = after_revision, count
        while left > 0:
            asked = min(left, SHOW_AT_ONCE)
            now_us, onwards, *rows = await self._run("standings", seen, asked)
            at = packing.At(moment(now_us), self._limits)
            for agent_id, revision, spent, face, flat in zip(*[iter(rows)] * 5, strict=True):
                number, its_face = int(agent_id), packing.face(face)
                shown.pop(number, None)
                shown[number] = packing.standing(number, int(revision), spent, its_face, packing.fields(flat), at)
            left = count - len(shown)
            if not onwards:
                break
            seen = int(onwards)
        return list(shown.values())

    async def events(self, after: int = 0, count: int = 1000) -> list[PoolEvent]:
        return [packing.event(entry) for entry in await self._run("events", after, count)] if count > 0 else []

    async def forget_events(self, upto: int) -> None:
        await self._run("events", upto, 0)

    async def clear(self, epoch: int) -> bool:
        while (forgotten := int(await self._run("clear", epoch))) == CLEAR_AT_ONCE:
            pass
        return forgotten >= 0

    async def remember(self, epoch: int, memories: Sequence[Memory]) -> bool:
        for begin in range(0, len(memories), REMEMBER_AT_ONCE):
            some = packing.memories_of(memories[begin : begin + REMEMBER_AT_ONCE])
            if not await self._run("remember", epoch, some):
                return False
        return True

    async def complete(self, epoch: int, above: Above) -> bool:
        server = " ".join(await self._server())
        return bool(await self._run("complete", epoch, packing.above_of(above), server))

    async def pulse(self) -> Pulse:
        now_us, epoch, server = await self._run("pulse")
        is_whole = server.decode().split() == list(await self._server())
        return Pulse(moment(now_us), int(epoch or 0), is_whole)

    async def renew(self, epoch: int, until: datetime) -> bool:
        return bool(await self._run("renew", epoch, us(until)))

    async def resign(self) -> None:
        await self._run("renew", b"", 0)

    async def room(self) -> Room:
        """Unavailable when it can't be reached."""
        info = await self._trips.ask("INFO", "server", "memory", "stats")
        return Room(str(info["redis_version"]), str(info["maxmemory_policy"]), info["maxmemory"], info["evicted_keys"])

    async def close(self) -> None:
        await self._client.aclose()

    async def _server(self) -> tuple[str, str]:
        """Which server this is since when, and how many keys it has thrown away."""
        info = await self._trips.ask("INFO", "server", "stats")
        return str(info["run_id"]), str(info["evicted_keys"])

    async def _lease(self, agent: bytes | int, count: int) -> Grant:
        ids = [self._chance.uuid7(self._seen) for _ in range(min(count, self._limits.concurrency))]
        now_us, why, until, given = await self._run("lease", agent, count, *ids)
        self._seen = leased_at = moment(now_us)
        deadline = leased_at + self._lease_span
        leases = []
        for number, lease_id in enumerate(ids[: len(given) // 3]):
            agent_id, packed, is_trial = given[number * 3 : number * 3 + 3]
            face = packing.face(packed)
            leases.append(
                Lease(lease_id, int(agent_id), face.user_agent, face.token, leased_at, deadline, is_trial == 1)
            )
        return Grant(tuple(leases), _WHY.get(why), moment_or_none(until))

    async def _tell(self, agent_id: int, verb: str, patience_us: int = 0) -> None:
        answer = (await self._run("tell", agent_id, verb, patience_us)).decode()
        if answer == "UNKNOWN":
            raise Unknown("identity", agent_id)
        if answer:
            raise WrongVerb("identity", str(agent_id), answer, verb)

    async def _members(self) -> list[int]:
        found: list[int] = []
        after = b"-inf"
        while True:
            page = ("LIMIT", 0, LIST_AT_ONCE)
            rows = await self._trips.ask("ZRANGEBYSCORE", self._changed, after, "+inf", "WITHSCORES", *page)
            found += (int(agent_id) for agent_id, _ in _scored(rows))
            if len(found) % LIST_AT_ONCE or not rows:
                return found
            after = b"(%d" % int(_scored(rows)[-1][1])

    async def _run(self, name: str, *arguments: bytes | str | int) -> Reply:
        sha, text = self._scripts[name]
        given = (*self._given(), *arguments)
        try:
            return await self._trips.ask("EVALSHA", sha, *given)
        except exceptions.NoScriptError:
            await self._end_what_another_server_began()
            await self._trips.ask("SCRIPT LOAD", text)
            return await self._trips.ask("EVALSHA", sha, *given)

    async def _end_what_another_server_began(self) -> None:
        """A server that knows no script was told to forget, or is a new one: restarted, or a replica that took over.
        What that one holds may be older than what was lent, so it leads no more. Nobody teaches it a script before
        having looked, and without scripts it lends nothing."""
        began = await self._trips.ask("HGET", self._leader, "server")
        if began is not None and began.decode().split()[0] != (await self._server())[0]:
            await self._trips.ask("EVAL", self._scripts["renew"][1], *self._given(), b"", 0)

    def _given(self) -> tuple[Word, ...]:
        now = b"" if self._now is None else us(self._now())
        return (*self._keys, now, self._packed_limits)


def _pieces(joining: Sequence[Identity], leaving: Sequence[int]) -> list[tuple[Sequence[Identity], Sequence[int]]]:
    """Who joins or stays, and who leaves, so many at a time; one piece at least."""
    count = max(1, -(-len(joining) // JOIN_AT_ONCE), -(-len(leaving) // LEAVE_AT_ONCE))
    return [
        (
            joining[number * JOIN_AT_ONCE : (number + 1) * JOIN_AT_ONCE],
            leaving[number * LEAVE_AT_ONCE : (number + 1) * LEAVE_AT_ONCE],
        )
        for number in range(count)
    ]


def _scored(rows: Sequence[Reply]) -> list[tuple[bytes, float]]:
    """Members and scores: flat as RESP 2 gives them, or in pairs as RESP 3 does."""
    if rows and isinstance(rows[0], list | tuple):
        return [(member, float(score)) for member, score in rows]
    return [(member, float(score)) for member, score in zip(rows[::2], rows[1::2], strict=True)]
