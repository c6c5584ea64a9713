"""`queue setup`, `schedule sync` and what the doctor says of both."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

import servers
from desk import Desk
from sellerwatch.domain.schedules import ScheduleStatus

_numbers = count(1)


@pytest.fixture
def aws(aws_server: servers.Aws) -> Iterator[dict[str, str]]:
    """Settings of queues that nobody else has; what rules there are is forgotten."""
    number, endpoint = next(_numbers), quote(aws_server.url, safe="")
    arn = f"arn:aws:sqs:{servers.AWS_REGION}:{servers.AWS_ACCOUNT}:Triggers-{number}.fifo"
    yield {
        "SELLERWATCH_QUEUE_URL": f"sqs:///Tasks-{number}.fifo?endpoint={endpoint}",
        "SELLERWATCH_TRIGGER_QUEUE_URL": f"sqs:///Triggers-{number}.fifo?endpoint={endpoint}",
        "SELLERWATCH_SCHEDULE_URL": f"eventbridge:///default?endpoint={endpoint}&target_arn={quote(arn, safe='')}",
    }
    aws_server.forget()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.furnished(tmp_path)


def test_queue_setup_shows_its_plan_makes_the_queues_once_and_then_finds_nothing_to_do(
    desk: Desk, aws: dict[str, str]
) -> None:
    said = desk.type("queue", "setup", "--dry-run", **aws)
    assert (said.exit_code, len(said.out.splitlines())) == (0, 5)
    assert said.out.count("is missing") == 4
    assert desk.type("queue", "setup", "--dry-run", **aws).out == said.out
    assert "4 things mended" in desk.type("queue", "setup", **aws).out
    assert desk.type("queue", "setup", **aws).out == "the queues are as they should be\n"
    changed = desk.type("queue", "setup", "--json", "--dry-run", **aws, SELLERWATCH_CLAIM_SECONDS="45").json
    assert [(one["said"], one["mended"]) for one in changed] == [("visibility is 30 s, should be 45 s", False)] * 2
    assert desk.type("queue", "setup").out == "the queue is in the database: there is nothing to set up\n"


def test_schedule_sync_repairs_in_both_directions_and_then_finds_nothing_to_do(desk: Desk, aws: dict[str, str]) -> None:
    desk.type("queue", "setup", **aws)
    for seller_id in ("dmont", "other", "gone"):
        desk.type("seller", "add", seller_id, "--name", seller_id, **aws)
    said = desk.type("schedule", "sync", "--dry-run", **aws)
    assert (said.exit_code, said.out.count("is missing")) == (0, 3)
    assert "3 things mended" in desk.type("schedule", "sync", **aws).out
    assert desk.type("schedule", "sync", **aws).out == "EventBridge has the rules that the schedules want\n"
    desk.type("seller", "interval", "dmont", "3", **aws)
    desk.type("seller", "deactivate", "gone", **aws)
    elsewhere = aws | {"SELLERWATCH_SCHEDULE_URL": aws["SELLERWATCH_SCHEDULE_URL"] + "&group_id=all"}
    said = desk.type("schedule", "sync", "--dry-run", **elsewhere)
    assert said.out.splitlines()[:3] == [
        "mustit-crawler-dmont: fires at rate(1 day), not rate(3 days)",
        "mustit-crawler-gone: belongs to no active seller",
        "mustit-crawler-other: has another target",
    ]
    assert "rules           3 rules of EventBridge not as it should be" in desk.type("doctor", **elsewhere).out
    desk.type("schedule", "sync", **elsewhere)
    assert desk.type("schedule", "sync", "--json", **elsewhere).json == []
    assert desk.type("schedule", "sync").out == "the schedule is built in: there is nothing to bring in line\n"


def test_schedule_sync_makes_a_schedule_that_was_given_up_active_again(desk: Desk, aws: dict[str, str]) -> None:
    desk.type("queue", "setup", **aws)
    seller_id = "dmont"
    desk.type("seller", "add", seller_id, "--name", "D. Mont", **aws)

    def give_up(unit) -> None:
        schedule = unit.schedules.lock(seller_id)
        schedule.give_up(schedule.created_at)
        unit.schedules.save(schedule)

    desk.type("schedule", "sync", **aws)
    desk.plant(give_up)
    assert "is right, but its schedule is still FAILED" in desk.type("schedule", "sync", **aws).out
    status = desk.plant(lambda unit: unit.schedules.of_seller(seller_id).status)
    assert status is ScheduleStatus.ACTIVE


def test_the_doctor_names_what_is_missing_and_what_mends_it(desk: Desk, aws: dict[str, str]) -> None:
    said = desk.type("doctor", **aws)
    assert said.exit_code == 1
    assert said.out.count("is missing: a FIFO queue is to be made") == 4
    assert "sellerwatch queue setup" in said.out
    desk.type("queue", "setup", **aws)
    assert "Tasks-" in (said := desk.type("doctor", **aws)).out
    assert "0 waiting, 0 out, 0 dead letters" in said.out
    away = {name: text.replace("127.0.0.1%3A", "127.0.0.1%3A1") for name, text in aws.items()}
    said = desk.type("doctor", **{name: text for name, text in away.items() if name == "SELLERWATCH_QUEUE_URL"})
    assert said.exit_code == 1
