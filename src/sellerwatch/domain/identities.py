"""Identities: a User-Agent with its token, its health and its standing.

                 suspend · 429 · health < 30
    AVAILABLE ────────────────────────────────▶ SUSPENDED
        ▲  ▲ ◀──────────── recover ────────────────┘ │
        │  └─────────────── unblock ── BLOCKED ◀── block · three failed token issues

Blame follows cause: what the site does to everyone is not charged to anyone. 429s alone never strand an identity
(a recovery begins at health 70); other failures in a row may, and then it is left to a person, on purpose.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sellerwatch.domain.errors import Invalid, WrongVerb

HEALTH_MAX, HEALTH_RECOVERED, HEALTH_MIN = 100, 70, 30
RECOVERY_AFTER = timedelta(hours=1)
TOKEN_FAILURES_MAX = 3
TOO_MANY_REQUESTS = 429
_SEALED = re.compile(r"v1\.[A-Za-z0-9_-]{1,32}\.[A-Za-z0-9+/]{44,}={0,2}", re.ASCII)


class IdentityStatus(StrEnum):
    AVAILABLE = "AVAILABLE"
    SUSPENDED = "SUSPENDED"
    BLOCKED = "BLOCKED"


@dataclass(frozen=True, slots=True, eq=False)
class SealedToken:
    """A token as the domain knows it: ciphertext, and a fingerprint by which two are compared."""

    sealed: str = field(repr=False)
    fingerprint: str
    issued_at: datetime
    expires_at: datetime
    cookies: str | None = field(default=None, repr=False)
    """Further cookies that came with it, sealed alike."""

    def __post_init__(self) -> None:
        for text in (self.sealed, self.cookies):
            if text is not None and not _SEALED.fullmatch(text):
                raise Invalid("token", "(hidden)", "v1.<key id>.<base64 of at least 44 characters>")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SealedToken) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


class Verdict(StrEnum):
    """What an answer says about the identity that asked."""

    SUCCESS = "SUCCESS"
    RATE_LIMITED = "RATE_LIMITED"
    """429."""
    SITE_FAILURE = "SITE_FAILURE"
    """5xx, timeout, connection: the site's as likely as the identity's."""
    REJECTED = "REJECTED"
    """401 or 403 again after the token was renewed, and other 4xx that speak of the asker."""
    NEUTRAL = "NEUTRAL"
    """Says nothing of the identity: an item that is gone, an unreadable page."""


HEALTH_LOSS = {Verdict.RATE_LIMITED: 20, Verdict.SITE_FAILURE: 10, Verdict.REJECTED: 5}


@dataclass(slots=True)
class Identity:
    agent_id: int
    user_agent_id: str
    user_agent: str
    status: IdentityStatus = IdentityStatus.AVAILABLE
    health_score: int = HEALTH_MAX
    is_blocked_by_hand: bool = False
    token: SealedToken | None = None
    token_failures: int = 0
    suspended_at: datetime | None = None
    last_used_at: datetime | None = None
    usage_count: int = 0
    success_count: int = 0
    failure_count: int = 0
    requests_per_day: int = 0
    """On the day (UTC) on which it was used last."""

    def issue_token(self, token: SealedToken) -> None:
        self.token, self.token_failures = token, 0

    def discard_token(self) -> None:
        self.token = None

    def refuse_token(self) -> bool:
        """The marketplace answered, but gave no token. Three in a row: BLOCKED."""
        self.token_failures += 1
        if self.token_failures < TOKEN_FAILURES_MAX or self.status is IdentityStatus.BLOCKED:
            return False
        self.status, self.suspended_at = IdentityStatus.BLOCKED, None
        return True

    def record_success(self) -> None:
        self.success_count += 1
        self.health_score = min(HEALTH_MAX, self.health_score + 5)

    def record_failure(self, verdict: Verdict, at: datetime, *, is_site_failing: bool = False) -> None:
        """Lower the health, and suspend when the rules of its number say so."""
        self.failure_count += 1
        if verdict is Verdict.SITE_FAILURE and is_site_failing:
            return
        self.health_score = max(0, self.health_score - HEALTH_LOSS.get(verdict, 0))
        if verdict is Verdict.RATE_LIMITED:
            self.token = None
        if verdict is Verdict.RATE_LIMITED or self.health_score < HEALTH_MIN:
            self._suspend(at)

    def suspend(self, at: datetime) -> None:
        if self.status is IdentityStatus.BLOCKED:
            raise self._refusal("suspend")
        self._suspend(at)

    def block(self) -> None:
        """By hand, and for good."""
        self.status, self.is_blocked_by_hand, self.suspended_at = IdentityStatus.BLOCKED, True, None

    def unblock(self) -> None:
        if self.status is not IdentityStatus.BLOCKED:
            raise self._refusal("unblock")
        self.is_blocked_by_hand, self.token_failures = False, 0
        self._return()

    def recover(self) -> None:
        if self.status is not IdentityStatus.SUSPENDED:
            raise self._refusal("recover")
        self._return()

    def recovers_at(self, probation: timedelta | None = None) -> datetime | None:
        """When it comes back by itself; None: only a person can bring it back."""
        if self.status is not IdentityStatus.SUSPENDED or self.suspended_at is None:
            return None
        if self.health_score >= HEALTH_MIN:
            return self.suspended_at + RECOVERY_AFTER
        return self.suspended_at + probation if probation else None

    def _suspend(self, at: datetime) -> None:
        if self.status is IdentityStatus.AVAILABLE:
            self.status, self.suspended_at = IdentityStatus.SUSPENDED, at

    def _return(self) -> None:
        # A fresh token is asked for at its next lease: the old one may be why it was suspended.
        self.status, self.suspended_at, self.token = IdentityStatus.AVAILABLE, None, None
        self.health_score = HEALTH_RECOVERED

    def _refusal(self, verb: str) -> WrongVerb:
        return WrongVerb("identity", str(self.agent_id), self.status, verb)
