"""How a route is declared: one line for who may come in, what it gives and what it refuses.

Promises: its name in the OpenAPI document is that of its function, in camelCase, and stays; every problem that it can
answer with is told there, with its headers.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from pydantic.alias_generators import to_camel

from sellerwatch.entry.api.guard import policy

F = TypeVar("F", bound=Callable[..., Any])
Json = dict[str, Any]
PROBLEM: Final = "application/problem+json"

GOOD: Final = {200: "so it is", 201: "it is registered", 202: "it has begun"}
DESCRIBED: Final = {
    304: "not modified: what If-None-Match names is what there is",
    400: "invalid input",
    401: "not or wrongly authenticated",
    403: "not allowed",
    404: "no such thing",
    409: "a rule does not allow it",
    413: "the body is too large",
    415: "the body is compressed or not JSON",
    429: "too many requests",
    500: "something went wrong inside",
    503: "something this needs is away",
}
HEADERS: Final = {
    "X-Request-Id": "the request's own, or a new one; it stands in the logs",
    "ETag": "of this content, for If-None-Match",
    "Location": "where it is found",
    "Retry-After": "seconds to wait",
    "WWW-Authenticate": "how to authenticate",
}
_HEADERS_OF: Final = {304: ("ETag",), 401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}
_ALWAYS: Final = frozenset({400, 413, 415, 500})
_GUARDED: Final = _ALWAYS | {401, 403, 429, 503}


def route(
    app: FastAPI,
    method: str,
    path: str,
    allowed: frozenset[str],
    gives: Any,
    *refuses: int,
    status: int = 200,
    tells: tuple[str, ...] = (),
    others: dict[int | str, Json] | None = None,
    answers: type[Response] = JSONResponse,
) -> Callable[[F], F]:
    """`refuses`: beside what every route may answer with. `tells`: headers of the good answer. `others`: answers of
    another kind."""

    def declared(work: F) -> F:
        known = _GUARDED - {403} if allowed == frozenset({"INTERNAL"}) else _GUARDED if allowed else _ALWAYS
        responses: dict[int | str, Json] = {code: problem(code) for code in sorted(known | set(refuses))}
        responses[status] = {"description": GOOD[status], "headers": _headers(*tells)}
        app.add_api_route(
            path,
            work,
            methods=[method],
            status_code=status,
            response_model=gives,
            response_class=answers,
            responses=responses | {code: {**told, "headers": _headers()} for code, told in (others or {}).items()},
            openapi_extra=policy(allowed),
            tags=[_tag(path)],
            name=getattr(work, "__name__", ""),
        )
        return work

    return declared


def problem(status: int) -> Json:
    """How the document tells of an answer that is none of the good ones."""
    told: Json = {"description": DESCRIBED[status], "headers": _headers(*_HEADERS_OF.get(status, ()))}
    if status >= 400:
        told["content"] = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return told


def operation_id(route: APIRoute) -> str:
    return to_camel(route.name)


def _headers(*names: str) -> Json:
    return {
        name: {"description": HEADERS[name], "required": True, "schema": {"type": "string"}}
        for name in ("X-Request-Id", *names)
    }


def _tag(path: str) -> str:
    parts = [part for part in path.split("/") if part and not part.startswith("{")]
    return parts[2] if parts[0] == "api" else "house"
