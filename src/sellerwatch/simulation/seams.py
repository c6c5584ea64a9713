"""The seams of a house: every call of a port, and what may go wrong there.

    before the call  ─▶ the call ─▶ after it took effect
      die · stand still               die · the answer is lost

A call of a port is the only moment at which a process can be seen from outside, so it is where it dies. Each crossing
is numbered within its process: `die_at` chooses one (2n: before the n-th call, 2n + 1: after it) instead of chance.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.outside import Receipt
from sellerwatch.ports.pool import Grant, Lease
from sellerwatch.ports.queue import Delivery, Outgoing
from sellerwatch.simulation.faults import Luck
from sellerwatch.simulation.lives import Buried, Life, death, stillness
from sellerwatch.steps.together import Together
from sellerwatch.wiring import House

Call: TypeAlias = Callable[..., Awaitable[Any]]
Tell: TypeAlias = Callable[[str, str], None]
"""Who hears of it: what struck, and at which call."""

PORTS = {
    "store": ("transact", "read"),
    "pool": (
        "lease", "report", "cancel", "expire", "outlook", "capacity", "recover_due", "refreshable", "lease_of",
        "figures", "standings", "events", "forget_events", "discard_token",
    ),
    "queue": (
        "send", "receive", "ack", "nack", "give_back", "extend", "bury", "depth", "missing", "dead_letters", "drop_dead",
    ),
    "transport": ("send",),
    "product_server": ("deliver",),
    "alerts": ("tell",),
}  # fmt: skip
_SQLITE = {"database_away": 14, "database_full": 13, "database_readonly": 8}
_BUSY, _IOERR = 5, 10
_LOST_SECONDS = 10.0


class Seams:
    """Of one house, in one life."""

    def __init__(self, house: House, life: Life, luck: Luck, tell: Tell, die_at: int | None = None) -> None:
        self._house, self._life, self._luck, self._tell = house, life, luck, tell
        self._die_at = die_at
        self._seen: list[Delivery] = []
        self.leased: Callable[[Lease], None] = lambda _lease: None
        """Who looks on when a lease is given, and when identities are given back unused."""
        self.given_back: Callable[[Sequence[int]], None] = lambda _agents: None
        self.crossings = 0
        self.trouble: str | None = None
        """What holds the database up just now."""
        mischief: dict[str, Callable[[Call], Call]] = {
            "queue.send": self._sent,
            "queue.receive": self._received,
            "queue.ack": self._dropped("ack_lost"),
            "queue.give_back": self._dropped("give_back_lost"),
            "queue.extend": self._dropped("extend_lost"),
            "pool.lease": self._answer_lost("lease_lost"),
            "pool.report": self._reported,
            "pool.cancel": self._cancelled,
            "product_server.deliver": self._delivered,
            "alerts.tell": self._dropped("hook_down", is_told=False),
        }
        for port, verbs in PORTS.items():
            owner = getattr(house, port)
            for verb in verbs:
                name = f"{port}.{verb}"
                call = getattr(owner, verb)
                inner = mischief.get(name, _itself)(call)
                setattr(owner, verb, self._crossed(name, port, inner))
        if house.outside:
            # It holds the call itself, and that is the one of before.
            asking, settings = house.outside.asking, house.settings
            asking.report = Together(house.pool.report, house.clock, settings.group_commit_ms / 1000)
        for door in ("_write", "_read", "_glance"):
            setattr(house.database, door, self._database(door, getattr(house.database, door)))

    def _strikes(self, fault: str, where: str) -> bool:
        if not self._luck.strikes(fault):
            return False
        self._tell(fault, where)
        return True

    def _crossed(self, name: str, port: str, call: Call) -> Call:
        async def crossed(*arguments: Any, **named: Any) -> Any:
            await self._cross(name, "die_before")
            if port in {"pool", "queue"}:
                await self._away(name, port)
            result = await call(*arguments, **named)
            if isinstance(result, Grant):
                for lease in result.leases:
                    self.leased(lease)
            elif isinstance(result, Lease):
                self.leased(result)
            await self._cross(name, "die_after")
            return result

        return crossed

    async def _cross(self, name: str, fault: str) -> None:
        if self._life.is_dead:
            raise Buried
        number, self.crossings = self.crossings, self.crossings + 1
        if number == self._die_at:
            self._tell(fault, name)
            await death(self._life)
        if self._strikes(fault, name):
            await death(self._life)
        if fault == _stands_still_at(name) and self._strikes("stand_still", name):
            await stillness(self._life, self._luck.shape.between(20, 400))

    async def _away(self, name: str, port: str) -> None:
        if self._strikes(f"{port}_away", name):
            raise Unavailable(f"{port}: away")
        if port == "pool" and self._strikes("pool_slow", name):
            await self._house.clock.sleep(self._luck.shape.between(1, 20))

    def _database(self, door: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """Errors are the driver's own, so that what the adapter makes of them is tried, too."""

        def through(work: Callable[[Any], Any]) -> Any:
            if self._life.is_dead:
                raise Buried
            is_write = door == "_write"
            if self.trouble and (is_write or self.trouble == "database_away"):
                raise _sqlite(_SQLITE[self.trouble], self.trouble)
            if self._strikes("locked" if is_write else "read_fails", door):
                raise _sqlite(_BUSY if is_write else _IOERR, "locked" if is_write else "disk I/O error")
            if is_write and self._strikes("commit_fails", door):
                return run(_broken_off(work))
            result = run(work)
            if is_write and self._strikes("answer_lost", door):
                raise Unavailable("database: whether it was committed is not known")
            return result

        return through

    def _dropped(self, fault: str, instead: object = None, *, is_told: bool = True) -> Callable[[Call], Call]:
        """The call never arrives, and whoever made it believes that it did, or is told that it did not."""

        def made(call: Call) -> Call:
            async def dropped(*arguments: Any, **named: Any) -> Any:
                if self._strikes(fault, ""):
                    return instead if is_told else False
                return await call(*arguments, **named)

            return dropped

        return made

    def _answer_lost(self, fault: str) -> Callable[[Call], Call]:
        def made(call: Call) -> Call:
            async def lost(*arguments: Any, **named: Any) -> Any:
                result = await call(*arguments, **named)
                if self._strikes(fault, ""):
                    raise Unavailable("the answer was lost")
                return result

            return lost

        return made

    def _reported(self, call: Call) -> Call:
        heard = self._answer_lost("report_answer_lost")(call)

        async def reported(*arguments: Any, **named: Any) -> Any:
            if self._strikes("report_lost", ""):
                raise Unavailable("pool: away")
            return await heard(*arguments, **named)

        return reported

    def _cancelled(self, call: Call) -> Call:
        heard = self._dropped("cancel_lost", 0)(call)

        async def cancelled(lease_ids: Iterable[tuple[str, int]]) -> Any:
            wanted = list(lease_ids)
            self.given_back([agent_id for _, agent_id in wanted])
            return await heard(wanted)

        return cancelled

    def _sent(self, call: Call) -> Call:
        async def sent(messages: Sequence[Outgoing]) -> list[str | None]:
            if len(messages) and self._strikes("send_refused", ""):
                kept = [message for message in messages if self._luck.shape.below(2)]
                outcomes = iter(await call(kept) if kept else [])
                chosen = set(map(id, kept))
                return [next(outcomes) if id(message) in chosen else "refused" for message in messages]
            result: list[str | None] = await call(messages)
            if self._strikes("send_answer_lost", ""):
                raise Unavailable("queue: the answer was lost")
            return result

        return sent

    def _received(self, call: Call) -> Call:
        async def received(count: int, wait_seconds: float) -> list[Delivery]:
            deliveries: list[Delivery] = await call(count, wait_seconds)
            if not deliveries:
                return deliveries
            if self._strikes("receive_lost", ""):
                raise Unavailable("queue: the answer was lost")
            if self._strikes("late", ""):
                await self._house.clock.sleep(self._luck.shape.between(10, 40))
            if self._seen and len(deliveries) < count and self._strikes("twice", ""):
                deliveries = [*deliveries, self._luck.shape.pick(self._seen)]
            self._seen = [*self._seen[-20:], *deliveries]
            if self._strikes("disorder", ""):
                deliveries = self._luck.shape.shuffled(deliveries)
            return deliveries

        return received

    def _delivered(self, call: Call) -> Call:
        async def delivered(*arguments: Any, **named: Any) -> Receipt:
            if self._strikes("server_twice", ""):
                await call(*arguments, **named)
            receipt: Receipt = await call(*arguments, **named)
            if self._strikes("server_slow", ""):
                await self._house.clock.sleep(_LOST_SECONDS)
                return Receipt(None, error="no answer in time")
            return receipt

        return delivered


def _stands_still_at(name: str) -> str:
    """What was sent is with the network, and is not held up by a process that stands still: so it does after that."""
    return "die_after" if name in {"transport.send", "product_server.deliver"} else "die_before"


def _itself(call: Call) -> Call:
    return call


def _sqlite(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def _broken_off(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def broken(connection: Any) -> Any:
        work(connection)
        raise _sqlite(_IOERR, "disk I/O error at the commit")

    return broken
