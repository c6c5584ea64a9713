"""HTTP out to the marketplace, by aiohttp: one GET, exactly as told.

Promises: pooled connections; TLS 1.2 or newer with checked certificates; no redirect followed, no cookie kept, no
proxy taken from the environment, no request sent twice behind our back (aiohttp repeats a GET whose kept connection
was closed, and the marketplace would count both); bodies read raw, capped, and inflated with limits. What is said of
a failure names neither headers nor url. Refuses: plain http to other machines, unless declared.
"""

import ssl
from collections.abc import Mapping

import aiohttp
from yarl import URL

from sellerwatch.adapters.marketplace.inflate import inflate
from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.wire import is_loopback
from sellerwatch.ports.marketplace import NoAnswerWhy, NoReply, RawReply

KEEPALIVE_SECONDS = 15.0
DNS_SECONDS = 60
ERROR_BODY_BYTES = 1 << 20
"""What is read of an answer that is no success."""


class AiohttpTransport:
    """A pool of connections, opened at the first request; ports.marketplace.Transport."""

    def __init__(self, *, allow_plain_http: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self._allow_plain_http = allow_plain_http
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, url: str, headers: Mapping[str, str], *, connect_timeout: float, total_seconds: float, max_bytes: int
    ) -> RawReply:
        """One GET; NoReply when nothing usable came."""
        target = URL(url, encoded=True)
        if target.scheme != "https" and not (self._allow_plain_http or is_loopback(target.host or "")):
            raise Invalid("MARKETPLACE_URL", f"{target.scheme}://{target.host}", "https, or ALLOW_PLAIN_HTTP=true")
        # Above five seconds aiohttp would round the end up to a whole second, past the lease's.
        timeout = aiohttp.ClientTimeout(
            total=total_seconds, connect=min(connect_timeout, total_seconds), ceil_threshold=float("inf")
        )
        try:
            async with self._opened().get(target, headers=headers, timeout=timeout, allow_redirects=False) as response:
                return await _reply(response, max_bytes)
        except aiohttp.ServerTimeoutError:
            failure = NoReply(NoAnswerWhy.TIMEOUT, f"no connection within {connect_timeout:g} s")
        except TimeoutError:
            failure = NoReply(NoAnswerWhy.TIMEOUT, f"no complete answer within {total_seconds:.1f} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Only its kind: the texts of these errors hold addresses, headers and pieces of answers.
            failure = NoReply(NoAnswerWhy.CONNECTION, f"the request failed: {type(error).__name__}")
        # Raised out here, so that it bears no trace of the error whose request holds the token.
        raise failure

    async def close(self) -> None:
        """Close the pool; a later request opens a new one."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                # How many are under way at once is the pool of identities' to say.
                limit=0,
                ssl=self._tls or _checked_tls(),
                keepalive_timeout=KEEPALIVE_SECONDS,
                ttl_dns_cache=DNS_SECONDS,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            )
            self._session._retry_connection = False  # noqa: SLF001  there is no public way to say it
        return self._session


def _checked_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def _reply(response: aiohttp.ClientResponse, max_bytes: int) -> RawReply:
    headers = [(name.lower(), value) for name, value in response.headers.items()]
    is_success = 200 <= response.status < 300
    try:
        body = await _raw(response, max_bytes if is_success else min(max_bytes, ERROR_BODY_BYTES))
        encoding = ",".join(response.headers.getall("Content-Encoding", ()))
        return RawReply(response.status, headers, inflate(body, encoding, max_bytes))
    except (NoReply, aiohttp.ClientError, TimeoutError, OSError):
        if is_success:
            raise
        # That it was refused must be told, whatever came after: a 429 with a bomb for a body is a 429.
        response.close()
        return RawReply(response.status, headers, b"")


async def _raw(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    too_large = NoReply(NoAnswerWhy.TOO_LARGE, f"more than {max_bytes} bytes")
    if (response.content_length or 0) > max_bytes:
        response.close()
        raise too_large
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > max_bytes:
            response.close()
            raise too_large
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
