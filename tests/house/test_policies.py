"""docs/aws.md lets each process do what it asks of SQS and EventBridge, and nothing else.

Which verbs of a port a process uses stands in its flows; what a verb asks of AWS is seen by an AWS that answers from a
table and notes who asked for what.
"""

import ast
import fnmatch
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from builders import NOON
from contracts.pool_world import FakeClock
from sellerwatch.adapters.aws import channel, eventbridge, layout
from sellerwatch.adapters.aws.eventbridge import EventBridge, Target
from sellerwatch.adapters.aws.layout import SqsLayout
from sellerwatch.adapters.aws.sqs import Queues, SqsQueue
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.domain.outbox import ScheduleNotice
from sellerwatch.domain.schedules import ScheduleEvent
from sellerwatch.ports.queue import Outgoing

ROOT = Path(__file__).parents[2]
FLOWS = ROOT / "src" / "sellerwatch" / "flows"
TASKS, TRIGGERS = (
    ("mustit-crawler-tasks.fifo", "mustit-crawler-tasks-dlq.fifo"),
    (
        "mustit-crawler-triggers.fifo",
        "mustit-crawler-triggers-dlq.fifo",
    ),
)
QUEUE = "arn:aws:sqs:ap-northeast-2:ACCOUNT:"
RULE = "arn:aws:events:ap-northeast-2:ACCOUNT:rule/"
RULE_NAME = "mustit-crawler-dmont"
RECEIVES_MAX = 3
LETTER = "0" * 36
Permission = tuple[str, str]
"""Action and resource."""


class Noting:
    """As a `Connection`: every queue holds one message, received so often, and takes everything."""

    def __init__(self, asked: set[Permission], receives: int = 1) -> None:
        self.asked, self.receives = asked, receives

    async def call(self, operation: str, **given: Any) -> dict[str, Any]:
        name = given.get("QueueName") or given.get("QueueUrl", "")
        rule = given.get("Name") or given.get("Rule")
        service = "sqs" if name else "events"
        verb = "".join(word.title() for word in operation.removesuffix("_batch").split("_"))
        self.asked.add((f"{service}:{verb}", QUEUE + name if name else RULE + rule if rule else "*"))
        entries = [{"Id": one["Id"]} for one in given.get("Entries", [])]
        message = {
            "MessageId": LETTER,
            "ReceiptHandle": "handle",
            "Body": '{"taskId": "1"}',
            "Attributes": {"ApproximateReceiveCount": str(self.receives), "MessageGroupId": "g"},
        }
        answers: dict[str, dict[str, Any]] = {
            "get_queue_url": {"QueueUrl": name},
            "receive_message": {"Messages": [message]},
            "get_queue_attributes": {"Attributes": {"QueueArn": QUEUE + name}},
            "list_rules": {"Rules": [{"Name": RULE_NAME}]},
            "list_targets_by_rule": {"Targets": [{"Id": "crawler", "Arn": "a"}]},
        }
        return answers.get(operation, {"Successful": entries})

    async def close(self) -> None: ...


def queue(asked: set[Permission], names: tuple[str, str], receives: int) -> SqsQueue:
    clock = FakeClock()
    return SqsQueue(Noting(asked, receives), clock, SeededChance(1), AsyncBell(clock), Queues(*names), 30, RECEIVES_MAX)  # type: ignore[arg-type]


async def held(its: SqsQueue) -> str:
    return (await its.receive(1, 0))[0].receipt


async def _ack(its: SqsQueue) -> None:
    await its.ack([await held(its)])


async def _nack(its: SqsQueue) -> None:
    await its.nack(await held(its), 5)


async def _give_back(its: SqsQueue) -> None:
    await its.give_back([await held(its)])


async def _extend(its: SqsQueue) -> None:
    await its.extend([await held(its)], 30)


async def _bury(its: SqsQueue) -> None:
    await its.bury(await held(its), "why")


