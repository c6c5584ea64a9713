"""How polite a stretch of time was: counted in one pass, and by looking at every span of it."""

from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from builders import NOON
from sellerwatch.domain.politeness import HOUR, SECOND, TOLD_MAX, Counting, Left


def left(seconds: float, agent_id: int = 1, status: int | None = 200, retry_after: float | None = None) -> Left:
    patience = None if retry_after is None else timedelta(seconds=retry_after)
    asked = status == 429 or patience is not None
    return Left(agent_id, NOON + timedelta(seconds=seconds), timedelta(milliseconds=200), status, asked, patience)


def counted(*requests: Left) -> Counting:
    counting = Counting(NOON)
    counting.note(sorted(requests, key=lambda each: each.at))
    return counting


def most(moments: list[datetime], length: timedelta) -> int:
    return max((sum(end - length < at <= end for at in moments) for end in moments if end >= NOON), default=0)


@given(st.lists(st.tuples(st.floats(-3700, 8000).map(lambda at: round(at, 1)), st.integers(1, 3)), max_size=80))
def test_peaks_and_gaps_are_those_found_by_looking_at_every_span(found: list[tuple[float, int]]) -> None:
    requests = [left(seconds, agent_id) for seconds, agent_id in found]
    seen = counted(*requests).result()
    for agent_id, manners in [(None, seen.site), *seen.identities.items()]:
        moments = sorted(each.at for each in requests if agent_id in {None, each.agent_id})
        assert manners.requests == sum(at >= NOON for at in moments)
        assert manners.in_a_second.requests == most(moments, SECOND)
        assert manners.in_an_hour.requests == most(moments, HOUR)
        gaps = [after - before for before, after in pairwise(moments) if after >= NOON]
        assert manners.smallest_gap == min(gaps, default=None)


def test_who_asked_nothing_within_the_stretch_is_not_told() -> None:
    seen = counted(left(-5, 1), left(5, 2)).result()
    assert list(seen.identities) == [2]
    assert (seen.site.requests, seen.site.in_an_hour.requests) == (1, 2)


def test_what_followed_a_429_is_how_long_the_identity_rested_and_whether_that_was_long_enough() -> None:
    seen = counted(
        left(0, 1, 429, 60), left(1, 2, 429), left(2, 3, 503, 600), left(61, 1), left(400, 3), left(4000, 2)
    ).result()
    told = {plea.agent_id: (plea.rested and plea.rested.total_seconds(), plea.is_heeded) for plea in seen.pleas}
    assert told == {1: (60.8, True), 2: (3998.8, True), 3: (397.8, False)}
    assert (seen.site.asked_for_patience, seen.site.failed) == (3, 3)


def test_who_came_back_later_is_looked_up_and_who_never_did_waits_still() -> None:
    counting = counted(left(0, 1, 429), left(1, 2, 429))
    assert counting.waiting == [1, 2]
    counting.follow({2: NOON + timedelta(days=1)})
    assert [plea.next_at for plea in counting.result().pleas] == [None, NOON + timedelta(days=1)]


def test_without_an_answer_a_request_failed() -> None:
    seen = counted(left(0, 1, None), left(2, 1, 404), left(4, 1, 302)).result()
    assert (seen.site.requests, seen.site.failed) == (3, 2)


def test_so_many_429s_are_counted_and_the_first_of_them_told() -> None:
    counting = Counting(NOON)
    counting.note(left(number, number % 50, 429) for number in range(TOLD_MAX + 7))
    seen = counting.result()
    assert (seen.site.asked_for_patience, len(seen.pleas)) == (TOLD_MAX + 7, TOLD_MAX)
