"""The operator's product server: signed events, after Standard Webhooks.

Promises: one POST per call, under the event's id as `Idempotency-Key` and `webhook-id`; signed over id, timestamp and
the very bytes that go out; at most 64 KB of what comes back are read, and none of it believed but status and
`Retry-After`. No redirect is followed: a signed event goes to the configured url only. Refuses: a secret of under
24 bytes, plain http to other machines unless declared.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from sellerwatch.domain.errors import Invalid, Refused, Unavailable
from sellerwatch.domain.wire import checked_neighbour, divided, retry_after
from sellerwatch.ports.outside import VERSIONS_BYTES_MAX, Receipt
from sellerwatch.ports.time import Clock
from sellerwatch.ports.wire import Dial, NoAnswerWhy, NoReply, RawReply

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  how every secret begins
SECRET_BYTES_MIN: Final = 24
RESPONSE_BYTES: Final = 64 << 10
VERSIONS_SECONDS: Final = 120.0
_VERSIONS_FORMS: Final = "application/x-ndjson, text/csv"
_ALWAYS: Final = {"User-Agent": "sellerwatch", "Accept-Encoding": "identity", "Content-Type": "application/json"}


class HttpProductServer:
    """ports.outside.ProductServer over a wire to its origin."""

    def __init__(
        self,
        url: str,
        secret: str,
        clock: Clock,
        dial: Dial,
        *,
        connect_timeout: float = 3.0,
        read_timeout: float = 5.0,
        allow_plain_http: bool = False,
    ) -> None:
        checked = checked_neighbour("PRODUCT_SERVER_URL", url, allow_plain_http=allow_plain_http)
        self._origin, self._target = divided(checked)
        self._key = secret_bytes(secret)
        self._clock = clock
        self._wire = dial(self._origin)
        self._connect_timeout = connect_timeout
        self._total_seconds = connect_timeout + read_timeout

    async def deliver(
        self, event_id: str, payload: Mapping[str, Any], at: datetime, traceparent: str | None = None
    ) -> Receipt:
        body = orjson.dumps(dict(payload))
        headers = {**_ALWAYS, "Idempotency-Key": event_id, **signed(self._key, event_id, at, body)}
        if traceparent is not None:
            headers["traceparent"] = traceparent
        try:
            reply = await self._wire.send(
                self._target,
                headers,
                body,
                connect_timeout=self._connect_timeout,
                total_seconds=self._total_seconds,
                max_bytes=RESPONSE_BYTES,
                # The status is what was asked for.
                is_body_needed=False,
            )
        except NoReply as failure:
            return Receipt(None, error=self._said(failure))
        return Receipt(reply.status, retry_after(reply.header("retry-after"), self._clock.now()), _error(reply))

    async def versions(self, url: str, at: datetime) -> bytes:
        origin, target = divided(url)
        if origin != self._origin:
            raise Refused(f"versions are read from {self._origin} only, where events go, or from a file")
        headers = {**_ALWAYS, "Accept": _VERSIONS_FORMS, **signed(self._key, f"versions-{at:%Y%m%dT%H%M%S}", at, b"")}
        reply = await self._wire.send(
            target,
            headers,
            connect_timeout=self._connect_timeout,
            total_seconds=VERSIONS_SECONDS,
            max_bytes=VERSIONS_BYTES_MAX,
        )
        if reply.status != 200:
            raise Unavailable(f"the product server answered {reply.status} to the question for its versions")
        return reply.body

    async def close(self) -> None:
        """End every connection; a later delivery opens a new one."""
        await self._wire.close()

    def _said(self, failure: NoReply) -> str:
        if failure.why is NoAnswerWhy.TIMEOUT:
            return f"no answer within {self._total_seconds:g} s"
        return f"not reached: {failure.detail}"


def secret_bytes(secret: str) -> bytes:
    """The key in `whsec_…`, or Invalid; no error shows any of it."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(SECRET_PREFIX) or len(key) < SECRET_BYTES_MIN:
        raise Invalid("PRODUCT_SERVER_SECRET", "(hidden)", f"whsec_ and base64 of at least {SECRET_BYTES_MIN} bytes")
    return key


def signed(key: bytes, event_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The three headers of Standard Webhooks."""
    seconds = str(int(at.timestamp()))
    mac = hmac.new(key, b".".join((event_id.encode(), seconds.encode(), body)), hashlib.sha256)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{base64.b64encode(mac.digest()).decode()}",
    }


def _error(reply: RawReply) -> str | None:
    return None if 200 <= reply.status < 300 else f"answered {reply.status}"
