"""What SQS is asked, ten at a time: send, receive, delete, change visibility, count.

Promises: a batch of which SQS takes a part is answered entry by entry; one it declines as a whole is asked one by one,
so that a bad message spoils no other. What it neither took nor refused is Unavailable. Receipts it does not know any
more are passed over: their messages are somebody else's.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from sellerwatch.adapters.aws.connection import Connection, Declined, Missing
from sellerwatch.adapters.aws.messages import BATCH, SYSTEM_ATTRIBUTES, Entry, Received, batches
from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.time import Chance, Clock

T = TypeVar("T")
FIFO: Final = ".fifo"
VISIBILITY_SECONDS_MAX: Final = 43200
COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Channel:
    def __init__(self, connection: Connection, clock: Clock, chance: Chance) -> None:
        self._connection, self._clock, self._chance = connection, clock, chance
        self._urls: dict[str, str] = {}

    async def send(self, name: str, entries: Iterable[tuple[int, Entry]]) -> dict[int, str]:
        """One batch after the other. Those that are refused, by the number they were given, with why."""
        refused: dict[int, str] = {}
        for batch in batches(entries):
            refused |= await self._send(name, batch)
        return refused

    async def receive(self, name: str, count: int, visibility: int, wait_seconds: int) -> list[Received]:
        until = self._clock.monotonic() + visibility
        # Asked again because the answer was lost, a FIFO queue gives the same messages again.
        attempt = {"ReceiveRequestAttemptId": self._chance.uuid7(self._clock.now())} if name.endswith(FIFO) else {}
        answer = await self._call(
            "receive_message",
            name,
            MaxNumberOfMessages=min(count, BATCH),
            VisibilityTimeout=visibility,
            WaitTimeSeconds=wait_seconds,
            MessageSystemAttributeNames=SYSTEM_ATTRIBUTES,
            MessageAttributeNames=["All"],
            **attempt,
        )
        return [Received.of(message, until) for message in answer.get("Messages", [])]

    async def delete(self, name: str, messages: Sequence[Received]) -> None:
        await self._by_tens("delete_message_batch", name, messages)

    async def show(self, name: str, messages: Sequence[Received], seconds: int) -> None:
        """Visible again after so long from now."""
        seconds = min(seconds, VISIBILITY_SECONDS_MAX)
        until = self._clock.monotonic() + seconds
        for message in await self._by_tens(
            "change_message_visibility_batch", name, messages, VisibilityTimeout=seconds
        ):
            message.until = until

    async def counts(self, name: str) -> tuple[int, int, int]:
        """Visible, not visible, delayed; roughly."""
        answer = await self._call("get_queue_attributes", name, AttributeNames=COUNTS)
        visible, out, delayed = (int(answer["Attributes"].get(which, 0)) for which in COUNTS)
        return visible, out, delayed

    async def close(self) -> None:
        await self._connection.close()

    async def _send(self, name: str, batch: Sequence[tuple[int, Entry]]) -> dict[int, str]:
        entries = [{"Id": str(number), **made} for number, made in batch]
        try:
            answer = await self._call("send_message_batch", name, Entries=entries)
        except Declined as no:
            if len(batch) == 1:
                return {batch[0][0]: str(no)}
            singly = [await self._send(name, [one]) for one in batch]
            return {number: why for refused in singly for number, why in refused.items()}
        failed = answer.get("Failed", [])
        if len(answer.get("Successful", [])) + len(failed) < len(batch) or _faults(failed):
            raise Unavailable(f"SQS did not take all of a batch ({_codes(failed)})")
        return {int(one["Id"]): f"SQS refuses it: {one.get('Code')}: {one.get('Message', '')}"[:500] for one in failed}

    async def _by_tens(self, operation: str, name: str, messages: Sequence[Received], **also: object) -> list[Received]:
        """Those it was done to."""

        async def ten(some: Sequence[Received]) -> list[Received]:
            entries = [
                {"Id": str(number), "ReceiptHandle": message.handle, **also} for number, message in enumerate(some)
            ]
            answer = await self._call(operation, name, Entries=entries)
            if faults := _faults(answer.get("Failed", [])):
                raise Unavailable(f"SQS did a part only of {operation.replace('_', ' ')} ({_codes(faults)})")
            return [some[int(one["Id"])] for one in answer.get("Successful", [])]

        done = await together(ten(some) for some in _tens(messages))
        return [message for some in done for message in some]

    async def _call(self, operation: str, name: str, **parameters: object) -> dict[str, Any]:
        try:
            if name not in self._urls:
                self._urls[name] = (await self._connection.call("get_queue_url", QueueName=name))["QueueUrl"]
            return await self._connection.call(operation, QueueUrl=self._urls[name], **parameters)
        except Missing:
            self._urls.pop(name, None)
            raise Missing(f"SQS has no queue {name}: run `sellerwatch queue setup`") from None


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; when one fails it is told after all have ended, so that nothing goes on unseen."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


def _faults(failed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What failed by no fault of ours, and may be tried again as it is."""
    return [one for one in failed if not one.get("SenderFault")]


def _codes(failed: Sequence[dict[str, Any]]) -> str:
    return ", ".join(sorted({str(one.get("Code")) for one in failed})) or "no answer for some"


def _tens(messages: Sequence[Received]) -> Iterator[Sequence[Received]]:
    return (messages[start : start + BATCH] for start in range(0, len(messages), BATCH))
