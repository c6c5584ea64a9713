"""Explaining: what holds a seller, a task or an identity up. Asks the database, the pool and the queue; changes nothing.

The clues are gathered here, what follows from them is `domain.explain`. A pool or a queue that does not answer within two
seconds is itself a clue. Unknown when nothing of that name exists.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sellerwatch.domain.breakers import BreakerScope
from sellerwatch.domain.clues import IdentityClue, PoolClue, QueueClue, Surroundings
from sellerwatch.domain.errors import Trouble, Unknown
from sellerwatch.domain.explain import explain_identity, explain_seller, explain_task
from sellerwatch.domain.verdicts import Verdict
from sellerwatch.ports.clues import Clues
from sellerwatch.ports.pool import Pool, Standing
from sellerwatch.ports.queue import Queue
from sellerwatch.ports.store import Store
from sellerwatch.ports.time import Clock

T = TypeVar("T")
PATIENCE_SECONDS = 2.0
STANDINGS = 1000


@dataclass(frozen=True, slots=True)
class Explain:
    store: Store
    clues: Clues
    pool: Pool
    queue: Queue
    clock: Clock
    has_product_server: bool
    probation: timedelta | None = None

    async def seller(self, seller_id: str) -> Verdict:
        at = self.clock.now()
        trail = await self.clues.seller(seller_id, at)
        if trail is None:
            raise Unknown("seller", seller_id)
        return explain_seller(trail, await self._around(at))

    async def task(self, task_id: str) -> Verdict:
        at = self.clock.now()
        found = await self.clues.task(task_id, at)
        if found is None:
            raise Unknown("task", task_id)
        return explain_task(*found, await self._around(at))

    async def identity(self, agent: str) -> Verdict:
        """By its number or its UUID."""
        found = await self.clues.identity(agent)
        if found is None:
            raise Unknown("identity", agent)
        agent_id, is_retired = found
        standing = None if is_retired else await self._answer(self._standing(agent_id))
        known = (
            IdentityClue(agent_id, is_retired=True) if is_retired else self._identity(standing) if standing else None
        )
        return explain_identity(known, await self._around(self.clock.now()))

    async def _around(self, at: datetime) -> Surroundings:
        roles, breaker, queue, pool = await asyncio.gather(
            self.clues.roles(at),
            self.store.read(lambda unit: unit.breakers.load(BreakerScope.PRODUCT_SERVER)),
            self._answer(self._queue()),
            self._answer(self._pool()),
        )
        return Surroundings(at, roles, queue, pool, breaker, self.has_product_server)

    async def _answer(self, asked: Awaitable[T]) -> T | None:
        try:
            return await self.clock.within(PATIENCE_SECONDS, asked)
        except (Trouble, TimeoutError):
            return None

    async def _queue(self) -> QueueClue:
        depth = await self.queue.depth()
        return QueueClue(depth.waiting, depth.out, depth.dead)

    async def _pool(self) -> PoolClue:
        outlook, figures = await self.pool.outlook(), await self.pool.figures()
        return PoolClue(
            outlook.free,
            outlook.why,
            outlook.next_at,
            figures.remaining_requests,
            figures.total,
            figures.available,
            (figures.pool_breaker, figures.site_breaker),
        )

    async def _standing(self, agent_id: int) -> Standing | None:
        revision = 0
        while standings := await self.pool.standings(revision, STANDINGS):
            for standing in standings:
                if standing.identity.agent_id == agent_id:
                    return standing
            revision = standings[-1].revision
        return None

    def _identity(self, standing: Standing) -> IdentityClue:
        identity = standing.identity
        return IdentityClue(
            agent_id=identity.agent_id,
            status=identity.status,
            health=identity.health_score,
            suspended_at=identity.suspended_at,
            recovers_at=identity.recovers_at(self.probation),
            has_token=identity.token is not None,
            remaining=standing.remaining,
            next_free_at=standing.next_free_at,
            leased_until=standing.leased_until,
            paused_until=standing.paused_until,
            breaker=standing.breaker,
        )
