"""Every error in one shape, and the one table of status codes.

Promises: `application/problem+json` (RFC 9457) with the fields the operators asked for: type, title, status, detail,
errorCode, message, timestamp, path, errors. `message` is Korean or English after `Accept-Language`. What went wrong
inside is told to nobody outside: no stack, no statement, no file. What can't be read is 400, never 422.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sellerwatch.domain.errors import (
    Conflict,
    Invalid,
    Refused,
    SellerwatchError,
    Unavailable,
    Unknown,
    WrongVerb,
)
from sellerwatch.domain.products import shown_at
from sellerwatch.entry.api.api_keys import NoKey
from sellerwatch.entry.api.bodies import BadRequest
from sellerwatch.entry.api.limits import TooMany
from sellerwatch.entry.api.tokens import NotAllowed, NotAuthenticated
from sellerwatch.entry.api.words import FIELD_WORDS, FORMS, WORDS, Words

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 5
PATH_MAX: Final = 500

STATUS: Final[Mapping[type[Exception], tuple[int, str]]] = {
    Invalid: (400, "INVALID_INPUT"),
    NotAuthenticated: (401, "UNAUTHORIZED"),
    NoKey: (401, "UNAUTHORIZED"),
    NotAllowed: (403, "FORBIDDEN"),
    Unknown: (404, "NOT_FOUND"),
    WrongVerb: (409, "WRONG_STATE"),
    Conflict: (409, "CONFLICT"),
    TooMany: (429, "TOO_MANY_REQUESTS"),
    Refused: (409, "REFUSED"),
    Unavailable: (503, "UNAVAILABLE"),
}
"""What an error of the house is outside; an error's nearest family counts, and none of these is 500."""

HTTP_CODES: Final[Mapping[int, str]] = {
    400: "MALFORMED_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "BODY_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    429: "TOO_MANY_REQUESTS",
    503: "UNAVAILABLE",
}


@dataclass(frozen=True, slots=True)
class Problem:
    status: int
    code: str
    detail: str
    fields: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """(field, kind of mistake, its figures)"""
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    """What is told, where the code alone does not say it."""


def reply(error: Exception, path: str, language: str, at: datetime) -> Response:
    """The answer that tells of this error."""
    problem = problem_of(error)
    korean = speaks_korean(language)
    words = _words(problem)
    body: dict[str, object] = {
        "type": f"urn:sellerwatch:problem:{problem.code.lower().replace('_', '-')}",
        "title": words.title,
        "status": problem.status,
        "detail": problem.detail or words.english,
        "errorCode": problem.code,
        "message": words.korean if korean else words.english,
        "timestamp": shown_at(at),
        "path": path[:PATH_MAX],
        **problem.more,
    }
    if problem.fields:
        body["errors"] = [
            {"field": name, "message": _field_message(kind, figures, is_korean=korean)}
            for name, kind, figures in problem.fields
        ]
    return Response(orjson.dumps(body), problem.status, dict(problem.headers), MEDIA_TYPE)


def problem_of(error: Exception) -> Problem:
    match error:
        case BadRequest():
            no_figures: Mapping[str, Any] = {}
            unknown = tuple((name, "extra_forbidden", no_figures) for name in error.fields)
            return Problem(error.status, HTTP_CODES[error.status], str(error), unknown)
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            code = HTTP_CODES.get(error.status_code, HTTPStatus(error.status_code).name)
            return Problem(error.status_code, code, "", headers=error.headers or {})
        case SellerwatchError():
            return _of_the_house(error)
    return Problem(500, "INTERNAL_ERROR", "")


def speaks_korean(header: str) -> bool:
    """Whether Korean is asked for before English; without a wish it is English."""
    wishes: dict[str, float] = {}
    for part in header[:1000].split(","):
        name, *options = part.strip().split(";")
        quality = next((option.strip()[2:] for option in options if option.strip().startswith("q=")), "1")
        language = name.strip().lower().partition("-")[0]
        wishes.setdefault(language, _quality(quality))
    return wishes.get("ko", 0.0) > wishes.get("en", 0.0)


def _quality(text: str) -> float:
    digits = text.replace(".", "", 1)
    return float(text) if digits.isascii() and digits.isdigit() and len(text) <= 5 else 0.0


def _of_the_house(error: SellerwatchError) -> Problem:
    family = next((each for each in type(error).__mro__ if each in STATUS), None)
    if family is None:
        return Problem(500, "INTERNAL_ERROR", "")
    status, code = STATUS[family]
    match error:
        case Conflict():
            more = {"executionId": error.identity} if error.code == "EXECUTION_IN_PROGRESS" and error.identity else {}
            return Problem(status, error.code, str(error), more=more)
        case Unknown():
            return Problem(status, f"{error.thing.upper().replace(' ', '_')}_NOT_FOUND", str(error))
        case Invalid():
            return Problem(status, code, str(error), ((error.field, "expected", {"expected": error.expected}),))
        case NotAuthenticated():
            return Problem(status, code, str(error), headers={"WWW-Authenticate": 'Bearer realm="sellerwatch"'})
        case NoKey():
            return Problem(status, code, str(error), headers={"WWW-Authenticate": "X-API-Key"}, words="NO_KEY")
        case TooMany():
            return Problem(status, code, str(error), headers={"Retry-After": str(error.retry_after)})
        case Unavailable():
            return Problem(status, code, "", headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
    return Problem(status, code, str(error))


def _invalid(error: RequestValidationError) -> Problem:
    fields = []
    for mistake in error.errors():
        place, *names = mistake["loc"]
        name = ".".join(map(str, names)) or str(place)
        fields.append((name[:100], str(mistake["type"]), mistake.get("ctx") or {}))
    names = ", ".join(name for name, _, _ in fields[:10])
    return Problem(400, "INVALID_INPUT", f"not accepted: {names}", tuple(fields[:50]))


def _words(problem: Problem) -> Words:
    known = WORDS.get(problem.words or problem.code)
    if known is not None:
        return known
    if problem.code.endswith("_NOT_FOUND"):
        return WORDS["NOT_FOUND"]
    general = {409: "CONFLICT", 500: "INTERNAL_ERROR", 503: "UNAVAILABLE"}.get(problem.status, "MALFORMED_REQUEST")
    return WORDS[general]


def _field_message(kind: str, figures: Mapping[str, Any], *, is_korean: bool) -> str:
    english, korean = FIELD_WORDS.get(kind, FIELD_WORDS["other"])
    text = korean if is_korean else english
    if kind == "string_pattern_mismatch":
        figures = {"form": FORMS[figures["pattern"]][is_korean]}
    for name, value in figures.items():
        text = text.replace("{" + name + "}", str(value)[:200])
    return text
