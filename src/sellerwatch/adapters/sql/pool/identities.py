"""The pool's rows about identities, and their way to the domain's Identity and Breaker and back.

Where an identity is to be found (`standing`), and the moment that matters there (`due_us`), are one index:

    READY      may be lent with its token       from when on
    BARE       may be lent, has no token        from when on
    LEASED     is lent                          its deadline
    SUSPENDED  rests                            when it recovers by itself, or NEVER
    BLOCKED    waits for a person               NEVER
    GONE       left the pool                    NEVER; its window is kept, it may come back within the hour
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from operator import attrgetter

from sqlalchemy import and_, bindparam, insert, or_, select, update
from sqlalchemy.sql import ColumnElement

from sellerwatch.adapters.sql.pool.moments import EPOCH, NEVER, moment, span, us
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.tables.pool import pool_faces, pool_identities, pool_window
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState
from sellerwatch.domain.identities import Identity, IdentityStatus, SealedToken
from sellerwatch.ports.pool import Limits

READY, BARE, LEASED, SUSPENDED, BLOCKED, GONE = "READY", "BARE", "LEASED", "SUSPENDED", "BLOCKED", "GONE"

KEPT = SealedToken("v1.kept." + "A" * 44, "", EPOCH, EPOCH)
"""Stands for the token that the identity's face holds: the rules ask whether there is one, never for its text."""


@dataclass(slots=True)
class Member:
    """One row of `pool_identities`, its fields in the order of the columns."""

    agent_id: int
    status: str
    health: int
    is_blocked_by_hand: bool
    suspended_us: int | None
    token_failures: int
    has_token: bool
    is_leaving: bool
    standing: str
    due_us: int
    next_free_us: int
    before_us: int
    """What `next_free_us` was before the last lease, for giving that back."""
    even_us: int
    paused_until_us: int
    uses: int
    last_used_us: int | None
    lease_id: str | None
    leased_us: int | None
    breaker_state: str
    failures_in_row: int
    opened_us: int | None
    half_open_us: int | None
    closed_us: int | None
    usage_count: int
    success_count: int
    failure_count: int
    requests_per_day: int
    revision: int

    @property
    def is_counted(self) -> bool:
        return not self.is_leaving and self.standing != GONE

    def identity(self, face: Row | None = None) -> Identity:
        """As the rules see it; with its `face` (see FACE_COLUMNS) also as others do."""
        user_agent_id, user_agent = face[1:3] if face else ("", "")
        return Identity(
            self.agent_id,
            user_agent_id,
            user_agent,
            IdentityStatus(self.status),
            self.health,
            bool(self.is_blocked_by_hand),
            (KEPT if face is None else sealed_token(face[3:])) if self.has_token else None,
            self.token_failures,
            moment(self.suspended_us),
            moment(self.last_used_us),
            self.usage_count,
            self.success_count,
            self.failure_count,
            self.requests_per_day,
        )

    def take(self, identity: Identity) -> None:
        """What a verb of the domain made of it."""
        self.status = identity.status.value
        self.health = identity.health_score
        self.is_blocked_by_hand = identity.is_blocked_by_hand
        self.suspended_us = us(identity.suspended_at)
        self.token_failures = identity.token_failures
        self.has_token = identity.token is not None
        self.success_count = identity.success_count
        self.failure_count = identity.failure_count

    def breaker(self, limits: Limits) -> Breaker:
        return Breaker(
            BreakerScope.IDENTITY,
            limits.identity_failure_threshold,
            timedelta(seconds=limits.breaker_open_seconds),
            self.agent_id,
            BreakerState(self.breaker_state),
            self.failures_in_row,
            moment(self.opened_us),
            moment(self.half_open_us),
            moment(self.closed_us),
            # One lease at a time: while it is half open, every lease is its trial.
            self.lease_id if self.breaker_state == "HALF_OPEN" else None,
            moment(self.due_us) if self.breaker_state == "HALF_OPEN" and self.lease_id else None,
        )

    def take_breaker(self, breaker: Breaker) -> None:
        self.breaker_state, self.failures_in_row = breaker.state.value, breaker.failure_count
        self.opened_us, self.half_open_us = us(breaker.opened_at), us(breaker.half_open_at)
        self.closed_us = us(breaker.closed_at)

    def free_from(self, limits: Limits) -> int:
        """When it may be lent again, as far as budget, patience and its breaker are concerned."""
        free = max(self.next_free_us, self.paused_until_us)
        if self.breaker_state == "OPEN" and self.opened_us is not None:
            free = max(free, self.opened_us + span(limits.breaker_open_seconds))
        return free

    def place(self, limits: Limits) -> None:
        """Put it where it is to be found now. A lease that is out stays where it is."""
        if self.lease_id is not None:
            return
        if self.is_leaving:
            self.is_leaving = False
            self.standing, self.due_us = GONE, NEVER
        elif self.status == "AVAILABLE":
            self.standing, self.due_us = READY if self.has_token else BARE, self.free_from(limits)
        elif self.status == "SUSPENDED":
            self.standing, self.due_us = SUSPENDED, us(self.identity().recovers_at(limits.probation)) or NEVER
        else:
            self.standing, self.due_us = BLOCKED, NEVER


