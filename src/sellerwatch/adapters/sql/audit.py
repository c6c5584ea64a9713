"""An audit: what stands open in the database, and what must never be there, asked from outside of all flows.

Promises: it changes nothing, but for `watch`, which lets the database itself note each move of a state machine; that is
for a database whose only purpose is to be looked at. Every statement finds nothing where all is well.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.tables.products import products
from sellerwatch.adapters.sql.tables.sellers import crawling_schedule_executions

OPEN: Final[Mapping[str, str]] = {
    "executions": "SELECT count(*) FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')",
    "lists": "SELECT count(*) FROM crawling_schedule_executions "
    "WHERE status IN ('COMPLETED', 'FAILED') AND list_state != 'SETTLED'",
    "tasks": "SELECT count(*) FROM crawler_tasks WHERE status NOT IN ('SUCCESS', 'FAILED')",
    "attempts": "SELECT count(*) FROM crawl_executions WHERE status = 'RUNNING'",
    "task outbox": "SELECT count(*) FROM crawler_task_outbox WHERE status IN ('PENDING', 'PROCESSING')",
    "raws": "SELECT count(*) FROM product_raw_data WHERE status = 'PENDING'",
    "failed raws": "SELECT count(*) FROM product_raw_data WHERE status = 'FAILED' AND retry_count < 3",
    "product outbox": "SELECT count(*) FROM product_outbox WHERE status IN ('WAITING', 'SENDING')",
    "scheduler outbox": "SELECT count(*) FROM scheduler_outbox WHERE status IN ('WAITING', 'SENDING')",
    "messages": "SELECT count(*) FROM queue_messages WHERE state = 'READY'",
}
"""How much of each kind is not at its end."""
_OPEN: Final = " UNION ALL ".join(
    statement.replace("SELECT", f"SELECT '{kind}',", 1) for kind, statement in OPEN.items()
)

NEVER: Final[Mapping[str, str]] = {
    "counters that are not their tasks": """
        SELECT e.execution_id, e.total_tasks_created, e.completed_tasks, e.failed_tasks
        FROM crawling_schedule_executions e
        WHERE (e.total_tasks_created, e.completed_tasks, e.failed_tasks) != (
            SELECT count(*), coalesce(sum(t.status = 'SUCCESS'), 0), coalesce(sum(t.status = 'FAILED'), 0)
            FROM crawler_tasks t WHERE t.execution_id = e.execution_id)""",
    "two open executions of a seller": """
        SELECT seller_id, count(*) FROM crawling_schedule_executions
        WHERE status IN ('STARTED', 'IN_PROGRESS') GROUP BY seller_id HAVING count(*) > 1""",
    "a version told twice": """
        SELECT product_id, version, count(*) FROM product_changes
        GROUP BY product_id, version HAVING count(*) > 1""",
    "a change that nobody is told of": """
        SELECT c.item_no, c.version FROM product_changes c LEFT JOIN product_outbox o
        ON o.product_id = c.product_id AND o.version = c.version WHERE o.outbox_id IS NULL
        AND c.changed_at >= coalesce((SELECT min(created_at) FROM product_outbox), '1970-01-01')""",
    "a version without its change": """
        SELECT p.item_no, p.version FROM products p WHERE p.is_complete
        AND p.version != (SELECT coalesce(max(c.version), 0) FROM product_changes c WHERE c.product_id = p.product_id)""",
    "a task done twice": """
        SELECT task_id, count(*) FROM crawl_executions WHERE status = 'SUCCESS'
        GROUP BY task_id HAVING count(*) > 1""",
    "a task done without an attempt": """
        SELECT t.task_id FROM crawler_tasks t WHERE t.status = 'SUCCESS' AND NOT EXISTS (
            SELECT 1 FROM crawl_executions x WHERE x.task_id = t.task_id AND x.status = 'SUCCESS')""",
    "an item asked for without its documents": """
        SELECT t.task_id, t.task_type, t.item_no FROM crawler_tasks t
        WHERE t.status = 'SUCCESS' AND t.task_type IN ('DETAIL', 'OPTION') AND NOT EXISTS (
            SELECT 1 FROM product_raw_data r WHERE r.item_no = t.item_no AND r.data_type = t.task_type)""",
    "a task that is published without a message": """
        SELECT t.task_id FROM crawler_tasks t JOIN crawler_task_outbox o ON o.task_id = t.task_id
        WHERE t.status = 'PUBLISHED' AND o.publish_count = 0""",
    "an effect made twice": """
        SELECT execution_id, task_type, item_no, page_no FROM crawler_tasks
        GROUP BY execution_id, task_type, item_no, page_no HAVING count(*) > 1""",
}
"""What is wrong wherever it is found, at any moment between two transactions. Old rows of the outbox are forgotten."""

MOVES: Final[Mapping[str, frozenset[tuple[str, str]]]] = {
    "crawler_tasks": frozenset(
        {
            ("WAITING", "PUBLISHED"), ("WAITING", "RUNNING"), ("WAITING", "FAILED"), ("PUBLISHED", "RUNNING"), ("PUBLISHED", "RETRY"),
            ("PUBLISHED", "FAILED"), ("RUNNING", "SUCCESS"), ("RUNNING", "RETRY"), ("RUNNING", "FAILED"),
            ("RETRY", "PUBLISHED"), ("RETRY", "RUNNING"), ("RETRY", "FAILED"),
        }
    ),
    "crawl_executions": frozenset({("RUNNING", "SUCCESS"), ("RUNNING", "FAILED"), ("RUNNING", "ABANDONED")}),
    "crawling_schedule_executions": frozenset(
        {("STARTED", "IN_PROGRESS"), ("STARTED", "COMPLETED"), ("STARTED", "FAILED"), ("IN_PROGRESS", "COMPLETED"),
         ("IN_PROGRESS", "FAILED")}
    ),
    "crawler_task_outbox": frozenset(
        {("PENDING", "PROCESSING"), ("PENDING", "FAILED"), ("PENDING", "SENT"), ("PROCESSING", "SENT"),
         ("PROCESSING", "PENDING"), ("PROCESSING", "FAILED"), ("SENT", "PENDING"), ("FAILED", "PENDING")}
    ),
    "product_outbox": frozenset(
        {("WAITING", "SENDING"), ("SENDING", "COMPLETED"), ("SENDING", "WAITING"), ("SENDING", "FAILED"),
         ("FAILED", "WAITING"), ("WAITING", "HELD"), ("HELD", "WAITING"), ("WAITING", "COMPLETED"),
         ("FAILED", "COMPLETED"), ("HELD", "COMPLETED")}
    ),
    "product_raw_data": frozenset(
        {("PENDING", "PROCESSED"), ("PENDING", "FAILED"), ("FAILED", "PENDING"), ("PROCESSED", "PENDING"),
         ("PENDING", "HELD"), ("HELD", "PENDING"), ("HELD", "PROCESSED")}
    ),
}  # fmt: skip
"""The moves that the drawings in `domain/` allow; any other is a step aside."""


def watch(database: Database) -> None:
    """From now on the database notes each move of a state (SQLite only)."""
    with database.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE IF NOT EXISTS audit_moves (moved TEXT, was TEXT, became TEXT, times INTEGER, "
            "PRIMARY KEY (moved, was, became)) WITHOUT ROWID"
        )
        for table in MOVES:
            connection.exec_driver_sql(
                f"CREATE TRIGGER IF NOT EXISTS audit_{table} AFTER UPDATE OF status ON {table} "
                "WHEN old.status != new.status BEGIN "
                f"INSERT INTO audit_moves VALUES ('{table}', old.status, new.status, 1) "
                "ON CONFLICT DO UPDATE SET times = times + 1; END"
            )


def image(database: Database) -> bytes:
    """All that is written in it, byte by byte (SQLite only)."""
    with database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        return driver.serialize()


def restore(database: Database, written: bytes) -> None:
    """An empty database becomes what this is the `image` of (SQLite only)."""
    with database.engine.connect() as connection, closing(sqlite3.connect(":memory:")) as source:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        source.deserialize(written)
        source.backup(driver)


async def open_things(database: Database) -> dict[str, int]:
    """What is not at its end, by kind."""
    counts = await rows(database, _OPEN)
    return {str(kind): int(str(count)) for kind, count in counts if count}


async def never_found(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """What was found that must never be there, a few rows of each."""

    def work(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
        found = {}
        for name, statement in NEVER.items():
            if rows := connection.exec_driver_sql(statement).fetchmany(5):
                found[name] = [tuple(row) for row in rows]
        if aside := _steps_aside(connection):
            found["a state machine that stepped aside"] = aside
        return found

    return await database.read(work)


async def rows(database: Database, statement: str) -> list[tuple[object, ...]]:
    """What the database says."""
    return await database.read(lambda connection: [tuple(row) for row in connection.exec_driver_sql(statement)])


def _steps_aside(connection: Connection) -> list[tuple[object, ...]]:
    is_watched = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'audit_moves'").first()
    if not is_watched:
        return []
    moves = connection.exec_driver_sql("SELECT moved, was, became, times FROM audit_moves").fetchall()
    return [tuple(move) for move in moves if (move[1], move[2]) not in MOVES.get(move[0], ())]


async def leave_identities(database: Database, count: int) -> None:
    """Retire all but the first so many."""
    await database.write(
        lambda connection: connection.exec_driver_sql(
            "UPDATE user_agent_pool SET is_active = 0 WHERE agent_id > ?", (count,)
        )
    )


async def blocked(database: Database) -> list[int]:
    """Identities that only a person takes back."""
    found = await rows(database, "SELECT agent_id FROM pool_identities WHERE status = 'BLOCKED' ORDER BY agent_id")
    return [int(str(agent_id)) for (agent_id,) in found]


async def quarantined(database: Database) -> list[str]:
    """What waits for a person's word before it is told."""
    found = await rows(database, "SELECT quarantine_id FROM quarantines WHERE status = 'OPEN' ORDER BY id")
    return [str(quarantine_id) for (quarantine_id,) in found]


