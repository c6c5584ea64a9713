"""The store's questions are answered from an index: none walks over what it does not want.

Read from SQLite's plans. It has no statistics, so a plan is the same for ten rows and for ten million.
"""

from types import ModuleType

import pytest
from sqlalchemy.dialects import mysql

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.stores import executions, publications, schedules, sellers, tasks

MODULES = (executions, publications, schedules, sellers, tasks)
STATEMENTS = [
    pytest.param(statement, id=f"{module.__name__.rpartition('.')[2]}{name}")
    for module in MODULES
    for name, value in vars(module).items()
    for statement in (value if isinstance(value, list) else [value])
    if isinstance(statement, Prepared | PreparedIn)
]


def plan(sqlite: Database, sql: str) -> list[str]:
    with sqlite.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        return [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))]


def sql_of(sqlite: Database, statement: Prepared | PreparedIn) -> str:
    prepared = statement._of(8) if isinstance(statement, PreparedIn) else statement
    return prepared._sql(sqlite.engine.dialect)[0]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_of_the_store_scans_a_table(sqlite: Database, statement: Prepared | PreparedIn) -> None:
    steps = plan(sqlite, sql_of(sqlite, statement))
    assert [step for step in steps if step.startswith("SCAN")] == []


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_can_be_said_to_mysql(statement: Prepared | PreparedIn) -> None:
    prepared = statement._of(8) if isinstance(statement, PreparedIn) else statement
    sql, _ = prepared._sql(mysql.dialect())
    assert "?" not in sql


@pytest.mark.parametrize(
    "statement",
    [tasks._LOCK_STUCK, publications._TAKE, publications._ZOMBIES, *schedules._LOCK_DUE],
)
def test_what_several_take_from_is_passed_over_where_another_holds_it(statement: Prepared) -> None:
    assert statement._sql(mysql.dialect())[0].endswith("FOR UPDATE SKIP LOCKED")


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        (publications, "_FIRST_DUE", "crawler_task_outbox__idx_claim (status=? AND seller_id=? AND priority=?)"),
        (publications, "_TAKE", "idx_claim (status=? AND seller_id=? AND priority=? AND next_attempt_at<?)"),
        (publications, "_CLAIM", "INTEGER PRIMARY KEY"),
        (publications, "_STILL_MINE", "idx_outbox_id"),
        (publications, "_CANCEL", "idx_task_id"),
        (publications, "_ARE_OUT", "idx_task_id"),
        (publications, "_ZOMBIES", "idx_claim (status=?)"),
        (tasks, "_LOCK_STUCK", "idx_status_created_at (status=?)"),
        (tasks, "_ORPHANS", "idx_status_created_at (status=?)"),
        (tasks, "_ORPHANS", "crawler_task_outbox__idx_task_id"),
        (tasks, "_MARK_PUBLISHED", "idx_task_id"),
        (tasks, "_OPEN_ITEMS", "uk_execution_task (execution_id=? AND task_type=? AND item_no=?)"),
        (tasks, "_ABANDON", "idx_attempt_id"),
        (schedules, "_DUE_NOTICES", "idx_claim (status=? AND next_attempt_at<?)"),
        (executions, "_LOCK_UNSETTLED", "idx_execution_id_status (execution_id=? AND status=?)"),
    ],
)
def test_each_finds_its_rows_by_the_index_made_for_it(
    sqlite: Database, module: ModuleType, name: str, expected: str
) -> None:
    steps = plan(sqlite, sql_of(sqlite, getattr(module, name)))
    assert any(expected in step for step in steps), steps


@pytest.mark.parametrize("statement", schedules._LOCK_DUE)
def test_due_schedules_are_found_in_the_order_of_their_index(sqlite: Database, statement: Prepared) -> None:
    [step] = plan(sqlite, sql_of(sqlite, statement))
    assert "idx_due (status=? AND next_run_at<?)" in step


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT status, COUNT(*) FROM crawler_tasks WHERE seller_id = ? AND created_at >= ? AND created_at < ? GROUP BY 1",
            "COVERING INDEX crawler_tasks__idx_seller_created_status (seller_id=? AND created_at>? AND created_at<?)",
        ),
        (
            "SELECT * FROM crawling_schedule_executions WHERE seller_id = ? ORDER BY started_at DESC LIMIT 20",
            "idx_seller_id_started_at (seller_id=?)",
        ),
    ],
)
def test_what_is_asked_by_people_is_on_an_index_too(sqlite: Database, sql: str, expected: str) -> None:
    steps = plan(sqlite, sql)
    assert expected in steps[0]
    assert not any("ORDER BY" in step for step in steps)
