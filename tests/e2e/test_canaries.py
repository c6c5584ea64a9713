"""Planted secrets: a whole run with everything going wrong, at debug level, and then a search through all that is left.

Searched: the log, errors with their tracebacks and local names, reprs, answers of the API, every column of the database,
every key and value of Redis. Searched for: each secret as it is, and in base64, hexadecimal and percent-encoding.
"""

import asyncio
import base64
import hashlib
import re
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from redis import Redis as RedisClient

import servers
from doors import call, logs, new_database
from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.entry.api.app import api
from sellerwatch.entry.api.tokens import Role, issue
from sellerwatch.entry.pretend import pretended
from sellerwatch.entry.up import run_up
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.faults import Fault
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.settings import load
from sellerwatch.wiring import House, build

TOKEN_KEY = b"canary-key-of-exactly-32-bytes!!"
SIGNING = b"canary-that-signs-every-delivery"
JWT = "canary-jwt-secret/of 32 bytes+and more"
API_KEY = "canary-api-key-0123456789abcdef"
PASSWORD = "canary-redis-password"
HOOK = "canary-in-the-path-of-the-alert-hook"
PATIENCE = 60.0
_SHOP = {"a": 12}


@dataclass
class Left:
    """Everything that a run leaves behind, by where it was found."""

    texts: dict[str, bytes] = field(default_factory=dict)

    def add(self, where: str, what: object) -> None:
        content = what if isinstance(what, bytes) else str(what).encode("utf-8", "backslashreplace")
        self.texts[where] = self.texts.get(where, b"") + b"\n" + content

    def found(self, secrets: dict[str, bytes]) -> list[tuple[str, str, str]]:
        lowered = {where: content.lower() for where, content in self.texts.items()}
        return [
            (name, form, where)
            for name, secret in secrets.items()
            for form, spelling in spellings(secret)
            for where, content in (lowered if form.startswith("any case") else self.texts).items()
            if spelling in content
        ]


def spellings(secret: bytes) -> Iterator[tuple[str, bytes]]:
    """As it is, and as it may come out of an encoder; in base64 wherever it stands in what was encoded."""
    yield "plain", secret
    yield "reversed", secret[::-1]
    yield "any case hexadecimal", secret.hex().encode()
    yield "percent", quote(secret, safe="").encode()
    yield "repr", repr(secret)[2:-1].encode()
    for ahead in range(3):
        packed = base64.b64encode(b"\0" * ahead + secret)
        middle = packed[4 if ahead else 0 : -4]
        yield f"base64 at {ahead}", middle
        yield f"base64url at {ahead}", middle.replace(b"+", b"-").replace(b"/", b"_")


def test_a_planted_secret_is_found_in_each_of_its_forms() -> None:
    secret = b"canary/secret+0123456789"
    forms = {
        "log": secret,
        "packed": base64.b64encode(b"x: " + secret),
        "shifted": base64.urlsafe_b64encode(b"xy: " + secret + b"!"),
        "hex": secret.hex().upper().encode(),
        "query": quote(secret, safe="").encode(),
    }
    for where, content in forms.items():
        left = Left()
        left.add(where, b"before " + content + b" after")
        assert left.found({"it": secret}), where
    assert not Left({"log": b"canary secret"}).found({"it": secret})


@asynccontextmanager
async def a_run(folder: Path, redis_url: str | None) -> AsyncIterator[tuple[House, Sandbox]]:
    clock = SystemClock()
    secret = "whsec_" + base64.b64encode(SIGNING).decode()
    conditions = Conditions(shops=_SHOP, secret=secret, hourly_limit=0, min_interval_seconds=0, token_seconds=4)
    (folder / "canary.db").write_bytes(new_database())
    async with pretended(conditions, clock) as beside:
        settings = load(
            overrides={
                "database_url": f"sqlite:///{folder}/canary.db",
                "redis_url": redis_url,
                "token_keys": "k1:" + base64.b64encode(TOKEN_KEY).decode(),
                "jwt_secret": JWT,
                "api_keys": f"canary:{hashlib.sha256(API_KEY.encode()).hexdigest()}",
                "alert_webhook_url": f"http://127.0.0.1:{servers.a_free_port()}/{HOOK}",
                "log_level": "debug",
                "log_format": "json",
                "identity_hourly_limit": 2000,
                "identity_min_interval": 0.05,
                "identity_window_guard": 2,
                "site_requests_per_second": 200,
                "read_timeout": 1,
                "task_retries": 6,
                "breaker_open_seconds": 1,
                "sweep_seconds": 1,
                "delivery_interval": 1,
                "absorb_wait_seconds": 5,
                **beside.settings,
            }
        )
        house = build(settings, clock=clock)
        try:
            yield house, beside.sandbox
        finally:
            await house.close()


