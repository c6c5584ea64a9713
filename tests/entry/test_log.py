"""Logs: no secret gets out, no line can be forged."""

import io
import json
import logging
from typing import Any

import pytest
import structlog

from doors import ShiftedClock, logs
from sellerwatch.settings import Settings, load

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
