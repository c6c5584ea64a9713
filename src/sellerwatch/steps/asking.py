"""Asking the marketplace for one thing: an identity's lease for every request, and a report for every lease.

The way of a request: a lease (waiting for the moment the pool names, if none is free), a token if the identity has
none (a request and a lease of its own), the request, the report. 429: another identity, a few times. 401 and 403: the
token is discarded and one more try made. Network errors: a few tries with backoff. A redirect within the host: one
more request. What is left after that is the task's outcome. A crash anywhere leaves a lease that the pool takes back.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.answers import judge
from sellerwatch.domain.errors import Invalid, Unreadable
from sellerwatch.domain.identities import TOO_MANY_REQUESTS, Verdict
from sellerwatch.domain.outbox import backoff
from sellerwatch.domain.tasks import Blame, TaskKind
from sellerwatch.ports.marketplace import Answer, Issued, Marketplace, NoAnswer
from sellerwatch.ports.meter import CANCELLED, GRANTED, TOKEN, UNMETERED, Meter
from sellerwatch.ports.pool import Lease, Pool, Report
from sellerwatch.ports.store import Usage
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.wire import NoAnswerWhy
from sellerwatch.steps.robots import Robots
from sellerwatch.steps.together import Together

NETWORK_TRIES = 3
REDIRECTS_MAX = 3
RENEWAL_TRIES = 5
"""So often the identity whose token was refused is asked for again: it rests, or the site has no room just then."""
_NETWORK_BACKOFF_SECONDS = 0.5
_SUMMARY_BYTES = 2048
_LAST_SECONDS = 2.0
"""Nothing is asked for in the last moments of an attempt: no answer could come."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long, and how often, one thing is asked for."""

    attempt_seconds: float = 120.0
    identity_switches: int = 3
    lease_age_seconds: float = 7.5
    """A lease older than this is not sent on: half of the window's guard, or a quarter of the lease if that is less."""
    network_seconds: float = 13.0
    """Within this a request that got no answer is made once more: as long as one may take, and no longer than the
    message stays out of sight with that."""
    rest_seconds: float = 1.0
    """Between two requests of one identity."""


@dataclass(slots=True)
class Asked:
    """What came of it: an answer to be read, or why there is none."""

    answer: Answer | None = None
    blame: Blame | None = None
    error: str | None = None
    is_gone: bool = False
    is_path_gone: bool = False
    refusal: str | None = None
    """What robots.txt forbids, for the alert."""
    asked_at: datetime | None = None
    """When the request that was answered went out: what it says was true no earlier."""
    agent_id: int = 0
    http_status: int | None = None
    duration_ms: int = 0
    usages: list[Usage] = field(default_factory=list)

    @property
    def summary(self) -> str | None:
        """The beginning of a body that could not be used."""
        return self.answer.body[:_SUMMARY_BYTES].decode("utf-8", "replace") if self.answer else None


