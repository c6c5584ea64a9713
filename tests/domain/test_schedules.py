"""Schedules: the name and rate of their rule, and when they run next."""

import re
import time
from copy import deepcopy
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders import NOON, a_notice, a_schedule, an_id, at
from sellerwatch.domain.errors import Invalid, WrongVerb
from sellerwatch.domain.schedules import (
    RULE_NAME_MAX,
    RULE_PREFIX,
    Schedule,
    ScheduleEvent,
    ScheduleStatus,
    rate_expression,
    rule_name,
)

DAY = timedelta(days=1)
SELLER_IDS = st.from_regex(r"\A[A-Za-z0-9._-]{1,64}\Z")


# ── the rule ──


@given(SELLER_IDS)
def test_a_rule_name_is_one_that_eventbridge_takes(seller_id: str) -> None:
    name = rule_name(seller_id)
    assert re.fullmatch(r"[.\-_A-Za-z0-9]{1,64}", name, re.ASCII)
    assert name.startswith(RULE_PREFIX)
    assert rule_name(seller_id) == name


@pytest.mark.parametrize("length", range(1, 65))
def test_a_rule_name_is_the_sellers_until_it_would_be_too_long(length: int) -> None:
    seller_id = ("n0rd-" * 13)[:length]
    whole = RULE_PREFIX + seller_id
    if len(whole) <= RULE_NAME_MAX:
        assert rule_name(seller_id) == whole
    else:
        assert len(rule_name(seller_id)) == RULE_NAME_MAX
        assert re.search(r"-[0-9a-f]{8}\Z", rule_name(seller_id))


@given(st.sets(SELLER_IDS | st.integers(0, 10**9).map(lambda n: f"{'a-very-long-sellers-name-' * 2}{n}"), min_size=2))
def test_two_sellers_never_share_a_rule(seller_ids: set[str]) -> None:
    assert len({rule_name(seller_id) for seller_id in seller_ids}) == len(seller_ids)


def test_a_seller_named_like_the_cut_name_of_another_does_not_share_its_rule() -> None:
    victim = "v" * 64
    attacker = rule_name(victim).removeprefix(RULE_PREFIX)
    assert rule_name(attacker) != rule_name(victim)
    second = rule_name(attacker).removeprefix(RULE_PREFIX)
    assert len({rule_name(victim), rule_name(attacker), rule_name(second)}) == 3


@pytest.mark.parametrize("days", range(1, 31))
def test_the_rate_is_as_eventbridge_spells_it(days: int) -> None:
    expression = rate_expression(days)
    assert re.fullmatch(r"rate\((1 day|([2-9]|[12][0-9]|30) days)\)", expression)
    assert int(re.sub(r"\D", "", expression)) == days
    assert a_schedule(days=days).expression == expression


@pytest.mark.parametrize("days", [0, -1, 31, 10**9])
def test_a_schedule_has_no_interval_a_seller_could_not_have(days: int) -> None:
    with pytest.raises(Invalid):
        Schedule.create(an_id("schedule"), "nord", days, NOON)
    schedule = a_schedule()
    before = deepcopy(schedule)
    with pytest.raises(Invalid):
        schedule.change_interval(days, at(1))
    assert schedule == before


# ── the next run ──


class TheLifeOfASchedule(RuleBasedStateMachine):
    @initialize(days=st.integers(1, 30))
    def begin(self, days: int) -> None:
        self.now = NOON
        self.schedule, event = Schedule.create(an_id("schedule"), "nord", days, NOON)
        assert event is ScheduleEvent.REGISTERED
        self.keys: set[str] = set()
        self.is_rule_there = True

    def told(self, event: ScheduleEvent | None) -> None:
        """What EventBridge would hold after the events so far."""
        if event is ScheduleEvent.UPDATED:
            assert self.is_rule_there, "updated before it was created"
        if event is not None:
            self.is_rule_there = event is not ScheduleEvent.DEACTIVATED

    @rule(hours=st.integers(0, 24 * 40))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @rule()
    def run_when_due(self) -> None:
        before = deepcopy(self.schedule)
        if not self.schedule.is_due(self.now):
            with pytest.raises(WrongVerb):
                self.schedule.advance(self.now)
            assert self.schedule == before
            return
        key = self.schedule.trigger_key()
        assert key not in self.keys
        self.keys.add(key)
        self.schedule.advance(self.now)
        step = timedelta(days=self.schedule.interval_days)
        assert self.now < self.schedule.next_run_at <= self.now + step
        assert (self.schedule.next_run_at - before.next_run_at) % step == timedelta(0)
        assert not self.schedule.is_due(self.now)

    @rule()
    def crawl_by_hand(self) -> None:
        before = self.schedule.next_run_at
        self.schedule.note_triggered(self.now)
        assert (self.schedule.next_run_at, self.schedule.last_triggered_at) == (before, self.now)

    @rule(days=st.integers(1, 30))
    def change_interval(self, days: int) -> None:
        before = deepcopy(self.schedule)
        event = self.schedule.change_interval(days, self.now)
        self.told(event)
        if days == before.interval_days:
            assert (event, self.schedule) == (None, before)
            return
        assert event is (None if before.status is ScheduleStatus.INACTIVE else ScheduleEvent.UPDATED)
        since = before.last_triggered_at or before.created_at
        assert self.schedule.next_run_at == max(self.now, since + timedelta(days=days))

    @rule()
    def activate(self) -> None:
        before = deepcopy(self.schedule)
        event = self.schedule.activate(self.now)
        self.told(event)
        if before.status is ScheduleStatus.INACTIVE:
            assert event is ScheduleEvent.REGISTERED
            assert self.schedule.next_run_at == self.now + timedelta(days=self.schedule.interval_days)
        else:
            assert (event, self.schedule) == (None, before)

    @rule()
    def deactivate(self) -> None:
        self.told(self.schedule.deactivate(self.now))
        assert not self.schedule.is_due(self.now + 1000 * DAY)

    @rule()
    def give_up(self) -> None:
        before = self.schedule.next_run_at
        self.schedule.give_up(self.now)
        assert self.schedule.next_run_at == before

    @rule()
    def restore(self) -> None:
        self.schedule.restore(self.now)

    @invariant()
    def its_rule_is_there_when_and_only_when_it_is_not_inactive(self) -> None:
        assert self.is_rule_there == self.schedule.is_active
        assert self.schedule.is_active == (self.schedule.status is not ScheduleStatus.INACTIVE)

    @invariant()
    def its_moments_are_in_utc(self) -> None:
        assert self.schedule.next_run_at.utcoffset() == timedelta(0)

    @invariant()
    def its_next_run_is_never_further_away_than_its_interval(self) -> None:
        assert self.schedule.next_run_at <= self.now + timedelta(days=self.schedule.interval_days)