def joining(identity: Identity) -> Member:
    """A new member, as it is in the record; it never was lent."""
    return Member(
        agent_id=identity.agent_id,
        status=identity.status.value,
        health=identity.health_score,
        is_blocked_by_hand=identity.is_blocked_by_hand,
        suspended_us=us(identity.suspended_at),
        token_failures=identity.token_failures,
        has_token=identity.token is not None,
        is_leaving=False,
        standing=BARE,
        due_us=0,
        next_free_us=0,
        before_us=0,
        even_us=0,
        paused_until_us=0,
        uses=0,
        last_used_us=us(identity.last_used_at),
        lease_id=None,
        leased_us=None,
        breaker_state="CLOSED",
        failures_in_row=0,
        opened_us=None,
        half_open_us=None,
        closed_us=None,
        usage_count=identity.usage_count,
        success_count=identity.success_count,
        failure_count=identity.failure_count,
        requests_per_day=identity.requests_per_day,
        revision=0,
    )


@lru_cache(maxsize=1024)
def sealed_token(columns: Row) -> SealedToken | None:
    """From sealed, cookies, fingerprint, issued_us and expires_us. Kept, for it is checked anew each time it is made."""
    sealed, cookies, fingerprint, issued_us, expires_us = columns
    return None if sealed is None else SealedToken(sealed, fingerprint, moment(issued_us), moment(expires_us), cookies)


def token_columns(token: SealedToken | None) -> Row:
    if token is None:
        return (None, None, None, None, None)
    return (token.sealed, token.cookies, token.fingerprint, us(token.issued_at), us(token.expires_at))


COLUMNS = tuple(column.name for column in pool_identities.columns)
FACE_COLUMNS = tuple(column.name for column in pool_faces.columns)
TOKEN_COLUMNS = FACE_COLUMNS[3:]
row_of = attrgetter(*COLUMNS)
saved = attrgetter(*COLUMNS[1:], "agent_id")
"""The row as SAVE wants it."""

_members, _faces, _oldest = pool_identities.c, pool_faces.c, pool_window.alias("oldest")

INSERT = Prepared(insert(pool_identities), COLUMNS)
SAVE = Prepared(
    update(pool_identities)
    .where(_members.agent_id == bindparam("key"))
    .values({name: bindparam(name) for name in COLUMNS[1:]}),
    (*COLUMNS[1:], "key"),
)
INSERT_FACE = Prepared(insert(pool_faces), FACE_COLUMNS)
SAVE_NAME = Prepared(
    update(pool_faces)
    .where(_faces.agent_id == bindparam("key"))
    .values(user_agent_id=bindparam("user_agent_id"), user_agent=bindparam("user_agent")),
    ("key", "user_agent_id", "user_agent"),
)
SAVE_TOKEN = Prepared(
    update(pool_faces)
    .where(_faces.agent_id == bindparam("key"))
    .values({name: bindparam(name) for name in TOKEN_COLUMNS}),
    ("key", *TOKEN_COLUMNS),
)
REKEY = Prepared(
    update(pool_faces)
    .where(and_(_faces.agent_id == bindparam("key"), _faces.fingerprint == bindparam("same")))
    .values(sealed=bindparam("sealed"), cookies=bindparam("cookies")),
    ("key", "same", "sealed", "cookies"),
)
BY_ID = PreparedIn(lambda ids: select(pool_identities).where(_members.agent_id.in_(ids)))
DUE = Prepared(
    select(pool_identities)
    .where(_members.standing == bindparam("its"), _members.due_us <= bindparam("now"))
    .order_by(_members.due_us, _members.agent_id)
    .limit(bindparam("count")),
    ("its", "now", "count"),
)
ALL = Prepared(select(*_members, *_faces).join_from(pool_identities, pool_faces, _members.agent_id == _faces.agent_id))
FIRST = Prepared(
    select(_members.due_us, _members.paused_until_us)
    .where(_members.standing == bindparam("its"))
    .order_by(_members.due_us, _members.agent_id)
    .limit(1),
    ("its",),
)


def _lendable(which: ColumnElement[bool], columns: tuple[str, ...]) -> Prepared:
    """Members with their faces, and when the entry was made that must be out of the window for the lease after next."""
    due = and_(which, _members.due_us <= bindparam("now"))
    entry = and_(_oldest.c.agent_id == _members.agent_id, _oldest.c.entry == _members.uses + 1 - bindparam("limit"))
    return Prepared(
        select(*_members, *_faces, _oldest.c.at_us)
        .select_from(pool_identities)
        .join(pool_faces, _faces.agent_id == _members.agent_id)
        .outerjoin(_oldest, entry)
        .where(due)
        .order_by(_members.due_us, _members.agent_id)
        .limit(bindparam("count")),
        columns,
    )


LENDABLE = _lendable(_members.standing == bindparam("its"), ("its", "now", "limit", "count"))
LENDABLE_ONE = _lendable(
    and_(_members.agent_id == bindparam("its"), or_(_members.standing == READY, _members.standing == BARE)),
    ("its", "now", "limit", "count"),
)
