"""A hundred identities, each with its full bucket and its closed breaker; ones that exist are left as they are."""

from collections.abc import Iterable

from alembic import context, op
from sqlalchemy import Insert, MetaData, Select, Table, insert, literal, select

from sellerwatch.adapters.sql.dialect import insert_or_ignore
from sellerwatch.adapters.sql.migrations import frozen as f
from sellerwatch.domain.ids import derived
from sellerwatch.domain.user_agents import user_agents

revision = "0003_seed_identities"
down_revision = "0002_identities"
branch_labels = None
depends_on = None

SEEDED = 100
HOURLY_LIMIT = 80

tables = MetaData()

pool = f.table(
    tables,
    "user_agent_pool",
    f.key("agent_id"),
    f.required("user_agent_id", f.UID),
    f.required("user_agent", f.exact(500)),
    f.required("status", f.STATUS),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
)
bucket = f.table(
    tables,
    "rate_limit_bucket",
    f.key("bucket_id"),
    f.required("agent_id", f.BIG),
    f.required("max_tokens", f.COUNT),
    f.required("current_tokens", f.number(10, 2)),
    f.required("refill_rate", f.number(12, 6)),
    f.required("last_refill_at", f.MOMENT),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
)
breaker = f.table(
    tables,
    "circuit_breaker_state",
    f.key("state_id"),
    f.required("agent_id", f.BIG),
    f.required("scope", f.STATUS),
    f.required("circuit_state", f.STATUS),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
)
token = f.table(tables, "user_agent_token", f.key("token_id"), f.required("agent_id", f.BIG))
refresh = f.table(tables, "token_refresh_schedule", f.key("schedule_id"), f.required("agent_id", f.BIG))


def upgrade() -> None:
    at = context.config.attributes["now"].replace(tzinfo=None)
    times = {"created_at": at, "updated_at": at}
    seeds = _seeds()
    add = insert_or_ignore(op.get_context().dialect.name, pool)
    for user_agent_id, user_agent in seeds.items():
        op.execute(add.values(user_agent_id=user_agent_id, user_agent=user_agent, status="AVAILABLE", **times))
    full = {"max_tokens": HOURLY_LIMIT, "current_tokens": HOURLY_LIMIT, "refill_rate": round(HOURLY_LIMIT / 3600, 6)}
    op.execute(_for_each(bucket, seeds, {**full, "last_refill_at": at, **times}))
    op.execute(_for_each(breaker, seeds, {"scope": "IDENTITY", "circuit_state": "CLOSED", **times}))


def downgrade() -> None:
    seeds = _seeds()
    for its in (bucket, breaker, token, refresh):
        op.execute(its.delete().where(its.c.agent_id.in_(_agents(seeds))))
    op.execute(pool.delete().where(pool.c.user_agent_id.in_(seeds)))


def _seeds() -> dict[str, str]:
    return {derived(user_agent, "user-agent"): user_agent for user_agent in user_agents(SEEDED)}


def _agents(seeds: Iterable[str]) -> Select[int]:
    return select(pool.c.agent_id).where(pool.c.user_agent_id.in_(seeds)).order_by(pool.c.agent_id)


def _for_each(table: Table, seeds: Iterable[str], values: dict[str, object]) -> Insert:
    """One row for each seeded identity that has none yet."""
    constants = [literal(value, table.c[name].type) for name, value in values.items()]
    has_one = select(table.c.agent_id).where(table.c.agent_id == pool.c.agent_id).exists()
    agents = _agents(seeds).where(~has_one).add_columns(*constants)
    return insert(table).from_select(["agent_id", *values], agents)
