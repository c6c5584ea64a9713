"""Migrations end where the tables say: up, down, up again; the identities alone; names and partitions per database."""

import re
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, inspect, text
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.schema import CreateIndex

from sellerwatch.adapters.sql import schema, tables
from sellerwatch.adapters.sql.dialect import engine, for_dialect
from sellerwatch.domain.errors import Invalid

NOW = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
HOUSE = "0010_pauses"
SEEDED = "0003_seed_identities"
IDENTITIES = {
    "user_agent_pool",
    "user_agent_token",
    "token_usage_log",
    "circuit_breaker_state",
    "circuit_breaker_event",
    "rate_limit_bucket",
    "token_refresh_schedule",
}


@pytest.fixture
def empty():
    made = engine("sqlite://")
    yield made
    made.dispose()


@pytest.fixture(scope="module")
def kept():
    """At the newest revision: climbed to once, copied for each test."""
    made = engine("sqlite://")
    schema.upgrade(made, now=NOW)
    raw = made.raw_connection()
    yield raw.driver_connection
    raw.close()
    made.dispose()


@pytest.fixture
def full(empty, kept):
    raw = empty.raw_connection()
    kept.backup(raw.driver_connection)
    raw.close()
    return empty


def tables_of(database: Engine) -> set[str]:
    return set(inspect(database).get_table_names()) - {"alembic_version"}


def run(database: Engine, statement: str) -> None:
    with database.begin() as connection:
        connection.execute(text(statement))


def one(database: Engine, statement: str):
    with database.connect() as connection:
        return connection.execute(text(statement)).one()


def test_up_from_nothing_down_to_nothing_and_up_again(empty):
    assert schema.current(empty) == ()
    schema.upgrade(empty, now=NOW)
    assert tables_of(empty) == set(tables.metadata.tables)
    assert schema.current(empty) == (SEEDED, HOUSE)
    schema.downgrade(empty, "base", now=NOW)
    assert tables_of(empty) == set()
    assert schema.current(empty) == ()
    schema.upgrade(empty, now=NOW)
    assert tables_of(empty) == set(tables.metadata.tables)


def test_an_upgrade_of_what_is_up_changes_nothing(full):
    schema.upgrade(full, now=NOW)
    assert one(full, "SELECT count(*) FROM user_agent_pool") == (100,)


def test_without_a_time_given_the_seeds_bear_the_databases(empty):
    schema.upgrade(empty)
    assert one(empty, "SELECT count(*) FROM user_agent_pool WHERE created_at > '2020'") == (100,)


def test_at_head_database_and_tables_agree(full):
    assert schema.check(full) == []


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        ("DROP INDEX sellers__idx_status", "index of sellers: sellers__idx_status is missing"),
        ("CREATE INDEX more ON sellers (name)", "index of sellers: more is unknown"),
        ("DROP TABLE sweeps", "table sweeps is missing"),
        ("CREATE TABLE stray (a INTEGER)", "table stray is unknown"),
        ("ALTER TABLE sellers ADD COLUMN extra INTEGER", "column sellers.extra is unknown"),
        ("ALTER TABLE sweeps DROP COLUMN last_error", "column sweeps.last_error is missing"),
    ],
)
def test_check_names_a_planted_difference(full, planted, named):
    run(full, planted)
    assert schema.check(full) == [named]


def test_check_tells_an_index_that_runs_the_other_way(full):
    run(full, "DROP INDEX crawler_tasks__idx_status_created_at")
    run(full, "CREATE INDEX crawler_tasks__idx_status_created_at ON crawler_tasks (status, created_at)")
    [line] = schema.check(full)
    assert line.endswith("idx_status_created_at is (status, created_at), not (status, created_at DESC)")


def test_check_tells_an_index_that_lost_its_uniqueness_and_a_column_that_lost_its_type(full):
    run(full, "DROP INDEX sellers__idx_seller_id")
    run(full, "CREATE INDEX sellers__idx_seller_id ON sellers (seller_id)")
    run(full, "ALTER TABLE sweeps DROP COLUMN last_error")
    run(full, "ALTER TABLE sweeps ADD COLUMN last_error INTEGER")
    lines = schema.check(full)
    assert lines[0].startswith("column sweeps.last_error: type is INTEGER")
    assert lines[1] == "index of sellers: sellers__idx_seller_id is (seller_id), not unique (seller_id)"


def test_the_identity_tables_go_and_come_alone(full):
    run(full, "INSERT INTO locks (name, owner, until) VALUES ('a', 'b', '2026-01-01 00:00:00.000000')")
    schema.downgrade(full, "identities@base", now=NOW)
    assert tables_of(full) == set(tables.metadata.tables) - IDENTITIES
    assert schema.current(full) == (HOUSE,)
    assert one(full, "SELECT count(*) FROM locks") == (1,)
    assert len(schema.check(full)) == len(IDENTITIES)
    schema.upgrade(full, "identities@head", now=NOW)
    assert schema.check(full) == []
    assert one(full, "SELECT count(*) FROM locks") == (1,)


