"""HTTP to one place: what the marketplace, the product server and the alert hook are reached by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sellerwatch.domain.errors import Unavailable


class NoAnswerWhy(StrEnum):
    TIMEOUT = "TIMEOUT"
    CONNECTION = "CONNECTION"
    TOO_LARGE = "TOO_LARGE"
    """More bytes than allowed, a compression bomb, a second layer."""
    FOREIGN_REDIRECT = "FOREIGN_REDIRECT"
    """A redirect to another host or scheme: never followed."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """One reply as it came off the wire. Names of headers are in lower case, in their order, repeated."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first of that name, which is given in lower case."""
        for found, value in self.headers:
            if found == name:
                return value
        return None


class NoReply(Unavailable):
    """One request brought nothing that can be used."""

    def __init__(self, why: NoAnswerWhy, detail: str) -> None:
        super().__init__(detail)
        self.why, self.detail = why, detail


class Wire(Protocol):
    """Kept connections to one origin, fixed when the wire was made: over it nobody else can be contacted.

    Each call is one request, sent as it is told and never twice: no redirect is followed, no cookie kept, no header
    added but `Host` and the body's length, no proxy asked. Nothing that is said of a failure shows any of it.
    """

    async def send(
        self,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        connect_timeout: float,
        total_seconds: float,
        max_bytes: int,
        is_body_needed: bool = True,
    ) -> RawReply:
        """One GET of `target` (path and query), or one POST of `body`; the reply's body as it came, inflated by nobody.

        NoReply when nothing usable came, after `total_seconds` at the latest, a slow body included; likewise when the
        request can't be written: a line break in a header, a blank in the target. A status that is no success is
        told even when its body can't be had: the body is then empty; so is any status when no body is needed.
        """

    async def close(self) -> None:
        """End every connection; a later request opens a new one."""


Dial = Callable[[str], Wire]
"""A wire to the origin that is named (scheme, host and port); Invalid when it may not be spoken to."""
