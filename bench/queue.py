"""What a message costs through the queue: SQS' and the database's one after the other, in one process, the stand-in in another.

`python -m bench.queue`: CPU microseconds of this process a message and, for SQS, calls a message, for publishing by 500
and receiving and acknowledging by 50. Messages are items' tasks, two to a group, as a crawl makes them.
"""

import asyncio
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.servers import AWS_CREDENTIALS, AWS_REGION, an_aws

from sellerwatch.adapters.aws.connection import Connection
from sellerwatch.adapters.aws.layout import SqsLayout
from sellerwatch.adapters.aws.sqs import Queues, SqsQueue
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.queue import SqlQueue
from sellerwatch.adapters.sql.schema import upgrade
from sellerwatch.ports.queue import Outgoing, Queue

MESSAGES = 2000
PUBLISHED_AT_ONCE, RECEIVED_AT_ONCE = 500, 50
TURNS = 2
QUEUES = Queues("bench.fifo", "bench-dlq.fifo")


def message(turn: int, number: int) -> Outgoing:
    task_id = f"019a0000-{turn:04x}-7000-8000-{number:012x}"
    item = 118_000_000 + number // 2
    body = {
        "taskId": task_id,
        "sellerId": "dmont",
        "taskType": "OPTION" if number % 2 else "DETAIL",
        "requestUrl": f"https://m.marketplace.test/mustit-api/facade-api/v1/item/{item}/detail/top",
        "attempt": 1,
    }
    return Outgoing(body, f"dmont:{item}", f"outbox-{task_id}-1", {"sellerId": "dmont"})


async def lap(queue: Queue, turn: int) -> dict[str, float]:
    """CPU microseconds a message of each half."""
    began = time.process_time()
    for start in range(0, MESSAGES, PUBLISHED_AT_ONCE):
        said = await queue.send([message(turn, number) for number in range(start, start + PUBLISHED_AT_ONCE)])
        assert said == [None] * PUBLISHED_AT_ONCE
    published = time.process_time()
    done = 0
    while done < MESSAGES:
        deliveries = await queue.receive(RECEIVED_AT_ONCE, 1)
        await queue.ack([delivery.receipt for delivery in deliveries])
        done += len(deliveries)
    received = time.process_time()
    return {"published": (published - began) / MESSAGES * 1e6, "received": (received - published) / MESSAGES * 1e6}


async def compare(url: str, folder: str) -> None:
    clock, chance = SystemClock(), SystemChance()
    made = engine(f"sqlite:///{Path(folder) / 'bench.db'}")
    upgrade(made, now=clock.now())
    database = Database(made, inline=True)
    bell = AsyncBell(clock)
    connection = Connection("sqs", AWS_REGION, url)
    layout = SqsLayout(connection, QUEUES, 30, 3)
    for deviation in await layout.deviations():
        await layout.mend(deviation)
    calls: Counter[str] = Counter()
    call = connection.call

    async def counted(operation: str, **parameters: Any) -> dict[str, Any]:
        calls[operation] += 1
        return await call(operation, **parameters)

    connection.call = counted
    queues: dict[str, Queue] = {
        "SQS": SqsQueue(connection, clock, chance, bell, QUEUES, 30, 3),
        "database (SQLite)": SqlQueue(database, clock, chance, "tasks", 30, 3, bell=bell),
    }
    laps: dict[str, list[dict[str, float]]] = {name: [] for name in queues}
    # One after the other: what runs on this thread and waits for nobody would let connections stand idle.
    for name, queue in queues.items():
        for turn in range(TURNS):
            laps[name].append(await lap(queue, turn))
    table = Table("", "published, µs", "received and done, µs", "calls a message", box=None)
    for name, some in laps.items():
        best = [f"{min(one[half] for one in some):.0f}" for half in ("published", "received")]
        each = f"{sum(calls.values()) / MESSAGES / TURNS:.2f}" if name == "SQS" else ""
        table.add_row(name, *best, each)
    console = Console()
    console.print(table)
    console.print(", ".join(f"{name} {count / MESSAGES / TURNS:.3f}" for name, count in sorted(calls.items())))
    await queues["SQS"].close()
    database.close()


if __name__ == "__main__":
    os.environ.update(AWS_CREDENTIALS)
    with an_aws() as server, tempfile.TemporaryDirectory() as here:
        asyncio.run(compare(server.url, here))
