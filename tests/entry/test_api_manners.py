"""What holds for every route: who may come in, bodies, errors of one shape, headers, the reference."""

import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from doors import Door, call, door
from sellerwatch.domain.errors import (
    Conflict,
    Invalid,
    Refused,
    Trouble,
    Unavailable,
    Unknown,
    Unreadable,
    WrongVerb,
)
from sellerwatch.entry.api import problems
from sellerwatch.entry.api.bodies import BODY_MAX
from sellerwatch.entry.api.metrics import watched
from sellerwatch.entry.api.tokens import NotAllowed, NotAuthenticated
from sellerwatch.entry.metrics import Metrics

PROBLEM = ["type", "title", "status", "detail", "errorCode", "message", "timestamp", "path"]
SELLERS = "/api/v1/sellers"


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        yield opened


async def test_who_it_is_is_asked_before_the_body_is_looked_at(at: Door) -> None:
    answer = await at.call("POST", SELLERS, raw=b"{", token="")
    assert answer.status == 401


INDECENT = [
    b"{",
    b"nothing",
    b'{"sellerId": "a", "sellerId": "b", "name": "A"}',
    b'{"sellerId": "a", "name": "A", "crawlingIntervalDays": NaN}',
    b'{"sellerId": "a", "name": "A", "crawlingIntervalDays": Infinity}',
    b'{"sellerId": "a", "name": "A", "crawlingIntervalDays": 1e999}',
    b'{"sellerId": "a", "name": "A", "crawlingIntervalDays": ' + b"1" * 200_000 + b"}",
    b'{"sellerId": "a", "name": "\\ud800"}',
    b'{"sellerId": "a", "name": "\xff"}',
    b"[" * 100_000 + b"]" * 100_000,
    b"[" * 40 + b"]" * 40,
    b"{" + b'"a":{' * 50 + b"}" * 51,
    b"\xef\xbb\xbf{}",
    b"[]",
    b'"a"',
    b"null",
    b"7",
]


async def test_a_body_that_is_no_decent_object_is_400(at: Door) -> None:
    for body in INDECENT:
        answer = await at.call("POST", SELLERS, raw=body)
        told = (answer.status, answer.headers["content-type"])
        assert told == (400, problems.MEDIA_TYPE), body[:80]


async def test_a_body_has_a_size(at: Door) -> None:
    name = json.dumps("x" * BODY_MAX).encode()
    for headers in ([], [("content-length", str(BODY_MAX + 1))], [("content-length", "9" * 30)]):
        answer = await at.call("POST", SELLERS, raw=b'{"name":' + name + b"}", headers=headers)
        assert (answer.status, answer.json()["errorCode"]) == (413, "BODY_TOO_LARGE")


