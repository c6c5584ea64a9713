"""EventBridge fires the triggers: one rule for each seller, with one target.

    SCHEDULE_CREATED, SCHEDULE_UPDATED ─▶ PutRule, PutTargets          SCHEDULE_DELETED ─▶ RemoveTargets, DeleteRule

Promises what ports/outside.py says. The target is told the event's own id and time, which a constant input would not
carry: the id is the trigger key, so that a trigger that comes twice is one. Scheduled rules live on the default bus; AWS
has none on others. A crash between two calls leaves a rule without its target, and the notice is announced again.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from sellerwatch.adapters.aws.channel import FIFO, together
from sellerwatch.adapters.aws.connection import Connection, Forbidden, Missing
from sellerwatch.domain.errors import Trouble, Unavailable
from sellerwatch.domain.outbox import ScheduleNotice
from sellerwatch.domain.schedules import RULE_PREFIX, Rule, Schedule, ScheduleEvent

TARGET_ID: Final = "crawler"
AT_ONCE: Final = 8
"""AWS lets few calls a second through."""
_TARGET: Final = ("Id", "Arn", "RoleArn", "InputTransformer", "SqsParameters")
_THROTTLED: Final = frozenset({"ConcurrentModificationException", "InternalException", "ThrottlingException"})


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rules of a bus put their triggers."""

    bus: str
    arn: str
    role_arn: str | None = None
    group_id: str | None = None

    def of(self, rule_name: str, seller_id: str) -> dict[str, Any]:
        """As PutTargets takes it."""
        target: dict[str, Any] = {"Id": TARGET_ID, "Arn": self.arn}
        if self.role_arn:
            target["RoleArn"] = self.role_arn
        # A placeholder without quotes becomes a JSON string, quotes included.
        template = f'{{"sellerId": "{seller_id}", "triggerKey": <id>, "scheduledAt": <time>}}'
        target["InputTransformer"] = {"InputPathsMap": {"id": "$.id", "time": "$.time"}, "InputTemplate": template}
        if self.arn.endswith(FIFO):
            target["SqsParameters"] = {"MessageGroupId": self.group_id or rule_name}
        return target


class EventBridge:
    """ports.outside.Rules."""

    fires_itself = True

    def __init__(self, connection: Connection, target: Target) -> None:
        self._connection, self._target = connection, target

    async def announce(self, notice: ScheduleNotice) -> None:
        payload = notice.payload
        if notice.event_type is ScheduleEvent.DEACTIVATED:
            await self.remove(payload["ruleName"])
        else:
            name = payload["ruleName"]
            target = _written(self._target.of(name, payload["input"]["sellerId"]))
            await self.put(Rule(name, payload["scheduleExpression"], target))

    def right(self, schedule: Schedule) -> Rule:
        target = self._target.of(schedule.rule_name, schedule.seller_id)
        return Rule(schedule.rule_name, schedule.expression, _written(target))

    async def found(self) -> list[Rule]:
        rules: list[dict[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            page = await self._call("list_rules", NamePrefix=RULE_PREFIX, **more)
            # What AWS keeps for itself is not ours to change, whatever it is called.
            rules += [rule for rule in page.get("Rules", []) if not rule.get("ManagedBy")]
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        turn = asyncio.Semaphore(AT_ONCE)

        async def whole(rule: dict[str, Any]) -> Rule:
            async with turn:
                targets = await self._targets(rule["Name"])
            ours = next((one for one in targets if one["Id"] == TARGET_ID), None)
            return Rule(
                rule["Name"],
                rule.get("ScheduleExpression", ""),
                _written(ours) if ours else "",
                is_enabled=rule.get("State") == "ENABLED",
            )

        return await together(whole(rule) for rule in rules)

    async def put(self, rule: Rule) -> None:
        try:
            await self._call("put_rule", Name=rule.name, ScheduleExpression=rule.expression, State="ENABLED")
            answer = await self._call("put_targets", Rule=rule.name, Targets=[orjson.loads(rule.target)])
        except Missing as missing:
            raise Trouble(f"{missing}: is there a bus {self._target.bus}?") from None
        _check(answer, "target")

    async def remove(self, rule_name: str) -> None:
        try:
            ids = [target["Id"] for target in await self._targets(rule_name)]
            for some in _hundreds(ids):
                _check(await self._call("remove_targets", Rule=rule_name, Ids=some), "removal")
            await self._call("delete_rule", Name=rule_name)
        except Missing:
            return

    async def close(self) -> None:
        await self._connection.close()

    async def _targets(self, rule_name: str) -> list[dict[str, Any]]:
        answer = await self._call("list_targets_by_rule", Rule=rule_name)
        return list(answer.get("Targets", []))

    async def _call(self, operation: str, **parameters: object) -> dict[str, Any]:
        try:
            return await self._connection.call(operation, EventBusName=self._target.bus, **parameters)
        except Forbidden as no:
            # Waiting would not help, and nobody would hear of it.
            raise Trouble(str(no)) from None


def _check(answer: dict[str, Any], what: str) -> None:
    """PutTargets and RemoveTargets succeed and tell of what failed in their answer."""
    if not answer.get("FailedEntryCount"):
        return
    codes = sorted({str(one.get("ErrorCode")) for one in answer.get("FailedEntries", [])})
    trouble = f"EventBridge did not take a {what} ({', '.join(codes)})"
    raise Unavailable(trouble) if set(codes) <= _THROTTLED else Trouble(trouble)


def _written(target: dict[str, Any]) -> str:
    """What of a target is ours to say, always written in the same way."""
    kept = {name: target[name] for name in _TARGET if target.get(name)}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode()


def _hundreds(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + 100] for start in range(0, len(ids), 100))
