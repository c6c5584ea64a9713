"""Who leads the pool: what each state lets whoever keeps the lead do, and what it does not."""

from datetime import UTC, datetime, timedelta

import pytest

from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.leadership import Engine, Leadership, LeadRules, Phase, Pulse, Step, next_step

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
RULES = LeadRules(lead=timedelta(seconds=15), grace=timedelta(seconds=35), beginning=timedelta(seconds=60))
WHOLE = Pulse(NOON, 7, is_whole=True)


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def redis_leads(until: float = 10) -> Leadership:
    return Leadership(7, Engine.REDIS, Phase.LEADING, later(until), past=Engine.REDIS)


def sql_leads() -> Leadership:
    return Leadership(7, Engine.SQL, Phase.LEADING, past=Engine.SQL)


def ending(until: float = 10) -> Leadership:
    return Leadership(7, Engine.SQL, Phase.ENDING, later(until), past=Engine.SQL)


def beginning(until: float = 10, engine: Engine = Engine.REDIS) -> Leadership:
    return Leadership(7, engine, Phase.BEGINNING, later(until), past=Engine.SQL)


@pytest.mark.parametrize(
    ("known", "pulse", "is_steady", "is_drained", "step"),
    [
        (Leadership(), WHOLE, False, False, Step.BEGIN_REDIS),
        (Leadership(), None, False, False, Step.BEGIN_SQL),
        (redis_leads(), WHOLE, False, False, Step.RENEW),
        (redis_leads(until=-500), WHOLE, False, False, Step.RENEW),
        (redis_leads(), Pulse(NOON, 6, is_whole=True), True, False, Step.GIVE_UP),
        (redis_leads(), Pulse(NOON, 0, is_whole=True), True, False, Step.GIVE_UP),
        (redis_leads(), Pulse(NOON, 7, is_whole=False), True, False, Step.GIVE_UP),
        # Given up, or run out: nobody begins before the grace is over, neither here nor there.
        (redis_leads(until=0), Pulse(NOON, 7, is_whole=False), True, False, Step.NOTHING),
        (redis_leads(), None, False, False, Step.NOTHING),
        (redis_leads(until=-34), None, False, False, Step.NOTHING),
        (redis_leads(until=-35), None, False, False, Step.BEGIN_SQL),
        (redis_leads(until=-35), Pulse(NOON, 0, is_whole=False), False, False, Step.BEGIN_REDIS),
        (sql_leads(), None, False, False, Step.NOTHING),
        (sql_leads(), WHOLE, False, False, Step.NOTHING),
        (sql_leads(), WHOLE, True, False, Step.HAND_OVER),
        (ending(), WHOLE, True, False, Step.NOTHING),
        (ending(), WHOLE, True, True, Step.BEGIN_REDIS),
        (ending(until=0), WHOLE, True, False, Step.BEGIN_REDIS),
        # Redis went away again before it could begin.
        (ending(), None, False, False, Step.BEGIN_SQL),
        (beginning(), WHOLE, True, False, Step.NOTHING),
        (beginning(until=0), WHOLE, True, False, Step.BEGIN_REDIS),
        (beginning(until=0, engine=Engine.SQL), None, False, False, Step.BEGIN_SQL),
    ],
)
def test_what_follows_from_what_is_known(known, pulse, is_steady, is_drained, step) -> None:
    assert next_step(known, NOON, RULES, pulse, is_steady=is_steady, is_drained=is_drained) is step


def test_each_beginning_is_a_new_epoch_and_the_lead_is_until_a_moment_where_it_is_redis() -> None:
    known = Leadership()
    known.begin(Engine.REDIS, NOON, RULES)
    assert (known.epoch, known.phase, known.until) == (1, Phase.BEGINNING, later(60))
    assert not known.leads(Engine.REDIS)
    known.go_on(later(40), RULES)
    assert known.until == later(100)
    known.lead(later(50), RULES)
    assert (known.leads(Engine.REDIS), known.until, known.past) == (True, later(65), Engine.REDIS)
    # Nobody led before it, so the record has missed nothing.
    assert known.books_at == later(50)
    known.renew(later(60), RULES)
    assert known.until == later(75)


def test_what_a_lost_redis_may_have_done_is_known_to_end_with_its_lead() -> None:
    known = redis_leads()
    known.books_at = later(-3)
    known.begin(Engine.SQL, later(45), RULES)
    assert (known.epoch, known.ended_at, known.past) == (8, later(10), Engine.REDIS)
    known.lead(later(46), RULES)
    assert (known.until, known.past, known.ended_at, known.books_at) == (None, Engine.SQL, None, later(-3))


def test_one_that_is_given_up_ends_now_and_not_later_than_it_would_have() -> None:
    known = redis_leads()
    known.give_up(later(4))
    assert known.until == later(4)
    known.give_up(later(9))
    assert known.until == later(4)


def test_the_database_lends_nothing_any_more_once_it_hands_over() -> None:
    known = sql_leads()
    known.hand_over(NOON, 30)
    assert (known.leads(Engine.SQL), known.phase, known.until) == (False, Phase.ENDING, later(30))


@pytest.mark.parametrize(
    ("known", "verb"),
    [
        (redis_leads(), lambda it: it.begin(Engine.SQL, NOON, RULES)),
        (redis_leads(until=-34), lambda it: it.begin(Engine.SQL, NOON, RULES)),
        (sql_leads(), lambda it: it.begin(Engine.REDIS, NOON, RULES)),
        (beginning(), lambda it: it.begin(Engine.SQL, NOON, RULES)),
        (redis_leads(), lambda it: it.go_on(NOON, RULES)),
        (redis_leads(), lambda it: it.lead(NOON, RULES)),
        (sql_leads(), lambda it: it.renew(NOON, RULES)),
        (ending(), lambda it: it.give_up(NOON)),
        (beginning(), lambda it: it.hand_over(NOON, 30)),
    ],
)
def test_what_its_state_does_not_allow_is_refused_and_changes_nothing(known, verb) -> None:
    before = repr(known)
    with pytest.raises(WrongVerb):
        verb(known)
    assert repr(known) == before
