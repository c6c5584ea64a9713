"""Logs: no secret gets out, no line can be forged."""

import asyncio
import io
import json
import logging
from typing import Any

import pytest
import structlog

from builders import a_task, an_execution
from doors import ShiftedClock, logs
from sellerwatch.domain.tasks import Task
from sellerwatch.domain.traces import root
from sellerwatch.entry.log import _TASK, about
from sellerwatch.settings import Settings, load
from simulation.village import NEVER, a_village
from simulation.virtual import run_virtually

CANARIES: dict[str, Any] = {
    "jwt_secret": "canary-jwt-secret-of-thirty-two-bytes-length",
    "product_server_url": "https://user-facing.example/products",
    "product_server_secret": "whsec_Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5",
    "token_keys": "k1:Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5MTI=",
    "alert_webhook_url": "https://hooks.example/canary-hook",
}
SEALED = "v1.k1." + "A" * 60


def settings_with(**more: object) -> Settings:
    return load(overrides={"database_url": "sqlite://", **CANARIES, **more})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def read(told: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told.getvalue().splitlines()]


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize(
    "secret",
    [
        CANARIES["jwt_secret"],
        CANARIES["product_server_secret"],
        CANARIES["token_keys"],
        CANARIES["token_keys"].partition(":")[2],
        CANARIES["alert_webhook_url"],
        SEALED,
        "Bearer abc.def.ghi",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
        "whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldA==",
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(log_format: str, secret: str) -> None:
    with logs(settings_with(log_format=log_format), ShiftedClock()) as told:
        log = structlog.get_logger(bound=secret)
        spoken = f"said {secret} loud"
        log.info(spoken, value=secret, inside=f"x={secret};", deep={"a": [secret, {"b": secret}]})
        log.info("as a name", **{f"name {secret}": 1})
        log.info("as no text", odd=ValueError(secret), raw=secret.encode())
        logging.getLogger("library").warning("library says %s", secret)
        try:
            raise RuntimeError(f"failed with {secret}")
        except RuntimeError as error:
            log.exception("it failed", error=str(error))
    assert told.getvalue().count("***") >= 8
    assert secret.removeprefix("Bearer ") not in told.getvalue()


def test_a_password_in_an_address_is_hidden() -> None:
    with logs(settings_with(), ShiftedClock()) as told:
        structlog.get_logger().info("connecting to mysql://root:hunter22@db.example/x")
    assert "hunter22" not in told.getvalue()
    assert "db.example" in told.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_line_cannot_be_forged(log_format: str) -> None:
    evil = "x\n12:00:00 info forged\r\x1b[2J\x1b[31m\u202eevil\u2028\x85\x9b31m"
    with logs(settings_with(log_format=log_format), ShiftedClock()) as told:
        structlog.get_logger().info(evil, name=evil, **{evil: evil})
    (line,) = told.getvalue().splitlines()
    assert not any(mark in line for mark in "\r\x1b\u202e\u2028\x85\x9b")


def test_a_stack_cannot_forge_a_line_either() -> None:
    with logs(settings_with(log_format="console"), ShiftedClock()) as told:
        try:
            raise ValueError("x\n12:00:00 info     forged")
        except ValueError:
            structlog.get_logger().exception("broken")
    assert not any(line.startswith("12:00:00") for line in told.getvalue().splitlines()[1:])


def test_json_is_one_object_a_line_with_time_and_level_first() -> None:
    with logs(settings_with(), ShiftedClock()) as told:
        structlog.get_logger().warning("seen", items=3, seller="a b")
    (event,) = read(told)
    assert list(event)[:3] == ["at", "level", "event"]
    assert (event["level"], event["event"], event["items"], event["seller"]) == ("warning", "seen", 3, "a b")
    assert event["at"].endswith("Z")


def test_a_terminal_is_spoken_to_in_colour_and_a_file_in_json() -> None:
    with logs(settings_with(), ShiftedClock(), Terminal()) as told:
        structlog.get_logger().info("hello")
    assert "\x1b[" in told.getvalue()
    with logs(settings_with(), ShiftedClock()) as told:
        structlog.get_logger().info("hello")
    assert read(told)[0]["event"] == "hello"


def test_the_level_is_kept_by_libraries_too() -> None:
    with logs(settings_with(log_level="warning"), ShiftedClock()) as told:
        structlog.get_logger().info("quiet")
        logging.getLogger("library").info("quiet")
        logging.getLogger("library").error("loud")
    assert [event["event"] for event in read(told)] == ["loud"]


def test_libraries_that_talk_much_are_heard_from_warnings_on() -> None:
    with logs(settings_with(log_level="debug"), ShiftedClock()) as told:
        logging.getLogger("uvicorn.error").info("Started server process")
    assert told.getvalue() == ""


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize(
    "hidden",
    ["\u200b", "\u061c", "\u202e", "\u2066", "\ufeff", "\xad", "\U000e0041", "\ud800", "\x1b]0;owned\x07", "\x7f"],
)
def test_what_cannot_be_seen_is_written_out(log_format: str, hidden: str) -> None:
    with logs(settings_with(log_format=log_format), ShiftedClock()) as told:
        structlog.get_logger().info("a name", name=f"Mai{hidden}son")
    (line,) = told.getvalue().splitlines()
    assert not set(hidden) & set(line) - set("]0;owned")
    assert "\\" in line


def test_on_a_terminal_a_value_cannot_pose_as_another() -> None:
    with logs(settings_with(log_format="console"), ShiftedClock()) as told:
        structlog.get_logger().info("renamed", name='x" level=error task_id="t-1', short="a=b", plain="shop-1")
    assert told.getvalue().rstrip().endswith(r'renamed  name="x\" level=error task_id=\"t-1" short="a=b" plain=shop-1')


async def test_each_line_of_a_task_says_of_which_task_seller_and_trace_it_is() -> None:
    """Ours and a library's; of what is worked on at the same time each its own, and what is about no task none."""
    tasks = [a_task(number, execution=an_execution(f"shop-{number}")) for number in (1, 2)]

    async def work(task: Task) -> None:
        about(task)
        structlog.get_logger().info("ours")
        await asyncio.gather(asyncio.to_thread(logging.getLogger("library").warning, "theirs"))
        structlog.get_logger().info("told", seller_id="another")

    with logs(settings_with(), ShiftedClock()) as told:
        await asyncio.gather(*(asyncio.create_task(work(task)) for task in tasks))
        structlog.get_logger().info("nobody's")
    lines = read(told)
    for task in tasks:
        its = [line for line in lines if line.get("task_id") == task.task_id]
        assert [line["event"] for line in its] == ["ours", "theirs", "told"]
        assert {line["trace_id"] for line in its} == {root(task.task_id)[3:35]}
        assert [line["seller_id"] for line in its] == [task.seller_id, task.seller_id, "another"]
    assert "task_id" not in lines[-1]


def test_whatever_is_done_for_a_task_is_done_under_its_name() -> None:
    async def story() -> None:
        async with a_village(231, {"shops": {"a": 4}, "rates": {"error": 20}}, sweep_seconds=NEVER) as village:
            send = village.transport.send
            asked: list[bool] = []

            async def noted(url: str, headers: Any, **how: Any) -> Any:
                task = _TASK.get()
                if task:
                    asked.append(url == task.request_url or url.endswith("/"))
                return await send(url, headers, **how)

            village.transport.send = noted  # type: ignore[method-assign]
            await village.register("a")
            await village.crawl("a", 20_000)
            assert len(asked) >= 9
            assert all(asked)

    run_virtually(story())
