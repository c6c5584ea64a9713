"""The queue in the database: messages are rows, receiving is a claim with a deadline.

    READY ──▶ (out: receipt and visible_at ahead) ──▶ DONE ──▶ pruned after five minutes
      ▲  └──────── nack · give_back · too late ◀──┘ │
      └─────────── redrive, as a new row ◀── DEAD ◀─┘ bury · received too often · no JSON object

Promises what ports/queue.py says. A claim is a compare-and-set on `visible_at`, a receipt is row and claim together,
so a late one changes nothing. Of a group only the earliest READY row can be received, out or not, so that no two are
ever out at once. `visible_at` of what is done or dead is the moment it became so. Refuses: what would not fit SQS.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Any, TypeVar

import orjson
from sqlalchemy import Connection

from sellerwatch.adapters.sql import queue_statements as sql
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import Times, insert_or_ignore, times
from sellerwatch.adapters.sql.prepared import Prepared
from sellerwatch.adapters.sql.tables import queue_messages
from sellerwatch.ports.queue import DeadLetter, Delivery, Depth, Outgoing
from sellerwatch.ports.time import Bell, Chance, Clock

T = TypeVar("T")
Row = tuple[Any, ...]

REMEMBERED = timedelta(minutes=5)
BODY_BYTES_MAX = 256 << 10
NAME_CHARACTERS_MAX = 128
ERROR_CHARACTERS_MAX = 2048
FIRST_STEP_SECONDS = 0.02
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


class SqlQueue:
    """ports.queue.Queue, in the table `queue_messages`, for any number of processes.

    `poll_seconds` is how long a receiver waits at most before it looks again by itself; a bell wakes it earlier when
    something changes in its own process, and what comes back by itself is known beforehand.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        chance: Chance,
        name: str,
        visibility_seconds: float,
        max_receives: int,
        *,
        bell: Bell | None = None,
        poll_seconds: float = 1.0,
    ) -> None:
        self._database = database
        self._clock = clock
        self._chance = chance
        self._name = name
        self._visibility = timedelta(seconds=visibility_seconds)
        self._max_receives = max_receives
        self._bell = bell
        self._poll_seconds = poll_seconds
        self._step = FIRST_STEP_SECONDS
        """Nothing having come, it is looked for less and less often: over all receives, not anew in each."""
        self._times: Times = times(database.dialect)
        self._insert = Prepared(insert_or_ignore(database.dialect, queue_messages), sql.INSERTED)

    async def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        texts = [_texts(message) for message in messages]
        now = self._clock.now()
        at = self._times.to_db(now)
        rows = [
            (self._name, message.group, message.dedup_id, *text, "READY", 0, at, at)
            for message, text in zip(messages, texts, strict=True)
            if not isinstance(text, str)
        ]
        if rows:
            await self._database.write(
                lambda connection: self._insert.many(connection, self._unknown(connection, rows, now))
            )
            self._ring()
        return [text if isinstance(text, str) else None for text in texts]

    async def receive(self, count: int, wait_seconds: float) -> list[Delivery]:
        if count <= 0:
            return []
        until = self._clock.monotonic() + wait_seconds
        got = await self._database.write(lambda connection: self._take(connection, count))
        while not got and wait_seconds > 0:
            ready_in = await self._database.read(self._ready_in)
            if ready_in <= 0:
                got = await self._database.write(lambda connection: self._take(connection, count))
            left = until - self._clock.monotonic()
            if left <= 0:
                break
            if ready_in > 0:
                has_rung = await self._pause(min(self._step, left, ready_in))
                self._step = FIRST_STEP_SECONDS if has_rung else min(self._step * 2, self._poll_seconds)
        if got:
            self._step = FIRST_STEP_SECONDS
        return got

    async def ack(self, receipts: Sequence[str]) -> None:
        await self._held(sql.ACK, _parts(receipts))

    async def nack(self, receipt: str, delay_seconds: float) -> None:
        at = self._in(max(0.0, delay_seconds))
        await self._held(sql.LATER, ((at, *held) for held in _parts([receipt])))

    async def give_back(self, receipts: Sequence[str]) -> None:
        await self._held(sql.GIVE_BACK, _parts(receipts))

    async def extend(self, receipts: Sequence[str], seconds: float) -> None:
        until = self._in(seconds)
        await self._held(sql.EXTEND, ((until, *held) for held in _parts(receipts)))

    async def bury(self, receipt: str, error: str) -> None:
        why = error[:ERROR_CHARACTERS_MAX]
        await self._held(sql.BURY_HELD, ((why, *held) for held in _parts([receipt])))

    async def depth(self) -> Depth:
        return await self._database.read(self._depth)

    async def missing(self, task_ids: Sequence[str]) -> list[str]:
        def work(connection: Connection) -> list[str]:
            return [
                task_id
                for task_id in task_ids
                if not sql.WAITS.rows(connection, (self._name, f"outbox-{task_id}-", f"outbox-{task_id}."))
            ]

        return await self._database.read(work)

    async def dead_letters(self, count: int) -> list[DeadLetter]:
        rows = await self._database.read(lambda connection: sql.LETTERS.rows(connection, (self._name, max(0, count))))
        return [self._letter(row) for row in rows]

    async def redrive(self, letter_ids: Sequence[str]) -> int:
        def work(connection: Connection) -> int:
            rows = sql.DEAD.rows(connection, _numbers(letter_ids), (self._name,))
            sql.DROP.run(connection, [row[0] for row in rows])
            self._insert.many(connection, [self._anew(row, now) for row in rows])
            return len(rows)

        now = self._clock.now()
        count = await self._database.write(work)
        self._ring()
        return count

    async def drop_dead(self, letter_ids: Sequence[str]) -> int:
        def work(connection: Connection) -> int:
            rows = sql.DEAD.rows(connection, _numbers(letter_ids), (self._name,))
            return sql.DROP.run(connection, [row[0] for row in rows])

        return await self._database.write(work)

    async def prune(self) -> int:
        """Forget what has been done for so long that its deduplication id need not be known any more; how many."""
        before = self._times.to_db(self._clock.now() - REMEMBERED)

        def work(connection: Connection) -> int:
            return sql.DROP.run(connection, [row[0] for row in sql.FORGOTTEN.rows(connection, (self._name, before))])

        count = last = await self._database.write(work)
        while last >= sql.BATCH:
            last = await self._database.write(work)
            count += last
        return count

    def _unknown(self, connection: Connection, rows: Sequence[Row], now: datetime) -> list[Row]:
        """The rows whose deduplication id is new; of old ones that are no longer remembered, the name is freed."""
        fresh = {row[2]: row for row in reversed(rows)}
        remembered_since = self._times.to_db(now - REMEMBERED)
        for dedup_id, message_id, state, sent_at in sql.KNOWN.rows(connection, list(fresh), (self._name,)):
            # Still waiting, however long: it will be received, and once is enough.
            if state == "READY" or sent_at > remembered_since:
                del fresh[dedup_id]
            elif state == "DONE":
                sql.DROP.run(connection, [message_id])
            else:
                sql.RENAME.run(connection, (_shortened(dedup_id, message_id), message_id))
        return [row for row in rows if fresh.pop(row[2], None) is row] if len(fresh) < len(rows) else list(rows)

    def _take(self, connection: Connection, count: int) -> list[Delivery]:
        now = self._clock.now()
        at = self._times.to_db(now)
        taken: list[Delivery] = []
        while len(taken) < count and (rows := sql.TAKE.rows(connection, (self._name, at, count - len(taken)))):
            claim = self._chance.uuid7(now)
            good, bad = self._sorted(rows, claim)
            sql.BURY_FREE.many(connection, [(at, why, message_id) for message_id, why in bad])
            taken += self._claimed(connection, good, claim, at)
            if not bad:
                break
        return taken

    def _sorted(self, rows: Iterable[Row], claim: str) -> tuple[dict[int, Delivery], list[tuple[int, str]]]:
        """What may be delivered, and what is a dead letter instead, with why."""
        good: dict[int, Delivery] = {}
        bad: list[tuple[int, str]] = []
        for message_id, group, body, attributes, receives in rows:
            parsed = _object(body)
            if parsed is None:
                bad.append((message_id, "its body is not a JSON object"))
            elif receives >= self._max_receives:
                bad.append((message_id, f"received {receives} times and never done"))
            else:
                receipt = f"{message_id}.{claim}"
                good[message_id] = Delivery(receipt, parsed, group, receives + 1, _object(attributes) or {})
        return good, bad

    def _claimed(
        self, connection: Connection, free: dict[int, Delivery], claim: str, at: str | datetime
    ) -> list[Delivery]:
        ids = list(free)
        if sql.CLAIM.run(connection, ids, (at, claim, self._in(self._visibility.total_seconds()))) == len(ids):
            return list(free.values())
        # Somebody was faster with some of them.
        return [free[row[0]] for row in sql.CLAIMED.rows(connection, ids, (claim,)) if row[0] in free]

    def _ready_in(self, connection: Connection) -> float:
        """Seconds until something may be received, as far as it is known now; 0: it can be."""
        now = self._clock.now()
        at = self._times.to_db(now)
        if sql.FREE.rows(connection, (self._name, at, 1)):
            return 0.0
        (next_visible,) = sql.NEXT_VISIBLE.rows(connection, (self._name, at))[0]
        return inf if next_visible is None else (self._times.from_db(next_visible) - now).total_seconds()

    def _depth(self, connection: Connection) -> Depth:
        now = self._clock.now()
        [(ready,)] = sql.COUNT.rows(connection, (self._name,))
        [(out,)] = sql.COUNT_OUT.rows(connection, (self._name, self._times.to_db(now)))
        [(dead,)] = sql.COUNT_DEAD.rows(connection, (self._name,))
        oldest = [self._times.from_db(sent_at) for (sent_at,) in sql.OLDEST.rows(connection, (self._name,))]
        return Depth(ready - out, out, dead, max(0.0, (now - oldest[0]).total_seconds()) if oldest else 0.0)

    def _letter(self, row: Row) -> DeadLetter:
        message_id, body, group, receives, sent_at, error = row
        task_id = (_object(body) or {}).get("taskId")
        return DeadLetter(
            letter_id=str(message_id),
            body=body,
            group=group,
            receives=receives,
            sent_at=self._times.from_db(sent_at),
            error=error,
            task_id=task_id if isinstance(task_id, str) else None,
        )

    def _anew(self, row: Row, now: datetime) -> Row:
        _, group, dedup_id, body, attributes = row
        dedup_id = _shortened(dedup_id.partition("~")[0], self._chance.uuid7(now))
        at = self._times.to_db(now)
        return (self._name, group, dedup_id, body, attributes, "READY", 0, at, at)

    async def _held(self, statement: Prepared, rows: Iterable[Row]) -> None:
        at = self._times.to_db(self._clock.now())
        params = [(at, *row) for row in rows]
        if params:
            await self._database.write(lambda connection: statement.many(connection, params))
            self._ring()

    def _in(self, seconds: float) -> str | datetime:
        return self._times.to_db(self._clock.now() + timedelta(seconds=seconds))

    async def _pause(self, seconds: float) -> bool:
        """Whether something changed meanwhile, as far as this process knows."""
        if self._bell is None:
            await self._clock.sleep(seconds)
            return False
        return await self._bell.wait(f"queue:{self._name}", seconds)

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.ring(f"queue:{self._name}")