VERBS: dict[str, Callable[[SqsQueue], Awaitable[object]]] = {
    "send": lambda its: its.send([Outgoing({}, "g", "d", {})]),
    "receive": lambda its: its.receive(1, 0),
    "ack": _ack,
    "nack": _nack,
    "give_back": _give_back,
    "extend": _extend,
    "bury": _bury,
    "depth": lambda its: its.depth(),
    "missing": lambda its: its.missing(["1"]),
    "dead_letters": lambda its: its.dead_letters(1),
    "redrive": lambda its: its.redrive([LETTER]),
    "drop_dead": lambda its: its.drop_dead([LETTER]),
}


def verbs(*flows: str) -> set[str]:
    """What these flows ask of their queue; health and metrics of every process ask how deep it is."""
    return {verb for flow in flows for verb in re.findall(r"queue\.(\w+)\(", (FLOWS / f"{flow}.py").read_text())}


USED = {
    "worker": {TASKS: {"depth", *verbs("crawl")}},
    "scheduler": {TASKS: {"depth", *verbs("relay", "heal")}, TRIGGERS: verbs("trigger")},
    "api": {TASKS: {"depth", *verbs("repair", "explain")}},
}


async def asked_by(role: str) -> set[Permission]:
    asked: set[Permission] = set()
    for names, used in USED[role].items():
        for verb in used:
            for receives in (1, RECEIVES_MAX):
                await VERBS[verb](queue(asked, names, receives))
    if role == "scheduler":
        rules = EventBridge(Noting(asked), Target("default", QUEUE + TRIGGERS[0], None, None))  # type: ignore[arg-type]
        for event in ScheduleEvent:
            payload = {"ruleName": RULE_NAME, "scheduleExpression": "rate(1 day)", "input": {"sellerId": "dmont"}}
            await rules.announce(ScheduleNotice.of("1", event, payload, NOON))
    return asked


async def asked_by_the_operator() -> set[Permission]:
    """What the commands ask besides."""
    asked: set[Permission] = set()
    for names, bus in ((TASKS, None), (TRIGGERS, "default")):
        its = SqsLayout(Noting(asked), Queues(*names), 30, 3, takes_from_bus=bus)  # type: ignore[arg-type]
        for deviation in await its.deviations():
            await its.mend(deviation)
    await EventBridge(Noting(asked), Target("default", "a", None, None)).found()  # type: ignore[arg-type]
    return asked


def policies() -> dict[str, set[Permission]]:
    page = (ROOT / "docs" / "aws.md").read_text(encoding="utf-8")
    found = re.findall(r"^\*\*(\w+)\*\*.*?```json\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    return {
        role: {
            (action, statement["Resource"])
            for statement in json.loads(text)["Statement"]
            for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        }
        for role, text in found
    }


def forbidden(asked: set[Permission], allowed: set[Permission]) -> set[Permission]:
    return {
        (action, where)
        for action, where in asked
        if not any(action == may and fnmatch.fnmatchcase(where, on) for may, on in allowed)
    }


def needless(asked: set[Permission], allowed: set[Permission]) -> set[Permission]:
    return {
        (may, on)
        for may, on in allowed
        if not any(action == may and fnmatch.fnmatchcase(where, on) for action, where in asked)
    }


@pytest.mark.parametrize("role", USED)
async def test_a_process_may_do_what_it_asks_and_no_more(role: str) -> None:
    asked, allowed = await asked_by(role), policies()[role]
    assert forbidden(asked, allowed) == set()
    assert needless(asked, allowed) == set()


async def test_the_operator_may_make_what_is_missing_and_look_at_everything() -> None:
    asked, known = await asked_by_the_operator(), policies()
    assert forbidden(asked, known["operator"] | known["scheduler"]) == set()


def test_everything_the_adapters_can_ask_for_was_seen_here() -> None:
    """No operation comes to be that no policy was held against."""
    named: set[str] = set()
    for module in (channel, eventbridge, layout):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                named |= {
                    argument.value
                    for argument in node.args[:1]
                    if node.func.attr in {"call", "_call", "_by_tens"} and isinstance(argument, ast.Constant)
                }
    allowed = {action.partition(":")[2] for one in policies().values() for action, _ in one}
    assert len(named) >= 13
    assert {"".join(word.title() for word in one.removesuffix("_batch").split("_")) for one in named} == allowed
