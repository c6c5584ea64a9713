"""What is particular to the queue in SQS; what every queue promises is in tests/contracts/test_queue.py."""

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import servers
from aws_between import DROP, LOSE, Between, answer, between, error
from contracts import aws_world
from sellerwatch.adapters.aws.connection import Connection
from sellerwatch.adapters.aws.sqs import SqsQueue
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.domain.errors import Invalid, Unavailable
from sellerwatch.ports.queue import Outgoing


def message(task: str = "1", group: str = "dmont", publication: int = 1, **attributes: str) -> Outgoing:
    return Outgoing({"taskId": task}, group, f"outbox-{task}-{publication}", attributes)


@pytest.fixture
async def aws(aws_server: servers.Aws) -> AsyncIterator[Between]:
    async with between(aws_server.url) as here:
        yield here


@pytest.fixture
async def queues(aws: Between) -> AsyncIterator[Callable[..., Any]]:
    async with aws_world.queues(aws, SystemClock(), 30, 3) as opened:
        yield opened


@pytest.fixture
async def queue(queues: Callable[..., Any]) -> SqsQueue:
    return await queues()


async def bodies(queue: SqsQueue, count: int = 10) -> list[str]:
    return sorted(delivery.body["taskId"] for delivery in await queue.receive(count, 0))


async def test_messages_go_by_tens_and_each_group_in_its_order(aws: Between, queue: SqsQueue) -> None:
    await queue.send([message(str(number), f"group-{number % 3}") for number in range(60)])
    sent = [entry for operation, asked in aws.asked if operation == "SendMessageBatch" for entry in asked["Entries"]]
    assert aws.count("SendMessageBatch") <= 8
    for group in range(3):
        ids = [entry["MessageDeduplicationId"] for entry in sent if entry["MessageGroupId"] == f"group-{group}"]
        assert ids == [f"outbox-{number}-1" for number in range(group, 60, 3)]
    assert all("DelaySeconds" not in entry for entry in sent)


async def test_body_and_attributes_are_what_other_programs_read(aws: Between, queue: SqsQueue) -> None:
    body = {"taskId": "t", "sellerId": "dmont", "taskType": "DETAIL", "requestUrl": "https://m.test/1", "attempt": 2}
    await queue.send([Outgoing(body, "dmont:1", "outbox-t-2", {"sellerId": "dmont", "traceparent": "00-ab-cd-01"})])
    [entry] = next(asked["Entries"] for operation, asked in aws.asked if operation == "SendMessageBatch")
    assert entry["MessageBody"] == (
        '{"taskId":"t","sellerId":"dmont","taskType":"DETAIL","requestUrl":"https://m.test/1","attempt":2}'
    )
    assert entry["MessageAttributes"] == {
        "sellerId": {"DataType": "String", "StringValue": "dmont"},
        "traceparent": {"DataType": "String", "StringValue": "00-ab-cd-01"},
    }


async def test_a_part_that_is_refused_is_told_entry_by_entry_and_the_rest_is_sent(
    aws: Between, queue: SqsQueue
) -> None:
    def refuse_one(operation: str, asked: dict[str, Any]) -> Any:
        if operation != "SendMessageBatch" or len(asked["Entries"]) == 1:
            return None
        ids = [entry["Id"] for entry in asked["Entries"]]
        done = [{"Id": one, "MessageId": one, "MD5OfMessageBody": ""} for one in ids if one != "1"]
        no = {"Id": "1", "SenderFault": True, "Code": "InvalidMessageContents", "Message": "not so"}
        return answer({"Successful": done, "Failed": [no]})

    aws.fault = refuse_one
    assert await queue.send([message(str(number), str(number)) for number in range(3)]) == [
        None,
        "SQS refuses it: InvalidMessageContents: not so",
        None,
    ]


