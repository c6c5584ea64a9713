"""What the other side of a wire says, and which wires may be used: the rules that every HTTP neighbour shares.

`Retry-After` is believed in both its forms and up to a day; what can't be read as either is no wish at all. Plain
http is for this machine only, unless the operator declares otherwise.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import ip_address
from math import ceil
from urllib.parse import urlsplit

from sellerwatch.domain.errors import Invalid

PATIENCE_MAX = timedelta(hours=24)
_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
_URL = re.compile(r"https?://[!-\[\]-~]{1,2000}", re.ASCII)


def retry_after(text: str | None, now: datetime) -> timedelta | None:
    """How long the other side asks to be left alone, in whole seconds, as it counts and as it is kept; None when it asks
    nothing, or nothing that can be read."""
    if not text:
        return None
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return min(PATIENCE_MAX, timedelta(seconds=int(text)))
    try:
        moment = parsedate_to_datetime(text)
        patience = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
    except (ValueError, OverflowError):
        return None
    return min(PATIENCE_MAX, timedelta(seconds=ceil(patience.total_seconds()))) if patience >= timedelta(0) else None


@cache
def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its spelling alone: nobody is asked for its address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def checked_neighbour(field: str, url: str, *, allow_plain_http: bool = False) -> str:
    """The url of an operator's own server, if it may be spoken to; else Invalid, without what may be secret in it."""
    host = _host(url)
    if host is None:
        raise Invalid(field, "(hidden)", "an absolute https url without a user name")
    if url.startswith("http:") and not (allow_plain_http or is_loopback(host)):
        raise Invalid(field, f"http://{host}", "https, or this machine, or declared with ALLOW_PLAIN_HTTP=true")
    return url


def divided(url: str) -> tuple[str, str]:
    """A checked url's origin, and what is asked for there: path and query. A fragment stays at home."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}", f"{parts.path or '/'}{query}"


def _host(url: str) -> str | None:
    if not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        is_plain = parts.username is None and parts.port != 0
    except ValueError:
        return None
    return parts.hostname if is_plain else None
