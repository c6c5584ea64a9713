"""Requests checked before anything reads them: what stands in the query, and the body.

Bodies: at most 256 KiB, uncompressed, `application/json`, strict (strict.py); where none is expected, none or `{}`.
Queries: names that the route knows, each once.
"""

from collections.abc import Sequence
from typing import Final

from fastapi import Request
from starlette.types import Message

from sellerwatch.domain.errors import Refused
from sellerwatch.entry.api.strict import strict_json

BODY_MAX: Final = 256 * 1024


class BadRequest(Refused):
    """A request that is not looked at any further, with the status that says why, and the fields that are unknown."""

    def __init__(self, status: int, detail: str, fields: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.status, self.fields = status, tuple(fields)


def check_query(request: Request, known: frozenset[str]) -> None:
    if not request.scope["query_string"]:
        return
    names = [name for name, _ in request.query_params.multi_items()]
    if unknown := dict.fromkeys(name[:100] for name in names if name not in known):
        raise BadRequest(400, "the query has what is not known here", list(unknown)[:50])
    if len(set(names)) < len(names):
        raise BadRequest(400, "the query has a name twice")


def has_body(request: Request) -> bool:
    """Whether one may come: a GET without the headers that announce one has none, and nobody would read it."""
    return request.method != "GET" or "content-length" in request.headers or "transfer-encoding" in request.headers


async def checked(request: Request, *, takes_body: bool) -> Request:
    """The same request, its body read and found to be in order."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise BadRequest(415, "a compressed body is not taken")
    body = await _body(request)
    if body:
        _check_body(request, body, takes_body=takes_body)
    is_told = False

    async def receive() -> Message:
        nonlocal is_told
        if is_told:
            return await request.receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, receive)


async def _body(request: Request) -> bytes:
    told = request.headers.get("content-length", "0")
    if told.isascii() and told.isdigit() and (len(told) > 9 or int(told) > BODY_MAX):
        raise BadRequest(413, f"the body is larger than {BODY_MAX} bytes")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_MAX:
            raise BadRequest(413, f"the body is larger than {BODY_MAX} bytes")
    return bytes(body)


def _check_body(request: Request, body: bytes, *, takes_body: bool) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise BadRequest(415, "the body is not application/json")
    try:
        value = strict_json(body)
    except ValueError as error:
        raise BadRequest(400, f"the body {error}" if _is_ours(error) else "the body is not JSON") from None
    if not takes_body and value != {}:
        named = [name[:100] for name in value][:50] if isinstance(value, dict) else ()
        raise BadRequest(400, "no body is expected here", named)


def _is_ours(error: ValueError) -> bool:
    return type(error) is ValueError
