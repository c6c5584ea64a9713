"""What must stay fast stays fast on MariaDB with 200 000 rows: each question names its index, and reads few rows.

Most rows of a house are done: that is what the questions must not walk over. The plan is asked for, and what the
server really read is counted, so that a plan that only looks good is found out too.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection

import servers
from builders import an_id
from contracts.test_store_plans import sql_of
from sellerwatch.adapters.sql import queue_statements as queue
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.stores import events, executions, publications, raws, schedules, tasks
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.tasks import ITEM_PRIORITY, LIST_PRIORITY
from sellerwatch.ports.store import Claim

pytestmark = pytest.mark.slow

ROWS, EACH = 200_000, 50
DUE, LATER = "2026-03-02 11:00:00", "2026-03-02 18:00:00"
NOON = "2026-03-02 12:00:00"

# One row in 40 is open, of these one in two is due; 100 sellers have 20 executions each, one of them open.
_ID = "INSERT(INSERT(INSERT(INSERT(MD5(CONCAT('{}', seq)), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-')"
_SELLER = "CONCAT('shop-', seq % 100)"
_EXECUTION = "CONCAT('execution-', seq % 2000)"
_STATUS = "ELT(1 + (seq % 40 = 7), '{}', '{}')"
_WHEN = f"IF(seq % 80 = 7, '{DUE}', '{LATER}') + INTERVAL seq MICROSECOND"
_THEN = "'2026-03-01 00:00:00' + INTERVAL seq % 100000 SECOND"
_KIND = "ELT(1 + seq % 3, 'MINI_SHOP', 'DETAIL', 'OPTION')"

PLANTED = {
    "crawler_tasks": {
        "task_id": _ID.format("task"),
        "execution_id": _EXECUTION,
        "seller_id": _SELLER,
        "task_type": _KIND,
        "request_url": "'/'",
        "item_no": "seq",
        "status": "IF(seq % 40 = 7, ELT(1 + seq % 3, 'WAITING', 'PUBLISHED', 'RUNNING'), 'SUCCESS')",
        "claimed_until": f"'{LATER}'",
        "created_at": _THEN,
        "published_at": f"'{LATER}'",
        "started_at": f"'{LATER}'",
    },
    "crawler_task_outbox": {
        "outbox_id": _ID.format("outbox"),
        "task_id": _ID.format("task"),
        "seller_id": _SELLER,
        "priority": "1",
        "idempotency_key": "CONCAT('outbox-', seq)",
        "message_group": _SELLER,
        "payload": '\'{"changes": [], "taskType": "DETAIL", "ruleName": "r"}\'',
        "status": _STATUS.format("SENT", "PENDING"),
        "next_attempt_at": _WHEN,
        "created_at": _THEN,
    },
    "product_raw_data": {
        "raw_id": _ID.format("raw"),
        "item_no": "seq DIV 3",
        "seller_id": _SELLER,
        "execution_id": "CONCAT('execution-', seq DIV 300)",
        "task_id": _ID.format("task"),
        "data_type": _KIND,
        "raw_json": "'{}'",
        "raw_hash": "''",
        "status": "IF(seq DIV 3 % 40 = 7, 'PENDING', IF(seq % 400 = 9, 'FAILED', 'PROCESSED'))",
        "retry_count": "9",
        "next_attempt_at": f"IF(seq DIV 3 % 80 = 7, '{DUE}', '{LATER}') + INTERVAL seq MICROSECOND",
        "crawled_at": _THEN,
        "created_at": _THEN,
    },
    "product_outbox": {
        "outbox_id": _ID.format("event"),
        "product_id": "CONCAT('product-', seq DIV 4)",
        "event_type": "'PRODUCT_UPDATED'",
        "version": "seq % 4",
        "payload": '\'{"changes": [], "taskType": "DETAIL", "ruleName": "r"}\'',
        "status": _STATUS.format("COMPLETED", "WAITING"),
        "next_attempt_at": _WHEN,
        "created_at": _THEN,
    },
    "scheduler_outbox": {
        "outbox_id": _ID.format("notice"),
        "schedule_id": "CONCAT('schedule-', seq DIV 4)",
        "event_type": "'SCHEDULE_UPDATED'",
        "payload": '\'{"changes": [], "taskType": "DETAIL", "ruleName": "r"}\'',
        "status": _STATUS.format("COMPLETED", "WAITING"),
        "next_attempt_at": _WHEN,
        "created_at": _THEN,
    },
    "queue_messages": {
        "queue": "'tasks'",
        "message_group": "CONCAT('group-', seq % 5000)",
        "dedup_id": "CONCAT('outbox-', seq, '-1')",
        "body": "'{}'",
        "attributes": "'{}'",
        "state": _STATUS.format("DONE", "READY"),
        "visible_at": _WHEN,
        "sent_at": _THEN,
    },
    "products": {
        "product_id": _ID.format("product"),
        "item_no": "seq",
        "seller_id": _SELLER,
        "is_complete": "seq % 10 > 0",
        "status": "'ACTIVE'",
        "first_seen_at": _THEN,
        "last_seen_at": _THEN,
        "created_at": _THEN,
        "updated_at": _THEN,
    },
    "token_usage_log": {
        "agent_id": "seq % 100",
        "request_url": "'/'",
        "is_success": "seq % 40 <> 7",
        "is_rate_limited": "seq % 40 = 7",
        "is_429_error": "seq % 40 = 7",
        "request_timestamp": "'2026-03-01 00:00:00' + INTERVAL seq SECOND",
    },
}
_EXECUTIONS = (
    "INSERT INTO crawling_schedule_executions (execution_id, schedule_id, seller_id, trigger_key, status, started_at,"
    " open_key, list_state) SELECT CONCAT('execution-', seq), CONCAT('schedule-', seq % 100), CONCAT('shop-', seq % 100),"
    " seq, IF(seq < 100, 'IN_PROGRESS', 'COMPLETED'), '2026-03-01' + INTERVAL seq MINUTE,"
    " IF(seq < 100, CONCAT('shop-', seq), NULL), IF(seq < 100, 'OPEN', 'SETTLED') FROM seq_0_to_1999"
)
_SCHEDULES = (
    "INSERT INTO crawling_schedules (schedule_id, seller_id, schedule_rule, schedule_expression, status, next_run_at,"
    f" created_at, updated_at) SELECT seq, seq, seq, 'rate(1 day)', 'ACTIVE', {_WHEN}, '{DUE}', '{DUE}' FROM seq_1_to_20000"
)
_BREAKERS = (
    "INSERT INTO circuit_breaker_state (scope, agent_id, circuit_state, created_at, updated_at)"
    f" SELECT 'IDENTITY', seq + 1000, IF(seq % 400 = 7, 'OPEN', 'CLOSED'), '{DUE}', '{DUE}' FROM seq_1_to_20000"
)
OTHERS = [_EXECUTIONS, _SCHEDULES, _BREAKERS]


def planted(table: str, values: dict[str, str]) -> str:
    return f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM seq_1_to_{ROWS}"


@pytest.fixture(scope="module")
def large(mariadb: servers.MariaDb) -> Iterator[Database]:
    """One for all tests here: what they take they give back."""
    address = mariadb.database("large")
    mariadb.run(*(planted(table, values) for table, values in PLANTED.items()), *OTHERS, database="large")
    mariadb.run(
        f"ANALYZE TABLE {', '.join(PLANTED)}, crawling_schedule_executions, crawling_schedules", database="large"
    )
    database = Database(engine(address))
    yield database
    database.close()
    mariadb.run("DROP DATABASE large")


def read_by(connection: Connection, run: Callable[[Connection], object]) -> int:
    """How many rows the server touched for it, in tables and indexes."""
    connection.exec_driver_sql("FLUSH STATUS")
    run(connection)
    status = connection.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'").all()
    return sum(int(count) for name, count in status if not name.endswith("_deleted"))


class Back(Exception):
    """Raised at the end of what must leave no trace."""


async def rolled_back(database: Database, work: Callable[[Connection], object]) -> None:
    def run(connection: Connection) -> None:
        work(connection)
        raise Back

    with pytest.raises(Back):
        await database.write(run)


def plan_of(connection: Connection, sql: str, params: tuple[Any, ...]) -> list[Any]:
    return list(connection.exec_driver_sql(f"EXPLAIN {sql}", params).mappings())


KIND = list(DocumentKind).index(DocumentKind.DETAIL)
FIRST = [an_id("nobody")] * 8
QUESTIONS: dict[str, tuple[Prepared | PreparedIn, tuple[Any, ...], str, int]] = {
    # (statement, parameters, the index of its first table, rows that may be read)
    "who has something to publish": (publications._FIRST_DUE, (), "uk_open_key", 8 * 100),
    "a seller's next items to publish": (
        publications._TAKE,
        ("shop-7", ITEM_PRIORITY, NOON, EACH),
        "idx_claim",
        2 * EACH,
    ),
    "a seller's next lists to publish": (publications._TAKE, ("shop-7", LIST_PRIORITY, NOON, EACH), "idx_claim", 3),
    "publications past their claim": (publications._ZOMBIES, (NOON, EACH), "idx_claim", 3),
    "the next events": (events._FIRSTS, (NOON, EACH), "idx_claim", 10 * EACH),
    "events past their claim": (events._ZOMBIES, (NOON, EACH), "", 3),
    "the next notices": (schedules._DUE_NOTICES, (NOON, EACH), "idx_claim", 8 * EACH),
    "the next schedules": (schedules._LOCK_DUE[0], (NOON, EACH), "idx_due", 2 * EACH),
    "the ripe raws": (raws._RIPE[KIND], (NOON, EACH), "idx_claim", 2 * EACH),
    "the stuck tasks": (tasks._LOCK_STUCK, (DUE, DUE, EACH), "idx_status_created_at", ROWS // 40),
    "executions that begin": (executions._STARTED, (NOON, EACH), "idx_status", 3),
    "the next messages": (queue.TAKE, ("tasks", NOON, EACH), "idx_next_visible", 8 * EACH),
}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_what_is_claimed_is_found_by_its_index_unsorted_and_reading_little(large: Database, name: str) -> None:
    statement, params, index, most = QUESTIONS[name]
    prepared = statement._of(8) if isinstance(statement, PreparedIn) else statement

    def work(connection: Connection) -> None:
        plan = plan_of(connection, *arranged(connection, prepared, params))
        assert not [step for step in plan if "filesort" in (step["Extra"] or "")], plan
        assert not [step for step in plan if step["type"] == "ALL"], plan
        assert plan[0]["key"].startswith(index) if index else plan[0]["key"], plan
        assert read_by(connection, lambda each: prepared.rows(each, params)) <= most

    await rolled_back(large, work)


def arranged(connection: Connection, prepared: Prepared, params: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    sql, arrange = prepared._sql(connection.dialect)
    return sql, params if arrange is None else arrange(params)


async def test_a_claim_of_publications_reads_what_it_claims_and_a_little_for_each_seller(large: Database) -> None:
    def work(connection: Connection) -> None:
        session = Session(connection, large.dialect)
        claim = Claim("me", session.from_db(at_noon), session.from_db(at_noon))
        taken: list[Any] = []
        rows = read_by(connection, lambda _: taken.extend(publications.Publications(session).claim(claim, 200)))
        assert len(taken) == 200
        assert rows <= 8 * 100 + 6 * 200

    at_noon = datetime.fromisoformat(NOON)
    await rolled_back(large, work)


_TASKS_OF_A_DAY = (
    "SELECT status, COUNT(*) FROM crawler_tasks WHERE seller_id = 'shop-7' AND created_at >= '2026-03-01'"
    " AND created_at < '2026-03-02' GROUP BY status"
)
_REFUSED_LATELY = (
    "SELECT COUNT(*) FROM token_usage_log WHERE is_429_error = 1 AND agent_id = 7"
    " AND request_timestamp > '2026-03-03 00:00:00'"
)
ASKED = [
    (
        _TASKS_OF_A_DAY,
        {"idx_seller_created_status"},
        2 * (ROWS // 100),
    ),
    (
        "SELECT COUNT(*) FROM products WHERE seller_id = 'shop-7' AND is_complete = 1",
        {"idx_seller_id_is_complete"},
        2001,
    ),
    (
        "SELECT * FROM crawling_schedule_executions WHERE seller_id = 'shop-7' ORDER BY started_at DESC LIMIT 20",
        {"idx_seller_id_started_at"},
        21,
    ),
    (
        _REFUSED_LATELY,
        {"idx_429_errors"},
        ROWS // 100,
    ),
    (
        "SELECT scope, agent_id FROM circuit_breaker_state WHERE circuit_state = 'OPEN'",
        {"idx_state_failure"},
        60,
    ),
]


@pytest.mark.parametrize(("sql", "keys", "most"), ASKED)
async def test_what_people_ask_is_answered_from_an_index(large: Database, sql: str, keys: set[str], most: int) -> None:
    def work(connection: Connection) -> None:
        plan = plan_of(connection, sql, ())
        assert plan[0]["key"] in keys, plan
        assert "filesort" not in plan[0]["Extra"] or "GROUP BY" in sql, plan
        assert read_by(connection, lambda each: each.exec_driver_sql(sql).all()) <= most

    await large.read(work)


MODULES = (events, executions, publications, raws, schedules, tasks)
IN_STATEMENTS = [
    pytest.param(each, id=f"{module.__name__.rpartition('.')[2]}{name}")
    for module in MODULES
    for name, each in vars(module).items()
    if isinstance(each, PreparedIn)
]


@pytest.mark.parametrize("statement", IN_STATEMENTS)
async def test_rows_named_by_their_ids_are_never_looked_for_in_a_whole_table(
    large: Database, statement: PreparedIn
) -> None:
    def work(connection: Connection) -> None:
        sql = sql_of(large, statement)
        plan = plan_of(connection, sql, tuple("7" for _ in range(sql.count("%s"))))
        assert not [step for step in plan if step["type"] in {"ALL", "index"} and (step["rows"] or 0) > 1000], plan

    await rolled_back(large, work)
