"""What the status of an answer means: for the identity that asked, and for the task it asked for."""

from dataclasses import dataclass

from sellerwatch.domain.identities import TOO_MANY_REQUESTS, Verdict
from sellerwatch.domain.tasks import Blame

_GONE = frozenset({404, 410})
_UNAUTHORIZED = frozenset({401, 403})
_BAD_REQUEST = 400
_REQUEST_TIMEOUT = 408
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    blame: Blame | None
    """None: an answer to be read."""
    is_gone: bool = False
    """The item is no longer there: one absence."""
    is_path_gone: bool = False
    """A list that always exists is not there: the path may have moved, somebody should look."""
    is_token_refused: bool = False


def judge(status: int, *, is_list: bool) -> Judgement:
    """The meaning of a status. Redirects are requests of their own and not judged here."""
    if 200 <= status < 300:
        return Judgement(Verdict.SUCCESS, None)
    if status == TOO_MANY_REQUESTS:
        return Judgement(Verdict.RATE_LIMITED, Blame.TRANSIENT)
    if status in _UNAUTHORIZED:
        return Judgement(Verdict.REJECTED, Blame.TRANSIENT, is_token_refused=True)
    if status in _GONE:
        if is_list:
            return Judgement(Verdict.NEUTRAL, Blame.TRANSIENT, is_path_gone=True)
        return Judgement(Verdict.NEUTRAL, Blame.PERMANENT, is_gone=True)
    if status == _BAD_REQUEST:
        return Judgement(Verdict.REJECTED, Blame.PERMANENT)
    if status >= _SERVER_ERROR or status == _REQUEST_TIMEOUT:
        return Judgement(Verdict.SITE_FAILURE, Blame.TRANSIENT)
    return Judgement(Verdict.REJECTED, Blame.TRANSIENT)
