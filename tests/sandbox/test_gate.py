"""Promises of the doorkeeper: an exact window, tokens that belong to one visitor, figures that miss nothing."""

from email.utils import parsedate_to_datetime

from hypothesis import given
from hypothesis import strategies as st

from sandbox.visits import NOON, Visitor, a_sandbox, detail_path, list_path
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.faults import Fault
from sellerwatch.sandbox.gate import Gate

PATH = list_path(0, 1)


@given(st.lists(st.integers(0, 400), max_size=60), st.integers(1, 5))
def test_nobody_is_let_in_more_often_than_the_limit_in_any_window_and_nobody_is_refused_without_need(gaps, limit):
    gate = Gate(Conditions(hourly_limit=limit, window_seconds=100))
    now, admitted, violations = NOON, [], 0
    for gap in gaps:
        now += gap / 10
        within = [at for at in admitted if now - at < 100]
        wait = gate.admit("one", now)
        assert (wait is None) == (len(within) < limit)
        if wait is None:
            admitted.append(now)
        else:
            violations += 1
            assert wait == min(within) + 100 - now
    assert gate.shown()["violations"] == violations


def test_the_eighty_first_request_of_an_hour_is_refused_and_the_hour_slides():
    sandbox = a_sandbox(hourly_limit=80)
    visitor = Visitor(sandbox).log_in()
    assert [visitor.ask(PATH).status for _ in range(79)] == [200] * 79
    assert visitor.ask(PATH).status == 429
    visitor.now = NOON + 3600
    assert visitor.ask(PATH).status == 200, "the token request of the first second has left the window"
    assert visitor.ask(PATH).status == 200
    visitor.now -= 0.9
    assert visitor.ask(PATH).status == 429
    stats = sandbox.stats()
    assert stats["violations"] == 2
    assert stats["requests"]["byStatus"] == {"200": 82, "429": 2}
    assert stats["identities"][visitor.user_agent]["violations"] == 2


def test_each_user_agent_has_a_window_of_its_own():
    sandbox = a_sandbox(hourly_limit=2)
    for name in ("one", "two"):
        visitor = Visitor(sandbox, name).log_in()
        assert [visitor.ask(PATH).status for _ in range(2)] == [200, 429]


def test_a_refusal_says_when_to_come_back_in_the_form_that_was_chosen():
    for form, read in (("seconds", float), ("date", lambda text: parsedate_to_datetime(text).timestamp())):
        visitor = Visitor(a_sandbox(hourly_limit=1, retry_after=form)).log_in()
        told = dict(visitor.ask(PATH).headers)["retry-after"]
        assert read(told) == {"seconds": 3599, "date": NOON + 2 + 3599}[form]
    assert "retry-after" not in dict(Visitor(a_sandbox(hourly_limit=1)).log_in().ask(PATH).headers)


def test_gaps_and_peaks_are_counted():
    gate = Gate(Conditions(hourly_limit=0))
    for at in (0, 0.25, 0.75, 5, 6, 3600.5):
        gate.admit("one", NOON + at)
    gate.admit("two", NOON + 3600.5)
    shown = gate.shown()
    assert (shown["peakSecond"], shown["peakWindow"], shown["smallestGap"], shown["tooClose"]) == (3, 5, 0.25, 2)


def test_a_token_is_good_for_the_user_agent_it_was_given_to_until_it_ends():
    sandbox = a_sandbox(token_seconds=100)
    one, other = Visitor(sandbox, "one").log_in(), Visitor(sandbox, "two").log_in()
    assert one.token != other.token
    assert one.ask(PATH).status == 200
    other.token = one.token
    assert other.ask(PATH).status == 401
    one.now += 100
    assert one.ask(PATH).status == 401
    assert one.log_in().ask(PATH).status == 200


def test_no_token_no_document():
    visitor = Visitor(a_sandbox())
    assert visitor.ask(PATH).status == 401
    assert visitor.ask(PATH, Authorization="Bearer made-up").status == 401


def test_a_token_sent_as_a_cookie_is_a_bad_request():
    visitor = Visitor(a_sandbox()).log_in()
    assert visitor.ask(PATH, Cookie=f"{visitor.companions}; token={visitor.token}").status == 400


def test_revoked_tokens_are_refused():
    sandbox = a_sandbox()
    visitor = Visitor(sandbox).log_in()
    assert sandbox.market.gate.revoke() == 1
    assert visitor.ask(PATH).status == 401


def test_strict_cookies_want_the_companions_back():
    visitor = Visitor(a_sandbox(strict_cookies=True)).log_in()
    assert visitor.ask(PATH).status == 200
    visitor.companions = ""
    assert visitor.ask(PATH).status == 401


def test_robots_and_the_unknown_are_answered_and_counted():
    sandbox = a_sandbox()
    visitor = Visitor(sandbox).log_in()
    assert b"User-agent: *" in visitor.ask("/robots.txt").body
    assert visitor.ask("/somewhere").status == 404
    assert visitor.ask(detail_path(1)).status == 404
    assert sandbox.answer("GET", PATH, {}, b"", NOON).status == 400
    assert sandbox.answer("POST", PATH, {"user-agent": "x"}, b"", NOON).status == 405
    assert sandbox.stats()["requests"]["byKind"]["ROBOTS"] == {"200": 1}


def test_robots_says_what_it_is_told_to_and_what_it_forbids_is_counted_and_answered_all_the_same():
    sandbox = a_sandbox(robots="User-agent: *\nDisallow: /m/\n")
    visitor = Visitor(sandbox)
    assert visitor.ask("/m/member").status == 401
    assert visitor.ask("/robots.txt").body == b"User-agent: *\nDisallow: /m/\n"
    assert sandbox.stats()["disallowed"] == 1
    told = sandbox.answer("POST", "/__robots", {}, b"User-agent: sellerwatch\nDisallow: /$\n", 0.0)
    assert told.status == 200
    assert visitor.ask("/robots.txt").body.endswith(b"Disallow: /$\n")
    visitor.ask("/m/member")
    visitor.ask("/")
    assert sandbox.stats()["disallowed"] == 2
    sandbox.stage("ROBOTS", Fault(name="error", status=503))
    assert visitor.ask("/robots.txt").status == 503
