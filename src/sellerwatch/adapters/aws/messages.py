"""A message as SQS carries it: the JSON body, string attributes, group and deduplication id.

Promises: what is sent is received as it was. Refuses, each by its own reason, what SQS would refuse or never show
again: a body beyond 256 KiB, names that are too long, characters that XML has not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from sellerwatch.ports.queue import Delivery, Outgoing

BATCH: Final = 10
BATCH_BYTES: Final = 256 << 10
NAME_CHARACTERS_MAX: Final = 128
ATTRIBUTES_MAX: Final = 6
"""SQS takes ten of them; a dead letter bears some of ours as well."""
ERROR_CHARACTERS_MAX: Final = 2048
ERROR, RECEIVES, SENT_AT = "error", "receives", "sentAt"
_NAME = re.compile(r"[!-~]{1,128}", re.ASCII)
_UNSPEAKABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SYSTEM_ATTRIBUTES: Final = (
    "ApproximateReceiveCount",
    "MessageGroupId",
    "MessageDeduplicationId",
    "SentTimestamp",
    "DeadLetterQueueSourceArn",
)

Entry = dict[str, Any]


@dataclass(slots=True)
class Received:
    """A message of which we hold a receipt until `until`, a moment of the monotonic clock."""

    message_id: str
    handle: str
    body: str
    group: str
    receives: int
    sent_ms: int
    attributes: Mapping[str, str]
    until: float
    is_moved: bool
    """By the queue itself, for having been received too often."""

    @classmethod
    def of(cls, message: Mapping[str, Any], until: float) -> "Received":
        system = message.get("Attributes", {})
        attributes = message.get("MessageAttributes", {})
        return cls(
            message_id=message["MessageId"],
            handle=message["ReceiptHandle"],
            body=message["Body"],
            group=system.get("MessageGroupId", ""),
            receives=int(system.get("ApproximateReceiveCount", 1)),
            sent_ms=int(system.get("SentTimestamp", 0)),
            attributes={name: one["StringValue"] for name, one in attributes.items() if "StringValue" in one},
            until=until,
            is_moved="DeadLetterQueueSourceArn" in system,
        )

    def delivery(self, body: dict[str, Any]) -> Delivery:
        return Delivery(self.handle, body, self.group, self.receives, self.attributes)

    def resent(self, role: str, *, is_fifo: bool, also: Mapping[str, str] | None = None) -> Entry:
        """The same message once more, for this reason. Its new id follows from the old one, so that doing it twice
        within five minutes makes one."""
        # A dead letter's error is its own, and not the message's.
        known = {name: text for name, text in self.attributes.items() if name not in {ERROR, RECEIVES, SENT_AT}}
        kept = dict(list(known.items())[:ATTRIBUTES_MAX])
        return entry(self.body, {**kept, **(also or {})}, self.group, f"{role}-{self.message_id}", is_fifo=is_fifo)


def entry(body: str, attributes: Mapping[str, str], group: str, dedup_id: str, *, is_fifo: bool) -> Entry:
    made: Entry = {"MessageBody": body}
    if attributes:
        made["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()
        }
    if is_fifo:
        made |= {"MessageGroupId": group, "MessageDeduplicationId": dedup_id}
    return made


def outgoing(message: Outgoing, *, is_fifo: bool) -> Entry | str:
    """As it is sent, or why it is refused."""
    for field, name in (("group", message.group), ("dedup id", message.dedup_id)):
        if not _NAME.fullmatch(name):
            return f"its {field} is not of 1 to {NAME_CHARACTERS_MAX} visible ASCII characters"
    try:
        body = orjson.dumps(message.body).decode()
    except TypeError as error:
        return f"its body is no JSON: {error}"
    texts = [body, *message.attributes.values()]
    if any(_UNSPEAKABLE.search(text) for text in texts) or not all(texts):
        return "it has an empty attribute, or a character that SQS does not carry"
    if len(message.attributes) > ATTRIBUTES_MAX:
        return f"it has more than {ATTRIBUTES_MAX} attributes"
    made = entry(body, message.attributes, message.group, message.dedup_id, is_fifo=is_fifo)
    if weight(made) > BATCH_BYTES:
        return f"its body has more than {BATCH_BYTES} bytes"
    return made


def weight(made: Entry) -> int:
    """As SQS counts it: body, and each attribute's name, type and value."""
    attributes = made.get("MessageAttributes", {})
    return len(made["MessageBody"].encode()) + sum(
        len(name.encode()) + len(one["DataType"]) + len(one["StringValue"].encode()) for name, one in attributes.items()
    )


def batches(entries: Iterable[tuple[int, Entry]]) -> Iterator[list[tuple[int, Entry]]]:
    """In their order, so many together as SQS takes at once."""
    together: list[tuple[int, Entry]] = []
    total = 0
    for number, made in entries:
        size = weight(made)
        if together and (len(together) == BATCH or total + size > BATCH_BYTES):
            yield together
            together, total = [], 0
        together.append((number, made))
        total += size
    if together:
        yield together


def parsed(body: str) -> dict[str, Any] | None:
    """The body, if it is a JSON object."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def speakable(text: str) -> str:
    """As an attribute may bear it."""
    return _UNSPEAKABLE.sub("?", text)[:ERROR_CHARACTERS_MAX] or "no reason given"
