"""What the identity pool keeps for itself: small rows that change with every request, in microseconds since 1970.

The record of the identities is `user_agent_pool`; these tables are the pool's ledger and nobody else's. What every
lease changes (`pool_identities`) is kept apart from what it only shows (`pool_faces`), so that little is rewritten.
"""

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint

from sellerwatch.adapters.sql.tables.columns import (
    BIG,
    COUNT,
    FLAG,
    HASH,
    KEY,
    MOMENT,
    SHORT,
    STATUS,
    UID,
    exact,
    optional,
    required,
    table,
)

pool_identities = table(
    "pool_identities",
    Column("agent_id", KEY, primary_key=True, autoincrement=False),
    required("status", STATUS),
    required("health", COUNT),
    required("is_blocked_by_hand", FLAG),
    optional("suspended_us", BIG),
    required("token_failures", COUNT),
    required("has_token", FLAG),
    required("is_leaving", FLAG),
    # Where it is to be found, and the moment that matters there: see `pool.members`.
    required("standing", STATUS),
    required("due_us", BIG),
    required("next_free_us", BIG),
    required("before_us", BIG),
    required("even_us", BIG),
    required("paused_until_us", BIG),
    # How many leases it ever had: the number of its next entry in the window.
    required("uses", BIG),
    optional("last_used_us", BIG),
    optional("lease_id", UID),
    optional("leased_us", BIG),
    required("breaker_state", STATUS),
    required("failures_in_row", COUNT),
    optional("opened_us", BIG),
    optional("half_open_us", BIG),
    optional("closed_us", BIG),
    required("usage_count", BIG),
    required("success_count", BIG),
    required("failure_count", BIG),
    required("requests_per_day", COUNT),
    required("revision", BIG),
    Index("idx_due", "standing", "due_us", "agent_id"),
    Index("idx_revision", "revision"),
)

pool_faces = table(
    "pool_faces",
    Column("agent_id", KEY, primary_key=True, autoincrement=False),
    required("user_agent_id", UID),
    required("user_agent", exact(500)),
    optional("sealed", SHORT),
    optional("cookies", SHORT),
    optional("fingerprint", HASH),
    optional("issued_us", BIG),
    optional("expires_us", BIG),
    Index("idx_expires", "expires_us", "agent_id"),
)

pool_window = table(
    "pool_window",
    # 0 is the site: there an entry stands for all leases of one step, numbered by the first of them.
    Column("agent_id", BIG, nullable=False),
    Column("entry", BIG, nullable=False),
    Column("at_us", BIG, nullable=False),
    PrimaryKeyConstraint("agent_id", "entry"),
    rowid=False,
)


def _breaker(name: str) -> list[Column[int] | Column[str]]:
    return [
        required(f"{name}_state", STATUS),
        required(f"{name}_failures", COUNT),
        optional(f"{name}_opened_us", BIG),
        optional(f"{name}_half_open_us", BIG),
        optional(f"{name}_closed_us", BIG),
        optional(f"{name}_trial_id", UID),
        optional(f"{name}_trial_until_us", BIG),
    ]


pool_site = table(
    "pool_site",
    Column("name", exact(64), primary_key=True),
    required("last_us", BIG),
    required("in_flight", COUNT),
    required("uses", BIG),
    required("paused_until_us", BIG),
    # Who was lately asked for patience, and until when: JSON, a few entries.
    required("patience", exact(2000)),
    required("available", COUNT),
    required("suspended", COUNT),
    required("blocked", COUNT),
    required("by_hand", COUNT),
    required("revision", BIG),
    required("event", BIG),
    # The pool's trial succeeded while too few were available: it closes with the next recovery that suffices.
    required("is_proven", FLAG),
    *_breaker("pool"),
    *_breaker("site"),
)

# Which engine leads (see `domain.leadership`); no row: this one, and it always did.
pool_leader = table(
    "pool_leader",
    Column("name", exact(64), primary_key=True),
    required("epoch", COUNT),
    required("engine", STATUS),
    required("phase", STATUS),
    optional("until", MOMENT),
    optional("past", STATUS),
    optional("ended_at", MOMENT),
    optional("books_at", MOMENT),
)

pool_health = table(
    "pool_health",
    Column("health", Integer(), primary_key=True, autoincrement=False),
    required("identities", COUNT),
)

pool_tally = table(
    "pool_tally",
    Column("bucket_us", KEY, primary_key=True, autoincrement=False),
    required("requests", COUNT),
    required("failures", COUNT),
    required("limited", COUNT),
)

pool_events = table(
    "pool_events",
    Column("event", KEY, primary_key=True, autoincrement=False),
    required("kind", STATUS),
    required("at_us", BIG),
    optional("agent_id", BIG),
    required("reason", exact(200)),
    optional("scope", STATUS),
    optional("from_state", STATUS),
    optional("to_state", STATUS),
    required("failures", COUNT),
)
