"""Queues of the stand-in for SQS, each test's its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import servers
from aws_between import Between
from sellerwatch.adapters.aws.connection import Connection
from sellerwatch.adapters.aws.sqs import Queues, SqsQueue
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SeededChance

_numbers = count(1)


@asynccontextmanager
async def queues(
    server: "servers.Aws | Between", clock: Any, visibility_seconds: float, max_receives: int, suffix: str = ".fifo"
) -> AsyncIterator[Any]:
    """Opens a queue by its name; the first time, it and its dead-letter queue are made."""
    number = next(_numbers)
    made: set[str] = set()
    opened: list[SqsQueue] = []

    async def open_one(name: str = "tasks") -> SqsQueue:
        connection = Connection("sqs", servers.AWS_REGION, server.url)
        names = Queues(f"{name}-{number}{suffix}", f"{name}-{number}-dlq{suffix}")
        if name not in made:
            made.add(name)
            await make(connection, names, max_receives)
        chance = SeededChance(len(opened))
        found = SqsQueue(connection, clock, chance, AsyncBell(clock), names, visibility_seconds, max_receives)
        opened.append(found)
        return found

    yield open_one
    for one in opened:
        await one.close()


async def make(connection: Connection, names: Queues, max_receives: int) -> None:
    kind = {"FifoQueue": "true"} if names.is_fifo else {}
    await connection.call("create_queue", QueueName=names.dead, Attributes=kind)
    policy = f'{{"deadLetterTargetArn": "{arn(names.dead)}", "maxReceiveCount": "{max_receives}"}}'
    await connection.call("create_queue", QueueName=names.live, Attributes={**kind, "RedrivePolicy": policy})


def arn(name: str) -> str:
    return f"arn:aws:sqs:{servers.AWS_REGION}:{servers.AWS_ACCOUNT}:{name}"
