"""Ids that follow from their cause, and the checks of ids that come from outside.

What begins something is handed a version 7 id; what follows from it is named by cause and role, so that doing
a thing twice makes nothing new.
"""

import re
from hashlib import sha1

from sellerwatch.domain.errors import Invalid

_NAMESPACE = bytes.fromhex("0d9a3c1e6f0b5c6f9a51c3f1b2a7e4d8")
_SELLER_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


def derived(cause: str, role: str) -> str:
    """The version 5 UUID of `cause` in its `role`."""
    # By hand: `uuid.uuid5` spends four fifths of its time on building the UUID object that is only printed.
    digest = bytearray(sha1(_NAMESPACE + f"{cause}/{role}".encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def checked_seller_id(value: str) -> str:
    """A marketplace seller id, or Invalid."""
    if not _SELLER_ID.fullmatch(value):
        raise Invalid("sellerId", value, "1 to 64 of A-Z a-z 0-9 . _ -")
    return value


def checked_uuid(field: str, value: str) -> str:
    """A UUID in its usual spelling, or Invalid."""
    if not _UUID.fullmatch(value):
        raise Invalid(field, value, "a UUID in lower case, like 019a0000-0000-7000-8000-000000000000")
    return value