def go_wrong(sandbox: Sandbox) -> None:
    faults = (
        Fault(name="throttle", retry_after="seconds", retry_after_seconds=1),
        Fault(name="unauthorized"),
        Fault(name="unauthorized"),
        Fault(name="slow", seconds=3),
        Fault(name="html"),
        Fault(name="truncate"),
        Fault(name="drop"),
        Fault(name="redirect", location="https://elsewhere.test/"),
        Fault(name="answer", status=418, headers=(("set-cookie", "nid=x\x01"),), body=b"{"),
    )
    for kind in ("DETAIL", "OPTION"):
        for fault in faults:
            sandbox.stage(kind, fault)
    sandbox.stage("TOKEN", Fault(name="answer", status=200, body=b"<html>"), times=2)
    sandbox.stage("PRODUCTS", Fault(name="error", status=500), times=2)
    sandbox.stage("PRODUCTS", Fault(name="drop"))


async def crawl(house: House, sandbox: Sandbox, left: Left) -> set[str]:
    """Everything that was ever issued."""
    planted: set[str] = set()
    issue_one = sandbox.market.gate.issue

    def issued(user_agent: str, now: float) -> list[tuple[str, str]]:
        cookies = issue_one(user_agent, now)
        planted.update(re.findall(r"=([^;]{16,})", value)[0] for _, value in cookies)
        return cookies

    sandbox.market.gate.issue = issued  # type: ignore[method-assign]
    go_wrong(sandbox)
    await house.sellers.register("a", "A")
    stop = asyncio.Event()
    running = asyncio.create_task(run_up(house, stop))
    try:
        execution = await house.trigger.crawl_now("a")
        async with asyncio.timeout(PATIENCE):
            while (found := await house.reports.execution(execution.execution_id)) is None or found.execution.is_open:
                await house.clock.sleep(0.1)
            while not sandbox.receiver.shown()["products"]:
                await house.clock.sleep(0.1)
        await callers(house, left)
        await errors(house, left, planted)
    finally:
        stop.set()
        await running
    return planted


async def callers(house: House, left: Left) -> None:
    door = api(house)
    good = issue(house.settings, Role.ADMIN, timedelta(hours=1), house.clock, SystemChance())
    for path in ("/health", "/ready", "/openapi.json", "/api/v1/executions/none", "/api/v1/sellers/a", "/nothing"):
        for headers in (
            [("authorization", f"Bearer {good}")],
            [("authorization", f"Bearer {good[:-2]}")],
            [("authorization", f"Bearer {JWT}")],
            [("x-api-key", API_KEY)],
            [("x-api-key", API_KEY[:-1])],
        ):
            answer = await call(door, "GET", path, headers)
            left.add("API", repr(answer.headers).encode() + answer.body)


async def errors(house: House, left: Left, planted: set[str]) -> None:
    """Where plaintext passes: made to fail, with all that a traceback can show."""
    assert house.outside is not None
    client = house.outside.asking._marketplace
    lease = None
    while lease is None or lease.token is None:
        grant = await house.pool.lease(1)
        lease = grant.leases[0] if grant.leases else None
        await house.clock.sleep(0.05)
    for url in ("https://elsewhere.test/", house.outside.addresses.origin + "/x y"):
        with pytest.raises(Exception) as caught:
            await client.fetch(url, lease)
        left.add("errors", "".join(traceback.format_exception(caught.value)))
    for each in (
        lease,
        lease.token,
        house,
        house.settings,
        house.vault,
        client,
        house.outside,
        house.redis_pool,
        house.pool,
    ):
        left.add("reprs", repr(each))
        left.add("reprs", str(each))
    assert planted


