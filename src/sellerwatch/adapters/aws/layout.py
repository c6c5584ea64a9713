"""The queues as they have to be: made with their dead-letter queues, and mended where somebody changed them.

    tasks       FIFO: ids are remembered per group, so that AWS' limit per queue is lifted; no id by content
    triggers    FIFO: ids by content, because rules give none; a policy lets the rules of this account in
    both        dead letters after so many receives, visibility as long as a claim, at most 256 KiB a message

Promises: what exists is changed only where it deviates; other attributes, and other statements of a policy, stay. A
standard queue has what a standard queue can have. Refuses to change what SQS can't: a queue's kind is in its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import orjson

from sellerwatch.adapters.aws.connection import Connection, Missing
from sellerwatch.adapters.aws.sqs import Queues
from sellerwatch.domain.schedules import RULE_PREFIX
from sellerwatch.ports.layout import Deviation

DAY_SECONDS: Final = 86400
LIVE_DAYS, DEAD_DAYS = 4, 14
BYTES_MAX: Final = 256 << 10
STATEMENT: Final = "sellerwatch-rules"
_UNITS: Final = {
    "VisibilityTimeout": ("visibility", " s"),
    "MessageRetentionPeriod": ("retention", " s"),
    "MaximumMessageSize": ("message size", " bytes"),
    "ContentBasedDeduplication": ("deduplication by content", ""),
    "DeduplicationScope": ("deduplication scope", ""),
    "FifoThroughputLimit": ("throughput limit", ""),
}


@dataclass(frozen=True, slots=True)
class Lacking(Deviation):
    """A queue that is missing, or attributes of it that are not as they should be."""

    is_missing: bool


class SqsLayout:
    """ports.layout.Layout of a queue and its dead letters."""

    def __init__(
        self,
        connection: Connection,
        queues: Queues,
        visibility_seconds: float,
        max_receives: int,
        *,
        takes_from_bus: str | None = None,
    ) -> None:
        self._connection, self._queues = connection, queues
        self._visibility, self._max_receives = max(1, ceil(visibility_seconds)), max_receives
        self._bus = takes_from_bus

    async def deviations(self) -> list[Deviation]:
        found: list[Deviation] = []
        # The dead letters' queue first: the other one refers to it.
        for name in (self._queues.dead, self._queues.live):
            has = await self._attributes(name)
            if has is None:
                kind = "a FIFO queue" if self._queues.is_fifo else "a standard queue"
                found.append(Lacking(name, f"is missing: {kind} is to be made", is_missing=True))
                continue
            wants = await self._wanted(name, has["QueueArn"])
            said = [line for which, want in wants.items() if (line := _otherwise(which, has.get(which), want))]
            if said:
                found.append(Lacking(name, "; ".join(said), is_missing=False))
        return found

    async def mend(self, deviation: Deviation) -> None:
        name = deviation.name
        has = await self._attributes(name)
        if has is None:
            kind = {"FifoQueue": "true"} if self._queues.is_fifo else {}
            await self._connection.call("create_queue", QueueName=name, Attributes=kind)
            has = await self._attributes(name) or {}
        wants = await self._wanted(name, has["QueueArn"])
        changes = {which: want for which, want in wants.items() if _otherwise(which, has.get(which), want)}
        if "Policy" in changes:
            changes["Policy"] = _merged(has.get("Policy"), changes["Policy"])
        if changes:
            url = await self._url(name)
            await self._connection.call("set_queue_attributes", QueueUrl=url, Attributes=changes)

    async def close(self) -> None:
        await self._connection.close()

    async def _wanted(self, name: str, arn: str) -> dict[str, str]:
        is_live = name == self._queues.live
        wants = {"MessageRetentionPeriod": str((LIVE_DAYS if is_live else DEAD_DAYS) * DAY_SECONDS)}
        if not is_live:
            return wants
        wants |= {"VisibilityTimeout": str(self._visibility), "MaximumMessageSize": str(BYTES_MAX)}
        if self._queues.is_fifo:
            wants |= {
                "ContentBasedDeduplication": "true" if self._bus else "false",
                "DeduplicationScope": "messageGroup",
                "FifoThroughputLimit": "perMessageGroupId",
            }
        dead_arn = arn.rpartition(":")[0] + f":{self._queues.dead}"
        policy = {"deadLetterTargetArn": dead_arn, "maxReceiveCount": self._max_receives}
        wants["RedrivePolicy"] = orjson.dumps(policy).decode()
        if self._bus:
            wants["Policy"] = orjson.dumps(_statement(arn, self._bus)).decode()
        return wants

    async def _attributes(self, name: str) -> dict[str, str] | None:
        try:
            url = await self._url(name)
            answer = await self._connection.call("get_queue_attributes", QueueUrl=url, AttributeNames=["All"])
        except Missing:
            return None
        return dict(answer["Attributes"])

    async def _url(self, name: str) -> str:
        answer = await self._connection.call("get_queue_url", QueueName=name)
        return str(answer["QueueUrl"])


def _statement(arn: str, bus: str) -> dict[str, Any]:
    """Lets the rules of a bus of the same account send; of rules with our prefix only."""
    partition, _, region, account = arn.split(":")[1:5]
    rules = f"rule/{RULE_PREFIX}*" if bus == "default" else f"rule/{bus}/{RULE_PREFIX}*"
    return {
        "Sid": STATEMENT,
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnLike": {"aws:SourceArn": f"arn:{partition}:events:{region}:{account}:{rules}"}},
    }


def _otherwise(which: str, has: str | None, want: str) -> str | None:
    """What is not as it should be, in words; None: it is right."""
    if which == "RedrivePolicy":
        return _redriven_otherwise(_object(has), _object(want))
    if which == "Policy":
        is_let_in = _object(want) in _statements(_object(has))
        return None if is_let_in else "its policy does not let the rules send"
    if has == want:
        return None
    name, unit = _UNITS[which]
    return f"{name} is {has or 'not set'}{unit if has else ''}, should be {want}{unit}"


def _redriven_otherwise(has: Mapping[str, Any], want: Mapping[str, Any]) -> str | None:
    where, receives = want["deadLetterTargetArn"], want["maxReceiveCount"]
    if not has:
        return "it has no dead-letter queue"
    if has.get("deadLetterTargetArn") != where:
        return f"its dead letters go elsewhere than to {where.rpartition(':')[2]}"
    if str(has.get("maxReceiveCount")) != str(receives):
        return f"dead after {has.get('maxReceiveCount')} receives, should be {receives}"
    return None


def _merged(has: str | None, statement: str) -> str:
    """The policy with our statement in the place of an older one of ours; what others wrote stays."""
    policy = _object(has)
    others = [one for one in _statements(policy) if one.get("Sid") != STATEMENT]
    return orjson.dumps({"Version": "2012-10-17", **policy, "Statement": [*others, orjson.loads(statement)]}).decode()


def _statements(policy: Mapping[str, Any]) -> list[Any]:
    found = policy.get("Statement", [])
    return found if isinstance(found, list) else [found]


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
