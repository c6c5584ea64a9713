"""What the stand-in for SQS and EventBridge really does, beside what AWS says of itself.

    .venv/bin/python tests/conformance.py

Asks it through the bare client, so that what is found is not what our adapters make of it. Its clock is set ahead where
minutes would have to pass. Exit 1 when something differs that is not known to (`KNOWN`): then tests that rest on it
prove less than they seem to.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from aiobotocore.session import get_session

import servers

_numbers = count(1)
Check = Callable[["Stand"], Awaitable[bool]]
CHECKS: list[tuple[str, bool, Check]] = []
KNOWN = {
    "a receipt whose visibility has ended still deletes (FIFO)": "SqsQueue does not use it",
    "receiving again under the same attempt id gives the same messages": "it saves a visibility, and loses nothing",
    "a rule that still has targets is not deleted": "EventBridge.remove takes the targets away first",
    "`rate(1 days)` is refused": "the domain's own tests keep to AWS' grammar",
}
"""Where it is known to differ from AWS, and why nothing of ours rests on it."""


def check(sentence: str, *, aws: bool = True) -> Callable[[Check], Check]:
    def keep(work: Check) -> Check:
        CHECKS.append((sentence, aws, work))
        return work

    return keep


class Stand:
    def __init__(self, server: servers.Aws, sqs: Any, events: Any) -> None:
        self.server, self.sqs, self.events = server, sqs, events

    async def queue(self, **attributes: str) -> str:
        """A FIFO queue of its own."""
        name = f"c{next(_numbers)}.fifo"
        made = await self.sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true", **attributes})
        return made["QueueUrl"]

    async def arn(self, url: str) -> str:
        found = await self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return found["Attributes"]["QueueArn"]

    async def send(self, url: str, body: str, group: str = "g", dedup: str = "") -> None:
        await self.sqs.send_message(
            QueueUrl=url, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=dedup or body
        )

    async def take(self, url: str, most: int = 10, wait: int = 0, **how: Any) -> list[dict[str, Any]]:
        answer = await self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait,
            MessageSystemAttributeNames=["All"],
            **how,
        )
        return answer.get("Messages", [])

    async def delete(self, url: str, message: dict[str, Any]) -> None:
        await self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


@check("each group comes in its order, however many send and receive at once")
async def _order(at: Stand) -> bool:
    url = await at.queue()
    seen: dict[str, list[int]] = {}
    left = 100

    async def send(group: str) -> None:
        for number in range(20):
            await at.send(url, f"{group}:{number}", group)

    async def receive() -> None:
        nonlocal left
        while left > 0:
            for message in await at.take(url, 3):
                group, _, number = message["Body"].partition(":")
                seen.setdefault(group, []).append(int(number))
                await at.delete(url, message)
                left -= 1

    await asyncio.gather(*(send(f"g{number}") for number in range(5)), *(receive() for _ in range(4)))
    return all(numbers == list(range(20)) for numbers in seen.values()) and len(seen) == 5


@check("while one of a group is out, none of it comes in another receive")
async def _blocking(at: Stand) -> bool:
    url = await at.queue()
    await at.send(url, "1")
    await at.send(url, "2")
    await at.send(url, "3", "other")
    [first] = await at.take(url, 1)
    others = [message["Body"] for message in await at.take(url)]
    await at.delete(url, first)
    return others == ["3"] and [message["Body"] for message in await at.take(url)] == ["2"]


@check("one receive may give several of one group")
async def _together(at: Stand) -> bool:
    url = await at.queue()
    await at.send(url, "1")
    await at.send(url, "2")
    return [message["Body"] for message in await at.take(url)] == ["1", "2"]


@check("an id is remembered for five minutes, also of what was deleted, and no longer")
async def _dedup(at: Stand) -> bool:
    url = await at.queue()
    await at.send(url, "1")
    [first] = await at.take(url)
    await at.delete(url, first)
    await at.send(url, "1")
    is_dropped = await at.take(url) == []
    at.server.advance(301)
    await at.send(url, "1")
    return is_dropped and len(await at.take(url)) == 1


@check("what is out comes again when its visibility ends, counted, and not while it is extended")
async def _visibility(at: Stand) -> bool:
    url = await at.queue(VisibilityTimeout="30")
    await at.send(url, "1")
    [first] = await at.take(url)
    at.server.advance(20)
    await at.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=30)
    at.server.advance(15)
    is_out = await at.take(url) == []
    at.server.advance(16)
    again = await at.take(url)
    return is_out and [one["Attributes"]["ApproximateReceiveCount"] for one in again] == ["2"]


@check("a receipt whose visibility has ended still deletes (FIFO)", aws=False)
async def _late(at: Stand) -> bool:
    url = await at.queue(VisibilityTimeout="30")
    await at.send(url, "1")
    [first] = await at.take(url)
    at.server.advance(31)
    try:
        await at.delete(url, first)
    except at.sqs.exceptions.ClientError:
        return False
    return await at.take(url) == []


@check("received too often it is a dead letter, marked with where it came from")
async def _dead(at: Stand) -> bool:
    dead = await at.queue()
    policy = f'{{"deadLetterTargetArn": "{await at.arn(dead)}", "maxReceiveCount": 3}}'
    url = await at.queue(RedrivePolicy=policy)
    await at.send(url, "1")
    for _ in range(3):
        assert len(await at.take(url)) == 1
        at.server.advance(31)
    is_gone = await at.take(url) == []
    [letter] = await at.take(dead)
    return is_gone and letter["Attributes"].get("DeadLetterQueueSourceArn") == await at.arn(url)


@check("a long poll ends when something is sent")
async def _long_poll(at: Stand) -> bool:
    url = await at.queue()
    polling = asyncio.create_task(at.take(url, wait=5))
    await asyncio.sleep(0.2)
    await at.send(url, "1")
    return len(await asyncio.wait_for(polling, 2)) == 1


@check("of a batch, the bad ones are refused by themselves")
async def _partial(at: Stand) -> bool:
    url = await at.queue()
    bodies = {"good": "1", "bad": "\ufffe", "fine": "2"}
    entries = [
        {"Id": name, "MessageBody": body, "MessageGroupId": "g", "MessageDeduplicationId": name}
        for name, body in bodies.items()
    ]
    said = await at.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    return [one["Id"] for one in said["Failed"]] == ["bad"] and len(said["Successful"]) == 2


@check("receiving again under the same attempt id gives the same messages")
async def _attempt(at: Stand) -> bool:
    url = await at.queue()
    await at.send(url, "1")
    first = await at.take(url, ReceiveRequestAttemptId="a")
    return [one["Body"] for one in await at.take(url, ReceiveRequestAttemptId="a")] == [one["Body"] for one in first]


@check("a scheduled rule fires into a FIFO queue, through its input transformer, once an interval")
async def _fires(at: Stand) -> bool:
    url = await at.queue(ContentBasedDeduplication="true")
    await at.events.put_rule(Name="conformance", ScheduleExpression="rate(1 day)", State="ENABLED")
    transformer = {"InputPathsMap": {"id": "$.id", "time": "$.time"}, "InputTemplate": '{"k": <id>, "t": <time>}'}
    target = {
        "Id": "crawler",
        "Arn": await at.arn(url),
        "InputTransformer": transformer,
        "SqsParameters": {"MessageGroupId": "g"},
    }
    await at.events.put_targets(Rule="conformance", Targets=[target])
    is_early = await at.take(url, wait=1) != []
    at.server.advance(86401)
    fired = await at.take(url, wait=5)
    at.server.advance(10)
    return not is_early and len(fired) == 1 and '"k": "' in fired[0]["Body"] and await at.take(url, wait=1) == []


@check("a rule that still has targets is not deleted")
async def _rule_with_targets(at: Stand) -> bool:
    url = await at.queue()
    await at.events.put_rule(Name="kept", ScheduleExpression="rate(1 day)")
    await at.events.put_targets(Rule="kept", Targets=[{"Id": "crawler", "Arn": await at.arn(url)}])
    try:
        await at.events.delete_rule(Name="kept")
    except at.events.exceptions.ClientError:
        return True
    return False


@check("`rate(1 days)` is refused")
async def _plural(at: Stand) -> bool:
    try:
        await at.events.put_rule(Name="plural", ScheduleExpression="rate(1 days)")
    except at.events.exceptions.ClientError:
        return True
    return False


async def run(server: servers.Aws) -> list[tuple[str, bool, bool]]:
    """Each sentence, what AWS does, what the stand-in does."""
    session = get_session()
    how = {"region_name": servers.AWS_REGION, "endpoint_url": server.url}
    how |= {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    async with session.create_client("sqs", **how) as sqs, session.create_client("events", **how) as events:
        stand = Stand(server, sqs, events)
        return [(sentence, aws, await work(stand)) for sentence, aws, work in CHECKS]


def main() -> int:
    os.environ.pop("AWS_PROFILE", None)
    with servers.an_aws() as server:
        found = asyncio.run(run(server))
    width = max(len(sentence) for sentence, _, _ in found)
    print(f"{'':{width}}  AWS  stand-in")
    unknown = 0
    for sentence, aws, here in found:
        note = "" if aws is here else f"  differs: {KNOWN.get(sentence, 'NOT KNOWN')}"
        unknown += aws is not here and sentence not in KNOWN
        print(f"{sentence:{width}}  {'yes' if aws else 'no':3}  {'yes' if here else 'no'}{note}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
