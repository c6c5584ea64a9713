"""The fake product server: checks signatures, keeps a copy of every product, and notices what must not happen.

A delivery under a known key is a repeat and changes nothing. One that is older than the copy, or equal under another key, is
out of order and changes nothing either. An `old` value that differs from the copy is a mismatch: something was lost before.
"""

import base64
import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from sellerwatch.domain.errors import Invalid
from sellerwatch.sandbox.faults import Fault, Faults, maintenance, spoil
from sellerwatch.sandbox.reply import Reply, json_reply, refusal, retry_after

_TOLERANCE_SECONDS = 300
_STORIES_KEPT = 50
Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Copy:
    version: int
    body: bytes


class Receiver:
    """One product server."""

    def __init__(self, secret: str | None, faults: Faults, latency_seconds: float = 0.0) -> None:
        self._key = None if secret is None else signing_key(secret)
        self._latency = latency_seconds
        self._keys: dict[str, bytes] = {}
        self._copies: dict[int, _Copy] = {}
        self.faults = faults
        self.counts: Counter[str] = Counter()
        self.stories: list[Json] = []
        """The first few of what must not happen, in words."""

    def receive(self, target: str, headers: Mapping[str, str], body: bytes, now: float) -> Reply:
        """Take a delivery; `headers` by lower-case name."""
        self.counts["requests"] += 1
        met = self.faults.meet(
            (target, target.partition("?")[0], "PRODUCTS", "*"), headers.get("idempotency-key", target)
        )
        reply = None if met is None else _instead(met[0], now)
        if reply is None:
            reply = self._take(headers, body, now)
            if met is not None:
                spoil(reply, *met)
        reply.delay += self._latency
        return reply

    def copy(self, item_no: int) -> Json | None:
        """The last event applied to an item."""
        kept = self._copies.get(item_no)
        return None if kept is None else orjson.loads(kept.body)

    def versions(self) -> dict[int, int]:
        """The version of every item that was delivered."""
        return {item_no: kept.version for item_no, kept in sorted(self._copies.items())}

    def shown(self) -> Json:
        names = (
            "requests", "deliveries", "repeats", "outOfOrder", "badSignatures", "unreadable", "keysReused", "mismatches",
            "PRODUCT_CREATED", "PRODUCT_UPDATED", "PRODUCT_DELISTED",
        )  # fmt: skip
        return {
            **{name: self.counts[name] for name in names},
            "products": len(self._copies),
            "faults": dict(sorted(self.faults.happened.items())),
            "stories": self.stories,
        }

    def _take(self, headers: Mapping[str, str], body: bytes, now: float) -> Reply:
        problem = None if self._key is None else signature_problem(self._key, headers, body, now)
        if problem:
            return self._refuse("badSignatures", 401, problem)
        key = headers.get("idempotency-key") or headers.get("webhook-id")
        event = _event(body)
        if key is None or event is None:
            return self._refuse("unreadable", 400, "no key, or no product event")
        digest = hashlib.blake2b(body, digest_size=16).digest()
        known = self._keys.setdefault(key, digest)
        if known is not digest:
            self.counts["repeats"] += 1
            if known != digest:
                self._tell("keysReused", event, f"key {key} came before with another body")
            return json_reply({"received": True, "repeat": True})
        self._apply(event, body)
        return json_reply({"received": True, "repeat": False})

    def _apply(self, event: Json, body: bytes) -> None:
        item_no, version = event["itemNo"], event["version"]
        if not isinstance(item_no, int) or not isinstance(version, int):
            raise Invalid("event", event, "a product event")
        before = self._copies.get(item_no)
        if before is not None and version <= before.version:
            self._tell("outOfOrder", event, f"version {version} came after {before.version}")
            return
        if before is not None:
            self._compare(orjson.loads(before.body), event)
        self.counts["deliveries"] += 1
        self.counts[str(event["eventType"])] += 1
        self._copies[item_no] = _Copy(version, body)

    def _compare(self, before: Json, event: Json) -> None:
        """Each change must begin where the copy stands and end where the new data does."""
        old_data, new_data, changes = before["productData"], event["productData"], event.get("changes")
        if not (isinstance(old_data, dict) and isinstance(new_data, dict) and isinstance(changes, list)):
            return
        for change in changes:
            field = change["field"]
            if field in old_data and old_data[field] != change["old"]:
                self._tell(
                    "mismatches", event, f"{field} was {old_data[field]!r} here, the event says {change['old']!r}"
                )
            if field in new_data and new_data[field] != change["new"]:
                self._tell(
                    "mismatches", event, f"{field} is {new_data[field]!r} now, the change says {change['new']!r}"
                )

    def _refuse(self, count: str, status: int, problem: str) -> Reply:
        self.counts[count] += 1
        return refusal(status, problem)

    def _tell(self, count: str, event: Json, story: str) -> None:
        self.counts[count] += 1
        if len(self.stories) < _STORIES_KEPT:
            self.stories.append(
                {"what": count, "itemNo": event["itemNo"], "version": event["version"], "story": story[:500]}
            )


def signing_key(secret: str) -> bytes:
    """The key in `whsec_` + base64 of at least 24 bytes."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith("whsec_") or len(key) < 24:
        raise Invalid("secret", "...", "whsec_ and the base64 of at least 24 bytes")
    return key


def sign(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """The signature of the Standard Webhooks scheme, version 1."""
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def signature_problem(key: bytes, headers: Mapping[str, str], body: bytes, now: float) -> str | None:
    """Why a delivery is not to be trusted; None when it is."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    message_id, timestamp, signatures = (headers.get(name, "") for name in names)
    if not (message_id and timestamp and signatures):
        return "not signed"
    if headers.get("idempotency-key", message_id) != message_id:
        return "Idempotency-Key is not webhook-id"
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(now - int(timestamp[:15])) > _TOLERANCE_SECONDS:
        return "webhook-timestamp is too far from now"
    good = sign(key, message_id, timestamp, body).encode()
    if not any(hmac.compare_digest(good, one.encode()) for one in signatures.split()):
        return "wrong signature"
    return None


def _event(body: bytes) -> Json | None:
    try:
        event = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(event, dict) or not isinstance(event.get("productData"), dict):
        return None
    numbers = (event.get("itemNo"), event.get("version"))
    return event if all(isinstance(number, int) for number in numbers) and "eventType" in event else None


def _instead(fault: Fault, now: float) -> Reply | None:
    """The answer that is given without taking the delivery."""
    if fault.name == "drop":
        return Reply(0, drop=True)
    if fault.name == "html":
        return maintenance()
    if fault.name == "answer":
        return Reply(fault.status or 200, list(fault.headers), fault.body)
    status = {"error": 503, "throttle": 429, "unauthorized": 401, "gone": 410}.get(fault.name)
    if status is None:
        return None
    return refusal(fault.status or status, fault.name, retry_after(fault.retry_after, fault.retry_after_seconds, now))
