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

import aiohttp
import orjson

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.wire import checked_neighbour, retry_after
from sellerwatch.ports.outside import Receipt
from sellerwatch.ports.time import Clock

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  how every secret begins
SECRET_BYTES_MIN: Final = 24
RESPONSE_BYTES: Final = 64 << 10
TRACEPARENT: Final = "traceparent"


class HttpProductServer:
    """ports.outside.ProductServer over a pool of kept connections."""

    def __init__(
        self,
        url: str,
        secret: str,
        clock: Clock,
        *,
        connect_timeout: float = 3.0,
        read_timeout: float = 5.0,
        allow_plain_http: bool = False,
    ) -> None:
        self._url = checked_neighbour("PRODUCT_SERVER_URL", url, allow_plain_http=allow_plain_http)
        self._key = secret_bytes(secret)
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(
            total=connect_timeout + read_timeout, connect=connect_timeout, ceil_threshold=float("inf")
        )
        self._session: aiohttp.ClientSession | None = None

    async def deliver(self, event_id: str, payload: Mapping[str, Any], at: datetime) -> Receipt:
        """One event. A `traceparent` in the payload goes as a header and not in the body."""
        body = orjson.dumps({name: value for name, value in payload.items() if name != TRACEPARENT})
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": event_id,
            **signed(self._key, event_id, at, body),
        }
        if isinstance(trace := payload.get(TRACEPARENT), str):
            headers[TRACEPARENT] = trace
        try:
            return await self._post(body, headers)
        except TimeoutError:
            return Receipt(None, error=f"no answer within {self._timeout.total:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Receipt(None, error=f"not reached: {type(error).__name__}")

    async def close(self) -> None:
        """Close the pool; a later delivery opens a new one."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> Receipt:
        request = self._opened().post(self._url, data=body, headers=headers, allow_redirects=False)
        async with request as response:
            answer = Receipt(
                response.status, retry_after(response.headers.get("Retry-After"), self._clock.now()), _error(response)
            )
            try:
                await _drain(response)
            except (aiohttp.ClientError, TimeoutError, OSError):
                # The status is what was asked for; only the connection is of no more use.
                response.close()
            return answer

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._timeout,
                auto_decompress=False,
                trust_env=False,
                headers={"User-Agent": "sellerwatch", "Accept-Encoding": "identity"},
            )
        return self._session


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


async def _drain(response: aiohttp.ClientResponse) -> None:
    """To the end, so that the connection can be kept; or, when there is no end in sight, away with it."""
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > RESPONSE_BYTES:
            response.close()
            return


def _error(response: aiohttp.ClientResponse) -> str | None:
    return None if 200 <= response.status < 300 else f"answered {response.status}"
