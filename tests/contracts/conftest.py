"""Every engine that claims to keep a port, as fixtures: a contract test runs once on each.

The schema is built once per session; a test gets a copy of the empty database.
"""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import servers
from builders import NOON
from contracts import pool_world
from contracts.engines import ENGINES
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.schema import upgrade
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.ports.store import Store


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schema") / "empty.db"
    made = engine(f"sqlite:///{path}")
    upgrade(made, now=NOON)
    # The last connection to close brings everything into the one file that is copied.
    made.dispose()
    return path


@pytest.fixture
def sqlite(empty_sqlite: Path, tmp_path: Path) -> Iterator[Database]:
    """An empty database at the newest revision; work runs on the test's own thread."""
    path = tmp_path / "sellerwatch.db"
    shutil.copyfile(empty_sqlite, path)
    opened = Database(engine(f"sqlite:///{path}", busy_seconds=0), inline=True)
    yield opened
    opened.close()


@pytest.fixture
def on_mariadb(mariadb: servers.MariaDb) -> Iterator[Database]:
    """An empty database at the newest revision; work runs on threads."""
    opened = Database(engine(mariadb.database("contracts"), busy_seconds=1))
    yield opened
    opened.close()


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store(database: Database) -> Store:
    return SqlStore(database)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[servers.Redis]:
    with servers.a_redis() as server:
        yield server


@pytest.fixture(params=[*ENGINES, "redis"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[pool_world.World]:
    """The pool of one engine, with nothing in it."""
    if request.param == "redis":
        async with pool_world.afresh("redis", request.getfixturevalue("redis_server")) as found:
            yield found
        return
    clock, database = pool_world.FakeClock(), request.getfixturevalue(request.param)
    yield pool_world.World(clock, lambda limits: pool_world.sql(database, clock, limits), database)
