"""What is remembered of the house itself: identities and breakers, usage, alerts, processes, figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol

from sellerwatch.domain.breakers import Breaker, BreakerScope, Transition
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.identities import Identity, SealedToken


@dataclass(frozen=True, slots=True)
class Usage:
    """One request that left, for `token_usage_log`."""

    agent_id: int
    request_url: str
    at: datetime
    task_id: str | None = None
    http_status: int | None = None
    duration_ms: int | None = None
    is_success: bool = False
    error_message: str | None = None
    retry_after: timedelta | None = None
    """How long the answer asked us to wait."""


class Identities(Protocol):
    """The record of which identities exist; the pool leads in what they do."""

    def all(self) -> list[Identity]:
        """Those that are not retired, with their tokens."""

    def add(self, user_agents: Sequence[str], at: datetime) -> int: ...
    def retire(self, agent_ids: Sequence[int], at: datetime) -> int: ...
    def save(
        self, identities: Sequence[Identity], remaining: Mapping[int, int], hourly_limit: int, at: datetime
    ) -> None:
        """Status, health, counters and what follows from them, in one statement a table; what remains of the limit
        goes to `rate_limit_bucket`. The token: see `keep_token`."""

    def keep_token(self, agent_id: int, token: SealedToken | None, at: datetime) -> None:
        """The active token, and its place in the refresh schedule; None: no longer any."""

    def refresh_due(self, at: datetime, count: int) -> list[int]:
        """AVAILABLE identities whose token's refresh is due by its schedule, the longest due first."""

    def note_refresh(self, agent_id: int, at: datetime, *, is_success: bool) -> None: ...
    def tokens(self) -> list[tuple[int, SealedToken]]:
        """Every active token: for rekeying."""

    def reseal(self, tokens: Sequence[tuple[int, SealedToken]], at: datetime) -> int:
        """The same tokens, told by their fingerprints, under another key; one that was replaced meanwhile is not brought
        back. How many were found."""

    def drop_replaced_tokens(self) -> int:
        """Those that are active no more; how many."""


class Breakers(Protocol):
    def record(self, transitions: Sequence[Transition]) -> None:
        """Events, and the states they lead to."""

    def load(self, scope: BreakerScope) -> Breaker | None: ...
    def save(self, breaker: Breaker, at: datetime) -> None: ...


UNKNOWN_NAMES_MAX = 200
OTHER_NAMES = "(others)"
UNREADABLE_ROW = "unreadable_row"
"""The alert of a table, whose name follows, in which rows could not be read."""


class Chores(Protocol):
    """What keeps the house: usage, drift, alerts, processes, figures, and what may be forgotten."""

    def log_usage(self, rows: Sequence[Usage]) -> None: ...
    def note_drift(self, rows: Sequence[tuple[DocumentKind, str, str, str]], at: datetime) -> None:
        """(kind, field, problem, sample), counted by day. Of the unknown names of a kind `UNKNOWN_NAMES_MAX` a day are
        told apart: an answer can be full of them."""

    def new_names(self, kind: DocumentKind, times: int, at: datetime) -> list[str]:
        """Unknown names counted at least so often today, and on no earlier day."""

    def note_suppressed(self, rule: str, times: int, at: datetime) -> None:
        """So many changes were not told, by that rule; counted by day."""

    def raise_alert(self, name: str, severity: str, text: str, details: Mapping[str, Any], at: datetime) -> None:
        """Open, or still open: counted."""

    def clear_alert(self, name: str, at: datetime) -> None: ...
    def clear_unmet(self, at: datetime, quiet: timedelta) -> None:
        """Alerts of unreadable rows end when so long none was met."""

    def alerts_to_tell(
        self, at: datetime, repeat_seconds: float
    ) -> list[tuple[str, str, str, datetime, dict[str, Any]]]:
        """(name, severity, text, since, details) of open alerts not told within the repeat time."""

    def told(self, name: str, at: datetime) -> None: ...
    def show_life(self, owner: str, role: str, host: str, pid: int, version: str, at: datetime) -> None: ...
    def leave(self, owner: str) -> None: ...
    def note_sweeps(self, rows: Sequence[tuple[str, int, str | None, datetime]]) -> None:
        """(name, found, error, when): the last runs of sweeps and loops."""

    def note_pause(self, reason: str, at: datetime) -> None:
        """Nothing may be received at this moment."""

    def paused_at(self) -> datetime | None:
        """When that was so last; None: never."""

    def write_daily_figures(self, day: date, start: datetime, end: datetime) -> int: ...
    def unsettled_days(self, since: date) -> list[date]:
        """Days from that one on that were figured while tasks of theirs were open."""

    def figured_days(self, day: date) -> bool:
        """Whether this day's figures are written."""

    def prune(self, what: str, before: datetime, count: int) -> int:
        """Delete up to `count` rows of one kind (`attempts`, `breaker_events`, `tasks`, `task_outbox`,
        `product_outbox`, `scheduler_outbox`, `raws`, `usage`, `queue`, `processes`); how many."""
