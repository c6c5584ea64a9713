"""The state machines, whole: every state with every verb, of every aggregate.

A table names the drawn moves. Whatever it doesn't name is refused, and leaves the aggregate as it was: that is tried
for all the rest, made from the states and the verbs and not chosen by hand. The verbs themselves are read off the
class, so that a new one fails here until it has its row.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from builders import NOON, a_notice, a_publication, a_schedule, a_seller, a_task, an_execution, an_id, at
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import ChangeKind, DocumentKind
from sellerwatch.domain.drift import Breach, Measure
from sellerwatch.domain.errors import Conflict, Refused, WrongVerb
from sellerwatch.domain.executions import Execution, ExecutionStatus
from sellerwatch.domain.identities import Identity, IdentityStatus, SealedToken, Verdict
from sellerwatch.domain.outbox import (
    EventType,
    OutboxStatus,
    ProductEvent,
    Publication,
    ScheduleNotice,
    TaskOutboxStatus,
)
from sellerwatch.domain.products import Product, ProductStatus, announce
from sellerwatch.domain.quarantines import Quarantine, QuarantineStatus
from sellerwatch.domain.raws import Raw, RawStatus
from sellerwatch.domain.schedules import Schedule, ScheduleStatus
from sellerwatch.domain.sellers import Seller, SellerStatus
from sellerwatch.domain.tasks import Blame, Task, TaskStatus

LATER = at(3600)
SAME = "the same, and nothing else either"
"""Idempotent: said twice, or said too late, it changes nothing at all."""

TOKEN = SealedToken(f"v1.k1.{'A' * 44}", "print", NOON, at(7200))


@dataclass(frozen=True)
class Machine:
    aggregate: type
    states: type[StrEnum]
    build: Callable[[Any], Any]
    verbs: Mapping[str, Callable[[Any], object]]
    moves: Mapping[tuple[str, str], str]
    queries: frozenset[str] = frozenset()
    """Public methods that only answer."""
    state: str = "status"


def moves(drawn: str) -> dict[tuple[str, str], str]:
    """`verb: FROM FROM > TO` by line."""
    found: dict[tuple[str, str], str] = {}
    for line in filter(None, (text.strip() for text in drawn.splitlines())):
        verb, _, rest = line.partition(":")
        sources, _, target = rest.partition(">")
        for source in sources.split():
            assert (source, verb) not in found, f"{source}, {verb} is drawn twice"
            found[source, verb] = SAME if target.strip() == "same" else target.strip()
    return found


# ── how each comes into its states ──


def a_raw(status: RawStatus) -> Raw:
    raw = Raw(an_id("raw"), 7, "nord", an_id("task"), an_id("run"), DocumentKind.DETAIL, b"{}", "0" * 32, NOON, NOON)
    raw.status = status
    return raw


def an_identity(status: IdentityStatus) -> Identity:
    identity = Identity(1, an_id("agent"), "Mozilla/5.0", token=TOKEN)
    if status is IdentityStatus.SUSPENDED:
        identity.suspend(NOON)
    if status is IdentityStatus.BLOCKED:
        identity.block()
    return identity


def a_breaker(state: BreakerState) -> Breaker:
    breaker = Breaker(BreakerScope.SITE, threshold=1, timeout=at(600) - NOON)
    if state is not BreakerState.CLOSED:
        breaker.trip(NOON, "many failures")
    if state is BreakerState.HALF_OPEN:
        breaker.begin_trial("trial", at(9999), at(600))
    return breaker


def a_product_event(status: OutboxStatus, version: int = 3) -> ProductEvent:
    product = Product.discover(7, "nord", NOON)
    change = Change(an_id(f"change/{version}"), product.product_id, 7, "nord", version, (ChangeKind.PRICE,), (), NOON)
    event = announce(product, change)
    event.status = status
    return event


def a_schedule_notice(status: OutboxStatus) -> ScheduleNotice:
    notice = a_notice()
    notice.status = status
    return notice


def with_status(thing: Any, status: StrEnum) -> Any:
    thing.status = status
    return thing


def a_product(status: ProductStatus) -> Product:
    product = Product.discover(7, "nord", NOON)
    product.absences = 1
    if status is ProductStatus.DELISTED:
        product.miss(NOON)
    return product


BREACH = Breach(Measure.MISSING, "DETAIL.brandName", 0.9, 0.01, 90, 100, "1000")


def a_quarantine(status: QuarantineStatus) -> Quarantine:
    return with_status(Quarantine.open(an_id("run"), "nord", BREACH, NOON), status)  # type: ignore[no-any-return]


SENDS: dict[str, Callable[[Any], object]] = {
    "completed": lambda row: row.completed(LATER),
    "failed": lambda row: row.failed("HTTP 500", 5, LATER),
    "wait": lambda row: row.wait(LATER),
    "again": lambda row: row.again(LATER),
    "repeat": lambda row: row.repeat(LATER),
    "hold": lambda row: row.hold(),
    "release": lambda row: row.release(LATER),
    "discard": lambda row: row.discard(LATER),
}
SENDING_MOVES = """
    completed: WAITING SENDING > COMPLETED
    failed: SENDING > WAITING
    wait: SENDING > WAITING
    again: FAILED > WAITING
    repeat: COMPLETED FAILED > WAITING
    hold: WAITING > HELD
    release: HELD > WAITING
    discard: HELD > COMPLETED