def _texts(message: Outgoing) -> tuple[str, str] | str:
    """Body and attributes as they are kept, or why the message is refused."""
    for field, name in (("group", message.group), ("dedup id", message.dedup_id)):
        if not 0 < len(name) <= NAME_CHARACTERS_MAX:
            return f"its {field} is not of 1 to {NAME_CHARACTERS_MAX} characters"
    try:
        body, attributes = orjson.dumps(message.body), orjson.dumps(message.attributes)
    except TypeError as error:
        return f"its body is no JSON: {error}"
    if len(body) + len(attributes) > BODY_BYTES_MAX:
        return f"its body has more than {BODY_BYTES_MAX} bytes"
    return body.decode(), attributes.decode()


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _parts(receipts: Iterable[str]) -> list[tuple[int, str]]:
    """Row and claim of each receipt; what is none is passed over."""
    parts = (receipt.partition(".") for receipt in receipts)
    return [(int(number), claim) for number, _, claim in parts if _NUMBER.fullmatch(number)]


def _numbers(letter_ids: Iterable[str]) -> list[int]:
    return [int(letter_id) for letter_id in letter_ids if _NUMBER.fullmatch(letter_id)]


def _shortened(dedup_id: str, tail: object) -> str:
    mark = f"~{tail}"
    return f"{dedup_id[: NAME_CHARACTERS_MAX - len(mark)]}{mark}"
