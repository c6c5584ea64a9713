"""Who is it: JSON Web Tokens, read strictly and issued.

Promises: a token is believed only when its algorithm is the configured one, its signature is right to the last bit, and
`exp iat aud iss sub` are all there and of the right type, within a lifetime of 24 hours and a leeway of 30 seconds. The
moment is the house's clock. Refuses everything else, always in the same way, and says why to nobody. Keys come from the
settings only: a header that brings or names a key of its own is refused.
"""

import base64
import binascii
import math
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import orjson
from jwt.algorithms import get_default_algorithms

from sellerwatch.domain.errors import Invalid, Refused
from sellerwatch.entry.api.keys import SYMMETRIC, Keys, secret_of
from sellerwatch.entry.api.strict import strict_json
from sellerwatch.ports.outside import Issuer
from sellerwatch.ports.time import Chance, Clock
from sellerwatch.settings import PREFIX, Settings

LIFETIME_MIN: Final = timedelta(seconds=1)
LIFETIME_MAX: Final = timedelta(hours=24)
LEEWAY_SECONDS: Final = 30
TOKEN_MAX: Final = 8192
SUBJECT_MAX: Final = 255
BELIEVED_MAX: Final = 1000
"""Tokens that need no second look at their signature while the keys stay the same."""
YEAR_10000: Final = 253402300800
_SEGMENTS = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)", re.ASCII)
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_FOREIGN_KEYS = frozenset({"jku", "x5u", "jwk", "x5c", "crit"})
_TYPES = frozenset({"jwt", "at+jwt"})


class Role(StrEnum):
    ADMIN = "ADMIN"
    VIEWER = "VIEWER"


class NotAuthenticated(Refused):
    """No token, or none that can be believed."""

    def __init__(self) -> None:
        super().__init__("a valid bearer token is required")


class KeyNotKnown(NotAuthenticated):
    """Signed with a key that is not known, or not yet."""