async def test_a_batch_that_is_declined_as_a_whole_is_asked_one_by_one(aws: Between, queue: SqsQueue) -> None:
    def decline(operation: str, asked: dict[str, Any]) -> Any:
        is_bad = any(entry["MessageBody"] == '{"taskId":"bad"}' for entry in asked.get("Entries", []))
        return error("InvalidParameterValue") if operation == "SendMessageBatch" and is_bad else None

    aws.fault = decline
    said = await queue.send([message(task, task) for task in ("1", "bad", "2")])
    assert [why is None for why in said] == [True, False, True]
    assert await bodies(queue) == ["1", "2"]


async def test_what_sqs_neither_took_nor_refused_is_unavailable_and_sent_again_it_is_there_once(
    aws: Between, queue: SqsQueue
) -> None:
    aws.fault = lambda operation, _: LOSE if operation == "SendMessageBatch" else None
    with pytest.raises(Unavailable, match=r"SQS at .* does not answer"):
        await queue.send([message("1"), message("2", "other")])
    throttled = {"Successful": [], "Failed": [{"Id": "0", "SenderFault": False, "Code": "RequestThrottled"}]}
    aws.fault = lambda operation, _: answer(throttled) if operation == "SendMessageBatch" else None
    with pytest.raises(Unavailable, match="RequestThrottled"):
        await queue.send([message("1"), message("2", "other")])
    aws.fault = None
    assert await queue.send([message("1"), message("2", "other")]) == [None, None]
    assert await bodies(queue) == ["1", "2"]
    assert (await queue.depth()).waiting == 0


SECRET = "test-secret"  # what servers.AWS_CREDENTIALS hold

TROUBLES = {
    "throttled": (("ThrottlingException",), "says later .*ThrottlingException"),
    "broken": (("InternalError", 500), "says later .*InternalError"),
    "away": (("ServiceUnavailable", 503), "says later"),
    "expired": (("ExpiredToken", 403, f"the token {SECRET} is expired"), "refuses the credentials .*ExpiredToken"),
    "unsigned": (("SignatureDoesNotMatch", 403, f"should be x-amz-security-token:{SECRET}"), "refuses the cred"),
    "forbidden": (("AccessDenied", 403, f"User arn with {SECRET}"), "does not allow .*docs/aws.md"),
    "no queue": (("QueueDoesNotExist",), "no queue .* run `sellerwatch queue setup`"),
    "dropped": (DROP, "does not answer"),
}