class Asking:
    def __init__(
        self,
        pool: Pool,
        marketplace: Marketplace,
        addresses: Addresses,
        clock: Clock,
        chance: Chance,
        bell: Bell,
        patience: Patience,
        robots: Robots,
        group_seconds: float = 0.005,
        meter: Meter = UNMETERED,
    ) -> None:
        self.meter = meter
        self.pool, self._marketplace, self._addresses = pool, marketplace, addresses
        self.clock, self.chance, self.bell, self.patience = clock, chance, bell, patience
        self.robots = robots
        self.report = Together(pool.report, clock, group_seconds)
        self.fetch = marketplace.fetch
        self.is_stopping: Callable[[], bool] = lambda: False
        """Who waits for an identity stops waiting when this turns true, and who is cancelled then hands its task back:
        it is not the task's fault."""

    async def ask(self, kind: TaskKind, url: str, *, task_id: str | None = None, lease: Lease | None = None) -> Asked:
        """Ask until there is an outcome; `lease` is used first when it is given."""
        return await _Errand(self, kind, url, task_id, lease).run()

    async def issue(self, lease: Lease, task_id: str | None = None) -> tuple[Usage, bool]:
        """Have a token issued to the identity of this lease: the request for the log, and whether there is a token."""
        at = self.clock.now()
        issued = await self._marketplace.issue_token(lease)
        answer = issued.answer
        verdict, error = _verdict_on_issue(issued)
        status = answer.status if isinstance(answer, Answer) else None
        self.meter.request(TOKEN, answer.outcome, answer.duration_ms / 1000)
        # Only an answer that should have held a token counts against the identity; an outage blocks nobody.
        is_refused = issued.token is None and verdict in {Verdict.NEUTRAL, Verdict.REJECTED}
        await self.report(
            Report(
                lease.lease_id,
                lease.agent_id,
                verdict,
                http_status=status,
                retry_after=answer.retry_after if isinstance(answer, Answer) else None,
                token=issued.token,
                is_token_refused=is_refused,
                is_issue=True,
            )
        )
        is_success = issued.token is not None
        url = self._addresses.token()
        retry_after = answer.retry_after if isinstance(answer, Answer) else None
        usage = Usage(lease.agent_id, url, at, task_id, status, answer.duration_ms, is_success, error, retry_after)
        return usage, is_success

    async def may_issue(self) -> bool:
        """Whether robots.txt lets tokens be asked for; not while it is not known."""
        return not await self.robots.heed() and self.robots.refusal(self._addresses.token()) is None

    @property
    def token_refusal(self) -> str | None:
        return self.robots.refusal(self._addresses.token())

    async def give_back(self, leases: list[Lease]) -> None:
        """Unused: their budget is restored."""
        if leases:
            self.meter.lease(CANCELLED, len(leases))
            await self.pool.cancel([(lease.lease_id, lease.agent_id) for lease in leases])


def _verdict_on_issue(issued: Issued) -> tuple[Verdict, str | None]:
    if isinstance(issued.answer, NoAnswer):
        return Verdict.SITE_FAILURE, issued.answer.detail
    if issued.token is not None:
        return Verdict.SUCCESS, None
    if issued.answer.redirect_to:
        # The start page has moved for everybody: that blocks nobody.
        return Verdict.SITE_FAILURE, f"HTTP {issued.answer.status}: redirected, and no token in the answer"
    verdict = judge(issued.answer.status, is_list=True).verdict
    return (Verdict.NEUTRAL if verdict is Verdict.SUCCESS else verdict), "no token in the answer"


