"""A house with a REST door, and a caller at it: no socket, no other process."""

import asyncio
import hashlib
import io
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI
from sqlalchemy import Engine

from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.schema import upgrade
from sellerwatch.entry import log
from sellerwatch.entry.api.app import api
from sellerwatch.entry.api.tokens import Role, issue
from sellerwatch.ports.outside import Issuer
from sellerwatch.ports.time import Clock
from sellerwatch.settings import Settings, load
from sellerwatch.wiring import House, build

Result = TypeVar("Result")

SECRET = "a secret of the tests, thirty-two bytes and more"
KEY = "swk_a key of the tests"
KEY_ENTRY = f"tests:{hashlib.sha256(KEY.encode()).hexdigest()}"


class ShiftedClock(SystemClock):
    """The real clock, set forward by hand; who waits is woken at once and finds the time gone."""

    def __init__(self) -> None:
        self.ahead = timedelta()
        self._limits: list[asyncio.Timeout] = []

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)
        for limit in self._limits:
            # One that is over already would, moved again and again, never come to its end.
            if limit.when() > asyncio.get_running_loop().time():
                limit.reschedule(limit.when() - seconds)
        await super().sleep(0)

    async def within(self, seconds: float, awaitable: Awaitable[Result]) -> Result:
        """What is slept through by this clock counts as waited for."""
        async with asyncio.timeout(max(0.0, seconds)) as limit:
            self._limits.append(limit)
            try:
                return await awaitable
            finally:
                self._limits.remove(limit)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Door:
    house: House
    app: FastAPI
    clock: ShiftedClock

    def token(self, role: Role = Role.ADMIN, hours: float = 1) -> str:
        return issue(self.house.settings, role, timedelta(hours=hours), self.clock, SystemChance())

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        raw: bytes | None = None,
        headers: Sequence[tuple[str, str]] = (),
        key: str = "",
        client: str = "127.0.0.1",
    ) -> Answer:
        """`token` None: the administrator's; an empty one: none at all."""
        token = self.token() if token is None else token
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        sent = [("authorization", f"Bearer {token}")] if token else []
        sent += [("x-api-key", key)] if key else []
        if content and "content-type" not in dict(headers):
            sent.append(("content-type", "application/json"))
        return await call(self.app, method, path, [*sent, *headers], content, client)


async def call(
    app: FastAPI,
    method: str,
    path: str,
    headers: Sequence[tuple[str, str]] = (),
    content: bytes = b"",
    client: str = "127.0.0.1",
) -> Answer:
    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": place,
        "raw_path": place.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "server": ("testserver", 80),
        "client": (client, 1),
        "state": {},
    }
    parts = [content[start : start + 65536] for start in range(0, len(content), 65536)] or [b""]
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        part = parts.pop(0) if parts else None
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, receive, send)
    start, *rest = messages
    told = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], told, b"".join(message.get("body", b"") for message in rest))


@contextmanager
def logs(settings: Settings, clock: Clock, stream: io.StringIO | None = None) -> Iterator[io.StringIO]:
    """What is logged from here on; afterwards logging is what it was."""
    told = stream or io.StringIO()
    root = logging.getLogger()
    before = (root.handlers[:], root.level, {name: logging.getLogger(name).level for name in log.NOISY})
    try:
        log.set_up(settings, clock, told)
        yield told
    finally:
        root.handlers[:], root.level, levels = before
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        structlog.reset_defaults()


@cache
def new_database() -> bytes:
    """An upgraded SQLite file, made once: climbing the revisions takes longer than most tests."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "new.db"
        house = build(load(overrides={"database_url": f"sqlite:///{file}"}), is_alone=True)
        house.upgrade()
        house.database.close()
        return file.read_bytes()


@cache
def memory_database() -> sqlite3.Connection:
    """The same for databases in memory: a copy of it is made by `backup`."""
    made = engine("sqlite://")
    upgrade(made, now=datetime(2026, 3, 2, 9, tzinfo=UTC))
    kept = sqlite3.connect(":memory:", check_same_thread=False)
    raw = made.raw_connection()
    raw.driver_connection.backup(kept)  # type: ignore[union-attr]
    raw.close()
    made.dispose()
    return kept


def upgraded() -> Engine:
    """A database in memory at the newest revision."""
    made = engine("sqlite://")
    raw = made.raw_connection()
    memory_database().backup(raw.driver_connection)  # type: ignore[arg-type]
    raw.close()
    return made


@asynccontextmanager
async def door(path: Path, *, issuer: Issuer | None = None, **overrides: object) -> AsyncIterator[Door]:
    """The REST door of a house on a new SQLite file."""
    clock = ShiftedClock()
    given = {"database_url": f"sqlite:///{path}/house.db", "jwt_secret": SECRET, "api_keys": KEY_ENTRY}
    settings = load(overrides={**given, "api_requests_per_second": 100_000, **overrides})
    (path / "house.db").write_bytes(new_database())
    house = build(settings, clock=clock, is_alone=True)
    house = replace(house, issuer=issuer) if issuer else house
    try:
        yield Door(house, api(house), clock)
    finally:
        await house.close()
