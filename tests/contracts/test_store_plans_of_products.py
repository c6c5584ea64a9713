"""Products, raws, events and identities are found through an index; see test_store_plans for how a plan is read."""

from types import ModuleType

import pytest
from sqlalchemy.dialects import mysql

from contracts.test_store_plans import plan, sql_of
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.session import PerDialect
from sellerwatch.adapters.sql.stores import chores, events, identities, products, raws

MODULES = (chores, events, identities, products, raws)
FEW = {"chores_OF_ROWS", "chores_TO_TELL", "identities_TOKENS"}
"""All of a small table is wanted."""


def flat(value: object) -> list[object]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]


def statements() -> list[tuple[str, Prepared | PreparedIn | PerDialect]]:
    return [
        (f"{module.__name__.rpartition('.')[2]}{name}", each)
        for module in MODULES
        for name, value in vars(module).items()
        for each in flat(value)
        if isinstance(each, Prepared | PreparedIn | PerDialect)
    ]


STATEMENTS = [pytest.param(name, statement, id=name) for name, statement in statements()]


@pytest.mark.parametrize(("name", "statement"), STATEMENTS)
def test_no_statement_scans_a_large_table(
    sqlite: Database, name: str, statement: Prepared | PreparedIn | PerDialect
) -> None:
    prepared = statement.on("sqlite") if isinstance(statement, PerDialect) else statement
    steps = plan(sqlite, sql_of(sqlite, prepared))
    assert [step for step in steps if step.startswith("SCAN") and name not in FEW] == []


@pytest.mark.parametrize(("name", "statement"), STATEMENTS)
def test_every_statement_can_be_said_to_mysql(name: str, statement: Prepared | PreparedIn | PerDialect) -> None:
    if isinstance(statement, PerDialect):
        statement = statement.on("mysql")
    prepared = statement._of(8) if isinstance(statement, PreparedIn) else statement
    sql, _ = prepared._sql(mysql.dialect())
    assert "?" not in sql, name


@pytest.mark.parametrize("statement", [events._FIRSTS, events._ZOMBIES, raws._LOCK_LEADERS, *raws._LOCK_FAILED])
def test_what_several_take_from_is_passed_over_where_another_holds_it(statement: Prepared | PreparedIn) -> None:
    prepared = statement._of(8) if isinstance(statement, PreparedIn) else statement
    assert prepared._sql(mysql.dialect())[0].endswith("FOR UPDATE SKIP LOCKED")


def test_many_new_rows_are_one_statement_on_mysql() -> None:
    """Its drivers join rows into one statement only when nothing but placeholders stands among the values."""
    for statement in (raws._PUT, products._SAVE, identities._FILL, identities._LEAD, chores._DRIFT):
        sql, _ = statement.on("mysql")._sql(mysql.dialect())
        values, _, rest = sql.partition(" ON DUPLICATE KEY UPDATE ")
        assert set(values.rpartition("VALUES")[2]) <= set("(%s), ")
        assert "%s" not in rest


def test_on_mysql_the_moment_that_decides_is_set_after_all_it_decides() -> None:
    assert raws._PUT.on("mysql")._sql(mysql.dialect())[0].rpartition("crawled_at = ")[2].count(" = ") == 0
    assert chores._RAISE.on("mysql")._sql(mysql.dialect())[0].endswith("cleared_at = NULL")


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        (events, "_FIRSTS", "product_outbox__idx_claim (status=? AND next_attempt_at<?)"),
        (events, "_FIRSTS", "COVERING INDEX product_outbox__idx_open (product_id=? AND status=?)"),
        (events, "_FIRSTS", "COVERING INDEX product_outbox__idx_open (product_id=? AND status=? AND version<?)"),
        (events, "_OPEN_OF", "product_outbox__idx_open (product_id=? AND status=?)"),
        (events, "_CLAIM", "idx_outbox_id (outbox_id=?)"),
        (events, "_SAVE", "idx_outbox_id (outbox_id=?)"),
        (events, "_ZOMBIES", "(status=?)"),
        (events, "_LOCK_FAILED", "idx_status_created_at (status=? AND created_at>?)"),
        (events, "_NEWER_SENT", "(product_id=? AND "),
        (raws, "_RIPEN", "idx_execution_id_status (execution_id=? AND status=? AND item_no=?)"),
        (raws, "_LOCK_OBSERVED", "idx_execution_id_status (execution_id=? AND status=? AND item_no=?)"),
        (raws, "_LEADERS", "idx_execution_id_status (execution_id=? AND status=? AND item_no=?)"),
        (raws, "_LOCK_LEADERS", "INTEGER PRIMARY KEY"),
        (raws, "_SAVE", "idx_raw_id (raw_id=?)"),
        (raws, "_LOCK_BY_ID", "idx_raw_id (raw_id=?)"),
        (raws, "_ITEMS_SINCE", "COVERING INDEX product_raw_data__idx_item_no_crawled_at (item_no>?)"),
        (raws, "_COUNT_ITEMS_SINCE", "COVERING INDEX product_raw_data__idx_item_no_crawled_at (item_no>?)"),
        (raws, "_SIGNS_SINCE", "product_raw_data__idx_item_no_crawled_at (item_no=? AND crawled_at>?)"),
        (products, "_HEADS", "products__idx_item_no (item_no=?)"),
        (products, "_LOCK", "products__idx_item_no (item_no=?)"),
        (products, "_OF_ITEM", "product_changes__uk_product_version (product_id=?)"),
        (identities, "_END_TOKENS", "(agent_id=? AND is_active=?)"),
        (identities, "_REFRESH_DUE", "token_refresh_schedule__idx_next_refresh (is_enabled=? AND next_refresh_time<?)"),
        (identities, "_REFRESHED", "token_refresh_schedule__idx_agent_enabled (agent_id=? AND is_enabled=?)"),
    ],
)
def test_each_finds_its_rows_by_the_index_made_for_it(
    sqlite: Database, module: ModuleType, name: str, expected: str
) -> None:
    steps = plan(sqlite, sql_of(sqlite, getattr(module, name)))
    assert any(expected in step for step in steps), steps


@pytest.mark.parametrize("statement", raws._RIPE)
def test_ripe_raws_are_found_without_walking_over_what_is_not_ripe(sqlite: Database, statement: Prepared) -> None:
    assert plan(sqlite, sql_of(sqlite, statement)) == [
        "SEARCH product_raw_data USING INDEX product_raw_data__idx_claim (status=? AND data_type=? AND next_attempt_at<?)"
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT count(*) FROM token_usage_log WHERE is_429_error = 1 AND agent_id IN (?, ?) AND request_timestamp > ?",
            "token_usage_log__idx_429_errors (is_429_error=? AND agent_id=? AND request_timestamp>?)",
        ),
        (
            "SELECT scope, agent_id FROM circuit_breaker_state WHERE circuit_state = ?",
            "circuit_breaker_state__idx_state_failure (circuit_state=?)",
        ),
        (
            "SELECT count(*) FROM products WHERE seller_id = ? AND is_complete = ?",
            "COVERING INDEX products__idx_seller_id_is_complete (seller_id=? AND is_complete=?)",
        ),
    ],
)
def test_what_an_operator_asks_is_answered_from_an_index(sqlite: Database, sql: str, expected: str) -> None:
    assert any(expected in step for step in plan(sqlite, sql))