class _Errand:
    """One thing asked for, with all that was tried for it."""

    def __init__(self, asking: Asking, kind: TaskKind, url: str, task_id: str | None, lease: Lease | None) -> None:
        self._asking, self._kind, self._url, self._task_id = asking, kind, url, task_id
        self._lease = lease
        self._clock = asking.clock
        self._began = asking.clock.now()
        seconds = asking.patience.attempt_seconds
        self._over = self._began + timedelta(seconds=seconds)
        """When the attempt ends, whatever is under way."""
        self._until = self._over - timedelta(seconds=min(_LAST_SECONDS, seconds / 2))
        """Until when a request may begin."""
        self._asked = Asked()
        self._switches = self._network_tries = self._redirects = self._refusals = 0
        self._tries_until: datetime | None = None
        """Until when a network error is followed by another try."""
        self._renewing: Lease | None = None
        """The last lease of the identity that is to have a fresh token and one more try."""
        self._out: Lease | None = None
        """The last lease that a request may have gone out on."""

    async def run(self) -> Asked:
        try:
            return await self._run()
        except asyncio.CancelledError:
            if not self._asking.is_stopping():
                raise
            return await self._broken_off()

    async def _run(self) -> Asked:
        asked = self._asked
        while True:
            if not await self._is_allowed():
                return asked
            lease = await self._a_lease()
            if lease is None:
                asked.blame = Blame.NOT_ITS_OWN
                return asked
            self._out = lease
            asked.agent_id = lease.agent_id
            if lease.token is None:
                if refusal := self._asking.token_refusal:
                    await self._asking.give_back([lease])
                    self._refused(f"{refusal}, where tokens come from")
                    return asked
                usage, is_issued = await self._asking.issue(self._in_time(lease), self._task_id)
                asked.usages.append(usage)
                self._renewing = lease if is_issued and self._renewing else None
            elif await self._request(lease):
                return asked

    async def _is_allowed(self) -> bool:
        """Whether robots.txt lets this be asked for, waited for while it is not known."""
        robots = self._asking.robots
        if robots.is_to_be_asked_for:
            # On a lease of its own, and that may be this one's identity.
            await self._hand_back()
        while until := await robots.heed():
            await self._hand_back()
            if self._asking.is_stopping() or until >= self._until:
                self._asked.blame, self._asked.error = Blame.NOT_ITS_OWN, robots.problem
                return False
            await self._asking.bell.wait("pool", (until - self._clock.now()).total_seconds())
        if refusal := robots.refusal(self._url):
            self._refused(refusal)
            await self._hand_back()
            return False
        return True

    async def _hand_back(self) -> None:
        """The lease at hand, unused: nothing is asked just now."""
        if self._lease is not None:
            await self._asking.give_back([self._lease])
            self._lease = None

    def _refused(self, refusal: str) -> None:
        self._asked.blame, self._asked.error, self._asked.refusal = Blame.PERMANENT, refusal, refusal

    async def _broken_off(self) -> Asked:
        """There is no time left to wait for the answer: what was spent stays spent, and nobody is blamed."""
        if self._out is not None:
            # Nothing happens to one that was reported.
            await self._asking.report(Report(self._out.lease_id, self._out.agent_id, Verdict.NEUTRAL))
        self._asked.blame, self._asked.error = Blame.NOT_ITS_OWN, "stopping"
        return self._asked

    async def _a_lease(self) -> Lease | None:
        """The one at hand if it is fresh, else a new one, waiting for it until the attempt is over."""
        if self._lease is not None:
            lease, self._lease = self._lease, None
            if (self._clock.now() - lease.leased_at).total_seconds() <= self._asking.patience.lease_age_seconds:
                return lease
            await self._asking.give_back([lease])
        if self._renewing is not None and (again := await self._same_again(self._renewing)):
            return again
        meter, began = self._asking.meter, self._clock.monotonic()
        while True:
            if self._asking.is_stopping():
                self._asked.error = "stopping"
                return None
            if self._clock.now() >= self._until:
                self._asked.error = "the attempt's time is over"
                return None
            grant = await self._asking.pool.lease(1)
            if grant.leases:
                meter.lease(GRANTED)
                meter.lease_wait(self._clock.monotonic() - began)
                return grant.leases[0]
            if grant.why:
                meter.lease(grant.why)
            now = self._clock.now()
            next_at = grant.next_at or self._until
            if next_at >= self._until:
                self._asked.error = f"no identity free: {grant.why}"
                return None
            await self._asking.bell.wait("pool", max((next_at - now).total_seconds(), 0.001))

    async def _same_again(self, last: Lease) -> Lease | None:
        """The identity of that lease once more, after its rest; None: somebody else has it, or it may not go out."""
        rest = timedelta(seconds=self._asking.patience.rest_seconds)
        for _ in range(RENEWAL_TRIES):
            free_at = self._clock.now() + rest
            if self._asking.is_stopping() or free_at >= self._until:
                break
            await self._clock.sleep(max(0.0, (free_at - self._clock.now()).total_seconds()))
            if lease := await self._asking.pool.lease_of(last.agent_id):
                self._asking.meter.lease(GRANTED)
                return lease
        self._renewing = None
        return None

    def _in_time(self, lease: Lease) -> Lease:
        """The request ends with the attempt, if that is before its lease does."""
        return replace(lease, deadline=min(lease.deadline, self._over))

    async def _request(self, lease: Lease) -> bool:
        """Make the request; whether that ends the errand."""
        at = self._clock.now()
        self._renewing = None
        try:
            answer = await self._asking.fetch(self._url, self._in_time(lease))
        except Invalid as error:
            await self._asking.give_back([lease])
            self._asked.blame, self._asked.error = Blame.PERMANENT, str(error)
            return True
        except Unreadable:
            # Sealed under a key that is gone, or for another row: it is of no use to anyone.
            await self._asking.give_back([lease])
            await self._asking.pool.discard_token(lease.agent_id)
            return False
        self._asked.duration_ms = answer.duration_ms
        self._asking.meter.request(self._kind, answer.outcome, answer.duration_ms / 1000)
        if isinstance(answer, NoAnswer):
            return await self._no_answer(lease, answer, at)
        self._asked.http_status = answer.status
        if answer.redirect_to:
            return await self._redirected(lease, answer, at)
        return await self._answered(lease, answer, at)

    async def _answered(self, lease: Lease, answer: Answer, at: datetime) -> bool:
        judged = judge(answer.status, is_list=self._kind.is_list)
        verdict = judged.verdict
        # A token from before may simply have ended; refused although it is fresh, it is the identity that is refused.
        is_stale = judged.is_token_refused and lease.token is not None and lease.token.issued_at < self._began
        if is_stale:
            verdict = Verdict.NEUTRAL
        error = None if judged.blame is None else f"HTTP {answer.status}"
        self._note(lease, self._url, at, answer.status, answer.duration_ms, error, answer.retry_after)
        about, is_refused = (lease.lease_id, lease.agent_id), judged.is_token_refused
        await self._asking.report(
            Report(*about, verdict, answer.status, answer.retry_after, is_token_refused=is_refused)
        )
        if is_stale and self._refusals <= self._asking.patience.identity_switches:
            self._refusals += 1
            self._renewing = lease
            return False
        if answer.status == TOO_MANY_REQUESTS and self._switches < self._asking.patience.identity_switches:
            self._switches += 1
            return False
        asked = self._asked
        asked.answer, asked.asked_at, asked.blame, asked.error = answer, at, judged.blame, error
        asked.is_gone, asked.is_path_gone = judged.is_gone, judged.is_path_gone
        return True

    async def _no_answer(self, lease: Lease, failure: NoAnswer, at: datetime) -> bool:
        error = f"{failure.why}: {failure.detail}"
        self._note(lease, self._url, at, None, failure.duration_ms, error)
        if failure.why is NoAnswerWhy.TIMEOUT and self._clock.now() >= self._until:
            # We broke it off: that says nothing of the site.
            await self._asking.report(Report(lease.lease_id, lease.agent_id, Verdict.NEUTRAL))
            self._asked.blame, self._asked.error = Blame.NOT_ITS_OWN, "the attempt's time is over"
            return True
        is_network = failure.why in {NoAnswerWhy.TIMEOUT, NoAnswerWhy.CONNECTION}
        verdict = Verdict.SITE_FAILURE if is_network else Verdict.NEUTRAL
        await self._asking.report(Report(lease.lease_id, lease.agent_id, verdict))
        self._network_tries += 1
        if self._tries_until is None:
            self._tries_until = min(self._until, at + timedelta(seconds=self._asking.patience.network_seconds))
        if is_network and self._network_tries < NETWORK_TRIES:
            pause = backoff(self._network_tries, _NETWORK_BACKOFF_SECONDS, 10, self._asking.chance.random())
            if self._clock.now() + pause < self._tries_until:
                await self._clock.sleep(pause.total_seconds())
                return False
        self._asked.blame, self._asked.error = Blame.TRANSIENT, error
        return True

    async def _redirected(self, lease: Lease, answer: Answer, at: datetime) -> bool:
        self._note(lease, self._url, at, answer.status, answer.duration_ms, None, answer.retry_after)
        await self._asking.report(
            Report(lease.lease_id, lease.agent_id, Verdict.NEUTRAL, answer.status, answer.retry_after)
        )
        self._redirects += 1
        if self._redirects > REDIRECTS_MAX or answer.redirect_to is None:
            self._asked.blame, self._asked.error = Blame.TRANSIENT, f"more than {REDIRECTS_MAX} redirects"
            return True
        self._url = answer.redirect_to
        return False

    def _note(
        self,
        lease: Lease,
        url: str,
        at: datetime,
        status: int | None,
        duration_ms: int,
        error: str | None,
        retry_after: timedelta | None = None,
    ) -> None:
        is_success = status is not None and status < 400 and error is None
        self._asked.usages.append(
            Usage(lease.agent_id, url, at, self._task_id, status, duration_ms, is_success, error, retry_after)
        )
