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


@pytest.fixture(scope="session")
def redis_server() -> Iterator[servers.Redis]:
    with servers.a_redis() as server:
        yield server


@pytest.fixture(params=pool_world.ENGINES)
async def world(
    request: pytest.FixtureRequest, database: Database, redis_server: servers.Redis
) -> AsyncIterator[pool_world.World]:
    """The pool of one engine, with nothing in it."""
    if request.param == "redis":
        async with pool_world.afresh("redis", redis_server) as found:
            yield found
        return
    clock = pool_world.FakeClock()
    yield pool_world.World(clock, lambda limits: pool_world.sql(database, clock, limits), database)


@pytest.fixture(scope="session")
def aws_server() -> Iterator[servers.Aws]:
    with pytest.MonkeyPatch.context() as patch, servers.an_aws() as server:
        for name, value in servers.AWS_CREDENTIALS.items():
            patch.setenv(name, value)
        yield server