async def unconfirmed(database: Database) -> list[str]:
    """Sellers of whom so many products would go that a person is asked."""
    statement = "SELECT DISTINCT seller_id FROM crawling_schedule_executions WHERE list_state = 'UNCONFIRMED' ORDER BY seller_id"
    return [str(seller_id) for (seller_id,) in await rows(database, statement)]


async def refused(database: Database) -> int:
    """Rows of the product outbox that were given up."""
    return len(await rows(database, "SELECT 1 FROM product_outbox WHERE status = 'FAILED'"))


async def is_alerted(database: Database, name: str) -> bool:
    """Is this alert open?"""
    found = await rows(database, "SELECT name FROM alerts WHERE cleared_at IS NULL")
    return (name,) in found


async def tried_too_often(database: Database, retries_max: int, abandons_max: int) -> dict[str, int]:
    """How many tasks were tried more often than the settings say, by how."""
    asked = {
        "too many retries": ("SELECT count(*) FROM crawler_tasks WHERE retry_count > ?", retries_max),
        "too many abandonments": ("SELECT count(*) FROM crawler_tasks WHERE abandon_count > ?", abandons_max + 1),
        "too many failed attempts": (
            # Waiting for an identity, or for robots.txt, is no failing.
            "SELECT count(*) FROM (SELECT task_id FROM crawl_executions WHERE status = 'FAILED' "  # noqa: ISC004
            "AND http_status IS NOT NULL GROUP BY task_id HAVING count(*) > ?) AS failed",
            retries_max + 1,
        ),
    }

    def work(connection: Connection) -> dict[str, int]:
        counts = {what: connection.exec_driver_sql(sql, (most,)).scalar_one() for what, (sql, most) in asked.items()}
        return {what: count for what, count in counts.items() if count}

    return await database.read(work)


async def fetched(database: Database) -> list[tuple[int, tuple[datetime | None, ...]]]:
    """Of each product when its documents were fetched that it rests on: list entry, detail, options."""
    columns = products.c

    def work(connection: Connection) -> list[tuple[int, tuple[datetime | None, ...]]]:
        found = connection.execute(select(columns.item_no, columns.minishop_at, columns.detail_at, columns.option_at))
        return [(item_no, tuple(moments)) for item_no, *moments in found]

    return await database.read(work)


async def crawls_since(database: Database, since: datetime) -> list[str]:
    """The states of the executions that began since then."""
    columns = crawling_schedule_executions.c

    def work(connection: Connection) -> list[str]:
        return list(connection.execute(select(columns.status).where(columns.started_at >= since)).scalars())

    return await database.read(work)
