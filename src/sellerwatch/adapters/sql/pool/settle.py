"""Settling: what became of the leases, and what follows for their identities, the breakers and the site.

A batch of reports is judged as a whole: first what it says about the site, then, knowing that, what each report says
about its identity. So an outage that shows in one batch is charged to nobody in it.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from sellerwatch.adapters.sql.pool.identities import KEPT, SAVE_TOKEN, Member, token_columns
from sellerwatch.adapters.sql.pool.lend import end, forget_trials
from sellerwatch.adapters.sql.pool.moments import SECOND, span
from sellerwatch.adapters.sql.pool.site import count_requests, trouble
from sellerwatch.adapters.sql.pool.turn import Turn
from sellerwatch.adapters.sql.pool.window import Ceiling, pace, take_out
from sellerwatch.adapters.sql.prepared import Row
from sellerwatch.domain.breakers import Breaker, BreakerState
from sellerwatch.domain.identities import Identity, IdentityStatus, Verdict
from sellerwatch.ports.pool import PoolEventKind, Report

RETRY_AFTER_MAX = timedelta(hours=24)
_FAILURES = frozenset({Verdict.SITE_FAILURE, Verdict.RATE_LIMITED, Verdict.REJECTED})
_NOT_AN_ANSWER = frozenset({Verdict.SITE_FAILURE, Verdict.RATE_LIMITED})


def report(turn: Turn, reports: Sequence[Report]) -> list[bool]:
    members = turn.members(each.agent_id for each in reports)
    accepted: list[bool] = []
    out: set[str] = set()
    for each in reports:
        member = members.get(each.agent_id)
        is_out = member is not None and is_held(turn, member, each.lease_id) and each.lease_id not in out
        accepted.append(is_out)
        if is_out:
            out.add(each.lease_id)
    ours = [(each, members[each.agent_id]) for each, is_ours in zip(reports, accepted, strict=True) if is_ours]
    if ours:
        _judge_site(turn, ours)
        tokens: list[Row] = []
        for each, member in ours:
            _judge(turn, each, member, tokens)
            # It had arrived by now: the next one arrives an interval later, however long this one was on its way.
            member.next_free_us = max(member.next_free_us, turn.now_us + span(turn.limits.min_interval_seconds))
            end(turn, member, is_used=True)
        SAVE_TOKEN.many(turn.connection, tokens)
        turn.count()
        _judge_pool(turn, [each for each, _ in ours])
        for each, _ in ours:
            forget_trials(turn, each.lease_id)
    return accepted


def cancel(turn: Turn, leases: Iterable[tuple[str, int]]) -> int:
    wanted = list(leases)
    members = turn.members(agent_id for _, agent_id in wanted)
    entries: list[tuple[int, int]] = []
    moments: list[int] = []
    for lease_id, agent_id in wanted:
        member = members.get(agent_id)
        if member is None or not is_held(turn, member, lease_id):
            continue
        assert member.leased_us is not None
        moments.append(member.leased_us)
        member.uses -= 1
        entries.append((agent_id, member.uses))
        member.next_free_us = member.before_us
        if turn.limits.is_paced_evenly:
            member.even_us = max(0, member.even_us - pace(turn.limits))
        forget_trials(turn, lease_id)
        end(turn, member, is_used=False)
    if entries:
        take_out(turn.connection, entries)
        turn.site.uses = Ceiling.of(turn.limits).take_out(turn.connection, turn.site.uses, moments)
    return len(entries)


def is_held(turn: Turn, member: Member, lease_id: str) -> bool:
    """Whether this lease is out; at its deadline it is over, whether or not it was taken back yet."""
    return member.lease_id == lease_id and member.due_us > turn.now_us


def _judge_site(turn: Turn, ours: list[tuple[Report, Member]]) -> None:
    site = turn.site
    counted = [each.verdict for each, member in ours if not site.spares(member.leased_us or 0)]
    failures, limited = counted.count(Verdict.SITE_FAILURE), counted.count(Verdict.RATE_LIMITED)
    if counted:
        count_requests(turn.connection, turn.now_us, len(counted), failures, limited)
    if failures or limited:
        found = trouble(turn.connection, turn.now_us, turn.limits)
        if found is not None:
            site.site.failure_count, reason = found
            turn.tell_of(site.site.trip(turn.now, reason))
            return
    for each, _ in ours:
        # A refusal is an answer: the site works, and whether the identity does is the pool's affair.
        if each.verdict is not Verdict.REJECTED:
            _try_breaker(turn, site.site, each, may_close=True)


def _judge_pool(turn: Turn, reports: list[Report]) -> None:
    site = turn.site
    is_enough = site.is_above_minimum(turn.limits)
    for each in reports:
        if site.pool.trial_id == each.lease_id:
            site.is_proven = each.verdict is Verdict.SUCCESS
        _try_breaker(turn, site.pool, each, may_close=is_enough)
    turn.look_at_rate()


def _try_breaker(turn: Turn, breaker: Breaker, each: Report, *, may_close: bool) -> None:
    """The trial decides. An answer that says nothing leaves it half open, and the next request is the trial."""
    if breaker.state is BreakerState.CLOSED or breaker.trial_id != each.lease_id:
        return
    if each.verdict is Verdict.SUCCESS:
        turn.tell_of(breaker.success(each.lease_id, turn.now, may_close=may_close))
    elif each.verdict in _FAILURES:
        turn.tell_of(breaker.failure(each.lease_id, turn.now, f"the trial: {each.verdict.value}"))


def _judge(turn: Turn, each: Report, member: Member, tokens: list[Row]) -> None:
    is_spared = turn.site.spares(member.leased_us or 0)
    identity = member.identity()
    was = identity.status
    _keep_token(identity, each, is_spared=is_spared)
    _charge(turn, identity, each, member, is_spared=is_spared)
    if identity.token is not KEPT and (identity.token is not None or member.has_token):
        tokens.append((member.agent_id, *token_columns(identity.token)))
    member.take(identity)
    _pause(turn, member, each.retry_after)
    if identity.status is not was:
        _tell_status(turn, identity, each)


def _keep_token(identity: Identity, each: Report, *, is_spared: bool) -> None:
    if each.token is not None:
        identity.issue_token(each.token)
    elif each.is_token_refused and not each.is_issue:
        identity.discard_token()
    elif each.is_token_refused and not is_spared and each.verdict not in _NOT_AN_ANSWER:
        identity.refuse_token()


def _charge(turn: Turn, identity: Identity, each: Report, member: Member, *, is_spared: bool) -> None:
    """Blame follows cause."""
    if each.verdict is Verdict.SUCCESS:
        identity.record_success()
        if member.breaker_state == "CLOSED" and not member.failures_in_row:
            # It learns nothing from one more success.
            return
    breaker = member.breaker(turn.limits)
    if each.verdict is Verdict.SUCCESS:
        turn.tell_of(breaker.success(each.lease_id, turn.now))
    elif each.verdict is Verdict.NEUTRAL:
        return
    elif each.is_issue and (is_spared or each.verdict in _NOT_AN_ANSWER):
        # Asked for a token: charged to nobody, but who was told to wait does.
        identity.failure_count += 1
        if each.verdict is Verdict.RATE_LIMITED and identity.status is IdentityStatus.AVAILABLE:
            identity.suspend(turn.now)
            identity.discard_token()
    else:
        identity.record_failure(each.verdict, turn.now, is_site_failing=is_spared)
        if not (is_spared and each.verdict is Verdict.SITE_FAILURE):
            turn.tell_of(
                breaker.failure(each.lease_id, turn.now, f"{each.verdict.value}, {member.failures_in_row + 1} in a row")
            )
    member.take_breaker(breaker)


def _pause(turn: Turn, member: Member, retry_after: timedelta | None) -> None:
    if retry_after is None or retry_after <= timedelta():
        return
    until_us = turn.now_us + int(min(retry_after, RETRY_AFTER_MAX).total_seconds() * SECOND)
    member.paused_until_us = max(member.paused_until_us, until_us)
    turn.site.pause(member.agent_id, turn.now_us, until_us)


def _tell_status(turn: Turn, identity: Identity, each: Report) -> None:
    if identity.status is IdentityStatus.BLOCKED:
        turn.tell(PoolEventKind.BLOCKED, "the marketplace gave no token, three times in a row", identity.agent_id)
    elif each.verdict is Verdict.RATE_LIMITED:
        turn.tell(PoolEventKind.SUSPENDED, "answered 429", identity.agent_id)
    else:
        turn.tell(PoolEventKind.SUSPENDED, f"health fell to {identity.health_score}", identity.agent_id)
