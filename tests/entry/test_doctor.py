"""The diagnosis: each illness by its name, with what to do, and none hides another."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

import servers
from doors import Door, door
from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.redis import RedisPool
from sellerwatch.domain.errors import Unavailable
from sellerwatch.entry.diagnosis import Finding, State, diagnose
from sellerwatch.entry.pretend import pretended
from sellerwatch.ports.pool import Limits
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.faults import Fault

SECRET = "whsec_" + "A" * 32
ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "docs" / "runbook.md"
SOURCES = sorted((ROOT / "src").rglob("*.py"))


async def found(at: Door, *, is_online: bool = False) -> dict[str, Finding]:
    return {finding.part: finding for finding in await diagnose(at.house, is_online=is_online)}


async def test_a_new_house_is_well_and_told_what_it_still_needs(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        findings = await found(at)
    assert State.WRONG not in {finding.state for finding in findings.values()}
    assert "WAL" in findings["database"].said
    assert "100 of 100" in findings["pool"].said
    assert "sellerwatch up" in findings["processes"].advice
    assert "PRODUCT_SERVER_URL" in findings["product server"].advice
    assert "MARKETPLACE_URL" in findings["marketplace"].advice


async def test_a_database_that_is_behind_is_said_first_and_alone(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        at.house.database.engine.dispose()
        (tmp_path / "house.db").unlink()
        findings = await found(at)
    assert list(findings) == ["database"]
    assert findings["database"].state is State.WRONG
    assert "db upgrade" in findings["database"].said


async def test_a_product_server_that_nobody_answers_at_is_wrong(tmp_path: Path) -> None:
    address = {"product_server_url": "http://127.0.0.1:9/products", "product_server_secret": SECRET}
    async with door(tmp_path, **address) as at:
        finding = (await found(at))["product server"]
    assert finding.state is State.WRONG
    assert "127.0.0.1:9" in finding.said
    assert SECRET not in finding.said


async def test_lesson_30_a_redis_that_may_throw_keys_away_or_has_another_time_or_is_away_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers.a_redis() as server:
        async with door(tmp_path, redis_url=server.url) as at:
            assert (await found(at))["redis"].state is State.GOOD
            server.say("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            server.say("CONFIG", "SET", "maxmemory", "100mb")
            finding = (await found(at))["redis"]
            assert (finding.state, "allkeys-lru" in finding.said) == (State.WRONG, True)
            assert "noeviction" in finding.advice
            server.say("CONFIG", "SET", "maxmemory", "0")
            # A moment at which the server's clock was a day ahead: the pool's time never goes back. Ours stands still.
            now = at.clock.now()
            monkeypatch.setattr(at.clock, "now", lambda: now)
            tomorrow = now + timedelta(days=1)
            async with Redis.from_url(server.url) as client:
                await RedisPool(client, SystemChance(), Limits(), now=lambda: tomorrow).suspend(1)
            finding = (await found(at))["redis"]
            assert (finding.state, "86400 s apart" in finding.said) == (State.WRONG, True)
            server.say("FLUSHALL")
            findings = await found(at)
            assert findings["pool"].said == "no engine of the pool can be asked just now"
            assert (findings["redis"].state, "just now nobody does" in findings["redis"].said) == (State.WRONG, True)
            assert "scheduler" in findings["redis"].advice
            server.process.kill()
            server.process.wait()
            findings = await found(at)
    assert findings["redis"].state is State.WRONG
    assert findings["pool"].said == "no engine of the pool can be asked just now"


async def test_open_alerts_and_dead_letters_are_told(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        now = at.clock.now()
        await at.house.store.transact(
            lambda unit: unit.chores.raise_alert("delivery_failed", "critical", "3 changes not taken", {}, now)
        )
        finding = (await found(at))["alert"]
    assert (finding.state, finding.said) == (State.WRONG, "delivery_failed: 3 changes not taken")
    assert finding.advice == "docs/runbook.md#delivery_failed"


async def test_a_part_that_can_not_be_asked_is_told_once_and_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise Unavailable("database: can't connect")

    parts = {
        "pool": (type, "load_pool"),
        "queue": (lambda house: type(house.queue), "depth"),
        "schedule": (lambda house: type(house.reports), "overview"),
        "database": (type, "check_schema"),
    }
    async with door(tmp_path) as at:
        for part, (whose, verb) in parts.items():
            with monkeypatch.context() as change:
                change.setattr(whose(at.house), verb, away)
                finding = (await found(at))[part]
            assert (finding.state, finding.said.count("database")) == (State.WRONG, part != "database")
            assert finding.advice


def test_every_alert_that_is_raised_has_its_place_in_the_runbook() -> None:
    raised = set(re.findall(r"raise_alert\(\s*f?\"([a-z_]+)", "".join(file.read_text() for file in SOURCES)))
    anchors = set(re.findall(r"^## ([a-z_]+)$", RUNBOOK.read_text(), re.MULTILINE))
    assert len(raised) > 4
    assert raised <= anchors


async def test_a_clock_that_is_behind_the_others_is_wrong(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        ahead = at.clock.now() + timedelta(seconds=20)
        await at.house.store.transact(lambda unit: unit.chores.show_life("x", "worker", "h", 1, "0", ahead))
        findings = await found(at)
    assert findings["clock"].state is State.WRONG
    assert "NTP" in findings["clock"].advice


async def test_all_identities_blocked_is_wrong(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        await at.house.identities.load()
        for identity in await at.house.store.read(lambda unit: unit.identities.all()):
            await at.house.pool.block(identity.agent_id)
        finding = (await found(at))["pool"]
    assert finding.state is State.WRONG
    assert "agents" in finding.advice


async def test_online_the_marketplace_is_asked_one_thing_on_a_lease(tmp_path: Path) -> None:
    async with (
        pretended(Conditions(shops={"atelier": 3}, secret=SECRET), SystemClock()) as beside,
        door(tmp_path, **beside.settings) as at,
    ):
        await at.house.sellers.register("atelier", "A")
        findings = await found(at, is_online=True)
        assert findings["marketplace"].said.endswith("it gave a token")
        assert findings["product server"].state is State.GOOD
        at.clock.ahead += timedelta(seconds=5)
        findings = await found(at, is_online=True)
        assert findings["marketplace"].said.endswith("its list was read")
        assert dict(beside.sandbox.market.counts) == {
            ("ROBOTS", 200): 1,
            ("TOKEN", 200): 1,
            ("MINI_SHOP", 200): 1,
        }
        figures = await at.house.pool.figures()
        assert (figures.remaining_requests, figures.leased) == (100 * 80 - 3, 0)


async def test_online_a_marketplace_that_answers_nonsense_is_wrong(tmp_path: Path) -> None:
    async with (
        pretended(Conditions(shops={"atelier": 3}, secret=SECRET), SystemClock()) as beside,
        door(tmp_path, **beside.settings) as at,
    ):
        await at.house.sellers.register("atelier", "A")
        await found(at, is_online=True)
        at.clock.ahead += timedelta(seconds=5)
        beside.sandbox.stage("MINI_SHOP", Fault(name="html"), times=10)
        assert (await found(at, is_online=True))["marketplace"].state is State.WRONG