NOT_PLAIN = [
    ("content-encoding", "gzip"),
    ("content-encoding", "br"),
    ("content-encoding", "identity, gzip"),
    ("content-type", "text/plain"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", ""),
]


async def test_a_body_that_is_not_plain_json_is_415(at: Door) -> None:
    for header in NOT_PLAIN:
        answer = await at.call("POST", SELLERS, {"sellerId": "a", "name": "A"}, headers=[header])
        assert (answer.status, answer.json()["errorCode"]) == (415, "UNSUPPORTED_MEDIA_TYPE"), header


async def test_json_may_name_its_charset(at: Door) -> None:
    headers = [("content-type", "application/json; charset=utf-8"), ("content-encoding", "identity")]
    answer = await at.call("POST", SELLERS, {"sellerId": "a", "name": "A"}, headers=headers)
    assert answer.status == 201


async def test_every_error_has_the_same_fields(at: Door) -> None:
    for method, path, body, status in [
        ("GET", "/nowhere", None, 404),
        ("PUT", SELLERS, None, 405),
        ("PUT", f"{SELLERS}/a/crawl", None, 405),
        ("POST", SELLERS, {}, 400),
        ("POST", f"{SELLERS}/a/crawl", None, 404),
    ]:
        answer = await at.call(method, path, body)
        problem = answer.json()
        assert answer.status == status == problem["status"]
        assert list(problem)[:8] == PROBLEM
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem["path"] == path
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", problem["timestamp"])
        assert problem["type"].startswith("urn:sellerwatch:problem:")
    assert (await at.call("PUT", SELLERS)).headers["allow"] == "GET, POST"


async def test_the_small_door_of_a_worker_tells_errors_like_the_large_one(at: Door) -> None:
    small = watched(at.house, Metrics())
    for method, path, status, language in [("GET", "/nope", 404, "en"), ("POST", "/metrics", 405, "ko")]:
        answer = await call(small, method, path, [("accept-language", language)])
        large = await at.call(method, path, headers=[("accept-language", language)], token="")
        problem, other = answer.json(), large.json()
        assert answer.status == status == problem["status"]
        assert answer.headers["content-type"] == problems.MEDIA_TYPE
        assert {**problem, "timestamp": ""} == {**other, "timestamp": ""}
        assert answer.headers.get("allow") == large.headers.get("allow") == ("GET" if status == 405 else None)


async def test_a_pattern_is_told_in_words(at: Door) -> None:
    for language, name, seller in [
        ("en", "is not more than blanks", "is not 1 to 64 of A-Z a-z 0-9 . _ -"),
        (
            "ko",
            "형식이 올바르지 않습니다 (공백만으로는 안 됩니다)",
            "형식이 올바르지 않습니다 (A-Z a-z 0-9 . _ - 1~64자)",
        ),
    ]:
        answer = await at.call(
            "POST", SELLERS, {"sellerId": "a b", "name": "  "}, headers=[("accept-language", language)]
        )
        assert [error["message"] for error in answer.json()["errors"]] == [seller, name]


async def test_who_comes_without_a_good_key_is_told_of_keys(at: Door) -> None:
    answer = await at.call("POST", "/api/internal/crawling/trigger", {"sellerId": "a"}, token="", key="wrong")
    assert (answer.status, answer.json()["message"]) == (401, "A valid API key is required.")
    assert (await at.call("GET", SELLERS, token="")).json()["message"] == "A valid access token is required."


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Invalid("name", "", "1 to 200 characters"), 400, "INVALID_INPUT"),
        (NotAuthenticated(), 401, "UNAUTHORIZED"),
        (NotAllowed(), 403, "FORBIDDEN"),
        (Unknown("seller", "a"), 404, "SELLER_NOT_FOUND"),
        (Unknown("outbox row", "a"), 404, "OUTBOX_ROW_NOT_FOUND"),
        (WrongVerb("execution", "1", "COMPLETED", "fail"), 409, "WRONG_STATE"),
        (Conflict("SELLER_INACTIVE", "seller a is INACTIVE"), 409, "SELLER_INACTIVE"),
        (Conflict("SOMETHING_NEW", "so it is"), 409, "SOMETHING_NEW"),
        (Refused("no"), 409, "REFUSED"),
        (Unavailable("mysql://user:secret@host is away"), 503, "UNAVAILABLE"),
        (Unreadable("/srv/file", "broken"), 500, "INTERNAL_ERROR"),
        (Trouble("SELECT * FROM sellers"), 500, "INTERNAL_ERROR"),
        (RuntimeError("Traceback in /srv/house.py"), 500, "INTERNAL_ERROR"),
    ],
)
def test_one_table_says_which_status_an_error_has(at_once: Any, error: Exception, status: int, code: str) -> None:
    answer = problems.reply(error, "/x", "", at_once)
    problem = json.loads(bytes(answer.body))
    assert (answer.status_code, problem["errorCode"]) == (status, code)
    if status >= 500:
        assert str(error) not in bytes(answer.body).decode()
    assert ("retry-after" in answer.headers) is (status == 503)


@pytest.fixture
def at_once() -> Any:
    return datetime(2026, 11, 18, tzinfo=UTC)


@pytest.mark.slow
async def test_what_nobody_foresaw_is_500_without_inner_details(at: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: object) -> None:
        raise ZeroDivisionError("at /srv/secret/path.py")

    monkeypatch.setattr(type(at.house.reports), "execution", lambda *_: broken(None))
    answer = await at.call("GET", "/api/v1/executions/019a0000-0000-7000-8000-000000000000")
    assert (answer.status, answer.json()["errorCode"]) == (500, "INTERNAL_ERROR")
    assert b"srv" not in answer.body
    assert answer.headers["x-content-type-options"] == "nosniff"