TestTheLifeOfASchedule = TheLifeOfASchedule.TestCase


@pytest.mark.parametrize("days", [1, 2, 30])
def test_a_new_schedule_runs_one_interval_later(days: int) -> None:
    assert a_schedule(days=days).next_run_at == NOON + days * DAY


def test_runs_missed_meanwhile_are_caught_up_once_and_keep_their_hour() -> None:
    schedule = a_schedule(days=1)
    schedule.advance(NOON + 10 * DAY + timedelta(hours=5))
    assert schedule.next_run_at == NOON + 11 * DAY
    assert schedule.last_triggered_at == NOON + 10 * DAY + timedelta(hours=5)


def test_a_schedule_is_due_at_its_moment_and_not_before() -> None:
    schedule = a_schedule(days=1)
    assert not schedule.is_due(NOON + DAY - timedelta(microseconds=1))
    assert schedule.is_due(NOON + DAY)


def test_a_run_has_one_key_however_often_it_is_triggered_and_the_next_another() -> None:
    schedule, other = a_schedule(), a_schedule("shop-2")
    first = schedule.trigger_key()
    schedule.note_triggered(at(60))
    assert schedule.trigger_key() == first
    assert other.trigger_key() != first
    schedule.advance(NOON + DAY)
    assert schedule.trigger_key() != first


def test_a_shorter_interval_whose_time_has_passed_runs_now() -> None:
    schedule = a_schedule(days=30)
    schedule.note_triggered(NOON + DAY)
    assert schedule.change_interval(2, NOON + 9 * DAY) is ScheduleEvent.UPDATED
    assert schedule.next_run_at == NOON + 9 * DAY


def test_an_interval_change_counts_from_the_last_run() -> None:
    schedule = a_schedule(days=1)
    schedule.note_triggered(NOON + DAY)
    schedule.change_interval(7, NOON + 2 * DAY)
    assert schedule.next_run_at == NOON + 8 * DAY


def test_while_inactive_an_interval_change_is_told_to_nobody_and_holds_at_activation() -> None:
    schedule = a_schedule(days=1)
    schedule.deactivate(at(1))
    assert schedule.change_interval(5, at(2)) is None
    assert schedule.activate(at(3)) is ScheduleEvent.REGISTERED
    assert (schedule.next_run_at, schedule.expression) == (at(3) + 5 * DAY, "rate(5 days)")


def test_a_failed_announcement_does_not_stop_the_crawls() -> None:
    schedule = a_schedule()
    schedule.give_up(at(1))
    assert (schedule.status, schedule.is_due(NOON + DAY)) == (ScheduleStatus.FAILED, True)
    schedule.restore(at(2))
    assert schedule.status is ScheduleStatus.ACTIVE


@pytest.mark.parametrize("zone", ["Asia/Seoul", "America/New_York", "UTC", "Pacific/Kiritimati"])
def test_the_machines_time_zone_moves_no_run(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Across a change to summer time as well: a day has 24 hours here."""
    before = datetime(2026, 3, 7, 12, tzinfo=UTC)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        schedule = a_schedule(at=before)
        schedule.advance(before + DAY)
        assert schedule.next_run_at == before + 2 * DAY
        assert schedule.next_run_at.isoformat() == "2026-03-09T12:00:00+00:00"
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.integers(-14, 14))
def test_the_same_moment_in_another_zones_spelling_is_the_same_run(hours: int) -> None:
    one, other = a_schedule(), a_schedule(at=NOON.astimezone(timezone(timedelta(hours=hours))))
    assert one.next_run_at == other.next_run_at
    assert one.trigger_key() == other.trigger_key()


def test_a_notice_is_one_by_schedule_event_and_moment() -> None:
    assert a_notice().outbox_id == a_notice().outbox_id
    others = {
        a_notice("shop-2").outbox_id,
        a_notice(event=ScheduleEvent.UPDATED).outbox_id,
        a_notice(at=at(1)).outbox_id,
    }
    assert len({a_notice().outbox_id} | others) == 4
