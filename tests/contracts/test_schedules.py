"""The promises of ports/outside.py about what fires the triggers, on every engine that claims to keep them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

import servers
from aws_between import DROP, Between, answer, between, error
from builders import NOON
from contracts import aws_world
from sellerwatch.adapters.aws.connection import Connection
from sellerwatch.adapters.aws.eventbridge import EventBridge, Target
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.schedules import BuiltinSchedules
from sellerwatch.domain.errors import Trouble, Unavailable
from sellerwatch.domain.outbox import ScheduleNotice
from sellerwatch.domain.schedules import Schedule, ScheduleEvent
from sellerwatch.domain.triggers import called
from sellerwatch.ports.outside import Schedules

DAY = 86400
_numbers = count(1)


def schedule_of(seller_id: str, days: int = 1) -> Schedule:
    return Schedule.create(f"schedule of {seller_id}", seller_id, days, NOON)[0]


def notice(schedule: Schedule, event: ScheduleEvent) -> ScheduleNotice:
    payload: dict[str, object] = {"ruleName": schedule.rule_name}
    if event is not ScheduleEvent.DEACTIVATED:
        payload |= {"scheduleExpression": schedule.expression, "input": {"sellerId": schedule.seller_id}}
    return ScheduleNotice.of(schedule.schedule_id, event, payload, NOON)


@dataclass
class World:
    schedules: Schedules
    fired: Callable[[float], Awaitable[list[str]]]
    """The sellers whose turn it was within so many seconds."""
    rules: EventBridge
    """As `schedules`, where they are EventBridge's."""
    wire: Between
    seller: str


@pytest.fixture
async def aws(aws_server: servers.Aws) -> AsyncIterator[World]:
    number = next(_numbers)
    async with between(aws_server.url) as wire, aws_world.queues(aws_server, SystemClock(), 30, 3) as opened:
        queue = await opened(f"fired-{number}")
        arn = aws_world.arn(queue._live)
        rules = EventBridge(Connection("events", servers.AWS_REGION, wire.url), Target("default", arn))
        await let_ids_come_by_content(aws_server, queue._live)

        async def fired(seconds: float) -> list[str]:
            # Its scheduler looks around ten times a second, at rules whose time has come by its own clock.
            aws_server.advance(seconds)
            found: list[str] = []
            for _ in range(2):
                await SystemClock().sleep(0.1)
                for delivery in await queue.receive(10, 1 if not found else 0):
                    call = called(delivery.body)
                    assert call.trigger_key
                    assert set(delivery.body) == {"sellerId", "triggerKey", "scheduledAt"}
                    found.append(call.seller_id)
                    await queue.ack([delivery.receipt])
            return found

        yield World(rules, fired, rules, wire, f"shop-{number}")
        for rule in await rules.found():
            await rules.remove(rule.name)
        await rules.close()


async def let_ids_come_by_content(server: servers.Aws, name: str) -> None:
    connection = Connection("sqs", servers.AWS_REGION, server.url)
    url = (await connection.call("get_queue_url", QueueName=name))["QueueUrl"]
    await connection.call("set_queue_attributes", QueueUrl=url, Attributes={"ContentBasedDeduplication": "true"})
    await connection.close()


@pytest.fixture(params=["builtin", "eventbridge"])
def schedules(request: pytest.FixtureRequest) -> Any:
    return BuiltinSchedules() if request.param == "builtin" else request.getfixturevalue("aws").schedules


async def test_it_says_whether_it_fires_by_itself(schedules: Schedules) -> None:
    assert schedules.fires_itself is not isinstance(schedules, BuiltinSchedules)


@pytest.mark.parametrize("order", [("REGISTERED",), ("UPDATED",), ("DEACTIVATED",), ("DEACTIVATED", "REGISTERED")])
async def test_lesson_57_every_notice_is_taken_in_any_order_and_as_often_as_it_comes(
    schedules: Schedules, order: tuple[str, ...]
) -> None:
    schedule = schedule_of(f"shop-{next(_numbers)}")
    for name in order * 2:
        await schedules.announce(notice(schedule, ScheduleEvent[name]))


@pytest.mark.slow
async def test_lesson_56_a_rule_fires_once_in_its_interval_and_no_more_when_it_is_gone(aws: World) -> None:
    schedule = schedule_of(aws.seller)
    await aws.schedules.announce(notice(schedule, ScheduleEvent.REGISTERED))
    assert await aws.fired(DAY - 60) == []
    assert await aws.fired(61) == [aws.seller]
    assert await aws.fired(DAY + 1) == [aws.seller]
    await aws.schedules.announce(notice(schedule, ScheduleEvent.DEACTIVATED))
    assert await aws.fired(2 * DAY) == []


