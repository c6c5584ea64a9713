"""A worker of an older release beside a newer one: what older releases say works on the newest schema.

What they said was captured (`older.capture`), one statement of each shape. And each migration above the first only adds:
nothing goes or becomes stricter, and a column that is added is NULL or has a default, or an older INSERT would fail.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from builders import NOON
from older.capture import STATEMENTS
from sellerwatch.adapters.sql import schema
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.migrations import versions

REVISIONS = sorted(file.stem for file in Path(versions.__file__).parent.glob("0*.py"))
Shape = dict[str, dict[str, tuple[str, bool, bool]]]
"""By table and column: its type, whether it may be NULL, whether an INSERT may leave it out."""


def captured(dialect: str) -> list[Path]:
    return sorted(STATEMENTS.glob(f"*.{dialect}.sql"))


def statements(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.removesuffix(";") for line in lines if not line.startswith("--")]


def failing(database: Database, said: list[str]) -> list[str]:
    """Which of them fail, and how; nothing that they do stays."""
    found = []
    with database.engine.connect() as connection:
        for one in said:
            try:
                connection.exec_driver_sql(one if database.dialect == "sqlite" else one.replace("%", "%%"))
            except SQLAlchemyError as error:
                found.append(f"{getattr(error, 'orig', error)}: {one[:300]}")
            finally:
                connection.rollback()
    return found


@pytest.mark.parametrize("file", captured("sqlite"), ids=lambda file: file.name)
def test_what_an_older_release_says_works_on_the_newest_schema(file: Path, sqlite: Database) -> None:
    assert len(statements(file)) > 100
    assert failing(sqlite, statements(file)) == []


@pytest.mark.slow
@pytest.mark.parametrize("file", captured("mariadb"), ids=lambda file: file.name)
def test_what_an_older_release_says_works_on_the_newest_schema_of_mariadb(file: Path, on_mariadb: Database) -> None:
    assert len(statements(file)) > 100
    assert failing(on_mariadb, statements(file)) == []


def anew(create: str) -> str:
    """With one more column, and of another name."""
    return create.replace("token_usage_log", "heavier", 1).replace("task_id ", "weight INTEGER NOT NULL, task_id ", 1)


def test_a_schema_that_takes_something_from_an_older_release_is_noticed(sqlite: Database) -> None:
    said = statements(captured("sqlite")[-1])
    with sqlite.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE crawler_tasks RENAME COLUMN abandon_count TO abandons")
        connection.exec_driver_sql("DROP TABLE queue_messages")
        create = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'token_usage_log'").scalar_one()
        connection.exec_driver_sql(anew(create))
        connection.exec_driver_sql("DROP TABLE token_usage_log")
        connection.exec_driver_sql("ALTER TABLE heavier RENAME TO token_usage_log")
    wrong = failing(sqlite, said)
    for breach in ("abandon_count", "queue_messages", "NOT NULL constraint failed: token_usage_log.weight"):
        assert any(breach in failure for failure in wrong), breach


def shape(database: Engine) -> Shape:
    seen = inspect(database)
    return {
        table: {
            column["name"]: (
                str(column["type"]),
                bool(column["nullable"]),
                bool(column["nullable"] or column["default"] is not None or column["primary_key"]),
            )
            for column in seen.get_columns(table)
        }
        for table in seen.get_table_names()
    }


def unique(database: Engine) -> set[tuple[str, ...]]:
    seen = inspect(database)
    return {
        (table, *map(str, index["column_names"]))
        for table in seen.get_table_names()
        for index in seen.get_indexes(table)
        if index["unique"]
    }


def steps() -> Iterator[tuple[str, Shape, Shape, set[tuple[str, ...]]]]:
    """Each revision above the first, with the tables before and after it, and what of the old ones is unique anew."""
    made = engine("sqlite://")
    schema.upgrade(made, REVISIONS[0], now=NOON)
    before, unique_before = shape(made), unique(made)
    for revision in REVISIONS[1:]:
        schema.upgrade(made, revision, now=NOON)
        after, unique_after = shape(made), unique(made)
        yield revision, before, after, {one for one in unique_after - unique_before if one[0] in before}
        before, unique_before = after, unique_after
    made.dispose()


def test_no_upgrade_takes_anything_away_or_asks_for_more_than_an_older_release_gives() -> None:
    seen = 0
    for revision, before, after, newly_unique in steps():
        for table, columns in before.items():
            kept = {name: known for name, known in after.get(table, {}).items() if name in columns}
            assert kept == columns, f"{revision} changes {table}"
            demanded = {name for name, (_, _, may_be_left_out) in after[table].items() if not may_be_left_out}
            assert demanded <= columns.keys(), f"{revision} demands more of {table}"
        assert newly_unique == set(), f"{revision}: an older release may write the same twice"
        seen += 1
    assert seen == len(REVISIONS) - 1
