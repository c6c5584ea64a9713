"""How Redis is spoken to: short time-outs, and nothing asked twice without anybody knowing."""

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

CONNECT_SECONDS, ANSWER_SECONDS = 1.0, 2.0


def connected(url: str) -> Redis:
    """A client; nothing connects before its first use. What was given by a script that is run again would be lent for
    nothing, so whether to ask again is the caller's to decide."""
    return Redis.from_url(
        url,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
