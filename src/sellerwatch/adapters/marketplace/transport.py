"""The marketplace's wire as its client needs it: a GET by url, and the body inflated.

Promises: what ports.marketplace.Transport says; a url is compared with the origin as text, and what is left of it goes
out as it stands. Bodies are inflated with limits; that something was refused is told whatever its body.
"""

from collections.abc import Mapping

from sellerwatch.adapters.marketplace.inflate import inflate
from sellerwatch.domain.errors import Invalid
from sellerwatch.ports.wire import Dial, NoReply, RawReply


class HttpTransport:
    """ports.marketplace.Transport over a wire to one origin."""

    def __init__(self, origin: str, dial: Dial) -> None:
        self._origin = origin
        self._wire = dial(origin)

    async def send(
        self, url: str, headers: Mapping[str, str], *, connect_timeout: float, total_seconds: float, max_bytes: int
    ) -> RawReply:
        """One GET; NoReply when nothing usable came."""
        target = url.removeprefix(self._origin)
        if target == url or not target.startswith("/"):
            raise Invalid("url", url, f"an address of {self._origin}")
        reply = await self._wire.send(
            target, headers, connect_timeout=connect_timeout, total_seconds=total_seconds, max_bytes=max_bytes
        )
        layers = [value for name, value in reply.headers if name == "content-encoding"]
        return _inflated(reply, ",".join(layers), max_bytes) if layers else reply

    async def close(self) -> None:
        """End every connection; a later request opens a new one."""
        await self._wire.close()


def _inflated(reply: RawReply, encoding: str, max_bytes: int) -> RawReply:
    try:
        body = inflate(reply.body, encoding, max_bytes)
    except NoReply:
        if 200 <= reply.status < 300:
            raise
        # That it was refused must be told: a 429 with a bomb for a body is a 429.
        body = b""
    return RawReply(reply.status, reply.headers, body)
