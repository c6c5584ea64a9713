"""A trigger from outside: whose turn it is, by which key, however it was written.

    {"sellerId": "dmont", "triggerKey": "…", "scheduledAt": "…"}      what our rules' targets are told
    {"id": "…", "source": "aws.events", "detail": {…}, …}             a whole EventBridge envelope: its id is the key

The key makes a trigger that comes twice one. Without a key there is None. Refuses, by the name of the field, what is
no trigger; fields nobody knows are nobody's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.ids import checked_seller_id
from sellerwatch.domain.schedules import RULE_PREFIX, seller_of_rule

KEY_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Called:
    seller_id: str
    trigger_key: str | None


def called(body: Mapping[str, Any]) -> Called:
    """Whose turn it is by this message, or Invalid."""
    if "sellerId" not in body and "detail" in body:
        return Called(_of_envelope(body), _key("id", body.get("id")))
    key = body.get("triggerKey")
    return Called(_seller(body.get("sellerId")), None if key is None else _key("triggerKey", key))


def _of_envelope(envelope: Mapping[str, Any]) -> str:
    detail = envelope["detail"]
    if isinstance(detail, Mapping) and "sellerId" in detail:
        return _seller(detail["sellerId"])
    # A rule without an input transformer says only which rule it is.
    resources = envelope.get("resources")
    for one in resources if isinstance(resources, list) else []:
        if seller_id := seller_of_rule(str(one)):
            return _seller(seller_id)
    raise Invalid("detail.sellerId", None, f"there, and no rule named {RULE_PREFIX}… stands in resources")


def _seller(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid("sellerId", value, "a text")
    return checked_seller_id(value)


def _key(field: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= KEY_CHARACTERS_MAX or not value.isprintable():
        raise Invalid(field, value, f"a text of 1 to {KEY_CHARACTERS_MAX} visible characters")
    return value
