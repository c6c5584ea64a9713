"""Who may do what, cell by cell, and what nobody may say: made from the document, so that a new route is in it."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Route

from described import described
from doors import KEY, Door, door
from sellerwatch.adapters.sql.tables import metadata
from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.api.guard import INTERNAL, ROLES, Guarded, allowed
from sellerwatch.entry.api.tokens import Role

OPEN = {
    *(f"{root}{end}" for root in ("/actuator/health", "/health") for end in ("/ready", "/live")),
    "/actuator/health", "/metrics", "/openapi.json", "/docs",
}  # fmt: skip
OPERATIONS = """
registerSeller listSellers showSeller changeInterval activateSeller deactivateSeller crawlSeller listExecutions
showExecution listTasks cancelExecution showCrawling listProducts showProduct listChanges showPool listUserAgents
suspendUserAgent recoverUserAgent blockUserAgent unblockUserAgent listOutbox retryOutbox listDeadLetters
redriveDeadLetters triggerCrawling health healthReady healthLive ready live metrics
explainSeller explainTask explainIdentity listQuarantines showQuarantine releaseQuarantine discardQuarantine
releaseOutbox discardOutbox confirmDelisting
"""
COLUMNS = sorted({column.name for table in metadata.tables.values() for column in table.c})
FORBIDDEN = [
    *COLUMNS,
    "id",
    "status",
    "role",
    "__class__",
    "__proto__",
    "constructor",
    "isAdmin",
    "totalProductCount",
    "",
]


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        yield opened


def operations(app: FastAPI) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described(app)["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), re.sub(r"\{\w+\}", "0", path), operation


async def test_every_route_has_a_policy(at: Door) -> None:
    assert at.app.routes
    for route in at.app.routes:
        assert isinstance(route, Guarded), route
        assert bool(allowed(route)) is (route.path not in OPEN)


def test_a_route_without_a_policy_is_not_built() -> None:
    app = FastAPI(openapi_url=None)
    app.router.route_class = Guarded

    async def forgotten() -> None: ...

    with pytest.raises(Invalid, match="policy"):
        app.get("/forgotten")(forgotten)


async def test_a_plain_route_would_be_noticed(at: Door) -> None:
    at.app.router.routes.append(Route("/plain", lambda _: None))
    with pytest.raises(AssertionError):
        await test_every_route_has_a_policy(at)


async def test_the_names_of_the_operations_stay(at: Door) -> None:
    names = [operation["operationId"] for _, _, operation in operations(at.app)]
    assert len(set(names)) == len(names)
    assert set(OPERATIONS.split()) <= set(names)


async def test_writing_is_for_administrators_and_machines(at: Door) -> None:
    for method, path, operation in operations(at.app):
        if method != "GET":
            assert operation[ROLES] in (["ADMIN"], [INTERNAL]), path
        assert operation["security"] == ([] if path in OPEN else [{"key" if "internal" in path else "bearer": []}])


async def test_who_may_do_what_is_what_the_document_says(at: Door) -> None:
    """Every credential at every operation; the ids are of nobody, so that who may come in is told 400 or 404."""
    cells = 0
    bearers = {role.value: {"token": at.token(role)} for role in Role}
    credentials: dict[str, dict[str, str]] = {
        "": {"token": ""},
        **bearers,
        INTERNAL: {"token": "", "key": KEY},
        "a wrong key": {"token": "", "key": "swk_wrong"},
        "a forged token": {"token": at.token()[:-4] + "AAAA"},
    }
    for method, path, operation in operations(at.app):
        takers = set(operation[ROLES])
        for name, credential in credentials.items():
            at.clock.ahead += type(at.clock.ahead)(seconds=5)  # no wrong key is one too many
            answer = await at.call(method, path, {"unknown": 1} if method != "GET" else None, **credential)
            expected = (
                {200, 400, 404} if not takers or name in takers
                else {403} if takers <= bearers.keys() and name in bearers
                else {401}
            )  # fmt: skip
            assert answer.status in expected, (method, path, name)
            if answer.status >= 400:
                assert answer.json()["status"] == answer.status
            cells += 1
    assert cells >= 35 * len(credentials)


async def test_no_route_takes_a_field_that_it_does_not_name(at: Door) -> None:
    schemas = described(at.app)["components"]["schemas"]
    tried = 0
    for method, path, operation in operations(at.app):
        if method == "GET":
            continue
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        known = set(content.get("example", {})) | _names(content.get("schema", {}), schemas)
        credential = {"token": "", "key": KEY} if operation[ROLES] == [INTERNAL] else {"token": at.token()}
        for name in FORBIDDEN:
            if name in known - {"id"}:
                continue
            answer = await at.call(method, path, {**content.get("example", {}), name: "x"}, **credential)
            assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json"), (path, name)
            tried += 1
    assert tried > 1000


def _names(schema: dict[str, Any], schemas: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        return _names(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    within = set[str]().union(*(_names(each, schemas) for each in schema.get("anyOf", ())))
    return within | set(schema.get("properties", ()))


@pytest.mark.parametrize("query", ["?unknown=1", "?page=0&page=0", "?__class__=x", "?seller_id=a", "?status=", "?page"])
async def test_a_query_has_known_names_once_each(at: Door, query: str) -> None:
    answer = await at.call("GET", f"/api/v1/sellers{query}")
    assert answer.status == 400
    assert answer.json()["errorCode"] in {"MALFORMED_REQUEST", "INVALID_INPUT"}
