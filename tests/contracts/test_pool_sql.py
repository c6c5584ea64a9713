"""What is particular to the pool in the database: two processes on one file, and statements that never scan."""

import asyncio
import threading
from datetime import timedelta

import pytest
from sqlalchemy import inspect
from sqlalchemy.dialects.mysql import pymysql

from contracts.pool_world import MORNING, FakeClock, an_identity, ask, identities, said, some_limits, sql
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.pool import identities as rows
from sellerwatch.adapters.sql.pool import lend, members, site, turn, views, window
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.session import PerDialect
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.identities import IdentityStatus, Verdict
from sellerwatch.ports.pool import Limits

PER_IDENTITY = 12


def test_two_processes_on_one_database_lend_nobody_twice_and_spend_the_budget_exactly(database: Database):
    clock = FakeClock()
    limits = some_limits(hourly_limit=PER_IDENTITY, min_interval_seconds=0.0, site_requests_per_second=100_000.0)
    asyncio.run(sql(database, clock, limits).load(identities(8)))
    out: set[int] = set()
    given: list[int] = []
    problems: list[BaseException] = []
    start = threading.Barrier(2)

    async def work(address: str) -> None:
        opened = Database(engine(address))
        pool = sql(opened, clock, limits)
        start.wait(10)
        for number in range(200):
            leases = (await pool.lease(3)).leases
            lent = {lease.agent_id for lease in leases}
            assert not lent & out, "lent twice"
            out.update(lent)
            given.extend(lent)
            out.difference_update(lent)
            if number % 5 == 4:
                assert await pool.cancel([(lease.lease_id, lease.agent_id) for lease in leases]) == len(leases)
                for lease in leases:
                    given.remove(lease.agent_id)
            else:
                assert all(await pool.report([said(lease) for lease in leases]))
        opened.close()

    def process(address: str) -> None:
        try:
            asyncio.run(work(address))
        except BaseException as error:  # noqa: BLE001  told below, in the test's own thread
            problems.append(error)

    threads = [threading.Thread(target=process, args=(address_of(database),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    assert sorted(given) == sorted(list(range(1, 9)) * PER_IDENTITY)
    figures = asyncio.run(sql(database, clock, limits).figures())
    assert (figures.leased, figures.remaining_requests) == (0, 0)


def address_of(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False)


IN_ORDER_OF_AN_INDEX = {
    "who can be lent": rows.LENDABLE,
    "one who can be lent": rows.LENDABLE_ONE,
    "whose moment has come": rows.DUE,
    "whose moment comes first": rows.FIRST,
    "how many are free": lend._FREE,
    "what remains": views._BUDGETS,
    "who changed": views._STANDINGS,
    "what happened": views._EVENTS,
    "whose token ends": members._REFRESHABLE,
    "the site's first entry inside": window._FIRST_INSIDE,
    "the site's entry that holds": window._HOLDING,
    "an identity's oldest entries": window._OLDEST,
    "the site": site._READ,
    "the last minute": site._TALLIES,
}


@pytest.mark.parametrize("statement", IN_ORDER_OF_AN_INDEX.values(), ids=IN_ORDER_OF_AN_INDEX)
def test_no_statement_of_a_step_scans_or_sorts(statement, sqlite: Database):
    with sqlite.engine.connect() as connection:
        text, _ = statement._sql(connection.dialect)
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", (1,) * text.count("?")).fetchall()
    steps = [row[3] for row in plan if "(subquery" not in row[3] and "anon" not in row[3]]
    assert not [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step]


@pytest.mark.parametrize("module", [rows, lend, members, site, turn, views, window], ids=lambda module: module.__name__)
def test_every_statement_is_spoken_in_mysql_too(module):
    spoken = [each for each in vars(module).values() if isinstance(each, Prepared | PerDialect | PreparedIn)]
    dialect = pymysql.dialect()
    for each in spoken:
        one = (
            each.on("mysql") if isinstance(each, PerDialect) else each._of(8) if isinstance(each, PreparedIn) else each
        )
        assert one._sql(dialect)[0]
    assert spoken
    assert "FOR UPDATE" in site._LOCK._sql(dialect)[0]


async def test_lesson_22_a_step_costs_the_same_however_many_identities_there_are(sqlite: Database):
    clock = FakeClock()
    pool = sql(sqlite, clock, some_limits(hourly_limit=1, concurrency=9999, site_requests_per_second=9999.0))
    steps = await counted(sqlite, pool, 100)
    assert await counted(sqlite, pool, 3000) < 1.3 * steps


async def counted(database: Database, pool, members_count: int) -> int:
    """The instructions of SQLite's machine for a lease and its report, in tens, when most identities are spent."""
    await pool.load(identities(members_count))
    grant = await pool.lease((await pool.outlook()).free - 20)
    await pool.report([said(lease) for lease in grant.leases])
    ticks = [0]

    def tick() -> int:
        ticks[0] += 1
        return 0

    driver = await database.write(lambda connection: connection.connection.driver_connection)
    driver.set_progress_handler(tick, 10)
    grant = await pool.lease(20)
    assert len(grant.leases) == 20
    await pool.report([said(lease, Verdict.NEUTRAL) for lease in grant.leases])
    driver.set_progress_handler(None, 0)
    return ticks[0]


async def test_what_is_refused_leaves_no_trace(database: Database):
    pool = sql(database, FakeClock(), Limits())
    await pool.load([an_identity(1)])
    before = await pool.standings()
    with pytest.raises(WrongVerb):
        await pool.recover(1)
    assert await pool.standings() == before


async def test_a_large_limit_takes_no_room_before_it_is_used_and_old_entries_go(database: Database):
    clock = FakeClock()
    pool = sql(database, clock, some_limits(hourly_limit=1_000_000, window_seconds=60.0))
    await pool.load(identities(2))

    def entries() -> int:
        with database.engine.connect() as connection:
            return connection.exec_driver_sql("SELECT count(*) FROM pool_window").scalar_one()

    assert entries() == 0
    for _ in range(500):
        grant = await pool.lease(2)
        await pool.report([said(lease) for lease in grant.leases])
        clock.go(1)
    assert entries() < 2 * (90 + 64) + 10


def test_the_tables_of_the_pool_are_its_own(database: Database):
    found = {name for name in inspect(database.engine).get_table_names() if name.startswith("pool_")}
    assert found == {
        f"pool_{name}" for name in ("identities", "faces", "window", "site", "leader", "health", "tally", "events")
    }


async def test_it_recalls_exactly_what_it_knows(database: Database):
    clock = FakeClock()
    pool = sql(database, clock, some_limits(hourly_limit=3))
    await pool.load(identities(4))
    for _ in range(3):
        await ask(pool, 2)
        clock.go(2)
    await pool.block(4)
    memories = await pool.recall(0, 2) + await pool.recall(2, 2)
    assert [memory.identity.agent_id for memory in memories] == [1, 2, 3, 4]
    assert memories[1].leased_at == tuple(MORNING + timedelta(seconds=each) for each in (0, 2, 4))
    assert memories[3].identity.status is IdentityStatus.BLOCKED
    assert await pool.recall(4, 2) == []