def database(folder: Path, left: Left) -> None:
    with closing(sqlite3.connect(folder / "canary.db")) as opened:
        for (table,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in opened.execute(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, str | bytes):
                        left.add(f"table {table}", value)
    for file in folder.glob("canary.db*"):
        left.add(f"file {file.name}", file.read_bytes())


def redis(port: int, left: Left) -> int:
    """Every key, every value as it is kept."""
    with RedisClient(host="127.0.0.1", port=port, password=PASSWORD) as client:
        keys = list(client.scan_iter(count=1000))
        readers = {
            b"string": lambda key: [client.get(key)],
            b"hash": lambda key: client.hgetall(key).items(),
            b"list": lambda key: client.lrange(key, 0, -1),
            b"zset": lambda key: client.zrange(key, 0, -1),
            b"set": client.smembers,
            b"stream": client.xrange,
        }
        for key in keys:
            left.add("Redis keys", key)
            left.add("Redis values", b"\n".join(map(raw, readers[client.type(key)](key))))
            left.add("Redis dumps", client.dump(key) or b"")
        return len(keys)


def raw(value: object) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()


@contextmanager
def a_pool(engine: str) -> Iterator[int | None]:
    if engine == "database":
        yield None
        return
    with servers.a_redis() as server:
        assert server.say("CONFIG", "SET", "requirepass", PASSWORD) == b"+OK\r\n"
        yield server.port


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["database", "redis"])
async def test_no_secret_is_left_anywhere_after_a_run_in_which_everything_goes_wrong(
    tmp_path: Path, engine: str
) -> None:
    left = Left()
    with a_pool(engine) as port:
        address = None if port is None else f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
        async with a_run(tmp_path, address) as (house, sandbox):
            with logs(house.settings, house.clock) as told:
                planted = await crawl(house, sandbox, left)
            left.add("log", told.getvalue())
        if port is not None:
            assert redis(port, left) > 50
    database(tmp_path, left)
    secrets = {f"issued {number}": each.encode() for number, each in enumerate(sorted(planted))}
    secrets |= {"token key": TOKEN_KEY, "signing key": SIGNING, "JWT secret": JWT.encode()}
    secrets |= {"API key": API_KEY.encode(), "Redis password": PASSWORD.encode(), "alert hook": HOOK.encode()}
    # It was a run in which things went wrong, and one that wrote everywhere.
    happened = sandbox.market.faults.happened
    assert {"throttle", "unauthorized", "slow", "html", "drop"} <= set(happened)
    assert len(planted) > 20
    assert b'"level":"debug"' in left.texts["log"] or b"debug" in left.texts["log"]
    assert len(left.texts["table user_agent_token"]) > 1000
    assert left.found(secrets) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", ["up", "status --json", "--debug agents status"])
def test_no_password_of_an_address_is_told_by_a_command_that_fails(tmp_path: Path, words: str) -> None:
    password = "canary/pass@word"
    port = servers.a_free_port()
    environment = {
        "SELLERWATCH_DATABASE_URL": f"mysql://somebody:{quote(password, safe='')}@127.0.0.1:{port}/sellerwatch",
        "SELLERWATCH_REDIS_URL": f"redis://:{PASSWORD}@127.0.0.1:{port}/0",
        "SELLERWATCH_TOKEN_KEYS": "k1:" + base64.b64encode(TOKEN_KEY).decode(),
        "SELLERWATCH_JWT_SECRET": JWT,
        "SELLERWATCH_MARKETPLACE_URL": "http://127.0.0.1:9",
    }
    command = [sys.executable, "-m", "sellerwatch", *words.split()]
    said = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert said.returncode != 0
    left = Left()
    left.add("said", said.stdout + said.stderr)
    assert b"127.0.0.1" in left.texts["said"]
    secrets = {"database password": password.encode(), "Redis password": PASSWORD.encode(), "JWT": JWT.encode()}
    assert left.found(secrets | {"token key": TOKEN_KEY}) == []