def test_the_seed_goes_alone_and_leaves_identities_that_somebody_added(full):
    run(
        full,
        "INSERT INTO user_agent_pool (user_agent_id, user_agent, status, created_at, updated_at)"
        " VALUES ('mine', 'Mine/1.0', 'AVAILABLE', '2026-01-01', '2026-01-01')",
    )
    schema.downgrade(full, "0002_identities", now=NOW)
    assert one(full, "SELECT count(*), min(user_agent) FROM user_agent_pool") == (1, "Mine/1.0")
    assert one(
        full, "SELECT (SELECT count(*) FROM rate_limit_bucket), (SELECT count(*) FROM circuit_breaker_state)"
    ) == (
        0,
        0,
    )
    schema.upgrade(full, now=NOW)
    assert one(full, "SELECT count(*) FROM user_agent_pool") == (101,)
    assert one(full, "SELECT count(*) FROM rate_limit_bucket") == (100,)


def test_a_hundred_identities_are_seeded_with_bucket_and_breaker(full):
    fresh = "status = 'AVAILABLE' AND health_score = 100 AND is_active AND NOT is_blocked AND usage_count = 0"
    assert one(full, f"SELECT count(DISTINCT user_agent), count(*) FROM user_agent_pool WHERE {fresh}") == (100, 100)
    buckets = "FROM rate_limit_bucket WHERE max_tokens = 80 AND current_tokens = 80 AND refill_rate = 0.022222"
    assert one(full, f"SELECT count(DISTINCT agent_id), min(agent_id), max(agent_id) {buckets}") == (100, 1, 100)
    breakers = "FROM circuit_breaker_state WHERE scope = 'IDENTITY' AND circuit_state = 'CLOSED'"
    assert one(full, f"SELECT count(DISTINCT agent_id) {breakers}") == (100,)


def test_seeding_twice_gives_the_same_ids(full):
    with full.connect() as connection:
        before = connection.execute(text("SELECT agent_id, user_agent_id FROM user_agent_pool ORDER BY 1")).all()
    schema.downgrade(full, "base", now=NOW)
    schema.upgrade(full, now=NOW)
    with full.connect() as connection:
        assert (
            connection.execute(text("SELECT agent_id, user_agent_id FROM user_agent_pool ORDER BY 1")).all() == before
        )


def test_an_upgrade_that_fails_on_sqlite_leaves_nothing_behind(empty):
    run(empty, "CREATE TABLE sweeps (name INTEGER)")
    with pytest.raises(Exception, match="sweeps already exists"):
        schema.upgrade(empty, now=NOW)
    assert tables_of(empty) == {"sweeps"}


def test_a_revision_that_nobody_knows_is_refused(full):
    with pytest.raises(Invalid, match="revision"):
        schema.upgrade(full, "0042_nobody", now=NOW)


def test_indexes_bear_the_contracts_names_on_mysql_and_the_tables_before_them_on_sqlite():
    for wanted, dialect in (("{name}", mysql.dialect()), ("{table}__{name}", sqlite.dialect())):
        copies = for_dialect(tables.metadata, dialect.name)
        for table in tables.metadata.tables.values():
            names = {wanted.format(table=table.name, name=index.name) for index in table.indexes}
            made = [str(CreateIndex(index).compile(dialect=dialect)) for index in copies.tables[table.name].indexes]
            assert {re.search(r"INDEX (\w+) ON", statement)[1] for statement in made} == names


def test_the_migrations_on_mysql_make_the_indexes_that_the_tables_name():
    made = set(re.findall(r"INDEX (\w+) ON (\w+)", schema.script("mysql", now=NOW)))
    assert made == {(index.name, table.name) for table in tables.metadata.tables.values() for index in table.indexes}


def test_the_usage_log_has_thirteen_partitions_on_mysql_and_its_time_in_the_key():
    script = schema.script("mysql", now=NOW)
    log = script[script.index("CREATE TABLE token_usage_log") :].split(";")[0]
    assert "PRIMARY KEY (log_id, request_timestamp)" in log
    assert "PARTITION BY RANGE COLUMNS(request_timestamp)" in log
    names = re.findall(r"PARTITION (p\w+) VALUES LESS THAN", log)
    months = ["p202611", "p202612", *(f"p2027{month:02d}" for month in range(1, 11))]
    assert names == [*months, "p_future"]
    assert "PARTITION p202612 VALUES LESS THAN ('2027-01-01 00:00:00')" in log
    assert "PARTITION p_future VALUES LESS THAN (MAXVALUE)" in log


def test_the_usage_log_on_sqlite_is_keyed_by_its_number(full):
    assert inspect(full).get_pk_constraint("token_usage_log")["constrained_columns"] == ["log_id"]
    assert "PARTITION" not in schema.script("sqlite", now=NOW)


def test_on_mysql_ids_compare_byte_by_byte_times_have_microseconds_and_documents_find_room():
    script = schema.script("mysql", now=NOW)
    assert "product_id CHAR(36) COLLATE utf8mb4_bin NOT NULL" in script
    assert "user_agent VARCHAR(500) COLLATE utf8mb4_bin NOT NULL" in script
    assert "created_at DATETIME(6) NOT NULL" in script
    assert "raw_json LONGTEXT NOT NULL" in script
    assert "id BIGINT NOT NULL AUTO_INCREMENT" in script


@pytest.mark.parametrize("days", [0, 31])
def test_an_interval_outside_its_bounds_is_refused_by_the_database(full, days):
    with pytest.raises(Exception, match="CHECK constraint failed"):
        run(
            full,
            "INSERT INTO sellers (seller_id, name, crawling_interval_days, status, created_at, updated_at)"
            f" VALUES ('a', 'A', {days}, 'ACTIVE', '2026-01-01', '2026-01-01')",
        )
