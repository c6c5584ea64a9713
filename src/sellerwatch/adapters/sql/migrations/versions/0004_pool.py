"""The pool's ledger: what it keeps of identities, windows, breakers and events."""

from functools import partial

from sqlalchemy import MetaData
from sqlalchemy.schema import SchemaItem

from sellerwatch.adapters.sql.migrations import frozen as f

revision = "0004_pool"
down_revision = "0001_sellers_tasks_products"
branch_labels = None
depends_on = None

tables = MetaData()
table = partial(f.table, tables)


def breaker(name: str) -> list[SchemaItem]:
    return [
        f.required(f"{name}_state", f.STATUS),
        f.required(f"{name}_failures", f.COUNT),
        f.optional(f"{name}_opened_us", f.BIG),
        f.optional(f"{name}_half_open_us", f.BIG),
        f.optional(f"{name}_closed_us", f.BIG),
        f.optional(f"{name}_trial_id", f.UID),
        f.optional(f"{name}_trial_until_us", f.BIG),
    ]


table(
    "pool_identities",
    f.named("agent_id", f.KEY),
    f.required("status", f.STATUS),
    f.required("health", f.COUNT),
    f.required("is_blocked_by_hand", f.FLAG),
    f.optional("suspended_us", f.BIG),
    f.required("token_failures", f.COUNT),
    f.required("has_token", f.FLAG),
    f.required("is_leaving", f.FLAG),
    f.required("standing", f.STATUS),
    f.required("due_us", f.BIG),
    f.required("next_free_us", f.BIG),
    f.required("before_us", f.BIG),
    f.required("even_us", f.BIG),
    f.required("paused_until_us", f.BIG),
    f.required("uses", f.BIG),
    f.optional("last_used_us", f.BIG),
    f.optional("lease_id", f.UID),
    f.optional("leased_us", f.BIG),
    f.required("breaker_state", f.STATUS),
    f.required("failures_in_row", f.COUNT),
    f.optional("opened_us", f.BIG),
    f.optional("half_open_us", f.BIG),
    f.optional("closed_us", f.BIG),
    f.required("usage_count", f.BIG),
    f.required("success_count", f.BIG),
    f.required("failure_count", f.BIG),
    f.required("requests_per_day", f.COUNT),
    f.required("revision", f.BIG),
    f.index("idx_due", "standing", "due_us", "agent_id"),
    f.index("idx_revision", "revision"),
)

table(
    "pool_faces",
    f.named("agent_id", f.KEY),
    f.required("user_agent_id", f.UID),
    f.required("user_agent", f.exact(500)),
    f.optional("sealed", f.SHORT),
    f.optional("cookies", f.SHORT),
    f.optional("fingerprint", f.HASH),
    f.optional("issued_us", f.BIG),
    f.optional("expires_us", f.BIG),
    f.index("idx_expires", "expires_us", "agent_id"),
)

table(
    "pool_window",
    f.named("agent_id", f.BIG),
    f.named("entry", f.BIG),
    f.required("at_us", f.BIG),
    rowid=False,
)

table(
    "pool_site",
    f.named("name", f.exact(64)),
    f.required("last_us", f.BIG),
    f.required("in_flight", f.COUNT),
    f.required("uses", f.BIG),
    f.required("paused_until_us", f.BIG),
    f.required("patience", f.exact(2000)),
    f.required("available", f.COUNT),
    f.required("suspended", f.COUNT),
    f.required("blocked", f.COUNT),
    f.required("by_hand", f.COUNT),
    f.required("revision", f.BIG),
    f.required("event", f.BIG),
    f.required("is_proven", f.FLAG),
    *breaker("pool"),
    *breaker("site"),
)

table(
    "pool_leader",
    f.named("name", f.exact(64)),
    f.required("epoch", f.COUNT),
    f.required("engine", f.STATUS),
    f.required("phase", f.STATUS),
    f.optional("until", f.MOMENT),
    f.optional("past", f.STATUS),
    f.optional("ended_at", f.MOMENT),
    f.optional("books_at", f.MOMENT),
)

table("pool_health", f.named("health", f.COUNT), f.required("identities", f.COUNT))

table(
    "pool_tally",
    f.named("bucket_us", f.KEY),
    f.required("requests", f.COUNT),
    f.required("failures", f.COUNT),
    f.required("limited", f.COUNT),
)

table(
    "pool_events",
    f.named("event", f.KEY),
    f.required("kind", f.STATUS),
    f.required("at_us", f.BIG),
    f.optional("agent_id", f.BIG),
    f.required("reason", f.exact(200)),
    f.optional("scope", f.STATUS),
    f.optional("from_state", f.STATUS),
    f.optional("to_state", f.STATUS),
    f.required("failures", f.COUNT),
)


def upgrade() -> None:
    f.create(tables)


def downgrade() -> None:
    f.drop(tables)
