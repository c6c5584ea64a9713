"""The issuer of access tokens, as far as it publishes its public keys.

Promises: one GET of the configured url, 64 KB at most, nothing kept. No redirect is followed: keys come from where the
operator said, or not at all. Refuses: plain http to other machines unless declared.
"""

from typing import Final

from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.wire import checked_neighbour, divided
from sellerwatch.ports.wire import Dial, NoReply

CONNECT_SECONDS: Final = 3.0
TOTAL_SECONDS: Final = 5.0
KEY_SET_BYTES: Final = 64 << 10
_HEADERS: Final = {"User-Agent": "sellerwatch", "Accept": "application/json", "Accept-Encoding": "identity"}


class HttpIssuer:
    """ports.outside.Issuer over a wire to its origin."""

    def __init__(self, url: str, dial: Dial, *, allow_plain_http: bool = False) -> None:
        origin, self._target = divided(checked_neighbour("JWT_JWKS_URL", url, allow_plain_http=allow_plain_http))
        self._wire = dial(origin)

    async def key_set(self) -> bytes:
        try:
            reply = await self._wire.send(
                self._target,
                _HEADERS,
                connect_timeout=CONNECT_SECONDS,
                total_seconds=TOTAL_SECONDS,
                max_bytes=KEY_SET_BYTES,
            )
        except NoReply as failure:
            raise Unavailable(f"the issuer's keys were not had: {failure.detail}") from None
        if reply.status != 200 or reply.header("content-encoding") not in {None, "identity"}:
            raise Unavailable(f"the issuer's keys were not had: it answered {reply.status}")
        return reply.body

    async def close(self) -> None:
        await self._wire.close()
