"""Reading `Set-Cookie`: names, values and lifetimes of what a host gives its visitor. Hostile input.

Promises: a cookie that has ended, belongs to another host or can't go back into a header is no cookie; the last one
of a name counts; `Max-Age` goes before `Expires`; a repr shows no value. Refuses nothing: what can't be read is
passed over.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

COOKIES_MAX = 50
LIFETIME_MAX = timedelta(days=400)
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,128}", re.ASCII)
_VALUE = re.compile(r"[ -:<-~]{1,4096}", re.ASCII)
"""More than the standard allows: what browsers would send back, we send back."""
_AGE = re.compile(r"-?[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cookie:
    value: str = field(repr=False)
    expires_at: datetime | None
    """None: the host did not say."""


def cookies_set(lines: Iterable[str], host: str, now: datetime) -> dict[str, Cookie]:
    """The cookies that a visitor of `host` holds after these `Set-Cookie` headers."""
    jar: dict[str, Cookie] = {}
    for line in lines:
        pair, *rest = line.split(";")
        name, _, value = (part.strip() for part in pair.partition("="))
        attributes = _attributes(rest)
        if not _NAME.fullmatch(name) or not _is_for(host, attributes.get("domain", "")):
            continue
        expires_at = _expires_at(attributes, now)
        value = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
        jar.pop(name, None)
        is_alive = expires_at is None or expires_at > now
        if is_alive and _VALUE.fullmatch(value) and len(jar) < COOKIES_MAX:
            jar[name] = Cookie(value, expires_at)
    return jar


def _attributes(parts: Iterable[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _is_for(host: str, domain: str) -> bool:
    domain = domain.lstrip(".").lower()
    return not domain or host == domain or host.endswith(f".{domain}")


def _expires_at(attributes: dict[str, str], now: datetime) -> datetime | None:
    age = attributes.get("max-age", "")
    if _AGE.fullmatch(age):
        seconds = min(max(int(age), 0), LIFETIME_MAX.total_seconds())
        return now + timedelta(seconds=seconds)
    try:
        moment = parsedate_to_datetime(_with_spaces(attributes.get("expires", "")))
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return min(moment, now + LIFETIME_MAX)


def _with_spaces(date: str) -> str:
    # "Wed, 18-Nov-2026 …", as cookies have it since Netscape.
    return re.sub(r"(?<=\d)-(?=\w)|(?<=[A-Za-z])-(?=\d)", " ", date, flags=re.ASCII)
