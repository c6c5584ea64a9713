"""Dead letters in SQS: a queue of their own, beside the one they come from.

SQS shows a message only by handing it out: looking is receiving for a moment and showing again, and finding one by its
id is looking at all of them. While somebody looks, nobody else sees what he has in his hand. Of one group at most ten
are seen at once. Promises: looking loses nothing; what is redriven is sent before it is deleted.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from sellerwatch.adapters.aws.channel import Channel
from sellerwatch.adapters.aws.messages import BATCH, ERROR, RECEIVES, SENT_AT, Received, parsed, speakable
from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.queue import DeadLetter

LOOK_SECONDS: Final = 10
"""They come back by themselves after this, if nobody is left to show them again."""


class Letters:
    def __init__(self, channel: Channel, name: str, source: str, max_receives: int, *, is_fifo: bool) -> None:
        self._channel, self._name, self._source = channel, name, source
        self._max_receives, self._is_fifo = max_receives, is_fifo

    async def bury(self, message: Received, error: str, receives: int) -> None:
        """Its letter is there before the message is gone; a second one of the same makes none."""
        also = {ERROR: speakable(error), RECEIVES: str(receives), SENT_AT: str(message.sent_ms)}
        letter = message.resent("bury", is_fifo=self._is_fifo, also=also)
        if refused := await self._channel.send(self._name, [(0, letter)]):
            raise Unavailable(f"{self._name} did not take a dead letter: {refused[0]}")

    async def listed(self, count: int) -> list[DeadLetter]:
        async with self._looking(count, None) as found:
            letters = [self._letter(message) for message in found]
        return sorted(letters, key=lambda letter: letter.sent_at)

    async def redrive(self, letter_ids: Collection[str]) -> int:
        async with self._looking(None, letter_ids) as found:
            entries = [(number, one.resent("redrive", is_fifo=self._is_fifo)) for number, one in enumerate(found)]
            refused = await self._channel.send(self._source, entries)
            sent = [message for number, message in enumerate(found) if number not in refused]
            await self._channel.delete(self._name, sent)
        return len(sent)

    async def drop(self, letter_ids: Collection[str]) -> int:
        async with self._looking(None, letter_ids) as found:
            await self._channel.delete(self._name, found)
        return len(found)

    @asynccontextmanager
    async def _looking(self, count: int | None, wanted: Collection[str] | None) -> AsyncIterator[list[Received]]:
        """The first `count`, or the wanted ones. What was in our hand and is not asked for is shown again at once."""
        # What is no id of SQS need not be looked for.
        missing = {one for one in wanted or () if len(one) == 36}
        seen: dict[str, Received] = {}
        try:
            while missing if wanted is not None else len(seen) < (count or 0):
                asked = BATCH if count is None else min(BATCH, count - len(seen))
                some = await self._channel.receive(self._name, asked, LOOK_SECONDS, 0)
                if not some:
                    break
                seen |= {message.message_id: message for message in some}
                missing -= seen.keys()
            found = list(seen.values()) if wanted is None else [seen[one] for one in seen if one in wanted]
            yield found
        finally:
            kept = [message for message in seen.values() if wanted is None or message.message_id not in wanted]
            with suppress(Unavailable):  # then they come back by themselves
                await self._channel.show(self._name, kept, 0)

    def _letter(self, message: Received) -> DeadLetter:
        given = message.attributes
        receives = given.get(RECEIVES, "")
        sent_ms = given.get(SENT_AT, "")
        error = given.get(ERROR)
        if error is None and message.is_moved:
            error = too_often(self._max_receives)
        task_id = (parsed(message.body) or {}).get("taskId")
        return DeadLetter(
            letter_id=message.message_id,
            body=message.body,
            group=message.group,
            receives=int(receives) if _is_number(receives) else self._max_receives,
            sent_at=datetime.fromtimestamp((int(sent_ms) if _is_number(sent_ms) else message.sent_ms) / 1000, UTC),
            error=error,
            task_id=task_id if isinstance(task_id, str) else None,
        )


def too_often(receives: int) -> str:
    return f"received {receives} times and never done"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 13
