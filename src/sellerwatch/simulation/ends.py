"""The ends of the simulated world: the sandbox without sockets, as the marketplace and as the product server."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson

from sellerwatch.adapters.product_server import secret_bytes, signed
from sellerwatch.domain.wire import retry_after
from sellerwatch.ports.outside import Receipt
from sellerwatch.ports.time import Clock
from sellerwatch.ports.wire import NoAnswerWhy, NoReply, RawReply
from sellerwatch.sandbox.sandbox import Sandbox

ORIGIN = "http://127.0.0.1:9"
SECRET = "whsec_c2FuZGJveC1zYW5kYm94LXNhbmRib3gtc2FuZGJveA=="  # noqa: S105 - the sandbox' own


class InProcessTransport:
    """`ports.marketplace.Transport`: one request is one call of the sandbox, at the moment it is made."""

    def __init__(self, sandbox: Sandbox, clock: Clock) -> None:
        self._sandbox, self._clock = sandbox, clock
        self.trace: list[str] = []
        self.heard: Callable[[str, str, RawReply, float], None] | None = None
        """Who looks on: target, User-Agent, the answer, and when."""

    async def send(
        self, url: str, headers: Mapping[str, str], *, connect_timeout: float, total_seconds: float, max_bytes: int
    ) -> RawReply:
        del connect_timeout  # nothing is dialled
        target = url.removeprefix(ORIGIN)
        self.trace.append(f"{self._clock.now():%F %T.%f} {headers['User-Agent']} {target}")
        reply = self._sandbox.answer("GET", target, headers, b"", self._clock.now().timestamp())
        raw = RawReply(reply.status, [(name.lower(), value) for name, value in reply.headers], reply.body)
        if self.heard:
            self.heard(target, headers["User-Agent"], raw, self._clock.monotonic())
        if reply.delay > total_seconds:
            await self._clock.sleep(total_seconds)
            raise NoReply(NoAnswerWhy.TIMEOUT, f"no answer within {total_seconds:g} s")
        await self._clock.sleep(reply.delay)
        if reply.drop:
            raise NoReply(NoAnswerWhy.CONNECTION, "the connection was lost")
        if len(reply.body) > max_bytes:
            raise NoReply(NoAnswerWhy.TOO_LARGE, "too many bytes")
        return raw


class InProcessProductServer:
    """`ports.outside.ProductServer`: the sandbox's receiver, signatures and all."""

    def __init__(self, sandbox: Sandbox, clock: Clock) -> None:
        self._sandbox, self._clock = sandbox, clock
        self.traceparents: list[str | None] = []

    async def deliver(
        self, event_id: str, payload: Mapping[str, Any], at: datetime, traceparent: str | None = None
    ) -> Receipt:
        body = orjson.dumps(dict(payload))
        headers = {"Idempotency-Key": event_id, "Content-Type": "application/json"}
        headers |= signed(secret_bytes(SECRET), event_id, at, body)
        self.traceparents.append(traceparent)
        target = self._sandbox.conditions.products_path
        reply = self._sandbox.answer("POST", target, headers, body, self._clock.now().timestamp())
        await self._clock.sleep(reply.delay)
        if reply.drop:
            return Receipt(None, error="the connection was lost")
        asked = dict(reply.headers).get("Retry-After")
        return Receipt(reply.status, retry_after(asked, self._clock.now()))

    async def versions(self, _url: str, _at: datetime) -> bytes:
        held = self._sandbox.receiver.versions()
        return b"".join(orjson.dumps({"itemNo": item_no, "version": held[item_no]}) + b"\n" for item_no in held)
