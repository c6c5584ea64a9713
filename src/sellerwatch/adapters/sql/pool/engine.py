"""The pool's door on a database: every operation is one short transaction, and nothing is kept between them.

Promises what `ports.pool.Pool` promises, for any number of processes on one database. Refuses nothing of its own;
Unavailable when the database is away.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.pool import ledger, lend, members, settle, views
from sellerwatch.adapters.sql.pool.turn import Turn
from sellerwatch.domain.identities import Identity, SealedToken
from sellerwatch.domain.recollection import Above, Memory
from sellerwatch.ports.pool import Grant, Lease, Limits, Outlook, PoolEvent, PoolFigures, Report, Standing
from sellerwatch.ports.time import Chance, Clock

T = TypeVar("T")


class SqlPool:
    def __init__(self, database: Database, clock: Clock, chance: Chance, limits: Limits, name: str = "main") -> None:
        self._database = database
        self._clock = clock
        self._chance = chance
        self._allowed = self._limits = limits
        self._name = name

    async def lease(self, count: int) -> Grant:
        return await self._write(lambda turn: lend.lease(turn, count, self._chance))

    async def report(self, reports: Sequence[Report]) -> list[bool]:
        return await self._write(lambda turn: settle.report(turn, reports)) if reports else []

    async def cancel(self, lease_ids: Iterable[tuple[str, int]]) -> int:
        wanted = list(lease_ids)
        return await self._write(lambda turn: settle.cancel(turn, wanted)) if wanted else 0

    async def expire(self) -> int:
        taken = 0
        while batch := await self._write(lend.take_back):
            taken += batch
        return taken

    async def outlook(self) -> Outlook:
        seen = await self._read(lambda turn: None if lend.overdue(turn) else lend.outlook(turn))
        if seen is None:
            await self.expire()
            seen = await self._read(lend.outlook)
        return seen

    async def capacity(self, seconds: float) -> int:
        return await self._read(lambda turn: views.capacity(turn, seconds))

    async def load(self, identities: Sequence[Identity]) -> None:
        await self._write(lambda turn: members.load(turn, identities))

    async def suspend(self, agent_id: int, patience: timedelta = timedelta()) -> None:
        await self._write(lambda turn: members.suspend(turn, agent_id, patience))

    async def recover(self, agent_id: int) -> None:
        await self._write(lambda turn: members.recover(turn, agent_id))

    async def block(self, agent_id: int) -> None:
        await self._write(lambda turn: members.block(turn, agent_id))

    async def unblock(self, agent_id: int) -> None:
        await self._write(lambda turn: members.unblock(turn, agent_id))

    async def discard_token(self, agent_id: int) -> None:
        await self._write(lambda turn: members.discard_token(turn, agent_id))

    async def recover_due(self) -> list[int]:
        recovered: list[int] = []
        while batch := await self._write(members.recover_due):
            recovered += batch
        return recovered

    async def refreshable(self, before: datetime, count: int) -> list[int]:
        return await self._read(lambda turn: members.refreshable(turn, before, count))

    async def lease_of(self, agent_id: int) -> Lease | None:
        return await self._write(lambda turn: lend.lease_of(turn, agent_id, self._chance))

    async def keep_token(self, agent_id: int, token: SealedToken) -> None:
        await self._write(lambda turn: members.keep_token(turn, agent_id, token))

    def space_out(self, seconds: float) -> None:
        self._limits = self._allowed.spaced_out(seconds)

    async def figures(self) -> PoolFigures:
        return await self._read(views.figures)

    async def standings(self, after_revision: int = 0, count: int = 1000) -> list[Standing]:
        return await self._read(lambda turn: views.standings(turn, after_revision, count))

    async def events(self, after: int = 0, count: int = 1000) -> list[PoolEvent]:
        return await self._read(lambda turn: views.events(turn, after, count))

    async def forget_events(self, upto: int) -> None:
        await self._write(lambda turn: views.forget_events(turn, upto))

    async def clear(self, epoch: int) -> bool:
        return await self._write(lambda turn: ledger.clear(turn, epoch))

    async def remember(self, epoch: int, memories: Sequence[Memory]) -> bool:
        return await self._write(lambda turn: ledger.remember(turn, epoch, memories))

    async def complete(self, epoch: int, above: Above) -> bool:
        return await self._write(lambda turn: ledger.complete(turn, epoch, above))

    async def recall(self, after: int, count: int) -> list[Memory]:
        return await self._write(lambda turn: ledger.recall(turn, after, count))

    async def above(self) -> Above:
        return await self._read(ledger.above)

    async def _write(self, work: Callable[[Turn], T]) -> T:
        return await self._database.write(partial(self._step, work, writes=True))

    async def _read(self, work: Callable[[Turn], T]) -> T:
        return await self._database.read(partial(self._step, work, writes=False))

    def _step(self, work: Callable[[Turn], T], connection: Connection, *, writes: bool) -> T:
        # The clock is read inside: whoever waited for the database comes with the moment at which it was let in.
        turn = Turn(connection, self._limits, self._name, self._clock.now(), writes=writes)
        result = work(turn)
        if writes:
            turn.finish()
        return result
