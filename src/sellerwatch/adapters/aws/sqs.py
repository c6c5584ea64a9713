"""The queue in SQS, FIFO or standard.

    sent ──▶ waiting ──▶ out (ours until its visibility ends) ──▶ deleted: ack
                ▲  └── nack · give_back · too late ◀──┘ │
                └────── redrive, as a new message ◀── dead ◀── bury · received too often · no JSON object

Promises what ports/queue.py says. SQS may hand out several messages of one group at once, in their order: here a later
one waits, kept invisible, until the earlier one is done, and goes back with it when that goes back. A receipt is good
for as long as we know it to be; what SQS would still take after that is not asked. A message that was received for the
last time and not begun, because it was given back or an earlier one of its group is out, is sent anew in its place: it
never dies of waiting. Refuses: what SQS would not carry. Never done: `StartMessageMoveTask`, which FIFO queues have not.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from typing import Final, NamedTuple
from zlib import crc32

from sellerwatch.adapters.aws.channel import FIFO, Channel, together
from sellerwatch.adapters.aws.connection import WAIT_SECONDS_MAX, Connection
from sellerwatch.adapters.aws.letters import Letters, too_often
from sellerwatch.adapters.aws.messages import BATCH, Entry, Received, outgoing, parsed
from sellerwatch.domain.errors import Trouble, Unavailable
from sellerwatch.ports.queue import DeadLetter, Delivery, Depth, Outgoing
from sellerwatch.ports.time import Bell, Chance, Clock

LANES: Final = 5
"""Batches on their way at once; all of a group's messages go in one lane, one batch after the other."""
LOOK_AGAIN_SECONDS: Final = 0.5


class Queues(NamedTuple):
    """By their names: where messages go, and where those go that die."""

    live: str
    dead: str

    @property
    def is_fifo(self) -> bool:
        return self.live.endswith(FIFO)


