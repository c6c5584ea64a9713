"""Answers: JSON at once from what a report says, with a tag for those who come again.

Promises: equal content has an equal tag; who names the tag it knows (`If-None-Match`) gets 304 and no body.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

import orjson
from fastapi import Request
from starlette.responses import Response

from sellerwatch.ports.reports import Page

JSON = "application/json"
R = TypeVar("R")


def answer(shape: object, status: int = 200, **headers: str) -> Response:
    return Response(orjson.dumps(shape), status, headers, JSON)


def tagged(request: Request, shape: object) -> Response:
    """One resource: 200 with its tag, or 304 to who has it already."""
    body = orjson.dumps(shape)
    tag = f'"{blake2b(body, digest_size=16).hexdigest()}"'
    # Tags may differ from request to request only by content: whoever asks may see the same.
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if "if-none-match" in request.headers and _knows(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    return Response(body, 200, headers, JSON)


def paged(page: Page[R], shape: Callable[[R], Mapping[str, Any]], **more: object) -> Response:
    return answer(
        {
            "content": [shape(row) for row in page.rows],
            "page": page.page,
            "size": page.size,
            "totalElements": page.total,
            "totalPages": page.pages,
            **more,
        }
    )


def _knows(header: str, tag: str) -> bool:
    known = {each.strip().removeprefix("W/") for each in header[:4000].split(",")}
    return tag in known or "*" in known
