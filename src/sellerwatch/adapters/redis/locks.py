"""Locks in Redis: a key for each name that holds who holds it, and ends by itself.

Promises what ports/locks.py says, for any number of processes; time is the server's own. What Redis loses is nobody's.
Refuses nothing: names are ours.
"""

from collections.abc import Iterable

from redis.asyncio import Redis

from sellerwatch.adapters.redis.scripts import put_together, sources
from sellerwatch.adapters.redis.trips import Trips

_MS = 1000


class RedisLocks:
    """`ports.locks.Locks` of one process, which is known as `owner`; beside the pool of that name."""

    def __init__(self, client: Redis, owner: str, pool_name: str = "main") -> None:
        self._client = client
        self._trips = Trips(client)
        self._owner = owner
        self._prefix = f"sellerwatch:{{{pool_name}}}:lock:"
        # Sent whole: they are short, and a server that forgot them is nothing to find out first.
        self._scripts = {name: script.text for name, script in put_together(sources("locks")).items()}

    async def take(self, name: str, seconds: float) -> bool:
        milliseconds = max(1, round(seconds * _MS))
        return bool(await self._trips.ask("EVAL", self._scripts["take"], 1, self._key(name), self._owner, milliseconds))

    async def give_back(self, names: Iterable[str]) -> None:
        if keys := [self._key(name) for name in names]:
            await self._trips.ask("EVAL", self._scripts["give_back"], len(keys), *keys, self._owner)

    async def close(self) -> None:
        await self._client.aclose()

    def _key(self, name: str) -> str:
        return f"{self._prefix}{name}"
