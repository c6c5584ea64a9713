"""The queues as they have to be: made, and mended where somebody changed them."""

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import orjson
import pytest

import servers
from contracts import aws_world
from sellerwatch.adapters.aws.connection import Connection
from sellerwatch.adapters.aws.layout import SqsLayout
from sellerwatch.adapters.aws.sqs import Queues
from sellerwatch.ports.layout import Deviation

_numbers = count(1)


@pytest.fixture
async def connection(aws_server: servers.Aws) -> AsyncIterator[Connection]:
    opened = Connection("sqs", servers.AWS_REGION, aws_server.url)
    yield opened
    await opened.close()


def names(suffix: str = ".fifo") -> Queues:
    number = next(_numbers)
    return Queues(f"laid-{number}{suffix}", f"laid-{number}-dlq{suffix}")


async def mended(layout: SqsLayout) -> list[Deviation]:
    found = await layout.deviations()
    for deviation in found:
        await layout.mend(deviation)
    return found


async def attributes(connection: Connection, name: str) -> Any:
    url = (await connection.call("get_queue_url", QueueName=name))["QueueUrl"]
    return (await connection.call("get_queue_attributes", QueueUrl=url, AttributeNames=["All"]))["Attributes"]


async def change(connection: Connection, name: str, **changed: str) -> None:
    url = (await connection.call("get_queue_url", QueueName=name))["QueueUrl"]
    await connection.call("set_queue_attributes", QueueUrl=url, Attributes=changed)


async def test_what_is_missing_is_made_with_its_dead_letters_and_doing_it_again_changes_nothing(
    connection: Connection,
) -> None:
    queues = names()
    layout = SqsLayout(connection, queues, 30, 3)
    assert [one.name for one in await layout.deviations()] == [queues.dead, queues.live]
    assert [one.name for one in await layout.deviations()] == [queues.dead, queues.live], "looking makes nothing"
    await mended(layout)
    assert await layout.deviations() == []
    has = await attributes(connection, queues.live)
    assert {name: has[name] for name in ("FifoQueue", "VisibilityTimeout", "MessageRetentionPeriod")} == {
        "FifoQueue": "true",
        "VisibilityTimeout": "30",
        "MessageRetentionPeriod": str(4 * 86400),
    }
    assert (has["DeduplicationScope"], has["FifoThroughputLimit"]) == ("messageGroup", "perMessageGroupId")
    assert orjson.loads(has["RedrivePolicy"]) == {
        "deadLetterTargetArn": aws_world.arn(queues.dead),
        "maxReceiveCount": 3,
    }
    assert (await attributes(connection, queues.dead))["MessageRetentionPeriod"] == str(14 * 86400)


async def test_what_somebody_changed_is_named_and_put_right_and_nothing_else_is(connection: Connection) -> None:
    queues = names()
    layout = SqsLayout(connection, queues, 30, 3)
    await mended(layout)
    other = {"deadLetterTargetArn": aws_world.arn(queues.dead), "maxReceiveCount": "9"}
    await change(
        connection,
        queues.live,
        VisibilityTimeout="77",
        RedrivePolicy=orjson.dumps(other).decode(),
        ReceiveMessageWaitTimeSeconds="20",
    )
    [deviation] = await mended(layout)
    assert deviation.said == "visibility is 77 s, should be 30 s; dead after 9 receives, should be 3"
    assert await layout.deviations() == []
    assert (await attributes(connection, queues.live))["ReceiveMessageWaitTimeSeconds"] == "20"
    await change(connection, queues.live, RedrivePolicy="")
    assert [one.said for one in await mended(layout)] == ["it has no dead-letter queue"]
    assert await layout.deviations() == []


async def test_a_queue_of_triggers_lets_the_rules_of_its_account_in_and_keeps_what_others_wrote(
    connection: Connection,
) -> None:
    queues = names()
    layout = SqsLayout(connection, queues, 30, 3, takes_from_bus="default")
    await mended(layout)
    has = await attributes(connection, queues.live)
    assert has["ContentBasedDeduplication"] == "true"
    [statement] = orjson.loads(has["Policy"])["Statement"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert statement["Resource"] == aws_world.arn(queues.live)
    rules = f"arn:aws:events:{servers.AWS_REGION}:{servers.AWS_ACCOUNT}:rule/mustit-crawler-*"
    assert statement["Condition"] == {"ArnLike": {"aws:SourceArn": rules}}
    theirs = {"Sid": "theirs", "Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": "*"}
    stale = {**statement, "Action": "sqs:*"}
    policy = {"Version": "2012-10-17", "Statement": [theirs, stale]}
    await change(connection, queues.live, Policy=orjson.dumps(policy).decode())
    assert [one.said for one in await mended(layout)] == ["its policy does not let the rules send"]
    assert orjson.loads((await attributes(connection, queues.live))["Policy"])["Statement"] == [theirs, statement]


async def test_a_standard_queue_has_what_a_standard_queue_can_have(connection: Connection) -> None:
    queues = names("")
    layout = SqsLayout(connection, queues, 30, 3)
    await mended(layout)
    assert await layout.deviations() == []
    assert "FifoQueue" not in await attributes(connection, queues.live)
