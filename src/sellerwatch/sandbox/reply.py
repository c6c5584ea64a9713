"""What the sandbox answers, before any transport."""

from dataclasses import dataclass, field
from email.utils import formatdate

import orjson

JSON = "application/json;charset=UTF-8"
HTML = "text/html;charset=UTF-8"


@dataclass(slots=True)
class Reply:
    """One answer. `delay`: seconds to wait before it. `drop`: the connection ends here.

    A dropped reply whose body is not empty is sent as far as it goes, under the `content-length` in its headers; one with
    an empty body is not sent at all.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    delay: float = 0.0
    drop: bool = False


def json_reply(document: object, status: int = 200) -> Reply:
    """The document as compact JSON."""
    return Reply(status, [("content-type", JSON)], orjson.dumps(document))


def refusal(status: int, message: str, headers: list[tuple[str, str]] | None = None) -> Reply:
    """An error the way the marketplace words its own."""
    reply = json_reply({"code": status, "message": message, "data": None}, status)
    reply.headers += headers or []
    return reply


def retry_after(form: str, seconds: float, now: float) -> list[tuple[str, str]]:
    """The header in either form; no header for `none`."""
    whole = max(0, -int(-seconds // 1))
    if form == "seconds":
        return [("retry-after", str(whole))]
    if form == "date":
        return [("retry-after", formatdate(now + whole, usegmt=True))]
    return []
