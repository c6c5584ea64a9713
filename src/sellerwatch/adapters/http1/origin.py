"""The one place a wire leads to, and the way there: addresses, TLS, and how long each of them may take.

Promises: TLS 1.2 or newer, certificates and names checked, the name told (SNI); a host with several addresses is
reached at one that answers, also when those of one kind lead nowhere. Refuses: plain http to other machines, unless
declared; anything but scheme, host and port.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable
from itertools import zip_longest
from typing import Final, TypeVar

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.wire import is_loopback

ADDRESSES_SECONDS: Final = 60.0
_PORTS: Final = {"http": 80, "https": 443}
_ORIGIN: Final = re.compile(
    r"(?P<scheme>https?)://(?:(?P<name>[A-Za-z0-9._-]+)|\[(?P<number>[0-9A-Fa-f:.]+)\])(?::(?P<port>[1-9][0-9]{0,4}))?",
    re.ASCII,
)
_Made = TypeVar("_Made", bound=asyncio.Protocol)


class Origin:
    """A scheme, a host, a port."""

    def __init__(self, origin: str, *, allow_plain_http: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self.scheme, self.host, self.port = _parts(origin)
        if self.scheme != "https" and not (allow_plain_http or is_loopback(self.host)):
            raise Invalid("address", f"{self.scheme}://{self.host}", "https, or ALLOW_PLAIN_HTTP=true")
        self._tls = tls
        self._addresses: list[str] = []
        self._found_at = 0.0

    @property
    def name(self) -> str:
        """As the `Host` header says it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    async def connected(self, made: Callable[[], _Made], seconds: float) -> _Made:
        """A connection; TimeoutError, OSError or ValueError when there is none to be had in that time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        async with asyncio.timeout_at(until):
            addresses = await self._found(loop)
        failure: Exception | None = None
        for number, address in enumerate(addresses, start=1):
            left = until - loop.time()
            try:
                # Half of the time, so that one which says nothing leaves some for the next.
                async with asyncio.timeout(left if number == len(addresses) else left / 2):
                    return await self._dialled(loop, made, address)
            except OSError as error:
                failure = error
                self._put_last(address)
        self._found_at = -ADDRESSES_SECONDS
        raise failure or OSError("no address")

    async def _dialled(self, loop: asyncio.AbstractEventLoop, made: Callable[[], _Made], address: str) -> _Made:
        if self.scheme == "http":
            _, protocol = await loop.create_connection(made, address, self.port)
        else:
            self._tls = self._tls or checked_tls()
            _, protocol = await loop.create_connection(
                made, address, self.port, ssl=self._tls, server_hostname=self.host
            )
        return protocol

    async def _found(self, loop: asyncio.AbstractEventLoop) -> tuple[str, ...]:
        if not self._addresses or loop.time() - self._found_at >= ADDRESSES_SECONDS:
            found = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
            kinds: dict[int, list[str]] = {}
            for family, _, _, _, place in found:
                kinds.setdefault(family, []).append(str(place[0]))
            # By turns, so that a network that carries only one of the kinds is found out at once.
            self._addresses = [address for turn in zip_longest(*kinds.values()) for address in turn if address]
            self._found_at = loop.time()
        return tuple(self._addresses)

    def _put_last(self, address: str) -> None:
        if address in self._addresses:
            self._addresses.remove(address)
            self._addresses.append(address)


def checked_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _parts(origin: str) -> tuple[str, str, int]:
    found = _ORIGIN.fullmatch(origin)
    if found is None or (found["port"] and int(found["port"]) > 65535):
        # What was given may hold a password.
        raise Invalid("address", "(hidden)", "scheme, host and port, like https://host")
    port = int(found["port"]) if found["port"] else _PORTS[found["scheme"]]
    return found["scheme"], (found["name"] or found["number"]).lower(), port
