"""Identities: health, blame, ways back; and tokens of which nothing is told."""

from copy import deepcopy
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from builders import NOON, an_id, at
from sellerwatch.domain.errors import Invalid, WrongVerb
from sellerwatch.domain.identities import (
    HEALTH_LOSS,
    HEALTH_MIN,
    HEALTH_RECOVERED,
    RECOVERY_AFTER,
    TOKEN_FAILURES_MAX,
    Identity,
    IdentityStatus,
    SealedToken,
    Verdict,
)

CIPHERTEXT, COOKIES = "Q" * 60, "Z" * 60


def a_token(name: str = "print", **other: object) -> SealedToken:
    values: dict[str, object] = {"sealed": f"v1.k1.{CIPHERTEXT}", "issued_at": NOON, "expires_at": at(7200)}
    return SealedToken(**{**values, "fingerprint": name, **other})  # type: ignore[arg-type]


def an_identity(health: int = 100) -> Identity:
    return Identity(1, an_id("agent"), "Mozilla/5.0", health_score=health, token=a_token())


class TheLifeOfAnIdentity(RuleBasedStateMachine):
    """Lent as the pool lends: one lease at a time, never while it is not AVAILABLE; each lease is reported once."""

    @initialize()
    def begin(self) -> None:
        self.identity = an_identity()
        self.now = NOON
        self.is_lent = False
        self.only_429s = True

    def tell(self, verb: str, *arguments: object) -> bool:
        before = deepcopy(self.identity)
        try:
            getattr(self.identity, verb)(*arguments)
        except WrongVerb:
            assert self.identity == before
            return False
        return True

    @rule(minutes=st.integers(1, 90))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @precondition(lambda self: self.identity.status is IdentityStatus.AVAILABLE and not self.is_lent)
    @rule()
    def lend(self) -> None:
        self.is_lent = True

    @precondition(lambda self: self.is_lent)
    @rule()
    def report_success(self) -> None:
        before, self.is_lent = self.identity.health_score, False
        self.identity.record_success()
        assert self.identity.health_score == min(100, before + 5)

    @precondition(lambda self: self.is_lent)
    @rule()
    def report_429(self) -> None:
        self.is_lent = False
        was = self.identity.status
        self.identity.record_failure(Verdict.RATE_LIMITED, self.now)
        assert self.identity.token is None
        assert self.identity.status is (IdentityStatus.SUSPENDED if was is IdentityStatus.AVAILABLE else was)

    @precondition(lambda self: self.is_lent)
    @rule(verdict=st.sampled_from([Verdict.SITE_FAILURE, Verdict.REJECTED]))
    def report_failure(self, verdict: Verdict) -> None:
        before, self.is_lent, self.only_429s = self.identity.health_score, False, False
        self.identity.record_failure(verdict, self.now)
        assert self.identity.health_score == max(0, before - HEALTH_LOSS[verdict])

    @precondition(lambda self: self.is_lent)
    @rule()
    def report_failure_of_a_failing_site(self) -> None:
        before, self.is_lent = deepcopy(self.identity), False
        self.identity.record_failure(Verdict.SITE_FAILURE, self.now, is_site_failing=True)
        before.failure_count += 1
        assert self.identity == before

    @rule()
    def suspend(self) -> None:
        self.tell("suspend", self.now)

    @rule()
    def recover(self) -> None:
        if self.tell("recover"):
            self.only_429s = True
            assert (self.identity.health_score, self.identity.token) == (HEALTH_RECOVERED, None)

    @rule()
    def block(self) -> None:
        self.tell("block")

    @rule()
    def unblock(self) -> None:
        if self.tell("unblock"):
            self.only_429s = True

    @rule()
    def issue_token(self) -> None:
        self.identity.issue_token(a_token())
        assert self.identity.token_failures == 0

    @rule()
    def refuse_token(self) -> None:
        was, failures = self.identity.status, self.identity.token_failures
        is_blocked = self.identity.refuse_token()
        assert is_blocked == (failures + 1 >= TOKEN_FAILURES_MAX and was is not IdentityStatus.BLOCKED)

    @invariant()
    def its_health_is_from_0_to_100(self) -> None:
        assert 0 <= self.identity.health_score <= 100

    @invariant()
    def below_30_it_is_never_lent(self) -> None:
        assert self.identity.health_score >= HEALTH_MIN or self.identity.status is not IdentityStatus.AVAILABLE

    @invariant()
    def it_bears_a_moment_of_suspension_when_and_only_when_suspended(self) -> None:
        assert (self.identity.suspended_at is not None) == (self.identity.status is IdentityStatus.SUSPENDED)

    @invariant()
    def it_comes_back_by_itself_from_429s_alone(self) -> None:
        identity = self.identity
        if identity.status is IdentityStatus.SUSPENDED and self.only_429s:
            assert identity.health_score >= HEALTH_MIN
            assert identity.recovers_at() == (identity.suspended_at or NOON) + RECOVERY_AFTER

    @invariant()
    def there_is_always_a_way_back(self) -> None:
        copy = deepcopy(self.identity)
        if copy.status is IdentityStatus.SUSPENDED:
            copy.recover()
        if copy.status is IdentityStatus.BLOCKED:
            copy.unblock()
        assert copy.status is IdentityStatus.AVAILABLE
        assert copy.health_score >= HEALTH_MIN


TestTheLifeOfAnIdentity = TheLifeOfAnIdentity.TestCase


@pytest.mark.parametrize(
    ("verdict", "loss", "is_suspended"),
    [
        (Verdict.RATE_LIMITED, 20, True),
        (Verdict.SITE_FAILURE, 10, False),
        (Verdict.REJECTED, 5, False),
        (Verdict.NEUTRAL, 0, False),
    ],
)
def test_each_failure_costs_what_the_rules_say(verdict: Verdict, loss: int, is_suspended: bool) -> None:
    identity = an_identity()
    identity.record_failure(verdict, NOON)
    assert identity.health_score == 100 - loss
    assert (identity.status is IdentityStatus.SUSPENDED) == is_suspended
    assert (identity.token is None) == is_suspended