LANGUAGES = [
    ("", False),
    ("ko", True),
    ("ko-KR,ko;q=0.9,en;q=0.8", True),
    ("en-US,en;q=0.9,ko;q=0.8", False),
    ("en;q=0.1,ko;q=0.2", True),
    ("ko;q=0", False),
    ("fr", False),
    ("fr,ko;q=0.1", True),
    ("*", False),
    ("ko;q=x", False),
    ("," * 5000, False),
]


async def test_messages_are_in_the_language_that_was_asked_for(at: Door) -> None:
    for header, korean in LANGUAGES:
        answer = await at.call("POST", SELLERS, {"sellerId": "a"}, headers=[("accept-language", header)])
        problem = answer.json()
        assert ("필수" in problem["errors"][0]["message"]) is korean, header
        assert ("올바르지" in problem["message"]) is korean, header


async def test_every_answer_wears_the_headers(at: Door) -> None:
    for method, path in [("GET", "/docs"), ("GET", "/nowhere"), ("GET", "/actuator/health"), ("POST", SELLERS)]:
        answer = await at.call(method, path)
        for name in ("x-content-type-options", "content-security-policy", "referrer-policy", "cache-control"):
            assert name in answer.headers, (path, name)
        assert "access-control-allow-origin" not in answer.headers


async def test_other_origins_are_not_let_in(at: Door) -> None:
    answer = await at.call("OPTIONS", SELLERS, headers=[("origin", "https://evil.example")])
    assert answer.status == 405
    assert "access-control-allow-origin" not in answer.headers


async def test_the_document_is_openapi_31_and_knows_no_422(at: Door) -> None:
    document = (await at.call("GET", "/openapi.json", token="")).json()
    assert document["openapi"] == "3.1.0"
    assert '"422"' not in json.dumps(document)
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert references <= document["components"]["schemas"].keys()
    crawl = document["paths"]["/api/v1/sellers/{sellerId}/crawl"]["post"]
    assert {"202", "401", "403", "404", "409"} <= crawl["responses"].keys()


async def test_the_reference_loads_nothing_from_anywhere(at: Door) -> None:
    page = (await at.call("GET", "/docs", token="")).body.decode()
    assert "/api/v1/sellers/{sellerId}/crawl" in page
    assert "crawlingIntervalDays" in page
    assert "`" not in page
    assert "<code>crawlNow</code>" in page
    assert not re.search(r"<script|<link|<img|https?://|@import|url\(", page)


async def test_the_pages_style_is_what_its_policy_allows(at: Door) -> None:
    answer = await at.call("GET", "/docs", token="")
    style = re.search(r"<style>(.*?)</style>", answer.body.decode(), re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in answer.headers["content-security-policy"]


async def test_health_says_what_it_looked_at(at: Door) -> None:
    for path in ("/actuator/health", "/actuator/health/ready"):
        answer = await at.call("GET", path, token="")
        assert answer.status == 200
        assert answer.json() == {
            "status": "UP",
            "components": {name: {"status": "UP"} for name in ("database", "pool", "queue")},
        }
    assert (await at.call("GET", "/actuator/health/live", token="")).json() == {"status": "UP"}


async def test_health_is_looked_at_once_a_second_and_comes_back_by_itself(
    at: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    depth = type(at.house.queue).depth
    is_away = True

    async def counted(queue: Any) -> Any:
        nonlocal looks
        looks += 1
        if is_away:
            raise Unavailable("mysql://root:secret@host is away")
        return await depth(queue)

    monkeypatch.setattr(type(at.house.queue), "depth", counted)
    for _ in range(20):
        answer = await at.call("GET", "/actuator/health", token="")
        assert (answer.status, answer.json()["status"]) == (503, "DOWN")
        assert b"secret" not in answer.body
    assert looks == 1
    assert (await at.call("GET", "/actuator/health/live", token="")).status == 200
    is_away = False
    await at.clock.sleep(1.1)
    assert (await at.call("GET", "/actuator/health", token="")).status == 200
    assert looks == 2


async def test_a_database_of_another_version_is_down(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        at.house.database.engine.dispose()
        (tmp_path / "house.db").unlink()
        answer = await at.call("GET", "/actuator/health/ready", token="")
        assert answer.status == 503
        assert answer.json()["components"]["database"]["status"] == "DOWN"
