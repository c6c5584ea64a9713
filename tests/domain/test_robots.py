"""robots.txt: what an answer tells, how long it holds, and when it is asked for again."""

from datetime import timedelta

import pytest

from builders import NOON
from sellerwatch.domain.robots import TEXT_BYTES_MAX, RobotsFile, told_by

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ORIGIN = "https://market.test"


def a_file() -> RobotsFile:
    return RobotsFile(ORIGIN, NOON)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"User-agent: *\nDisallow: /", "User-agent: *\nDisallow: /"),
        (200, b"", ""),
        (204, b"", ""),
        (400, b"<html>", ""),
        (401, b"no", ""),
        (403, b"no", ""),
        (404, b"no", ""),
        (410, b"no", ""),
        (451, b"no", ""),
        (408, b"", None),
        (429, b"User-agent: *", None),
        (500, b"User-agent: *", None),
        (503, b"", None),
        (304, b"", None),
        (200, b"\xef\xbb\xbfUser-agent: *", "User-agent: *"),
        (200, b"Disallow: /\xff\x00", "Disallow: /\ufffd\ufffd"),
    ],
)
def test_a_file_or_that_there_is_none_is_told_and_a_failure_tells_nothing(
    status: int, body: bytes, told: str | None
) -> None:
    assert told_by(status, body) == told


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_of_a_file_that_is_too_long_the_whole_lines_of_its_beginning_count(end: bytes) -> None:
    line = b"Disallow: /" + b"a" * 100 + end
    text = told_by(200, b"User-agent: *" + end + line * 10_000)
    assert text is not None
    assert TEXT_BYTES_MAX - len(line) < len(text) <= TEXT_BYTES_MAX
    assert text.endswith(line.decode())
    # One line without an end is no rule at all.
    assert told_by(200, b"Disallow: /" * 100_000) == ""


def test_told_it_holds_for_a_day_and_as_the_last_known_for_another() -> None:
    file = a_file()
    assert (file.is_due(NOON), file.holds(NOON)) == (True, False)
    file.tell("Disallow: /", NOON, 0.5)
    assert not file.is_due(NOON + DAY - timedelta(seconds=1))
    assert file.is_due(NOON + DAY)
    file.miss("HTTP 503", NOON + DAY, 0.5)
    assert (file.text, file.problem) == ("Disallow: /", "HTTP 503")
    assert file.holds(NOON + 2 * DAY - timedelta(seconds=1))
    assert not file.holds(NOON + 2 * DAY)
    file.tell("", NOON + 3 * DAY, 0.5)
    assert (file.holds(NOON + 3 * DAY), file.failures, file.problem) == (True, 0, None)


def test_what_can_not_be_had_is_tried_again_less_and_less_often_and_never_seldom() -> None:
    file, at, pauses = a_file(), NOON, []
    for _ in range(12):
        file.miss("TIMEOUT", at, 1.0)
        pauses.append((file.next_at - at).total_seconds())
        at = file.next_at
    assert pauses[:3] == [30, 60, 120]
    assert pauses[-1] == max(pauses) == 600


def test_a_page_takes_the_place_of_a_file_only_where_there_was_none_for_a_day() -> None:
    file = a_file()
    page = "\n <!doctype html><title>Closed</title>"
    file.tell("Disallow: /", NOON, 0.5)
    file.tell(page, NOON + DAY, 0.5)
    assert (file.text, file.failures) == ("Disallow: /", 1)
    file.tell(page, NOON + 2 * DAY, 0.5)
    assert (file.text, file.failures) == (page, 0)
    first = a_file()
    first.tell(page, NOON, 0.5)
    assert first.holds(NOON)
    # And it is looked whether it still does.
    assert first.is_due(NOON + HOUR)


def test_one_at_a_time_asks_and_a_claim_runs_out() -> None:
    file = a_file()
    assert file.claim("one", NOON + HOUR, NOON)
    assert not file.claim("two", NOON + HOUR, NOON)
    assert file.claim("two", NOON + 2 * HOUR, NOON + HOUR)
    file.put_off(NOON + 3 * HOUR)
    assert not file.claim("one", NOON + 4 * HOUR, NOON + HOUR)
    assert file.failures == 0
    assert file.claim("one", NOON + 4 * HOUR, NOON + 3 * HOUR)