class NotAllowed(Refused):
    """A good token, but of a role that may not do this."""

    def __init__(self) -> None:
        super().__init__("the token's role does not allow this")


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who a token speaks for."""

    subject: str
    roles: frozenset[Role]
    mark: str = field(repr=False)
    """By which the token is known again while it lasts."""


@dataclass(frozen=True, slots=True)
class _Believed:
    """A token whose signature and claims are right; its time is looked at whenever it comes."""

    bearer: Bearer
    begins: float
    ends: float
    edition: int


class Tokens:
    """Reads tokens by the configured algorithm and keys."""

    def __init__(self, settings: Settings, clock: Clock, issuer: Issuer | None = None) -> None:
        self._settings, self._clock = settings, clock
        self._keys = Keys(settings, clock, issuer)
        self._believed: OrderedDict[str, _Believed] = OrderedDict()

    async def who(self, authorization: Sequence[str]) -> Bearer:
        """As `read`, with the issuer's keys looked up where there is need. Unavailable: they can't be had."""
        await self._keys.refresh()
        try:
            return self.read(authorization)
        except KeyNotKnown:
            await self._keys.refresh(is_one_missing=True)
        return self.read(authorization)

    def read(self, authorization: Sequence[str]) -> Bearer:
        """Whom the `Authorization` headers of a request speak for, or NotAuthenticated."""
        try:
            (header,) = authorization
            known = self._believed.get(header)
            if known is None or known.edition != self._keys.edition:  # a key may have been taken back
                known = self._read(header)
            self._check_time(known)
        except (ValueError, TypeError, KeyError, binascii.Error):
            raise NotAuthenticated from None
        return known.bearer

    def _read(self, header: str) -> "_Believed":
        scheme, _, token = header.partition(" ")
        segments = _SEGMENTS.fullmatch(token)
        if scheme.lower() != "bearer" or len(token) > TOKEN_MAX or segments is None:
            raise ValueError
        head, claims, signature = (_unbased(segment) for segment in segments.groups())
        key = self._key_for(_object(head))
        signed = token.rpartition(".")[0].encode("ascii")
        if not self._keys.algorithm.verify(signed, key, signature):
            raise ValueError
        believed = self._believed[header] = self._believe(_object(claims), segments[3])
        if len(self._believed) > BELIEVED_MAX:
            self._believed.popitem(last=False)
        return believed

    def _check_time(self, believed: "_Believed") -> None:
        now = self._clock.now().timestamp()
        if believed.begins > now + LEEWAY_SECONDS or believed.ends <= now - LEEWAY_SECONDS:
            raise ValueError

    def _key_for(self, head: Mapping[str, Any]) -> Any:
        self._check_head(head)
        try:
            return self._keys.find(head.get("kid"))
        except LookupError:
            raise KeyNotKnown from None

    def _check_head(self, head: Mapping[str, Any]) -> None:
        if head["alg"] != self._settings.jwt_algorithm or _FOREIGN_KEYS & head.keys():
            raise ValueError
        if "typ" in head and str(head["typ"]).lower() not in _TYPES:
            raise ValueError
        if "kid" in head and (self._settings.jwt_algorithm == SYMMETRIC or not _KEY_ID.fullmatch(head["kid"])):
            # The one shared secret has no name. A public key is known by being configured, whatever its issuer calls it.
            raise ValueError

    def _believe(self, claims: Mapping[str, Any], signature: str) -> "_Believed":
        issued, ends = _moment(claims["iat"]), _moment(claims["exp"])
        begins = _moment(claims["nbf"]) if "nbf" in claims else issued
        if not 0 < ends - issued <= LIFETIME_MAX.total_seconds():
            raise ValueError
        if claims["iss"] != self._settings.jwt_issuer or claims["aud"] != self._settings.jwt_audience:
            raise ValueError
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_MAX:
            raise ValueError
        bearer = Bearer(subject, _roles(claims.get(self._settings.jwt_role_claim, [])), signature)
        return _Believed(bearer, max(issued, begins), ends, self._keys.edition)


def issue(settings: Settings, role: Role, lifetime: timedelta, clock: Clock, chance: Chance) -> str:
    """A token of this role, signed with the shared secret."""
    if settings.jwt_algorithm != SYMMETRIC or settings.jwt_secret is None:
        raise Refused(
            f"{PREFIX}JWT_SECRET is missing: tokens are issued with {PREFIX}JWT_ALGORITHM=HS256 and a secret of at least "
            "32 bytes; with a public key, its owner issues them"
        )
    if not LIFETIME_MIN <= lifetime <= LIFETIME_MAX:
        raise Invalid("hours", lifetime.total_seconds() / 3600, "a second or more, and at most 24")
    at = clock.now()
    issued = int(at.timestamp())
    claims = {
        "iss": settings.jwt_issuer,
        "aud": settings.jwt_audience,
        "sub": f"cli:{role.value.lower()}",
        "iat": issued,
        "exp": issued + int(lifetime.total_seconds()),
        "jti": chance.uuid7(at),
        settings.jwt_role_claim: role.value,
    }
    algorithm = get_default_algorithms()[SYMMETRIC]
    signed = f"{_based(orjson.dumps({'alg': SYMMETRIC, 'typ': 'JWT'}))}.{_based(orjson.dumps(claims))}"
    return f"{signed}.{_based(algorithm.sign(signed.encode('ascii'), algorithm.prepare_key(secret_of(settings))))}"


def _object(data: bytes) -> dict[str, Any]:
    value = strict_json(data)
    if not isinstance(value, dict):
        raise ValueError
    return value


def _unbased(text: str) -> bytes:
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # Base64 has spare bits at its end: a flip there would decode to the same bytes.
    if _based(data) != text:
        raise ValueError
    return data


def _based(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _moment(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    if not 0 <= value < YEAR_10000:
        raise ValueError
    return value


def _roles(claim: object) -> frozenset[Role]:
    """Ours among those it names: a string or a list of strings. Others' roles mean nothing here."""
    named = [claim] if isinstance(claim, str) else claim
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise ValueError
    return frozenset(role for role in Role if role.value in named)
