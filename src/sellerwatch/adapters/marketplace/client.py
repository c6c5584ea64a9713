"""The marketplace's client: one request per call, as the identity of a lease.

Promises: only the configured origin is ever asked, url by url, and a token goes nowhere else; a request ends a second
before its lease; redirects are told, not followed. Plaintext tokens and cookies live in the headers of the request
under way, and in this object: no error, log line or repr of this room holds one. Refuses: a lease without a token,
another host's url, a token that can't be written into a header.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from json import JSONDecodeError, dumps, loads
from urllib.parse import urljoin, urlsplit

from sellerwatch.adapters.marketplace.cookies import Cookie, cookies_set
from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.errors import Invalid, Unreadable
from sellerwatch.domain.identities import SealedToken
from sellerwatch.domain.wire import retry_after
from sellerwatch.ports.marketplace import Answer, Issued, NoAnswer, Transport, Vault
from sellerwatch.ports.pool import Lease
from sellerwatch.ports.time import Clock
from sellerwatch.ports.wire import NoAnswerWhy, NoReply, RawReply

TOKEN_COOKIE = "token"  # noqa: S105  a cookie's name
TOKEN_LIFETIME = timedelta(hours=2)
MARGIN_SECONDS = 1.0
OPENED_MAX = 512
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PATH = re.compile(r"/[A-Za-z0-9\-._~%!$&'()*+,;=:@/?]*", re.ASCII)
_LOCATION = re.compile(r"[A-Za-z0-9\-._~%!$&'()*+,;=:@/?#\[\]]+", re.ASCII)
_HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)


class Client:
    """ports.marketplace.Marketplace over some transport."""

    def __init__(
        self,
        transport: Transport,
        vault: Vault,
        addresses: Addresses,
        clock: Clock,
        *,
        connect_timeout: float = 3.0,
        read_timeout: float = 10.0,
        max_response_bytes: int = 32 << 20,
    ) -> None:
        self._transport = transport
        self._vault = vault
        self._addresses = addresses
        self._clock = clock
        self._connect_timeout = connect_timeout
        self._request_seconds = connect_timeout + read_timeout
        self._max_bytes = max_response_bytes
        # Opened once for the life of a token, not for each of its requests.
        self._opened = lru_cache(OPENED_MAX)(self._open)

    async def fetch(self, url: str, lease: Lease) -> Answer | NoAnswer:
        """One GET of one of the marketplace's urls."""
        self._check(url)
        if lease.token is None:
            raise Invalid("lease", lease.lease_id, "a lease that holds a token")
        headers = self._opened(lease.token.sealed, lease.token.cookies, lease.agent_id, lease.user_agent)
        return self._answer(url, *await self._ask(url, headers, lease))

    async def issue_token(self, lease: Lease) -> Issued:
        """One GET of the start page, which gives its visitors a token."""
        url = self._addresses.token()
        reply, duration_ms = await self._ask(url, _visitor(lease.user_agent), lease)
        return Issued(self._issued(reply, lease.agent_id), self._answer(url, reply, duration_ms))

    async def robots(self, url: str, lease: Lease) -> Answer | NoAnswer:
        """One GET as somebody who has just come."""
        self._check(url)
        return self._answer(url, *await self._ask(url, _visitor(lease.user_agent), lease))

    async def _ask(self, url: str, headers: Mapping[str, str], lease: Lease) -> tuple[RawReply | NoReply, int]:
        left = (lease.deadline - self._clock.now()).total_seconds() - MARGIN_SECONDS
        if left <= 0:
            return NoReply(NoAnswerWhy.TIMEOUT, "nothing was sent: the lease had no time left"), 0
        started = self._clock.monotonic()
        try:
            reply: RawReply | NoReply = await self._transport.send(
                url,
                headers,
                connect_timeout=self._connect_timeout,
                total_seconds=min(left, self._request_seconds),
                max_bytes=self._max_bytes,
            )
        except NoReply as failure:
            reply = failure
        return reply, round((self._clock.monotonic() - started) * 1000)

    def _answer(self, url: str, reply: RawReply | NoReply, duration_ms: int) -> Answer | NoAnswer:
        if isinstance(reply, NoReply):
            return NoAnswer(reply.why, reply.detail, duration_ms)
        redirect_to = None
        if reply.status in REDIRECTS and (location := reply.header("location")):
            redirect_to = self._within(url, location)
            if redirect_to is None:
                return NoAnswer(NoAnswerWhy.FOREIGN_REDIRECT, f"{reply.status} to another host", duration_ms)
        wish = reply.header("retry-after")
        return Answer(
            status=reply.status,
            body=reply.body,
            retry_after=retry_after(wish, self._clock.now()) if wish else None,
            duration_ms=duration_ms,
            redirect_to=redirect_to,
            content_type=reply.header("content-type") or "",
        )

    def _check(self, url: str) -> None:
        """The origin is compared as text, up to the slash that ends it: nothing is left for a parser to misread."""
        origin = self._addresses.origin
        if not url.startswith(f"{origin}/") or not _PATH.fullmatch(url, len(origin)):
            raise Invalid("url", url, f"an address of {origin}")

    def _within(self, url: str, location: str) -> str | None:
        """Where a redirect leads, if that is within the host."""
        if not _LOCATION.fullmatch(location):
            return None
        try:
            target = urlsplit(urljoin(url, location))
            same = (target.scheme, target.hostname, _port(target.scheme, target.port)) == self._place()
        except ValueError:
            return None
        if not same or target.username is not None or target.password is not None:
            return None
        path = (target.path or "/") + (f"?{target.query}" if target.query else "")
        # Put together anew, so that whatever the parser made of the location, the host is ours.
        return f"{self._addresses.origin}{path}" if _PATH.fullmatch(path) else None

    def _place(self) -> tuple[str, str | None, int | None]:
        origin = urlsplit(self._addresses.origin)
        return origin.scheme, origin.hostname, _port(origin.scheme, origin.port)

    def _open(self, token: str, cookies: str | None, agent_id: int, user_agent: str) -> Mapping[str, str]:
        row = _token_row(agent_id)
        headers = {"Authorization": f"Bearer {self._vault.open(token, row)}"}
        if cookies is not None:
            others = _jar(self._vault.open(cookies, _cookies_row(agent_id)), row)
            if pairs := [f"{name}={value}" for name, value in others.items() if name != TOKEN_COOKIE]:
                headers["Cookie"] = "; ".join(pairs)
        if not all(_HEADER.fullmatch(value) for value in headers.values()):
            raise Unreadable(row, "what was sealed there can't be a header")
        return _visitor(user_agent) | headers

    def _issued(self, reply: RawReply | NoReply, agent_id: int) -> SealedToken | None:
        if isinstance(reply, NoReply) or reply.status >= 400:
            return None
        now = self._clock.now()
        lines = [value for name, value in reply.headers if name == "set-cookie"]
        jar = cookies_set(lines, urlsplit(self._addresses.origin).hostname or "", now)
        token = jar.pop(TOKEN_COOKIE, None)
        return None if token is None else self._sealed(token, jar, agent_id)

    def _sealed(self, token: Cookie, others: Mapping[str, Cookie], agent_id: int) -> SealedToken:
        now = self._clock.now()
        jar = dumps({name: cookie.value for name, cookie in others.items()})
        return SealedToken(
            sealed=self._vault.seal(token.value, _token_row(agent_id)),
            fingerprint=self._vault.fingerprint(token.value),
            issued_at=now,
            expires_at=token.expires_at or now + TOKEN_LIFETIME,
            cookies=self._vault.seal(jar, _cookies_row(agent_id)) if others else None,
        )


def _visitor(user_agent: str) -> dict[str, str]:
    return {"User-Agent": user_agent, "Accept": "application/json", "Accept-Encoding": "gzip, deflate"}


def _token_row(agent_id: int) -> str:
    return f"user_agent_token.token_value:{agent_id}"


def _cookies_row(agent_id: int) -> str:
    return f"user_agent_token.cookies:{agent_id}"


def _jar(text: str, row: str) -> dict[str, str]:
    try:
        jar = loads(text)
    except JSONDecodeError:
        jar = None
    if not isinstance(jar, dict) or not all(isinstance(value, str) for value in jar.values()):
        # Outside of the except clause: the decoder's error holds the whole text.
        raise Unreadable(row, "the cookies beside it are not an object of strings")
    return jar


def _port(scheme: str, port: int | None) -> int | None:
    return port if port is not None else {"http": 80, "https": 443}.get(scheme)
