"""Explaining: the first thing that holds somebody up, on the way from the schedule to the delivery.

    seller ─▶ schedule ─▶ execution ─▶ outbox ─▶ queue ─▶ lease ─▶ budget ─▶ breaker ─▶ task ─▶ absorb ─▶ delivery

Values in, a verdict out: who is to blame, since when, when that will clear, and what a person can do. What stands still
only because a later stage has no room is not blamed: the outbox holds its rows back while nothing can be leased.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState
from sellerwatch.domain.clues import EventClue, ExecutionClue, IdentityClue, OutboxClue, Surroundings, TaskClue, Trail
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.identities import HEALTH_MIN, IdentityStatus
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.tasks import CLOSED, TaskStatus
from sellerwatch.domain.verdicts import Culprit, Finding, Stage, Verdict, verdict_of

LATE = timedelta(seconds=60)
"""What is due for so long should have been done by somebody."""
SOON = timedelta(seconds=10)
TICKER, WORKER = "ticker", "worker"
_START_TICKER = "start one: `sellerwatch scheduler`, or `sellerwatch up`"
_START_WORKER = "start one: `sellerwatch worker`, or `sellerwatch up`"


def explain_seller(trail: Trail, around: Surroundings) -> Verdict:
    execution = trail.execution if trail.execution and trail.execution.is_open else None
    findings = [_seller(trail), _schedule(trail, execution, around)]
    if execution:
        findings += [_execution(execution, around)]
        if _wants_leases(execution):
            findings += [_outbox(trail.outbox, around), _queue(around), *_pool(around)]
        findings.append(_tasks(execution, around))
    if trail.execution:
        findings.append(_absorb(trail.execution, around))
    findings.append(_delivery(trail.events, around))
    if execution:
        findings.append(_is_being_crawled(execution))
    return verdict_of(findings)


def explain_task(task: TaskClue, trail: Trail, around: Surroundings) -> Verdict:
    if task.status in CLOSED:
        return verdict_of([_ended(task)])
    findings = [_seller(trail)]
    if task.status is TaskStatus.RUNNING:
        findings.append(_running(task, around))
    elif task.outbox and task.outbox.status is TaskOutboxStatus.PENDING and task.outbox.due_at > around.at:
        findings += [_queue(around), *_pool(around), _put_off(task, task.outbox)]
    else:
        findings += [_outbox(task.outbox, around), _queue(around), *_pool(around), _in_the_queue(task, around)]
    return verdict_of(findings)


def explain_identity(identity: IdentityClue | None, around: Surroundings) -> Verdict:
    """None: the pool does not know it, or does not answer."""
    pool = _pool(around)
    if identity is None:
        return verdict_of([*(each for each in pool if each.culprit is Culprit.POOL_AWAY), _UNKNOWN_TO_THE_POOL])
    return verdict_of([*_standing(identity, around.at), *(each for each in pool if each.stage is Stage.BREAKER)])


def _seller(trail: Trail) -> Finding:
    seller = trail.seller
    if seller.is_active:
        return Finding(Stage.SELLER, "it is ACTIVE")
    advice = f"`sellerwatch seller activate {seller.seller_id}`"
    text = "the seller is INACTIVE: it is not crawled"
    return Finding(Stage.SELLER, text, Culprit.SELLER_INACTIVE, seller.updated_at, None, advice, needs_a_person=True)


def _schedule(trail: Trail, execution: ExecutionClue | None, around: Surroundings) -> Finding:
    seller = trail.seller
    if seller.schedule is ScheduleStatus.FAILED:
        advice = "`sellerwatch outbox list --box scheduler`, then `sellerwatch outbox retry ID`"
        text = "its schedule could not be announced to what fires the triggers"
        return Finding(Stage.SCHEDULE, text, Culprit.SCHEDULE_FAILED, None, None, advice, needs_a_person=True)
    due_at = seller.next_run_at
    if due_at is None or due_at > around.at - LATE or execution:
        return Finding(Stage.SCHEDULE, f"its next turn is at {_told(due_at)}" if due_at else "it has no turn")
    text = "its turn has come, and nobody began a crawl"
    advice = _START_TICKER if TICKER not in around.roles else "`sellerwatch status`: what do the sweeps and loops say?"
    return Finding(Stage.SCHEDULE, text, Culprit.SCHEDULE_LATE, due_at, None, advice, TICKER not in around.roles)


def _execution(execution: ExecutionClue, around: Surroundings) -> Finding:
    if execution.status is not ExecutionStatus.STARTED:
        return Finding(Stage.EXECUTION, f"{execution.ended} of {execution.total} tasks have ended")
    if execution.error is None and TICKER not in around.roles:
        text = "it has begun, and no process asks how many products there are"
        culprit, since = Culprit.COUNT_MISSING, execution.started_at
        return Finding(Stage.EXECUTION, text, culprit, since, None, _START_TICKER, needs_a_person=True)
    if execution.error is None:
        return Finding(Stage.EXECUTION, "it has begun; how many products there are is being asked")
    text = f"how many products there are could not be had: {execution.error}"
    advice = "it is tried again by itself; `sellerwatch doctor --online` asks the marketplace now"
    clears_at = (
        execution.next_attempt_at if execution.next_attempt_at and execution.next_attempt_at > around.at else None
    )
    return Finding(Stage.EXECUTION, text, Culprit.COUNT_MISSING, execution.started_at, clears_at, advice)


def _wants_leases(execution: ExecutionClue) -> bool:
    waiting = {TaskStatus.WAITING, TaskStatus.PUBLISHED, TaskStatus.RETRY}
    return execution.status is ExecutionStatus.STARTED or any(execution.tasks.get(status, 0) for status in waiting)


def _outbox(row: OutboxClue | None, around: Surroundings) -> Finding:
    if row is None or row.status is TaskOutboxStatus.SENT:
        return Finding(Stage.OUTBOX, "nothing waits to be sent")
    if row.status is TaskOutboxStatus.FAILED:
        advice = "a sweep sends it again or gives the task up; `sellerwatch outbox list --box task`"
        text = f"the queue did not take it: {row.error}"
        return Finding(Stage.OUTBOX, text, Culprit.OUTBOX_BACKLOG, row.due_at, None, advice)
    if TICKER not in around.roles:
        text = "no process sends what waits to the queue"
        return Finding(Stage.OUTBOX, text, Culprit.OUTBOX_BACKLOG, row.due_at, None, _START_TICKER, needs_a_person=True)
    has_room = around.queue is not None and around.pool is not None and around.pool.free > 0
    if row.due_at > around.at - LATE or not has_room:
        return Finding(Stage.OUTBOX, "what waits is sent as soon as there is room")
    advice = "other shops may come first, list pages before items; `sellerwatch status` shows how much waits"
    text = f"it has waited to be sent although identities are free{f': {row.error}' if row.error else ''}"
    return Finding(Stage.OUTBOX, text, Culprit.OUTBOX_BACKLOG, row.due_at, None, advice)


def _queue(around: Surroundings) -> Finding:
    if around.queue is None:
        text = "the queue does not answer"
        return Finding(Stage.QUEUE, text, Culprit.QUEUE_AWAY, None, None, "`sellerwatch doctor` says what it says")
    return Finding(Stage.QUEUE, f"{around.queue.waiting} messages wait, {around.queue.out} are under way")


def _pool(around: Surroundings) -> list[Finding]:
    """Lease, budget and breaker: one of them, if nothing can be leased; else all three are clear."""
    pool = around.pool
    if pool is None or pool.why == "AWAY":
        text = "no engine of the pool leads, or it does not answer"
        return [
            Finding(Stage.LEASE, text, Culprit.POOL_AWAY, None, None, "`sellerwatch doctor`; it is decided by itself")
        ]
    lease = Finding(Stage.LEASE, f"{pool.free} identities are free")
    budget = Finding(Stage.BUDGET, f"{pool.remaining} requests are left in this hour")
    breaker = Finding(Stage.BREAKER, "the breakers of pool and site are closed")
    rests_briefly = pool.why == "SPENT" and pool.next_at is not None and pool.next_at - around.at <= SOON
    if pool.free or not pool.why or rests_briefly:
        return [lease, budget, breaker]
    for one in pool.breakers:
        if pool.why == "CIRCUIT_OPEN" and one.state is not BreakerState.CLOSED:
            return [lease, budget, _breaker(one)]
    if pool.why == "SPENT" and not pool.remaining:
        text = "every identity that is left has used its budget of the hour"
        advice = "nothing; or more identities: `sellerwatch agents add FILE`"
        return [lease, Finding(Stage.BUDGET, text, Culprit.BUDGET_SPENT, None, pool.next_at, advice)]
    if pool.why in _NO_IDENTITY:
        text = f"no identity can be leased: {_NO_IDENTITY[pool.why]} ({pool.available} of {pool.total} are available)"
        advice = "`sellerwatch agents status` shows why; `agents recover ID`, `agents add FILE`"
        is_for_good = pool.next_at is None
        return [Finding(Stage.LEASE, text, Culprit.NO_IDENTITY, None, pool.next_at, advice, needs_a_person=is_for_good)]
    return [lease, budget, breaker]


_NO_IDENTITY = {
    "SPENT": "those that have budget left rest, each behind its own breaker",
    "EMPTY": "the pool has none",
    "SUSPENDED": "all are suspended",
    "PAUSED": "the marketplace asked for patience",
    "CIRCUIT_OPEN": "a breaker is on trial",
}


def _breaker(breaker: Breaker) -> Finding:
    scope = breaker.scope.lower().replace("_", " ")
    text = f"the breaker of the {scope} is {breaker.state}: nothing is asked until a trial succeeds"
    advice = f"see {_ALERTS[breaker.scope]} in the runbook; it closes by itself"
    return Finding(Stage.BREAKER, text, Culprit.BREAKER_OPEN, breaker.opened_at, breaker.retry_at(), advice)


_ALERTS = {BreakerScope.POOL: "pool_breaker_open", BreakerScope.SITE: "site_breaker_open"}


def _tasks(execution: ExecutionClue, around: Surroundings) -> Finding:
    if execution.stuck_since:
        return _stuck(execution.stuck_since, around)
    if execution.tasks.get(TaskStatus.PUBLISHED, 0) and WORKER not in around.roles:
        return _nobody_works(None)
    running = execution.tasks.get(TaskStatus.RUNNING, 0)
    return Finding(Stage.TASK, f"{running} tasks are being worked on")


def _stuck(since: datetime, around: Surroundings) -> Finding:
    text = "a worker vanished over a task: its claim has run out"
    if TICKER in around.roles:
        advice = "a sweep starts it again within a minute; what ended the worker stands in its log"
        return Finding(Stage.TASK, text, Culprit.TASK_STUCK, since, around.at + LATE, advice)
    return Finding(Stage.TASK, text, Culprit.TASK_STUCK, since, None, _START_TICKER, needs_a_person=True)


def _nobody_works(since: datetime | None) -> Finding:
    text = "no worker shows life: messages wait in the queue"
    return Finding(Stage.QUEUE, text, Culprit.NO_WORKER, since, None, _START_WORKER, needs_a_person=True)


def _absorb(execution: ExecutionClue, around: Surroundings) -> Finding:
    due_at = execution.raws_due_at
    if due_at is None:
        return Finding(Stage.ABSORB, "all of its documents are absorbed")
    if due_at > around.at - LATE:
        return Finding(Stage.ABSORB, "its documents are being absorbed")
    advice = _START_TICKER if TICKER not in around.roles else "`sellerwatch status`; the log says why absorbing fails"
    text = "documents are there and nobody absorbs them"
    return Finding(Stage.ABSORB, text, Culprit.ABSORB_LATE, due_at, None, advice, TICKER not in around.roles)


def _delivery(events: Iterable[EventClue], around: Surroundings) -> Finding:
    by_status = {event.status: event for event in events}
    if held := by_status.get(OutboxStatus.HELD):
        reason = f": {held.error}" if held.error else ""
        text = f"events are HELD until a person has looked at them{reason}"
        advice = "`sellerwatch outbox held`, then `outbox release` or `outbox discard`"
        culprit = Culprit.EVENTS_HELD
        return Finding(Stage.DELIVERY, text, culprit, held.created_at, None, advice, needs_a_person=True)
    waiting = by_status.get(OutboxStatus.WAITING) or by_status.get(OutboxStatus.SENDING)
    if waiting and (away := _product_server(waiting, around)):
        return away
    if failed := by_status.get(OutboxStatus.FAILED):
        text = f"the product server refused events for good: {failed.error}"
        advice = "`sellerwatch outbox list --box product --status FAILED`; mended, `sellerwatch outbox retry ID`"
        culprit = Culprit.DELIVERY_FAILED
        return Finding(Stage.DELIVERY, text, culprit, failed.created_at, None, advice, needs_a_person=True)
    if waiting is None:
        return Finding(Stage.DELIVERY, "everything is delivered")
    if waiting.error and waiting.due_at > around.at:
        text = f"a delivery failed and is tried again: {waiting.error}"
        culprit = Culprit.DELIVERY_LATE
        return Finding(
            Stage.DELIVERY, text, culprit, waiting.created_at, waiting.due_at, "nothing; or mend the receiver"
        )
    if waiting.due_at <= around.at - LATE and TICKER not in around.roles:
        text = "events wait and no process delivers them"
        culprit = Culprit.DELIVERY_LATE
        return Finding(Stage.DELIVERY, text, culprit, waiting.due_at, None, _START_TICKER, needs_a_person=True)
    return Finding(Stage.DELIVERY, "events are on their way")


def _product_server(waiting: EventClue, around: Surroundings) -> Finding | None:
    if not around.has_product_server:
        text = "events wait, and no product server is set (by the settings of the process that says this)"
        advice = "set SELLERWATCH_PRODUCT_SERVER_URL and SELLERWATCH_PRODUCT_SERVER_SECRET"
        culprit = Culprit.PRODUCT_SERVER_AWAY
        return Finding(Stage.DELIVERY, text, culprit, waiting.created_at, None, advice, needs_a_person=True)
    breaker = around.product_server
    if breaker is None or breaker.state is BreakerState.CLOSED:
        return None
    text = f"the product server does not answer{f': {waiting.error}' if waiting.error else ''}"
    advice = "see product_server_away in the runbook; one trial a minute goes out, nothing is lost"
    since = breaker.opened_at
    return Finding(Stage.DELIVERY, text, Culprit.PRODUCT_SERVER_AWAY, since, breaker.retry_at() or around.at, advice)


def _is_being_crawled(execution: ExecutionClue) -> Finding:
    text = f"it is being crawled and moves: {execution.ended} of {execution.total} tasks have ended"
    if execution.status is ExecutionStatus.STARTED:
        text = "it is being crawled: how many products there are is being asked"
    advice = f"nothing; or end it: `sellerwatch crawl --cancel {execution.execution_id}`"
    return Finding(Stage.EXECUTION, text, Culprit.EXECUTION_OPEN, execution.started_at, None, advice)


def _ended(task: TaskClue) -> Finding:
    if task.status is TaskStatus.SUCCESS:
        return Finding(Stage.TASK, f"it succeeded at {_told(task.completed_at)}")
    text = f"it FAILED after {task.retries} retries: {task.error}"
    advice = "the next crawl asks again; `sellerwatch crawl SELLER` begins one now"
    return Finding(Stage.TASK, text, Culprit.TASK_FAILED, task.completed_at, None, advice)


def _running(task: TaskClue, around: Surroundings) -> Finding:
    if task.claimed_until and task.claimed_until <= around.at:
        return _stuck(task.claimed_until, around)
    return Finding(Stage.TASK, f"it is being worked on since {_told(task.started_at)}")


def _put_off(task: TaskClue, row: OutboxClue) -> Finding:
    text = f"it is to be tried again: {task.error or row.error or 'it waits for its turn'}"
    return Finding(
        Stage.OUTBOX, text, Culprit.TASK_WAITS, task.started_at, row.due_at, "nothing: it is tried by itself"
    )


def _in_the_queue(task: TaskClue, around: Surroundings) -> Finding:
    if task.status is TaskStatus.PUBLISHED and WORKER not in around.roles:
        return _nobody_works(task.published_at)
    if around.queue and around.queue.dead and task.status is TaskStatus.PUBLISHED:
        return Finding(Stage.QUEUE, f"it waits in the queue; {around.queue.dead} dead letters are published anew")
    return Finding(Stage.QUEUE, "it waits for its turn")


_UNKNOWN_TO_THE_POOL = Finding(
    Stage.IDENTITY,
    "the pool does not know it yet: it is loaded when a process starts",
    Culprit.POOL_AWAY,
    advice="`sellerwatch up`, or any worker",
    needs_a_person=True,
)


def _standing(identity: IdentityClue, at: datetime) -> list[Finding]:
    stage, agent_id = Stage.IDENTITY, identity.agent_id
    if identity.is_retired:
        advice = "`sellerwatch agents add FILE` takes its User-Agent in again"
        return [Finding(stage, "it is retired", Culprit.IDENTITY_RETIRED, None, None, advice, needs_a_person=True)]
    if identity.status is IdentityStatus.BLOCKED:
        advice = f"see identity_blocked in the runbook; `sellerwatch agents unblock {agent_id}`"
        text = "it is BLOCKED: the marketplace gave it no token, or a person said so"
        return [Finding(stage, text, Culprit.IDENTITY_BLOCKED, None, None, advice, needs_a_person=True)]
    if identity.status is IdentityStatus.SUSPENDED:
        is_stranded = identity.health < HEALTH_MIN and identity.recovers_at is None
        text = f"it is SUSPENDED at health {identity.health}" + (": only a person recovers it" if is_stranded else "")
        advice = f"`sellerwatch agents recover {agent_id}`" + ("" if is_stranded else ", or wait")
        culprit, since = Culprit.IDENTITY_SUSPENDED, identity.suspended_at
        return [Finding(stage, text, culprit, since, identity.recovers_at, advice, needs_a_person=is_stranded)]
    findings = [Finding(stage, f"it is AVAILABLE at health {identity.health}")]
    if identity.leased_until and identity.leased_until > at:
        text = "it is lent: a request is under way"
        return [*findings, Finding(Stage.LEASE, text, Culprit.IDENTITY_LENT, None, identity.leased_until, "nothing")]
    if identity.paused_until and identity.paused_until > at:
        text = "the marketplace asked it for patience"
        return [*findings, Finding(Stage.LEASE, text, Culprit.IDENTITY_PAUSED, None, identity.paused_until, "nothing")]
    if identity.breaker and identity.breaker.state is BreakerState.OPEN:
        text = f"its breaker is open after {identity.breaker.failure_count} failures in a row"
        since, until = identity.breaker.opened_at, identity.breaker.retry_at()
        return [
            *findings,
            Finding(Stage.BREAKER, text, Culprit.BREAKER_OPEN, since, until, "nothing: one trial follows"),
        ]
    if identity.remaining == 0:
        text = "its budget of the hour is spent"
        culprit = Culprit.BUDGET_SPENT
        return [*findings, Finding(Stage.BUDGET, text, culprit, None, identity.next_free_at, "nothing")]
    left = f"{identity.remaining} requests are left in its hour"
    token = "it has a token" if identity.has_token else "it has no token yet: it is given one with its next lease"
    return [*findings, Finding(Stage.LEASE, token), Finding(Stage.BUDGET, left)]


def _told(at: datetime | None) -> str:
    return f"{at:%F %H:%M:%S} UTC" if at else "a moment that is not known"
