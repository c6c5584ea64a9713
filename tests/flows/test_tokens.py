"""Tokens in the whole house: issued, refreshed, refused, rotated, and bound to their rows."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.vault import Vault
from sellerwatch.sandbox.faults import Fault
from sellerwatch.wiring import House
from simulation.village import NEVER, Village, a_village, on_file
from simulation.virtual import run_virtually

QUICK = {"sweep_seconds": 60, "site_requests_per_second": 100, "identities": 10}
QUIET = QUICK | {"sweep_seconds": NEVER}
FOR_EVER = 100_000
OLD, NEW = (f"{name}:{base64.b64encode(bytes([number]) * 32).decode()}" for name, number in (("old", 1), ("new", 2)))
NO_COOKIE = Fault(name="answer", status=200, headers=(("content-type", "text/html"),), body=b"<html>welcome")


async def tokens(village: Village) -> list[tuple[int, str, str | None, str]]:
    return await village.rows(
        "SELECT agent_id, token_value, cookies, token_fingerprint FROM user_agent_token WHERE is_active ORDER BY 1"
    )


def unauthorized(village: Village) -> int:
    seen = village.sandbox.stats()["identities"]
    assert isinstance(seen, dict)
    return sum(one["unauthorized"] for one in seen.values())


async def open_alerts(village: Village) -> list[str]:
    return await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL ORDER BY name")


def test_a_token_and_its_companions_are_kept_sealed_for_their_row_with_a_keyed_fingerprint() -> None:
    async def story() -> None:
        async with a_village(401, {"shops": {"a": 6}, "strict_cookies": True}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            await village.house.identities.keep_books()
            await village.check()
            vault, kept = village.house.vault, await tokens(village)
            assert len(kept) > 1
            issued = {token for visitor in village.sandbox.market.gate.visitors.values() for token in visitor.tokens}
            for agent_id, sealed, cookies, fingerprint in kept:
                assert re.fullmatch(r"v1\.sim\.[A-Za-z0-9+/]{44,}={0,2}", sealed)
                plain = vault.open(sealed, f"user_agent_token.token_value:{agent_id}")
                assert plain in issued
                assert fingerprint == vault.fingerprint(plain)
                assert cookies is not None
                assert "mustit_uid" in vault.open(cookies, f"user_agent_token.cookies:{agent_id}")
            assert len({row[3] for row in kept}) == len(kept)

    run_virtually(story())


@pytest.mark.parametrize("spoil", ["swapped rows", "a flipped bit", "cookies of another row"])
def test_what_is_not_this_rows_token_is_never_sent_and_a_fresh_one_takes_its_place(spoil: str) -> None:
    async def story() -> None:
        async with a_village(402, {"shops": {"a": 6}}, **QUIET | {"identities": 2}) as village:
            await village.register("a")
            await village.crawl("a")
            before = village.sandbox.stats()["requests"]["byKind"]["TOKEN"]  # type: ignore[index]
            column = "cookies" if spoil.startswith("cookies") else "sealed"
            if spoil == "a flipped bit":
                flipped = "CASE substr(sealed, 20, 1) WHEN 'A' THEN 'B' ELSE 'A' END"
                await village.change(
                    f"UPDATE pool_faces SET sealed = substr(sealed, 1, 19) || {flipped} || substr(sealed, 21)"
                )
            else:
                one, two = await village.column(f"SELECT {column} FROM pool_faces WHERE agent_id < 3 ORDER BY agent_id")
                await village.change(f"UPDATE pool_faces SET {column} = ? WHERE agent_id = 1", two)
                await village.change(f"UPDATE pool_faces SET {column} = ? WHERE agent_id = 2", one)
            village.sandbox.mutate(1.0)
            await village.crawl("a")
            await village.check()
            assert unauthorized(village) == 0
            after = village.sandbox.stats()["requests"]["byKind"]["TOKEN"]  # type: ignore[index]
            assert (after["200"] - before["200"]) == 2
            assert (await village.house.pool.figures()).health_min == 100

    run_virtually(story())


def test_tokens_are_refreshed_by_their_schedule_before_they_end_and_on_leases_of_their_own() -> None:
    async def story() -> None:
        settings = QUICK | {"identities": 3}
        async with a_village(403, {"shops": {"a": 6}, "token_seconds": 5400}, **settings) as village:
            await village.register("a")
            await village.crawl("a")
            for _ in range(18):
                await village.clock.sleep(1200)
                ends = await village.column("SELECT min(expires_us) FROM pool_faces WHERE sealed IS NOT NULL")
                assert ends[0] / 1e6 > village.clock.now().timestamp()
            visitors = village.sandbox.market.gate.visitors.values()
            # Six hours: at the first lease, then about every hour.
            assert [6 <= visitor.issued <= 8 for visitor in visitors if visitor.issued] == [True] * 3
            assert unauthorized(village) == 0
            requests = sum(visitor.requests for visitor in visitors)
            assert await village.column("SELECT sum(uses) FROM pool_identities") == [requests]
            assert await village.column("SELECT count(*) FROM token_usage_log") == [requests]
            schedule = await village.rows(
                "SELECT count(*), max(consecutive_failures), max(refresh_interval_seconds) "
                "FROM token_refresh_schedule WHERE is_enabled"
            )
            assert schedule == [(3, 0, 3600)]

    run_virtually(story())


def test_suspended_and_blocked_identities_are_not_refreshed() -> None:
    async def story() -> None:
        async with a_village(404, {"shops": {"a": 6}}, **QUICK | {"identities": 3}) as village:
            await village.register("a")
            await village.crawl("a")
            await village.house.identities.block(1)
            for _ in range(8):
                if (await village.house.pool.figures()).suspended == 0:
                    await village.house.identities.suspend(2)
                await village.clock.sleep(1200)
            refreshed = dict(
                await village.rows(
                    "SELECT agent_id, count(*) FROM token_usage_log WHERE request_url LIKE '%:9/' GROUP BY agent_id"
                )
            )
            assert refreshed[1] == 1
            assert refreshed[3] >= 3

    run_virtually(story())


@pytest.mark.parametrize(
    "answer",
    [
        NO_COOKIE,
        Fault(name="answer", status=403),
        Fault(name="answer", status=404),
        Fault(name="html"),
    ],
    ids=["2xx without the cookie", "403", "404", "a page"],
)
def test_three_answers_without_a_token_block_the_identity_tell_somebody_and_the_next_one_does_the_work(
    answer: Fault,
) -> None:
    async def story() -> None:
        settings = QUIET | {"identities": 6, "sweep_records_seconds": 60}
        async with a_village(405, {"shops": {"a": 4}}, **settings) as village:
            await village.register("a")
            unwelcome = sorted(await village.column("SELECT user_agent FROM user_agent_pool WHERE agent_id < 3"))
            refuse(village, unwelcome, answer)
            execution = await village.crawl("a")
            assert (execution.failed_tasks, execution.completed_tasks) == (0, 1 + 8)
            for _ in range(20):
                # Until both have been asked for three times.
                for agent_id in (1, 2):
                    lease = await village.house.pool.lease_of(agent_id)
                    if lease and lease.token is None:
                        await village.outside.asking.issue(lease)
                await village.clock.sleep(700)
            blocked = await village.rows(
                "SELECT agent_id, is_blocked_by_hand, token_failures FROM user_agent_pool WHERE status = 'BLOCKED'"
            )
            assert blocked == [(1, 0, 3), (2, 0, 3)]
            assert {"identity_blocked:1", "identity_blocked:2"} <= set(await open_alerts(village))
            seen = village.sandbox.market.gate.visitors
            for user_agent in unwelcome:
                # robots.txt, if it was its turn, and three times the start page; nothing without a token.
                assert seen[user_agent].unauthorized == 0
                assert 3 <= seen[user_agent].requests <= 4

    run_virtually(story())


def refuse(village: Village, unwelcome: list[str], answer: Fault) -> None:
    """The start page answers these visitors so."""
    market = village.sandbox.market
    serve = market.answer

    def answer_them(method: str, target: str, headers: dict[str, str], now: float):
        if target == "/" and headers["user-agent"] in unwelcome:
            village.sandbox.stage("/", answer)
        return serve(method, target, headers, now)

    market.answer = answer_them  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(name="drop"),
        Fault(name="slow", seconds=60),
        Fault(name="error", status=500),
        Fault(name="error", status=503, retry_after="seconds", retry_after_seconds=5),
        Fault(name="throttle"),
        Fault(name="redirect", location="/elsewhere"),
    ],
    ids=["dropped", "timeout", "500", "503", "429", "redirect"],
)
def test_an_outage_of_the_start_page_blocks_nobody_and_costs_nobody_his_health(fault: Fault) -> None:
    async def story() -> None:
        async with a_village(406, {"shops": {"a": 4}}, **QUICK | {"breaker_open_seconds": 60}) as village:
            await village.register("a")
            village.sandbox.stage("/", fault, FOR_EVER)
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(3600 + 600)
            assert village.sandbox.market.faults.happened[fault.name] > 8
            assert await village.column("SELECT max(token_failures) FROM pool_identities") == [0]
            assert await village.column("SELECT DISTINCT status FROM pool_identities WHERE status = 'BLOCKED'") == []
            assert await village.column("SELECT DISTINCT breaker_state FROM pool_identities") == ["CLOSED"]
            # A 429 suspends, and each recovery begins at 70; nothing else moved it.
            assert await village.column("SELECT min(health) >= 70 FROM pool_identities") == [1]
            village.sandbox.market.faults.clear()
            if not (await village.execution(execution.execution_id)).is_open:
                execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution, 4 * 3600)
            await village.settled()
            await village.check()

    run_virtually(story())


@pytest.mark.slow
def test_the_key_is_rotated_while_crawling_and_nothing_fails(tmp_path: Path) -> None:
    async def story() -> None:
        settings = QUICK | {"database_url": on_file(tmp_path), "delivery_interval": 60}
        async with a_village(407, {"shops": {"a": 300}}, is_running=False, **settings) as village:

            def a_house(*keys: str) -> House:
                return village.raise_house(1.0, token_keys=",".join(keys))

            def key_ids(rows: list[str]) -> set[str]:
                return {sealed.split(".")[1] for sealed in rows}

            await village.register("a")
            first, both, last = a_house(OLD), a_house(NEW, OLD), a_house(NEW)
            leave_first = village.move_in(first)
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(25)
            # Everybody with both keys, one after the other: nobody stands still.
            leave_both = village.move_in(both)
            await village.clock.sleep(10)
            await leave_first()
            assert key_ids(await village.column("SELECT sealed FROM pool_faces WHERE sealed IS NOT NULL")) == {"old"}
            rekeyed = await both.identities.rekey(resealed(both))
            assert (rekeyed.sealed_anew, rekeyed.unreadable, rekeyed.left) == (10, 0, 0)
            await village.clock.sleep(30)
            for table, column in (("pool_faces", "sealed"), ("pool_faces", "cookies")):
                found = await village.column(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")
                assert key_ids(found) == {"new"}, column
            assert key_ids([row[1] for row in await tokens(village)]) == {"new"}
            leave_last = village.move_in(last)
            await leave_both()
            await village.ended(execution, 20_000)
            await village.settled()
            assert unauthorized(village) == 0
            ended = await village.execution(execution.execution_id)
            assert ended.failed_tasks == 0
            assert await village.column("SELECT max(retry_count) FROM crawler_tasks") == [0]
            issued = sum(visitor.issued for visitor in village.sandbox.market.gate.visitors.values())
            hours = (village.clock.now() - ended.started_at).total_seconds() / 3600
            # By the schedule and for no other reason.
            assert issued <= 10 * (hours + 1.2)
            await leave_last()

    run_virtually(story())


def resealed(house: House) -> Callable[[str, str], str]:
    vault = house.vault

    def reseal(sealed: str, row: str) -> str:
        return vault.seal(vault.open(sealed, row), row) if vault.needs_rekey(sealed) else sealed

    return reseal


def test_a_key_taken_out_too_early_costs_requests_and_no_task() -> None:
    async def story() -> None:
        async with a_village(408, {"shops": {"a": 6}}, **QUIET | {"identities": 4}) as village:
            await village.register("a")
            await village.crawl("a")
            await village.house.identities.keep_books()
            fresh = Vault([("other", b"\x07" * 32)], SeededChance(1).token_bytes)
            object.__setattr__(village.house, "vault", fresh)
            rekeyed = await village.house.identities.rekey(resealed(village.house))
            assert (rekeyed.sealed_anew, rekeyed.unreadable, rekeyed.left) == (0, 4, 0)
            village.sandbox.mutate(1.0)
            await village.crawl("a")
            await village.check()
            assert unauthorized(village) == 0

    run_virtually(story())


def test_who_still_seals_under_the_old_key_is_told() -> None:
    async def story() -> None:
        async with a_village(409, {"shops": {"a": 6}}, **QUIET | {"identities": 4}) as village:
            await village.register("a")
            await village.crawl("a")
            both = Vault([("new", b"\x07" * 32), ("sim", b"\x00" * 32)], SeededChance(1).token_bytes)
            sealed_under_the_old = await village.column("SELECT sealed FROM pool_faces WHERE agent_id = 1")
            keep = village.house.pool.keep_token

            async def undone(agent_id: int, token: object) -> None:
                """Another process has put it back under the old key by then."""
                await keep(agent_id, token)  # type: ignore[arg-type]
                await village.change("UPDATE pool_faces SET sealed = ? WHERE agent_id = 1", sealed_under_the_old[0])

            village.house.pool.keep_token = undone  # type: ignore[method-assign, assignment]

            def reseal(sealed: str, row: str) -> str:
                return both.seal(both.open(sealed, row), row) if both.needs_rekey(sealed) else sealed

            rekeyed = await village.house.identities.rekey(reseal)
            assert (rekeyed.sealed_anew, rekeyed.left) == (4, 1)

    run_virtually(story())
