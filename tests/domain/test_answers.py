"""Answers: what every status means, for the identity and for the task."""

import pytest

from sellerwatch.domain.answers import Judgement, judge
from sellerwatch.domain.identities import Verdict
from sellerwatch.domain.tasks import Blame


def expected(status: int, is_list: bool) -> Judgement:
    """Written as the specification has it, top down; the first line that fits holds."""
    rows = [
        (range(200, 300), Judgement(Verdict.SUCCESS, None)),
        ([429], Judgement(Verdict.RATE_LIMITED, Blame.TRANSIENT)),
        ([401, 403], Judgement(Verdict.REJECTED, Blame.TRANSIENT, is_token_refused=True)),
        (
            [404, 410],
            Judgement(Verdict.NEUTRAL, Blame.TRANSIENT, is_path_gone=True)
            if is_list
            else Judgement(Verdict.NEUTRAL, Blame.PERMANENT, is_gone=True),
        ),
        ([400], Judgement(Verdict.REJECTED, Blame.PERMANENT)),
        ([408, *range(500, 1000)], Judgement(Verdict.SITE_FAILURE, Blame.TRANSIENT)),
    ]
    found = [judgement for statuses, judgement in rows if status in statuses]
    return found[0] if found else Judgement(Verdict.REJECTED, Blame.TRANSIENT)


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status_is_judged_as_the_table_has_it(status: int) -> None:
    for is_list in (True, False):
        judged = judge(status, is_list=is_list)
        assert judged == expected(status, is_list)
        assert judged.blame is not Blame.NOT_ITS_OWN


def test_only_a_success_is_read_and_only_a_missing_item_is_an_absence() -> None:
    statuses = range(100, 600)
    assert [one for one in statuses if judge(one, is_list=False).blame is None] == list(range(200, 300))
    assert [one for one in statuses if judge(one, is_list=False).is_gone] == [404, 410]
    assert [one for one in statuses if judge(one, is_list=True).is_path_gone] == [404, 410]
    assert not any(judge(one, is_list=True).is_gone or judge(one, is_list=False).is_path_gone for one in statuses)
    assert [one for one in statuses if judge(one, is_list=True).is_token_refused] == [401, 403]


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429, *range(500, 600)])
def test_what_may_pass_is_tried_again(status: int) -> None:
    for is_list in (True, False):
        assert judge(status, is_list=is_list).blame is Blame.TRANSIENT


@pytest.mark.parametrize("status", [404, 410])
def test_a_list_that_is_not_there_is_never_the_end_of_a_shop(status: int) -> None:
    judged = judge(status, is_list=True)
    assert (judged.blame, judged.is_gone) == (Blame.TRANSIENT, False)
