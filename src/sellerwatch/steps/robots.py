"""robots.txt at hand: looked up before anything is asked, asked for when it is due, and what follows from it.

One process at a time asks for it, on a lease of its own and as a visitor without a token; every other reads what that
one kept. Nothing is asked while it is not known what may be (`heed`): that costs no task a retry. A crash while asking
leaves a claim, which runs out.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from math import inf

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.identities import TOO_MANY_REQUESTS, Verdict
from sellerwatch.domain.robots import RobotsFile, told_by
from sellerwatch.ports.marketplace import Answer, Marketplace, NoAnswer
from sellerwatch.ports.meter import GRANTED, ROBOTS, UNMETERED, Meter
from sellerwatch.ports.pool import Lease, Pool, Report, WhyNot
from sellerwatch.ports.robots import RobotsReader, Rules
from sellerwatch.ports.store import Store, Unit, Usage
from sellerwatch.ports.time import Bell, Chance, Clock

UNREACHABLE, DISALLOWED, SLOW = "robots_unreachable", "robots_disallowed", "robots_slow"
LOOK_SECONDS, CLAIM_SECONDS, SOON_SECONDS = 60.0, 60.0, 0.5
HOPS_MAX = 5


@dataclass(frozen=True, slots=True)
class _Came:
    """What asking for it brought: a text, or why there is none, or until when nobody is free to ask."""

    text: str | None = None
    problem: str = ""
    put_off_until: datetime | None = None


@dataclass(slots=True)
class Robots:
    store: Store
    pool: Pool
    marketplace: Marketplace
    reader: RobotsReader
    addresses: Addresses
    clock: Clock
    chance: Chance
    bell: Bell
    owner: str
    site_requests_per_second: float
    is_obeyed: bool = True
    """False by the operator's word: it is neither asked for nor looked at."""
    meter: Meter = UNMETERED
    _file: RobotsFile | None = None
    _rules: Rules | None = None
    _again: float = 0.0
    """When it is to be looked up again, by the clock of durations."""
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_at_hand(self) -> bool:
        """Whether `heed` has nothing to look up."""
        if self.clock.monotonic() >= self._again:
            return False
        return not self.is_obeyed or bool(self._file and self._file.holds(self.clock.now()))

    @property
    def is_to_be_asked_for(self) -> bool:
        """Whether `heed` will take a lease, as far as was seen."""
        return self.is_obeyed and (self._file is None or self._file.is_due(self.clock.now()))

    @property
    def is_missed(self) -> bool:
        """Nothing may be asked, as far as was seen: it could not be had."""
        return bool(self._file and self._file.failures and not self._file.holds(self.clock.now()))

    async def heed(self) -> datetime | None:
        """None: what it says is at hand. Else nothing may be asked, and looking again may help from that moment on."""
        if self.is_at_hand:
            return None
        async with self._one_at_a_time:
            if self.clock.monotonic() >= self._again:
                await self._look()
        now = self.clock.now()
        if self._file is None or self._file.holds(now):
            return None
        return max(self._file.next_at, now + timedelta(seconds=SOON_SECONDS))

    def refusal(self, url: str) -> str | None:
        """Why this address is not to be asked for; None: it may be."""
        if self._rules is None or self._rules.allows(url):
            return None
        return f"robots.txt disallows {url.removeprefix(self.addresses.origin)}"

    @property
    def problem(self) -> str:
        reason = self._file.problem if self._file else None
        return f"robots.txt can't be had: {reason}" if reason else "robots.txt is not known yet"

    async def _look(self) -> None:
        now = self.clock.now()
        if not self.is_obeyed:
            await self.store.transact(partial(_clear_alerts, at=now))
            self._again = inf
            return
        kept = await self.store.read(lambda unit: unit.robots.get(self.addresses.origin))
        file = kept if kept and not kept.is_due(now) else await self._claim_and_ask(now)
        self._adopt(file)
        seconds = (file.next_at - self.clock.now()).total_seconds()
        self._again = self.clock.monotonic() + min(max(seconds, SOON_SECONDS), LOOK_SECONDS)

    async def _claim_and_ask(self, now: datetime) -> RobotsFile:
        until = now + timedelta(seconds=CLAIM_SECONDS)
        file, is_mine = await self.store.transact(lambda unit: self._claim(unit, until, now))
        return await self._ask() if is_mine else file

    def _claim(self, unit: Unit, until: datetime, at: datetime) -> tuple[RobotsFile, bool]:
        origin = self.addresses.origin
        file = unit.robots.lock(origin) or RobotsFile(origin, at)
        is_mine = file.claim(self.owner, until, at)
        if is_mine:
            unit.robots.save(file)
        return file, is_mine

    async def _ask(self) -> RobotsFile:
        usages: list[Usage] = []
        came = await self._come(usages)
        at, chance = self.clock.now(), self.chance.random()
        return await self.store.transact(partial(self._keep, came=came, usages=usages, at=at, chance=chance))

    async def _come(self, usages: list[Usage]) -> _Came:
        url = self.addresses.robots()
        for _ in range(HOPS_MAX + 1):
            grant = await self.pool.lease(1)
            self.meter.lease(GRANTED if grant.leases else grant.why or WhyNot.BUSY)
            if not grant.leases:
                soon = self.clock.now() + timedelta(seconds=SOON_SECONDS)
                return _Came(put_off_until=max(grant.next_at or soon + timedelta(seconds=LOOK_SECONDS), soon))
            answer = await self._request(url, grant.leases[0], usages)
            if isinstance(answer, NoAnswer):
                return _Came(problem=f"{answer.why}: {answer.detail}")
            if answer.redirect_to is None:
                return _Came(told_by(answer.status, answer.body), f"HTTP {answer.status}")
            url = answer.redirect_to
        return _Came(problem=f"more than {HOPS_MAX} redirects")

    async def _request(self, url: str, lease: Lease, usages: list[Usage]) -> Answer | NoAnswer:
        at = self.clock.now()
        answer = await self.marketplace.robots(url, lease)
        self.meter.request(ROBOTS, answer.outcome, answer.duration_ms / 1000)
        if isinstance(answer, NoAnswer):
            await self.pool.report([Report(lease.lease_id, lease.agent_id, Verdict.SITE_FAILURE)])
            error = f"{answer.why}: {answer.detail}"
            usages.append(Usage(lease.agent_id, url, at, None, None, answer.duration_ms, error_message=error))
            return answer
        verdict, status, patience = _verdict(answer.status), answer.status, answer.retry_after
        await self.pool.report([Report(lease.lease_id, lease.agent_id, verdict, status, patience)])
        is_success = status < 400
        error_of = None if is_success else f"HTTP {status}"
        usages.append(Usage(lease.agent_id, url, at, None, status, answer.duration_ms, is_success, error_of, patience))
        return answer

    def _keep(self, unit: Unit, came: _Came, usages: list[Usage], at: datetime, chance: float) -> RobotsFile:
        """What came, and who should know of it. A claim that has passed to another changes nothing."""
        unit.chores.log_usage(usages)
        file = unit.robots.lock(self.addresses.origin)
        if file is None or file.claimed_by != self.owner:
            return file or RobotsFile(self.addresses.origin, at)
        known = file.text
        if came.put_off_until is not None:
            file.put_off(came.put_off_until)
        elif came.text is None:
            file.miss(came.problem, at, chance)
        else:
            file.tell(came.text, at, chance)
        unit.robots.save(file)
        if file.failures and not file.holds(at):
            text = f"robots.txt can't be had ({file.problem}): nothing is asked of the marketplace until it can"
            unit.chores.raise_alert(UNREACHABLE, "critical", text, {"url": self.addresses.robots()}, at)
        elif not file.failures and file.text is not None:
            unit.chores.clear_alert(UNREACHABLE, at)
            if file.text != known:
                # What it forbids now is told when it is met.
                unit.chores.clear_alert(DISALLOWED, at)
            self._tell_slowness(unit, file.text, at)
        return file

    def _tell_slowness(self, unit: Unit, text: str, at: datetime) -> None:
        seconds = self.reader.rules(text).seconds_between
        if seconds * self.site_requests_per_second > 1:
            said = f"robots.txt asks for {seconds:g} s between two requests: crawling is slowed to that"
            unit.chores.raise_alert(SLOW, "warning", said, {"seconds": seconds}, at)
        else:
            unit.chores.clear_alert(SLOW, at)

    def _adopt(self, file: RobotsFile) -> None:
        is_new = self._file is None or file.text != self._file.text or self._rules is None
        was_missed = self.is_missed
        self._file = file
        if is_new and file.text is not None:
            self._rules = self.reader.rules(file.text)
            self.pool.space_out(self._rules.seconds_between)
        if was_missed and not self.is_missed:
            for name in ("crawl", "pool", "plan"):
                self.bell.ring(name)


def raise_disallowed(unit: Unit, refusal: str, at: datetime) -> None:
    """Somebody should know that what was to be asked for is not to be."""
    text = f"{refusal}: the tasks that need it fail"
    unit.chores.raise_alert(DISALLOWED, "critical", text, {}, at)


def _clear_alerts(unit: Unit, at: datetime) -> None:
    for name in (UNREACHABLE, DISALLOWED, SLOW):
        unit.chores.clear_alert(name, at)


def _verdict(status: int) -> Verdict:
    """A robots.txt that is missing or forbidden says nothing of who asked."""
    if status == TOO_MANY_REQUESTS:
        return Verdict.RATE_LIMITED
    if status >= 500:
        return Verdict.SITE_FAILURE
    return Verdict.SUCCESS if status < 400 else Verdict.NEUTRAL