async def test_a_rule_and_its_target_are_what_other_programs_see(aws: World) -> None:
    await aws.schedules.announce(notice(schedule_of("d.mont", 2), ScheduleEvent.UPDATED))
    rule = next(asked for operation, asked in aws.wire.asked if operation == "PutRule")
    put = next(asked for operation, asked in aws.wire.asked if operation == "PutTargets")
    assert rule == {
        "Name": "mustit-crawler-d.mont",
        "ScheduleExpression": "rate(2 days)",
        "State": "ENABLED",
        "EventBusName": "default",
    }
    [target] = put["Targets"]
    assert (put["Rule"], target["Id"]) == ("mustit-crawler-d.mont", "crawler")
    assert target["InputTransformer"] == {
        "InputPathsMap": {"id": "$.id", "time": "$.time"},
        "InputTemplate": '{"sellerId": "d.mont", "triggerKey": <id>, "scheduledAt": <time>}',
    }
    assert target["SqsParameters"] == {"MessageGroupId": "mustit-crawler-d.mont"}
    assert "RoleArn" not in target


def test_an_api_destination_has_a_role_and_a_group_is_as_the_setting_says() -> None:
    destination = Target("default", "arn:aws:events:ap-northeast-2:1:api-destination/us/1", "arn:aws:iam::1:role/fires")
    assert destination.of("rule", "dmont")["RoleArn"] == "arn:aws:iam::1:role/fires"
    assert "SqsParameters" not in destination.of("rule", "dmont")
    grouped = Target("default", "arn:aws:sqs:ap-northeast-2:1:triggers.fifo", group_id="all")
    assert grouped.of("rule", "dmont")["SqsParameters"] == {"MessageGroupId": "all"}


async def test_all_rules_of_ours_are_found_page_by_page_and_nobody_elses(aws: World) -> None:
    schedules = [schedule_of(f"{aws.seller}-{number}") for number in range(120)]
    for schedule in schedules:
        await aws.rules.put(aws.rules.right(schedule))
    await aws.rules._connection.call(
        "put_rule", Name="somebody-elses", ScheduleExpression="rate(1 day)", EventBusName="default"
    )
    found = await aws.rules.found()
    assert sorted(found, key=str) == sorted((aws.rules.right(schedule) for schedule in schedules), key=str)
    assert aws.wire.count("ListRules") == 2


FAILED_TARGET = {"FailedEntryCount": 1, "FailedEntries": [{"TargetId": "crawler", "ErrorCode": "LimitExceeded"}]}
THROTTLED_TARGET = {"FailedEntryCount": 1, "FailedEntries": [{"ErrorCode": "ConcurrentModificationException"}]}


@pytest.mark.parametrize(
    ("operation", "fault", "is_waited_for"),
    [
        ("PutRule", ("ThrottlingException",), True),
        ("PutRule", ("ExpiredTokenException", 403), True),
        ("PutTargets", None, True),
        ("PutRule", ("ValidationException",), False),
        ("PutRule", ("LimitExceededException",), False),
        ("PutTargets", ("AccessDeniedException",), False),
        ("PutRule", ("ResourceNotFoundException",), False),
        ("PutTargets", FAILED_TARGET, False),
        ("PutTargets", THROTTLED_TARGET, True),
    ],
)
async def test_it_is_unavailable_when_it_says_later_and_another_trouble_when_it_says_no(
    aws: World, operation: str, fault: Any, is_waited_for: bool
) -> None:
    def fail(asked: str, _parameters: object) -> Any:
        if asked != operation:
            return None
        return DROP if fault is None else answer(fault) if isinstance(fault, dict) else error(*fault)

    aws.wire.fault = fail
    with pytest.raises(Trouble) as raised:
        await aws.schedules.announce(notice(schedule_of(aws.seller), ScheduleEvent.REGISTERED))
    assert isinstance(raised.value, Unavailable) is is_waited_for
    aws.wire.fault = None
    await aws.schedules.announce(notice(schedule_of(aws.seller), ScheduleEvent.REGISTERED))
    assert [rule.name for rule in await aws.rules.found()] == [f"mustit-crawler-{aws.seller}"]


async def test_a_target_that_is_not_removed_is_told(aws: World) -> None:
    schedule = schedule_of(aws.seller)
    await aws.rules.put(aws.rules.right(schedule))
    aws.wire.fault = lambda operation, _: answer(FAILED_TARGET) if operation == "RemoveTargets" else None
    with pytest.raises(Trouble, match="LimitExceeded"):
        await aws.rules.remove(schedule.rule_name)
    aws.wire.fault = None


def test_names_are_within_what_aws_allows() -> None:
    assert len(schedule_of("x" * 64).rule_name) == 64
    assert timedelta(days=schedule_of("x").interval_days) == timedelta(days=1)
