"""What a new leader is told of the last hour when the old ledger is lost: what can't be known counts as spent."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from builders import an_id
from sellerwatch.domain.identities import Identity, IdentityStatus
from sellerwatch.domain.recollection import Bucket, Budget, Lost, Plea, recollect, site_pause

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
BUDGET = Budget(80, timedelta(seconds=1), timedelta(seconds=3630), timedelta(seconds=30))


def ago(seconds: float) -> datetime:
    return NOON - timedelta(seconds=seconds)


def remembered(logged=(), bucket=None, pleas=(), lost=None, budget=BUDGET):
    identity = Identity(1, an_id(1), "Browser/1.0")
    return recollect(identity, logged, bucket, pleas, None, lost, budget, NOON)


def test_what_is_in_the_log_counts_while_it_is_in_the_window() -> None:
    memory = remembered([ago(10), ago(3629), ago(3630), ago(9000)])
    assert memory.leased_at == (ago(3629), ago(10))


def test_what_the_books_knew_to_be_spent_and_the_log_does_not_show_counts_as_spent_when_the_books_were_kept() -> None:
    memory = remembered([ago(100), ago(50)], Bucket(spent=5, at=ago(20)))
    assert memory.leased_at == (ago(100), ago(50), ago(20), ago(20), ago(20))


def test_the_log_of_after_the_books_is_no_part_of_what_they_knew() -> None:
    memory = remembered([ago(100), ago(5)], Bucket(spent=1, at=ago(20)))
    assert memory.leased_at == (ago(100), ago(5))


def test_what_may_have_left_the_window_while_the_books_were_read_takes_nothing_from_what_they_knew() -> None:
    assert remembered([ago(20 + 3627)], Bucket(spent=1, at=ago(20))).leased_at == (ago(20),)
    assert remembered([ago(20 + 3600)], Bucket(spent=1, at=ago(20))).leased_at == (ago(3620),)


def test_between_the_last_books_and_the_end_of_the_lead_each_interval_may_have_been_a_request() -> None:
    memory = remembered([ago(42)], lost=Lost(since=ago(45), until=ago(40)))
    # Six moments with a second between them lie within five seconds; one of them is in the log.
    assert memory.leased_at == (ago(42), *[ago(40)] * 5)


def test_without_books_or_without_an_interval_everything_counts_as_spent() -> None:
    assert remembered(lost=Lost(None, ago(40))).leased_at == (ago(40),) * 80
    at_once = Budget(80, timedelta(), BUDGET.reach, BUDGET.lease)
    assert remembered(lost=Lost(ago(45), ago(40)), budget=at_once).leased_at == (ago(40),) * 80


def test_books_that_were_kept_to_the_end_leave_nothing_unknown() -> None:
    assert remembered(lost=Lost(ago(40), ago(40))).leased_at == ()
    assert remembered(lost=None).leased_at == ()


def test_a_429_that_may_not_have_reached_the_record_suspends() -> None:
    lost = Lost(ago(45), ago(40))
    recent, old = Plea(1, ago(50), 429, None), Plea(1, ago(80), 429, None)
    assert remembered(pleas=[recent], lost=lost).identity.status is IdentityStatus.SUSPENDED
    assert remembered(pleas=[old], lost=lost).identity.status is IdentityStatus.AVAILABLE
    assert remembered(pleas=[Plea(1, ago(50), 503, None)], lost=lost).identity.status is IdentityStatus.AVAILABLE


def test_patience_that_was_asked_for_is_kept_the_longest_counts() -> None:
    pleas = [Plea(1, ago(50), 503, ago(-500)), Plea(1, ago(20), 503, ago(-60)), Plea(1, ago(10), 429, None)]
    assert remembered(pleas=pleas).paused_until == ago(-500)


def test_three_identities_within_a_minute_speak_for_the_site() -> None:
    def asked(*seconds_ago: float):
        return {number: [Plea(number, ago(at), 503, ago(at - 300))] for number, at in enumerate(seconds_ago)}

    assert site_pause(asked(10, 30, 69)) == ago(10 - 300)
    assert site_pause(asked(10, 30, 70)) is None
    assert site_pause({1: asked(1)[0] * 3}) is None


moments = st.integers(0, 4000).map(ago)


@given(st.lists(moments, max_size=90), st.integers(0, 100), st.integers(40, 90), st.integers(0, 60))
def test_never_is_less_remembered_than_what_was_known_and_rising(logged, spent, books, lasted) -> None:
    lost = Lost(ago(books), ago(books) + timedelta(seconds=lasted))
    bucket = Bucket(spent, ago(books))
    memory = remembered(logged, bucket, lost=lost)
    assert list(memory.leased_at) == sorted(memory.leased_at)
    inside = [at for at in logged if at > NOON - BUDGET.reach]
    assert len(memory.leased_at) >= len(inside)
    before = sum(at <= ago(books) for at in memory.leased_at)
    known = sum(ago(books) - BUDGET.reach < at <= ago(books) for at in logged)
    gone = sum(ago(books) - BUDGET.reach < at <= NOON - BUDGET.reach for at in logged)
    assert before >= max(known, min(spent, 80)) - gone