@pytest.mark.parametrize("health", range(0, 101, 5))
@pytest.mark.parametrize("verdict", list(HEALTH_LOSS))
def test_below_thirty_it_is_suspended_and_at_thirty_it_is_not(health: int, verdict: Verdict) -> None:
    identity = an_identity(health)
    identity.record_failure(verdict, NOON)
    is_low = identity.health_score < 30
    assert (identity.status is IdentityStatus.SUSPENDED) == (is_low or verdict is Verdict.RATE_LIMITED)


def test_successes_heal_it_by_five_up_to_a_hundred() -> None:
    identity = an_identity(88)
    healed = []
    for _ in range(4):
        identity.record_success()
        healed.append(identity.health_score)
    assert (healed, identity.success_count) == ([93, 98, 100, 100], 4)


def test_a_thousand_429s_never_strand_an_identity() -> None:
    identity, now = an_identity(), NOON
    for _ in range(1000):
        identity.record_failure(Verdict.RATE_LIMITED, now)
        back = identity.recovers_at()
        assert back == now + RECOVERY_AFTER
        now = back
        identity.recover()
    assert identity.health_score == HEALTH_RECOVERED


def test_an_outage_of_the_site_empties_no_pool_but_a_429_still_counts_in_it() -> None:
    identity = an_identity()
    for _ in range(500):
        identity.record_failure(Verdict.SITE_FAILURE, NOON, is_site_failing=True)
    assert (identity.health_score, identity.status) == (100, IdentityStatus.AVAILABLE)
    identity.record_failure(Verdict.RATE_LIMITED, NOON, is_site_failing=True)
    assert identity.status is IdentityStatus.SUSPENDED


@pytest.mark.parametrize(
    ("health", "probation", "expected"),
    [
        (30, None, at(3600)),
        (100, timedelta(hours=5), at(3600)),
        (29, None, None),
        (0, None, None),
        (29, timedelta(hours=24), at(86_400)),
        (29, timedelta(0), None),
    ],
)
def test_it_recovers_after_an_hour_with_health_enough_else_by_hand_or_after_probation(
    health: int, probation: timedelta | None, expected: datetime | None
) -> None:
    identity = an_identity(health)
    identity.suspend(NOON)
    assert identity.recovers_at(probation) == expected


@pytest.mark.parametrize("status", [IdentityStatus.AVAILABLE, IdentityStatus.BLOCKED])
def test_what_is_not_suspended_never_recovers_by_itself(status: IdentityStatus) -> None:
    identity = an_identity()
    if status is IdentityStatus.BLOCKED:
        identity.suspend(NOON)
        identity.block()
    assert identity.recovers_at(timedelta(hours=1)) is None


def test_three_refused_tokens_in_a_row_block_it_and_one_issued_between_forgives() -> None:
    identity = an_identity()
    assert [identity.refuse_token(), identity.refuse_token()] == [False, False]
    identity.issue_token(a_token())
    assert [identity.refuse_token(), identity.refuse_token(), identity.refuse_token()] == [False, False, True]
    assert (identity.status, identity.is_blocked_by_hand) == (IdentityStatus.BLOCKED, False)
    assert identity.refuse_token() is False


def test_suspending_twice_keeps_the_first_moment() -> None:
    identity = an_identity()
    identity.suspend(NOON)
    identity.suspend(at(3000))
    identity.record_failure(Verdict.REJECTED, at(3100))
    assert identity.suspended_at == NOON


# ── tokens ──


def test_tokens_are_compared_by_fingerprint_only() -> None:
    same = a_token("one", sealed=f"v1.k2.{'R' * 44}", expires_at=at(1))
    assert a_token("one") == same
    assert hash(a_token("one")) == hash(same)
    assert a_token("one") != a_token("two")
    assert a_token("one") != "one"


def test_nothing_of_a_token_is_in_any_representation() -> None:
    token = a_token(cookies=f"v1.k1.{COOKIES}")
    identity = an_identity()
    identity.issue_token(token)
    for text in (repr(token), str(token), f"{token}", repr(identity), repr([token]), repr({"token": token})):
        assert CIPHERTEXT[:20] not in text
        assert COOKIES[:20] not in text


@pytest.mark.parametrize("field", ["sealed", "cookies"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "eyJhbGciOiJIUzI1NiJ9.plaintext.of-a-token-that-is-long-enough-to-be-one",
        f"v1.k1.{'A' * 43}",
        f"v2.k1.{'A' * 44}",
        f"v1..{'A' * 44}",
        f"v1.{'k' * 33}.{'A' * 44}",
        f"v1.k1.{'A' * 44}===",
        f"v1.k1.{'A' * 44}\n",
        f" v1.k1.{'A' * 44}",
        f"v1.k1.{'A' * 43}-",
        f"v1.k 1.{'A' * 44}",
        f"v1.k1.{'Ａ' * 44}",
        f"v1.ключ.{'A' * 44}",
    ],
)
def test_what_is_not_sealed_is_refused_and_not_repeated_in_the_error(field: str, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        a_token(**{field: text})
    assert not text or text not in str(refused.value)
    assert refused.value.value == "(hidden)"


@given(st.text("ABCabc019+/", min_size=44, max_size=200), st.sampled_from(["", "=", "=="]))
def test_every_sealed_text_of_the_form_is_taken(body: str, padding: str) -> None:
    assert a_token(sealed=f"v1.key_1-a.{body}{padding}").sealed.endswith(body + padding)
