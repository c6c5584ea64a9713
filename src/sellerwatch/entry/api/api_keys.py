"""Who is it: keys of other systems, at `/api/internal`.

Promises: a key is known by its hash, compared on bytes and in constant time with every one that is configured; none
configured, none accepted. Who comes with keys that are wrong again and again is told to wait: counted by address and by
the key itself, so that one that is right is never locked out by somebody else's mistakes.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from sellerwatch.domain.errors import Refused
from sellerwatch.entry.api.limits import Allowance, TooMany
from sellerwatch.ports.time import Clock
from sellerwatch.settings import Settings

HEADER: Final = b"x-api-key"
KEY_MAX: Final = 512
WRONG_MAX: Final = 20
WRONG_SECONDS: Final = 60.0


class NoKey(Refused):
    """No key, or none that is accepted."""

    def __init__(self) -> None:
        super().__init__("a valid X-API-Key header is required")


class ApiKeys:
    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._digests = settings.api_key_digests
        self._wrong = Allowance(clock, WRONG_MAX / WRONG_SECONDS, WRONG_MAX)

    def read(self, headers: Sequence[tuple[bytes, bytes]], address: str) -> str:
        """The name of the key that a request comes with; NoKey, or TooMany, when it is none of ours."""
        given = [value for name, value in headers if name == HEADER]
        if len(given) == 1 and (name := self._name(given[0])):
            return name
        if any(given):
            digest = hashlib.sha256(b"\n".join(given)).hexdigest()
            waits = [self._wrong.take(counted) for counted in (f"address {address}", f"key {digest}")]
            if longest := max(waits):
                raise TooMany(longest)
        raise NoKey

    def _name(self, key: bytes) -> str | None:
        if not key or len(key) > KEY_MAX:
            return None
        digest = hashlib.sha256(key).digest()
        # All of them, so that the time taken tells nothing of which it was.
        return max((name for name, known in self._digests.items() if hmac.compare_digest(known, digest)), default=None)
