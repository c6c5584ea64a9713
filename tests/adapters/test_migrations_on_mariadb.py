"""Migrations on MariaDB end where the tables say, in the words of its own catalogue; and the months of the log."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

import servers
from adapters.test_migrations import HOUSE, IDENTITIES, NOW, SEEDED, one, run, tables_of
from sellerwatch.adapters.sql import schema, tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.partitions import SqlPartitions
from sellerwatch.ports.partitions import Kept

pytestmark = pytest.mark.slow
MONTHS = ["p202611", "p202612", *(f"p2027{month:02d}" for month in range(1, 11))]


@pytest.fixture
def empty(mariadb: servers.MariaDb) -> Iterator[Engine]:
    made = engine(mariadb.without_tables("shapes"))
    yield made
    made.dispose()


@pytest.fixture
def full(empty: Engine) -> Engine:
    schema.upgrade(empty, now=NOW)
    return empty


def names(database: Engine, sql: str) -> list[str]:
    with database.connect() as connection:
        return [row[0] for row in connection.execute(text(sql))]


def partitions(database: Engine) -> list[str]:
    return names(
        database,
        "SELECT partition_name FROM information_schema.partitions WHERE table_schema = DATABASE()"
        " AND partition_name IS NOT NULL ORDER BY partition_ordinal_position",
    )


def test_up_from_nothing_down_to_nothing_and_up_again(empty: Engine) -> None:
    for _ in range(2):
        schema.upgrade(empty, now=NOW)
        assert tables_of(empty) == set(tables.metadata.tables)
        assert schema.current(empty) == (SEEDED, HOUSE)
        assert schema.check(empty) == []
        assert one(empty, "SELECT count(DISTINCT user_agent), min(agent_id) FROM user_agent_pool") == (100, 1)
        schema.downgrade(empty, "base", now=NOW)
        assert tables_of(empty) == set()


def test_the_identity_tables_go_and_come_alone_with_their_hundred(full: Engine) -> None:
    schema.downgrade(full, "identities@base", now=NOW)
    assert tables_of(full) == set(tables.metadata.tables) - IDENTITIES
    assert schema.current(full) == (HOUSE,)
    assert len(schema.check(full)) == len(IDENTITIES)
    schema.upgrade(full, "identities@head", now=NOW)
    assert schema.check(full) == []
    assert one(full, "SELECT count(*) FROM user_agent_pool") == (100,)
    assert len(partitions(full)) == 13


def test_check_names_a_planted_difference(full: Engine) -> None:
    run(full, "DROP INDEX idx_status ON sellers")
    run(full, "ALTER TABLE sweeps DROP COLUMN last_error")
    run(full, "ALTER TABLE rate_limit_bucket ALTER current_tokens SET DEFAULT 81")
    assert schema.check(full) == [
        "column rate_limit_bucket.current_tokens: default is 81.00, not 80",
        "column sweeps.last_error is missing",
        "index of sellers: idx_status is missing",
    ]


def test_types_are_those_of_the_contract(full: Engine) -> None:
    told = (
        "SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND table_name <> 'alembic_version' AND "
    )
    assert names(full, f"{told} data_type = 'datetime' AND datetime_precision <> 6") == []
    assert names(full, f"{told} collation_name IS NOT NULL AND collation_name <> 'utf8mb4_bin'") == []
    large = names(full, f"{told} character_maximum_length >= 16 * 1024 * 1024")
    assert {"product_raw_data.raw_json", "product_outbox.payload"} <= set(large)
    assert one(full, "SHOW COLUMNS FROM rate_limit_bucket LIKE 'refill_rate'")[1] == "decimal(12,6)"


def test_lesson_58_a_month_of_the_log_reads_one_partition(full: Engine) -> None:
    assert partitions(full) == [*MONTHS, "p_future"]
    wanted = "request_timestamp >= '2026-12-01' AND request_timestamp < '2027-01-01'"
    row = one(full, f"EXPLAIN PARTITIONS SELECT count(*) FROM token_usage_log WHERE {wanted}")
    assert row.partitions == "p202612"
    hour = "agent_id = 7 AND is_429_error = 1 AND request_timestamp > '2027-02-03 04:00:00'"
    plan = one(full, f"EXPLAIN PARTITIONS SELECT count(*) FROM token_usage_log WHERE {hour}")
    assert "p202701" not in plan.partitions.split(",")


@pytest.fixture
def months(full: Engine) -> Iterator[SqlPartitions]:
    database = Database(full)
    yield SqlPartitions(database)
    database.close()


async def test_months_to_come_are_made_and_those_past_retention_dropped(full: Engine, months: SqlPartitions) -> None:
    for moment in ("2026-11-20", "2027-03-20", "2027-11-30"):
        run(
            full,
            "INSERT INTO token_usage_log (agent_id, request_url, is_success, request_timestamp)"
            f" VALUES (1, 'x', 1, '{moment}')",
        )
    at = datetime(2027, 3, 15, tzinfo=UTC)
    kept = await months.keep(at, at - timedelta(days=93))
    assert kept == Kept(["p202711", "p202712", "p202801", "p202802"], ["p202611"])
    found = await months.all()
    assert [each.name for each in found] == [*MONTHS[1:], *kept.made, "p_future"]
    assert (found[0].before, found[-1].before) == (datetime(2027, 1, 1, tzinfo=UTC), None)
    # What lay in the last one went to its month.
    assert one(full, "SELECT count(*) FROM token_usage_log PARTITION (p202711)") == (1,)
    assert one(full, "SELECT count(*) FROM token_usage_log") == (2,)
    assert await months.keep(at, at - timedelta(days=93)) == Kept([], [])


async def test_after_years_of_rest_there_is_a_month_for_today(months: SqlPartitions) -> None:
    at = datetime(2031, 5, 5, tzinfo=UTC)
    kept = await months.keep(at, at - timedelta(days=93))
    assert kept.dropped == MONTHS
    assert (kept.made[0], kept.made[-1], len(kept.made)) == ("p203105", "p203204", 12)


async def test_the_month_of_today_is_never_dropped(months: SqlPartitions) -> None:
    assert (await months.keep(NOW, NOW + timedelta(days=400))).dropped == []


async def test_of_two_at_once_one_makes_them(full: Engine, months: SqlPartitions) -> None:
    at = datetime(2027, 3, 15, tzinfo=UTC)
    kept = await asyncio.gather(*(months.keep(at, at) for _ in range(2)))
    assert sorted(len(each.made) for each in kept) == [0, 4]
    assert len(partitions(full)) == len(set(partitions(full)))
