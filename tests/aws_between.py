"""Between a client and the stand-in for AWS: hands on what is asked, and fails as a test wants it to."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import ClientSession, web

Fault = Callable[[str, dict[str, Any]], "web.Response | str | None"]
"""By operation and parameters: an answer instead, DROP, LOSE, or None: handed on."""
DROP = "drop"
"""The connection ends and nobody was asked."""
LOSE = "lose"
"""It was done, but the answer is lost."""


@dataclass
class Between:
    url: str = ""
    fault: Fault | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def count(self, operation: str) -> int:
        return sum(name == operation for name, _ in self.asked)


def error(code: str, status: int = 400, text: str = "") -> web.Response:
    body = orjson.dumps({"__type": f"com.amazonaws#{code}", "message": text})
    return web.Response(status=status, body=body, content_type="application/x-amz-json-1.0")


def answer(body: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/x-amz-json-1.0")


@asynccontextmanager
async def between(upstream: str) -> AsyncIterator[Between]:
    here = Between()

    async def hand_on(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        operation = request.headers.get("X-Amz-Target", "").rpartition(".")[2]
        parameters = orjson.loads(body or b"{}")
        here.asked.append((operation, parameters))
        fault = here.fault(operation, parameters) if here.fault else None
        if isinstance(fault, web.Response):
            return fault
        if fault != DROP:
            kept = {name: text for name, text in request.headers.items() if name.lower() != "host"}
            async with session.post(upstream + request.path, data=body, headers=kept) as there:
                said = web.Response(
                    status=there.status, body=await there.read(), headers={"Content-Type": there.content_type}
                )
        if fault is None:
            return said
        assert request.transport
        request.transport.abort()
        return web.Response()

    app = web.Application()
    app.router.add_post("/{path:.*}", hand_on)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    here.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with ClientSession() as session:
        yield here
    await runner.cleanup()
