"""Keys that tokens are checked with: the settings' own, and the issuer's set where it publishes one.

Promises: a key is known by being configured or published under the configured url; what a token says can choose among
these, never add one. Kept for five minutes; a `kid` that is not among them asks for the set anew, once in thirty
seconds at the most, however many ask, so that made-up names make no traffic. What the issuer takes back is refused
when the set is next read. An issuer that is away leaves the last set in force for a day; without any it is Unavailable.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import structlog
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import Algorithm, get_default_algorithms
from jwt.exceptions import InvalidKeyError

from sellerwatch.domain.errors import Refused, Unavailable
from sellerwatch.entry.api.strict import strict_json
from sellerwatch.ports.outside import Issuer
from sellerwatch.ports.time import Clock
from sellerwatch.settings import PREFIX, Settings

SYMMETRIC: Final = "HS256"
RSA_BITS_MIN: Final = 2048
KEYS_MAX: Final = 100
FRESH_SECONDS: Final = 300.0
PAUSE_SECONDS: Final = 30.0
LAST_RESORT_SECONDS: Final = 86400.0
_KEY_TYPES: Final = {"RS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}


class Keys:
    """The keys of the configured algorithm."""

    def __init__(self, settings: Settings, clock: Clock, issuer: Issuer | None = None) -> None:
        self._clock, self._issuer, self._name = clock, issuer, settings.jwt_algorithm
        self.algorithm: Algorithm = get_default_algorithms()[settings.jwt_algorithm]
        self._own = _own(settings, self.algorithm) if _has_own(settings, issuer) else None
        self._published: Mapping[str, Any] = {}
        self._turn = asyncio.Lock()
        self._read_at = self._asked_at = float("-inf")
        self.edition, self._content = 0, b""

    def find(self, kid: str | None) -> Any:
        """The key of that name; without a name the only one there is. LookupError: there is none."""
        if self._own is not None and (kid is None or self._issuer is None):
            return self._own
        if kid is None and len(self._published) == 1:
            return next(iter(self._published.values()))
        if kid is None or kid not in self._published:
            raise LookupError
        return self._published[kid]

    async def refresh(self, *, is_one_missing: bool = False) -> None:
        """Make sure that the published keys are fresh; when one was asked for in vain, fresher than that."""
        if self._issuer is None or not self._is_due(is_one_missing=is_one_missing):
            return
        if self._turn.locked() and self._published and not is_one_missing:
            return  # somebody is at it, and what is known will do meanwhile
        async with self._turn:
            if self._is_due(is_one_missing=is_one_missing):
                self._asked_at = self._clock.monotonic()
                await self._read(self._issuer)
        if self._own is None and self._clock.monotonic() - self._read_at > LAST_RESORT_SECONDS:
            raise Unavailable("the issuer's keys are not known")

    def _is_due(self, *, is_one_missing: bool) -> bool:
        now = self._clock.monotonic()
        is_old = is_one_missing or now - self._read_at >= FRESH_SECONDS
        return is_old and now - self._asked_at >= PAUSE_SECONDS

    async def _read(self, issuer: Issuer) -> None:
        try:
            content = await issuer.key_set()
            self._published = published(content, self._name, self.algorithm)
        except (Unavailable, ValueError) as error:
            structlog.get_logger().warning("issuer's keys not read", error=str(error)[:200])
        else:
            self._read_at = self._clock.monotonic()
            self.edition += content != self._content
            self._content = content


def published(content: bytes, name: str, algorithm: Algorithm) -> dict[str, Any]:
    """The keys of a set, by `kid`: those for signatures of this algorithm. One name for two keys stands for neither."""
    document = strict_json(content)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or len(keys) > KEYS_MAX:
        raise ValueError("is no key set")
    found: dict[str, list[Any]] = {}
    for each in keys:
        if isinstance(each, dict) and isinstance(kid := each.get("kid"), str) and _is_for(each, name):
            key = _key_of(each, name, algorithm)
            found.setdefault(kid, []).extend([] if key is None else [key])
    return {kid: same[0] for kid, same in found.items() if len(same) == 1}


def secret_of(settings: Settings) -> str:
    """The shared secret, or a refusal."""
    if settings.jwt_secret is None:
        raise Refused(f"{PREFIX}JWT_SECRET is missing: give at least 32 bytes")
    return settings.jwt_secret.get_secret_value()


def _has_own(settings: Settings, issuer: Issuer | None) -> bool:
    return issuer is None or settings.jwt_public_key is not None


def _own(settings: Settings, algorithm: Algorithm) -> Any:
    text = secret_of(settings) if settings.jwt_algorithm == SYMMETRIC else settings.jwt_public_key
    if text is None:
        raise Refused(f"{PREFIX}JWT_PUBLIC_KEY is missing: give the issuer's public key, or {PREFIX}JWT_JWKS_URL")
    try:
        key = algorithm.prepare_key(text)
    except (InvalidKeyError, ValueError, TypeError):
        key = None
    if not _is_right(settings.jwt_algorithm, key):
        raise Refused(f"{PREFIX}JWT_PUBLIC_KEY: is not a key of {settings.jwt_algorithm}")
    return key


def _is_right(algorithm: str, key: object) -> bool:
    """A key must be of the kind that the algorithm signs with, and public where that is to be had."""
    match algorithm:
        case "HS256":
            return isinstance(key, bytes)
        case "RS256":
            return isinstance(key, RSAPublicKey) and key.key_size >= RSA_BITS_MIN
        case "ES256":
            return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    return isinstance(key, Ed25519PublicKey)


def _is_for(key: Mapping[str, Any], name: str) -> bool:
    operations = key.get("key_ops", ["verify"])
    return (
        key.get("kty") == _KEY_TYPES[name]
        and key.get("use", "sig") == "sig"
        and key.get("alg", name) == name
        and isinstance(operations, list)
        and "verify" in operations
    )


def _key_of(key: Mapping[str, Any], name: str, algorithm: Algorithm) -> Any:
    try:
        made = algorithm.from_jwk(dict(key))
    except (InvalidKeyError, ValueError, TypeError, KeyError):
        return None
    return made if _is_right(name, made) else None