class SqsQueue:
    """ports.queue.Queue, for any number of processes; each knows what it has out."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        chance: Chance,
        bell: Bell,
        queues: Queues,
        visibility_seconds: float,
        max_receives: int,
    ) -> None:
        self._clock, self._bell = clock, bell
        self._channel = Channel(connection, clock, chance)
        self._live, self._dead = queues
        self._is_fifo = queues.is_fifo
        self._letters = Letters(self._channel, queues.dead, queues.live, max_receives, is_fifo=queues.is_fifo)
        self._visibility = max(1, ceil(visibility_seconds))
        self._max_receives = max_receives
        self._out: dict[str, Received] = {}
        self._behind: dict[str, deque[Received]] = {}
        """Of each group that has one out, what was received with it and comes after it."""
        self._bell_name = f"queue:{queues.live}"

    async def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        made = [outgoing(message, is_fifo=self._is_fifo) for message in messages]
        said = [one if isinstance(one, str) else None for one in made]
        count = LANES if len(messages) > BATCH else 1
        lanes: list[list[tuple[int, Entry]]] = [[] for _ in range(count)]
        for number, one in enumerate(made):
            if not isinstance(one, str):
                lanes[crc32(messages[number].group.encode()) % count].append((number, one))
        for refused in await together(self._channel.send(self._live, lane) for lane in lanes if lane):
            for number, why in refused.items():
                said[number] = why
        self._ring()
        return said

    async def receive(self, count: int, wait_seconds: float) -> list[Delivery]:
        got: list[Delivery] = []
        try:
            await self._fill(got, count, wait_seconds)
        except Unavailable:
            # What is ours by now is not lost for what could not be had.
            if not got:
                raise
        return got

    async def ack(self, receipts: Sequence[str]) -> None:
        await self._done_with(self._held(receipts))

    async def nack(self, receipt: str, delay_seconds: float) -> None:
        for message in self._held([receipt]):
            behind = self._let_go(message)
            await self._channel.show(self._live, behind, 0)
            await self._channel.show(self._live, [message], ceil(max(0.0, delay_seconds)))
        self._ring()

    async def give_back(self, receipts: Sequence[str]) -> None:
        given = self._held(receipts)
        behind = [later for message in given for later in self._let_go(message)]
        # While the first of a group is still out, nobody can be handed a later one.
        await self._hand_back(behind)
        await self._hand_back(given)
        self._ring()

    async def extend(self, receipts: Sequence[str], seconds: float) -> None:
        held = self._held(receipts)
        behind = [later for message in held for later in self._behind.get(message.group, ())]
        await self._channel.show(self._live, [*held, *behind], ceil(seconds))

    async def bury(self, receipt: str, error: str) -> None:
        for message in self._held([receipt]):
            await self._letters.bury(message, error, message.receives)
            await self._done_with([message])

    async def depth(self) -> Depth:
        """Roughly, as SQS counts. It does not tell ages here; CloudWatch does: ApproximateAgeOfOldestMessage."""
        live, dead = await together(self._channel.counts(name) for name in (self._live, self._dead))
        return Depth(waiting=live[0] + live[2], out=live[1], dead=sum(dead), oldest_seconds=0.0)

    async def missing(self, task_ids: Sequence[str]) -> list[str]:
        return list(task_ids)

    async def dead_letters(self, count: int) -> list[DeadLetter]:
        return await self._letters.listed(max(0, count))

    async def redrive(self, letter_ids: Sequence[str]) -> int:
        count = await self._letters.redrive(letter_ids)
        self._ring()
        return count

    async def drop_dead(self, letter_ids: Sequence[str]) -> int:
        return await self._letters.drop(letter_ids)

    async def close(self) -> None:
        """What waits here goes back; then the connection ends."""
        waiting = [message for behind in self._behind.values() for message in behind]
        self._behind.clear()
        with suppress(Trouble):  # then it comes back by itself
            await self._hand_back(waiting)
        await self._channel.close()

    # what is received

    async def _fill(self, got: list[Delivery], count: int, wait_seconds: float) -> None:
        left = wait_seconds
        await self._next_in_turn(got, count)
        while len(got) < count:
            # SQS does not tell when the next one of a group that waits here is free; whoever is done rings.
            is_waiting_here = any(self._behind.values())
            waits = 0 if got or is_waiting_here else int(min(left, WAIT_SECONDS_MAX))
            await self._take(got, count, waits)
            await self._next_in_turn(got, count)
            left -= waits
            if got or left <= 0:
                return
            if not waits:
                pause = min(left, LOOK_AGAIN_SECONDS)
                await self._bell.wait(self._bell_name, pause)
                left -= pause
                await self._next_in_turn(got, count)

    async def _take(self, got: list[Delivery], count: int, wait_seconds: int) -> None:
        """As many as SQS has; less than was asked for means that there is no more just now."""
        while (asked := min(BATCH, count - len(got))) > 0:
            found = await self._channel.receive(self._live, asked, self._visibility, 0 if got else wait_seconds)
            spoiled: list[Received] = []
            last: list[Received] = []
            for message in found:
                if not self._is_fifo or message.group not in self._behind:
                    if not self._hand_out(message, got):
                        spoiled.append(message)
                elif message.receives < self._max_receives:
                    self._behind[message.group].append(message)
                else:
                    last.append(message)
            for message in spoiled:
                await self._bury(message)
            # An earlier one that is poison would take them along.
            await self._send_anew(last)
            if len(found) < asked:
                return

    def _hand_out(self, message: Received, got: list[Delivery]) -> bool:
        """It is out now. False: it is to be a dead letter instead."""
        self._out[message.handle] = message
        if self._is_fifo:
            self._behind.setdefault(message.group, deque())
        body = parsed(message.body)
        if body is None or message.receives > self._max_receives:
            return False
        got.append(message.delivery(body))
        return True

    async def _bury(self, message: Received) -> None:
        # The queue's own redrive policy should have seen to what was received too often.
        is_object = parsed(message.body) is not None
        why = too_often(self._max_receives) if is_object else "its body is not a JSON object"
        await self._letters.bury(message, why, message.receives - 1)
        await self._done_with([message])

    async def _next_in_turn(self, got: list[Delivery], count: int) -> None:
        """What waited here for an earlier one of its group that is done by now."""
        await self._forget()
        await self._keep_waiting()
        busy = {message.group for message in self._out.values()}
        for group in [group for group in self._behind if group not in busy]:
            behind = self._behind[group]
            is_busy = False
            while behind and len(got) < count and not is_busy:
                message = behind.popleft()
                is_busy = self._hand_out(message, got)
                if not is_busy:
                    await self._bury(message)
            if not behind and not is_busy:
                del self._behind[group]

    async def _forget(self) -> None:
        """What has run out is not ours any more; what was received with it would overtake it, and goes back."""
        now = self._clock.monotonic()
        over = [message for message in self._out.values() if message.until <= now]
        behind = [later for message in over for later in self._let_go(message)]
        await self._hand_back([message for message in behind if message.until > now])

    async def _keep_waiting(self) -> None:
        """Half of the time is left for whoever gets what waits here."""
        soon = self._clock.monotonic() + self._visibility / 2
        waiting = [message for behind in self._behind.values() for message in behind if message.until < soon]
        await self._channel.show(self._live, waiting, self._visibility)

    # what becomes of it

    def _held(self, receipts: Sequence[str]) -> list[Received]:
        now = self._clock.monotonic()
        known = (self._out.get(receipt) for receipt in dict.fromkeys(receipts))
        return [message for message in known if message is not None and message.until > now]

    async def _done_with(self, messages: Sequence[Received]) -> None:
        await self._channel.delete(self._live, messages)
        for message in messages:
            self._out.pop(message.handle, None)
        self._ring()

    def _let_go(self, message: Received) -> list[Received]:
        """It is not ours any more, nor what is behind it: that."""
        self._out.pop(message.handle, None)
        return list(self._behind.pop(message.group, ())) if self._is_fifo else []

    async def _hand_back(self, messages: Sequence[Received]) -> None:
        """Visible at once. One that SQS would then not hand out again is sent anew, before it is deleted."""
        last = [message for message in messages if message.receives >= self._max_receives]
        await self._channel.show(self._live, [message for message in messages if message not in last], 0)
        await self._send_anew(last)

    async def _send_anew(self, messages: Sequence[Received]) -> None:
        """In place of what SQS would not hand out again, although nobody has begun it."""
        if messages:
            anew = [(number, one.resent("again", is_fifo=self._is_fifo)) for number, one in enumerate(messages)]
            refused = await self._channel.send(self._live, anew)
            sent = [one for number, one in enumerate(messages) if number not in refused]
            await self._channel.delete(self._live, sent)

    def _ring(self) -> None:
        self._bell.ring(self._bell_name)