@pytest.mark.parametrize("name", TROUBLES)
async def test_trouble_is_one_clear_line_without_a_secret(
    aws: Between, queue: SqsQueue, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fault, said = TROUBLES[name]
    aws.fault = lambda _operation, _asked: fault if fault == DROP else error(*fault)
    for ask in (lambda: queue.send([message()]), lambda: queue.receive(1, 0)):
        with pytest.raises(Unavailable, match=said) as raised:
            await ask()
        assert "\n" not in str(raised.value)
        assert SECRET not in repr(raised.value)
        assert raised.value.__cause__ is None
    aws.fault = None
    assert await queue.send([message()]) == [None]


async def test_without_credentials_or_region_it_says_so(aws: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    connection = Connection("sqs", None, aws.url)
    with pytest.raises(Invalid, match="region"):
        await connection.call("list_queues")
    await connection.close()
    assert aws.asked == []


async def test_no_other_host_than_the_endpoint_is_spoken_to(
    aws: Between, queues: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a proxy of the environment nor whatever host a queue's address names: the network ends here in tests."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://elsewhere.test:3128")
    queue = await queues("proxied")

    def rename(operation: str, _asked: dict[str, Any]) -> Any:
        address = f"https://elsewhere.test/{servers.AWS_ACCOUNT}/{queue._live}"
        return answer({"QueueUrl": address}) if operation == "GetQueueUrl" else None

    aws.fault = rename
    assert await queue.send([message()]) == [None]
    assert await bodies(queue) == ["1"]


async def test_a_standard_queue_works_without_groups_and_ids(aws: Between) -> None:
    async with aws_world.queues(aws, SystemClock(), 30, 3, suffix="") as opened:
        queue = await opened("standard")
        assert await queue.send([message(task) for task in ("1", "2", "3")]) == [None] * 3
        [entries] = [asked["Entries"] for operation, asked in aws.asked if operation == "SendMessageBatch"]
        assert not any({"MessageGroupId", "MessageDeduplicationId"} & entry.keys() for entry in entries)
        first, second, third = await queue.receive(10, 0)
        await queue.ack([first.receipt])
        await queue.bury(second.receipt, "poison")
        await queue.give_back([third.receipt])
        [letter] = await queue.dead_letters(5)
        assert (letter.error, letter.task_id) == ("poison", second.body["taskId"])
        assert await queue.redrive([letter.letter_id]) == 1
        assert await bodies(queue) == sorted([second.body["taskId"], third.body["taskId"]])


@pytest.mark.parametrize("body", ["{", "[1]", '"text"', "null", '{"a": NaN}'])
async def test_a_body_that_is_no_json_object_is_a_dead_letter_at_once_and_the_next_one_comes(
    queue: SqsQueue, body: str
) -> None:
    urls = await queue._channel._connection.call("get_queue_url", QueueName=queue._live)
    await queue._channel._connection.call(
        "send_message", QueueUrl=urls["QueueUrl"], MessageBody=body, MessageGroupId="g", MessageDeduplicationId="d"
    )
    await queue.send([message("2", "g")])
    assert await bodies(queue) == ["2"]
    [letter] = await queue.dead_letters(5)
    assert (letter.body, letter.receives, letter.task_id) == (body, 0, None)
    assert letter.error == "its body is not a JSON object"


async def test_a_receive_waits_for_what_is_sent_meanwhile_and_takes_what_there_is(queue: SqsQueue) -> None:
    assert await queue.receive(1, 1) == []
    await queue.send([message(str(number), f"g{number}") for number in range(25)])
    assert len(await queue.receive(23, 5)) == 23


async def test_a_failure_after_something_was_received_loses_none_of_it(aws: Between, queue: SqsQueue) -> None:
    await queue.send([message(str(number), f"g{number}") for number in range(15)])
    asked_before = aws.count("ReceiveMessage")
    aws.fault = lambda operation, _: DROP if aws.count("ReceiveMessage") > asked_before + 1 else None
    got = await queue.receive(15, 0)
    aws.fault = None
    assert len(got) == 10
    assert len(await queue.receive(15, 0)) == 5


async def test_closed_it_gives_back_what_waited_for_its_turn(queues: Callable[..., Any]) -> None:
    first, second = await queues(), await queues()
    await first.send([message("1"), message("2")])
    [delivery] = await first.receive(10, 0)
    await first.close()
    depth = await second.depth()
    assert (depth.waiting, depth.out) == (1, 1)
    assert delivery.body["taskId"] == "1"


async def test_looking_at_dead_letters_loses_none_of_them(aws: Between, queue: SqsQueue) -> None:
    for number in range(25):
        await queue.send([message(str(number), f"g{number}")])
        await queue.bury((await queue.receive(1, 0))[0].receipt, "poison")
    for _ in range(3):
        assert len(await queue.dead_letters(50)) == 25
    assert len(await queue.dead_letters(7)) == 7
    assert (await queue.depth()).dead == 25
    assert await queue.drop_dead([letter.letter_id for letter in await queue.dead_letters(12)]) == 12
    assert (await queue.depth()).dead == 13
    # Nobody said which were done with before the answer was lost.
    letters = await queue.dead_letters(50)
    aws.fault = lambda operation, _: LOSE if operation == "DeleteMessageBatch" else None
    with pytest.raises(Unavailable):
        await queue.redrive([letters[0].letter_id])
    aws.fault = None
    await queue.redrive([letters[0].letter_id])
    assert await bodies(queue) == [letters[0].task_id]
