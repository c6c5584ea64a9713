"""The identities as they are drawn: why nobody is free, if so, and who needs attention first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sellerwatch.domain.breakers import BreakerState
from sellerwatch.domain.identities import HEALTH_MIN, IdentityStatus
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.status import pool_line
from sellerwatch.entry.console.tables import Column, right, table
from sellerwatch.entry.console.text import count, since, until
from sellerwatch.ports.pool import Outlook, PoolFigures, Standing, WhyNot

if TYPE_CHECKING:
    from rich.console import Group

SHOWN = 40
TOKEN_ENDS_SOON = timedelta(minutes=10)
_LOW = 0.1
_USER_AGENT_MIN, _OTHER_COLUMNS = 20, 96

_WHY = {
    WhyNot.AWAY: "no engine of the pool can be reached, or it is being decided which one leads",
    WhyNot.EMPTY: "the pool holds nobody who could ever be lent: `agents add`, `agents unblock`",
    WhyNot.CIRCUIT_OPEN: "a breaker is open",
    WhyNot.SUSPENDED: "all that are not blocked are suspended",
    WhyNot.PAUSED: "the marketplace asked for patience",
    WhyNot.SPENT: "everybody has used the budget, or rests between two requests",
    WhyNot.SITE_RATE: "so many requests went out just now as may in a second",
    WhyNot.SITE_BUSY: "so many requests are under way as may be",
    WhyNot.BUSY: "everybody who has budget left is lent",
}


@dataclass(frozen=True, slots=True)
class Look:
    """The pool at one moment."""

    at: datetime
    figures: PoolFigures
    outlook: Outlook
    standings: Sequence[Standing]
    hourly_limit: int


def ranked(look: Look) -> list[tuple[Standing, str]]:
    """Who needs attention most comes first; with each, why it does."""
    found = [(standing, *_attention(standing, look)) for standing in look.standings]
    found.sort(key=lambda each: (each[1], each[0].identity.health_score, each[0].identity.agent_id))
    return [(standing, words) for standing, _, words in found]


def headline(look: Look) -> str:
    """Whether somebody is free, else why not and until when."""
    outlook = look.outlook
    if outlook.why is None:
        return f"{count(outlook.free, 'identity', 'identities')} can be leased now"
    reason = _WHY[outlook.why]
    if outlook.why is WhyNot.CIRCUIT_OPEN:
        breakers = (("pool", look.figures.pool_breaker), ("site", look.figures.site_breaker))
        reason = (
            " and ".join(
                f"the breaker of the {name} is {its.state}" for name, its in breakers if not its.admits(look.at)
            )
            or reason
        )
    at = outlook.next_at
    moment = f"the next may go {until(at, look.at)} ({at:%H:%M:%S} UTC)" if at else "only a person can help"
    return f"nobody is free ({outlook.why}): {reason}; {moment}"


def drawn(look: Look, width: int, *, everyone: bool = False) -> "Group":
    from rich.console import Group  # noqa: PLC0415 - slow to load
    from rich.text import Text  # noqa: PLC0415

    found = ranked(look)
    shown = found if everyone else found[:SHOWN]
    room = width - _OTHER_COLUMNS
    columns = [right("id"), Column("state"), right("health"), right("left"), Column("next free"), Column("breaker")]
    columns += [Column("token"), Column("needs"), Column("user agent")]
    # Where there is no room for who they say they are, how they stand is what matters.
    width_shown = len(columns) if room >= _USER_AGENT_MIN else len(columns) - 1
    rows = [_row(standing, words, look.at, room)[:width_shown] for standing, words in shown]
    parts: list[object] = [
        Text(headline(look), style="bold" if look.outlook.why is None else "bold yellow"),
        Text(pool_line(look.figures, look.at)),
        table(columns[:width_shown], rows),
    ]
    if len(shown) < len(found):
        parts.append(Text(f"{len(shown)} of {len(found)} (--all)"))
    return Group(*parts)  # type: ignore[arg-type]  # all of them are drawings


def shown(look: Look) -> dict[str, Any]:
    """As JSON."""
    outlook = look.outlook
    return {
        **shapes.pool(look.figures),
        "free": outlook.free,
        "why": outlook.why.value if outlook.why else None,
        "nextFreeAt": shapes.time(outlook.next_at),
        "headline": headline(look),
        "identities": [{**shapes.identity(standing), "needs": words or None} for standing, words in ranked(look)],
    }


def _attention(standing: Standing, look: Look) -> tuple[int, str]:
    """The smaller the number, the sooner a person should look."""
    identity, token, at = standing.identity, standing.identity.token, look.at
    if identity.status is IdentityStatus.BLOCKED:
        return (2, "blocked by hand") if identity.is_blocked_by_hand else (0, "given no token")
    if identity.status is IdentityStatus.SUSPENDED:
        return (1, "health too low") if identity.health_score < HEALTH_MIN else (3, "rests")
    if standing.breaker.state is not BreakerState.CLOSED:
        return 4, f"{standing.breaker.failure_count} failures in a row"
    if standing.paused_until and standing.paused_until > at:
        return 5, f"told to wait, over {until(standing.paused_until, at)}"
    if token is None:
        return 6, "a token"
    if token.expires_at - at <= TOKEN_ENDS_SOON:
        return 6, "a fresh token" if token.expires_at <= at else f"a fresh token {until(token.expires_at, at)}"
    if not standing.remaining and look.figures.why is not WhyNot.AWAY:
        return 7, "its budget back"
    return (8, "budget low") if standing.remaining < _LOW * look.hourly_limit else (9, "")


def _row(standing: Standing, words: str, at: datetime, room: int) -> tuple[object, ...]:
    identity, token = standing.identity, standing.identity.token
    next_free = "lent" if standing.leased_until and standing.leased_until > at else until(standing.next_free_at, at)
    return (
        identity.agent_id,
        identity.status,
        identity.health_score,
        standing.remaining,
        next_free if identity.status is IdentityStatus.AVAILABLE else _back(standing, at),
        standing.breaker.state,
        f"{since(token.issued_at, at)} old" if token else "none",
        words,
        identity.user_agent if len(identity.user_agent) <= room else f"{identity.user_agent[: room - 1]}…",
    )


def _back(standing: Standing, at: datetime) -> str:
    back_at = standing.next_free_at
    return f"back {until(back_at, at)}" if back_at else "by hand only"