"""

MACHINES = [
    Machine(
        Seller,
        SellerStatus,
        lambda status: a_seller(status=status),
        {
            "activate": lambda seller: seller.activate(LATER),
            "deactivate": lambda seller: seller.deactivate(LATER),
            "rename": lambda seller: seller.rename("Other", LATER),
            "change_interval": lambda seller: seller.change_interval(3, LATER),
            "record_product_count": lambda seller: seller.record_product_count(8, LATER),
            "check_removable": lambda seller: seller.check_removable(),
        },
        moves(
            """
            activate: INACTIVE > ACTIVE
            activate: ACTIVE > same
            deactivate: ACTIVE > INACTIVE
            deactivate: INACTIVE > same
            rename: ACTIVE > ACTIVE
            rename: INACTIVE > INACTIVE
            change_interval: ACTIVE > ACTIVE
            change_interval: INACTIVE > INACTIVE
            record_product_count: ACTIVE > ACTIVE
            record_product_count: INACTIVE > INACTIVE
            check_removable: INACTIVE > same
            """
        ),
        frozenset({"register"}),
    ),
    Machine(
        Schedule,
        ScheduleStatus,
        lambda status: with_status(a_schedule(), status),
        {
            "activate": lambda schedule: schedule.activate(LATER),
            "deactivate": lambda schedule: schedule.deactivate(LATER),
            "change_interval": lambda schedule: schedule.change_interval(3, LATER),
            "advance": lambda schedule: schedule.advance(at(86_400)),
            "note_triggered": lambda schedule: schedule.note_triggered(LATER),
            "give_up": lambda schedule: schedule.give_up(LATER),
            "restore": lambda schedule: schedule.restore(LATER),
        },
        moves(
            """
            activate: ACTIVE FAILED > same
            activate: INACTIVE > ACTIVE
            deactivate: ACTIVE FAILED > INACTIVE
            deactivate: INACTIVE > same
            change_interval: ACTIVE > ACTIVE
            change_interval: INACTIVE > INACTIVE
            change_interval: FAILED > FAILED
            advance: ACTIVE > ACTIVE
            advance: FAILED > FAILED
            note_triggered: ACTIVE > ACTIVE
            note_triggered: INACTIVE > INACTIVE
            note_triggered: FAILED > FAILED
            give_up: ACTIVE > FAILED
            give_up: INACTIVE FAILED > same
            restore: FAILED > ACTIVE
            restore: ACTIVE INACTIVE > same
            """
        ),
        frozenset({"create", "is_due", "trigger_key"}),
    ),
    Machine(
        Execution,
        ExecutionStatus,
        lambda status: an_execution(status=status, total_tasks=0 if status is ExecutionStatus.STARTED else 3),
        {
            "plan": lambda execution: execution.plan(3, 1200, LATER),
            "put_off": lambda execution: execution.put_off("timeout", 3, LATER, LATER),
            "wait": lambda execution: execution.wait(LATER),
            "grow": lambda execution: execution.grow(2),
            "count": lambda execution: execution.count(1, 1),
            "saw_same": lambda execution: execution.saw_same(DocumentKind.DETAIL),
            "saw_full_page": lambda execution: execution.saw_full_page(500),
            "end_list": lambda execution: execution.end_list(is_complete=True),
            "ask_for_confirmation": lambda execution: execution.ask_for_confirmation(),
            "settle_list": lambda execution: execution.settle_list(),
            "complete_if_done": lambda execution: execution.complete_if_done(LATER),
            "fail": lambda execution: execution.fail("no answer", LATER),
            "cancel": lambda execution: execution.cancel(1, LATER),
        },
        moves(
            """
            plan: STARTED > IN_PROGRESS
            put_off: STARTED > STARTED
            wait: STARTED > STARTED
            grow: IN_PROGRESS > IN_PROGRESS
            saw_same: STARTED > STARTED
            saw_same: IN_PROGRESS > IN_PROGRESS
            saw_same: COMPLETED > COMPLETED
            saw_same: FAILED > FAILED
            saw_full_page: STARTED > STARTED
            saw_full_page: IN_PROGRESS > IN_PROGRESS
            saw_full_page: COMPLETED > COMPLETED
            saw_full_page: FAILED > FAILED
            count: STARTED > STARTED
            count: IN_PROGRESS > IN_PROGRESS
            count: COMPLETED > COMPLETED
            count: FAILED > FAILED
            end_list: STARTED > STARTED
            end_list: IN_PROGRESS > IN_PROGRESS
            complete_if_done: STARTED IN_PROGRESS COMPLETED FAILED > same
            fail: STARTED IN_PROGRESS > FAILED
            cancel: STARTED IN_PROGRESS > FAILED
            """
        ),
        frozenset({"start"}),
    ),
    Machine(
        Task,
        TaskStatus,
        lambda status: a_task(7, state=status),
        {
            "publish": lambda task: task.publish(LATER),
            "claim": lambda task: task.claim(an_id("second"), "worker-2", at(7200), LATER),
            "succeed": lambda task: task.succeed(LATER),
            "miss": lambda task: task.miss(Blame.TRANSIENT, "HTTP 500", 2, LATER),
            "abandon": lambda task: task.abandon(30, LATER),
            "cancel": lambda task: task.cancel("cancelled", LATER),
        },
        moves(
            """
            publish: WAITING RETRY > PUBLISHED
            publish: PUBLISHED RUNNING SUCCESS FAILED > same
            claim: WAITING PUBLISHED RETRY RUNNING > RUNNING
            succeed: RUNNING > SUCCESS
            miss: RUNNING > RETRY
            abandon: RUNNING PUBLISHED > RETRY
            cancel: WAITING PUBLISHED RUNNING RETRY > FAILED
            """
        ),
        frozenset({"has_live_claim", "is_held_by"}),
    ),
    Machine(
        Publication,
        TaskOutboxStatus,
        lambda status: a_publication(a_task(7), status=status),
        {
            "sent": lambda row: row.sent(LATER),
            "refused": lambda row: row.refused("throttled", 3, LATER),
            "again": lambda row: row.again(LATER),
        },
        moves(
            """
            sent: PROCESSING > SENT
            refused: PROCESSING > PENDING
            again: SENT FAILED PENDING PROCESSING > PENDING
            """
        ),
        frozenset({"of"}),
    ),
    Machine(
        ProductEvent,
        OutboxStatus,
        a_product_event,
        SENDS | {"supersede": lambda row: row.supersede(a_product_event(OutboxStatus.WAITING, version=2), LATER)},
        moves(SENDING_MOVES) | moves("supersede: WAITING > WAITING") | moves("supersede: SENDING > SENDING"),
        frozenset({"undoes", "foretold"}),
    ),
    Machine(
        ScheduleNotice,
        OutboxStatus,
        a_schedule_notice,
        SENDS,
        moves(SENDING_MOVES),
        frozenset({"of"}),
    ),
    Machine(
        Raw,
        RawStatus,
        a_raw,
        {
            "processed": lambda raw: raw.processed(an_id("product"), LATER),
            "failed": lambda raw: raw.failed("DETAIL: not what it should be", LATER),
            "hold": lambda raw: raw.hold(),
            "done_with": lambda raw: raw.done_with("discarded", LATER),
            "again": lambda raw: raw.again(LATER),
            "anew": lambda raw: raw.anew(LATER),
        },
        moves(
            """
            processed: PENDING > PROCESSED
            failed: PENDING > FAILED
            hold: PENDING > HELD
            done_with: PENDING HELD > PROCESSED
            again: FAILED PROCESSED HELD > PENDING
            anew: FAILED PROCESSED HELD > PENDING
            """
        ),
    ),
    Machine(
        Identity,
        IdentityStatus,
        an_identity,
        {
            "issue_token": lambda identity: identity.issue_token(TOKEN),
            "discard_token": lambda identity: identity.discard_token(),
            "refuse_token": lambda identity: identity.refuse_token(),
            "record_success": lambda identity: identity.record_success(),
            "record_failure": lambda identity: identity.record_failure(Verdict.RATE_LIMITED, LATER),
            "suspend": lambda identity: identity.suspend(LATER),
            "block": lambda identity: identity.block(),
            "unblock": lambda identity: identity.unblock(),
            "recover": lambda identity: identity.recover(),
        },
        {
            (status.value, verb): status.value
            for status in IdentityStatus
            for verb in ("issue_token", "discard_token", "refuse_token", "record_success")
        }
        | moves(
            """
            record_failure: AVAILABLE SUSPENDED > SUSPENDED
            record_failure: BLOCKED > BLOCKED
            suspend: AVAILABLE > SUSPENDED
            suspend: SUSPENDED > same
            block: AVAILABLE SUSPENDED BLOCKED > BLOCKED
            unblock: BLOCKED > AVAILABLE
            recover: SUSPENDED > AVAILABLE
            """
        ),
        frozenset({"recovers_at"}),
    ),
    Machine(
        Breaker,
        BreakerState,
        a_breaker,
        {
            "trip": lambda breaker: breaker.trip(LATER, "many failures"),
            "close": lambda breaker: breaker.close(LATER, "by hand"),
            "begin_trial": lambda breaker: breaker.begin_trial("other", at(9999), LATER),
            "forget_trial": lambda breaker: breaker.forget_trial("trial"),
            "success": lambda breaker: breaker.success("trial", LATER),
            "failure": lambda breaker: breaker.failure("trial", LATER, "HTTP 500"),
        },
        moves(
            """
            trip: CLOSED HALF_OPEN > OPEN
            trip: OPEN > same
            close: OPEN HALF_OPEN > CLOSED
            close: CLOSED > same
            begin_trial: OPEN > HALF_OPEN
            begin_trial: CLOSED HALF_OPEN > same
            forget_trial: HALF_OPEN > HALF_OPEN
            forget_trial: CLOSED OPEN > same
            success: HALF_OPEN > CLOSED
            success: CLOSED OPEN > same
            failure: CLOSED HALF_OPEN > OPEN
            failure: OPEN > same
            """
        ),
        frozenset({"retry_at", "admits"}),
        state="state",
    ),
    Machine(
        Product,
        ProductStatus,
        a_product,
        {
            "miss": lambda product: product.miss(LATER),
            "relist": lambda product: product.relist(LATER),
            "apply": lambda product: product.apply([], LATER),
        },
        moves(
            """
            miss: ACTIVE DELISTED > DELISTED
            relist: ACTIVE DELISTED > ACTIVE
            apply: ACTIVE > ACTIVE
            apply: DELISTED > DELISTED
            """
        ),
        frozenset({"discover", "data", "copy", "spell_seller"}),
    ),
    Machine(
        Quarantine,
        QuarantineStatus,
        a_quarantine,
        {
            "hold": lambda quarantine: quarantine.hold(3, 2),
            "release": lambda quarantine: quarantine.release(LATER),
            "discard": lambda quarantine: quarantine.discard(LATER),
            "supersede": lambda quarantine: quarantine.supersede(LATER),
            "reprocess": lambda quarantine: quarantine.reprocess(LATER),
            "reopen": lambda quarantine: quarantine.reopen(BREACH, LATER),
            "settle": lambda quarantine: quarantine.settle(LATER),
        },
        moves(
            """
            hold: OPEN > OPEN
            release: OPEN > RELEASED
            discard: OPEN > DISCARDED
            supersede: OPEN > SUPERSEDED
            reprocess: OPEN > REPROCESSED
            reopen: REPROCESSED > OPEN
            settle: RELEASED > RELEASED
            settle: DISCARDED > DISCARDED
            settle: SUPERSEDED > SUPERSEDED
            settle: REPROCESSED > REPROCESSED
            """
        ),
        frozenset({"open"}),
    ),
]
BY_NAME = {machine.aggregate.__name__: machine for machine in MACHINES}


def cells() -> Iterator[Any]:
    for machine in MACHINES:
        for state, verb in product(machine.states, machine.verbs):
            name = machine.aggregate.__name__
            yield pytest.param(name, state, verb, id=f"{name}-{state.value}-{verb}")


@pytest.mark.parametrize(("name", "state", "verb"), list(cells()))
def test_every_state_with_every_verb_is_as_drawn_or_refused(name: str, state: StrEnum, verb: str) -> None:
    machine = BY_NAME[name]
    thing = machine.build(state)
    assert getattr(thing, machine.state) is state
    before = deepcopy(thing)
    drawn = machine.moves.get((state.value, verb))
    if drawn is None:
        with pytest.raises((WrongVerb, Conflict)) as refused:
            machine.verbs[verb](thing)
        assert isinstance(refused.value, Refused)
        assert thing == before
        return
    machine.verbs[verb](thing)
    if drawn is SAME:
        assert thing == before
    else:
        assert getattr(thing, machine.state) == machine.states(drawn)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.aggregate.__name__)
def test_no_verb_and_no_state_is_missing_from_the_tables(machine: Machine) -> None:
    public = {name for name, _ in inspect.getmembers(machine.aggregate, callable) if not name.startswith("_")}
    assert set(machine.verbs) == public - machine.queries
    assert {state for state, _ in machine.moves} <= {state.value for state in machine.states}
    assert {verb for _, verb in machine.moves} <= set(machine.verbs)


REFUSING = [
    (machine.aggregate.__name__, state, verb)
    for machine in MACHINES
    for state, verb in product(machine.states, machine.verbs)
    if (state.value, verb) not in machine.moves and verb != "check_removable"
]


@pytest.mark.parametrize(("name", "state", "verb"), REFUSING)
def test_a_refusal_names_the_aggregate_its_state_and_the_verb(name: str, state: StrEnum, verb: str) -> None:
    machine = BY_NAME[name]
    with pytest.raises(WrongVerb) as refused:
        machine.verbs[verb](machine.build(state))
    error = refused.value
    assert verb in error.verb
    assert error.aggregate
    assert error.identity
    assert state.value in error.state
    assert state.value in str(error)


@pytest.mark.parametrize("status", [status for status in OutboxStatus if status is not OutboxStatus.WAITING])
def test_what_was_sent_failed_or_is_held_is_never_folded_into_a_newer_row(status: OutboxStatus) -> None:
    newer, older = a_product_event(OutboxStatus.WAITING), a_product_event(status, version=2)
    if status is OutboxStatus.SENDING:
        newer.supersede(older, LATER)
        assert older.status is OutboxStatus.COMPLETED
        return
    before = deepcopy((newer, older))
    with pytest.raises(WrongVerb):
        newer.supersede(older, LATER)
    assert (newer, older) == before
    assert newer.event_type is EventType.UPDATED
