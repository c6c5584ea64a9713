"""Every engine that claims to keep a port, as fixtures: a contract test runs once on each.

The schema is built once per session; a test gets a copy of the empty database.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import NOON
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.schema import upgrade
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.ports.store import Store

ENGINES = ["sqlite"]


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schema") / "empty.db"
    made = engine(f"sqlite:///{path}")
    upgrade(made, now=NOON)
    # The last connection to close brings everything into the one file that is copied.
    made.dispose()
    return path


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database at the newest revision; work runs on the test's own thread."""
    assert request.param == "sqlite"
    path = tmp_path / "sellerwatch.db"
    shutil.copyfile(request.getfixturevalue("empty_sqlite"), path)
    opened = Database(engine(f"sqlite:///{path}"), inline=True)
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> Store:
    return SqlStore(database)
