"""The vault: seals tokens and cookies for the database, and keeps the keys that belong to an embedded one.

Promises: what `seal` returns is `v1.<key id>.<base64 of nonce, ciphertext and tag>` under AES-256-GCM with a fresh
96-bit nonce, bound to the row it was sealed for and to its key: a flipped bit, another row or another key is an
error, never another plaintext. The first key of the ring seals, every key opens. No key and no plaintext appears in
an error or a repr. Refuses: an empty ring, a key that is not 32 bytes, a key file that others may read.

Fingerprints are HMAC-SHA-256 under a key derived from the OLDEST key, the last of the ring. A new key goes to the
front, so fingerprints stay what they are while a rotation is under way and processes with the old and the new ring
agree. Only when the oldest key is taken out do they change: then a token that is issued again is not known again, and
takes a second row, which harms nothing.
"""

import base64
import binascii
import hashlib
import hmac
import os
import re
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sellerwatch.domain.errors import Conflict, Invalid, Unavailable, Unreadable

KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
# Short plaintexts are filled up to this length, so that the base64 part never falls below 44 characters.
SHORTEST: Final = 16


class Vault:
    """A ring of keys and what they open."""

    def __init__(self, keys: Sequence[tuple[str, bytes]], random_bytes: Callable[[int], bytes]) -> None:
        ids = [key_id for key_id, _ in keys]
        if not keys or len(set(ids)) != len(ids):
            raise Invalid("key ids", ids, "a ring of at least one key, each with an id of its own")
        for key_id, key in keys:
            if not KEY_ID.fullmatch(key_id):
                raise Invalid("key id", key_id, "1 to 32 of A-Z a-z 0-9 _ -")
            if len(key) != KEY_BYTES:
                raise Invalid(f"key {key_id}", f"{len(key)} bytes", f"{KEY_BYTES} bytes")
        self._ring = {key_id: AESGCM(key) for key_id, key in keys}
        self._sealing = ids[0]
        self._fingerprint_key = _derived(keys[-1][1])
        self._random_bytes = random_bytes

    def __repr__(self) -> str:
        return f"Vault(keys={list(self._ring)})"

    def seal(self, plaintext: str, row: str) -> str:
        """The plaintext as ciphertext for that row; `row` names table, column and identity."""
        nonce = self._random_bytes(NONCE_BYTES)
        body = self._ring[self._sealing].encrypt(nonce, _filled(plaintext), _bound(row, self._sealing))
        return f"v1.{self._sealing}.{base64.b64encode(nonce + body).decode()}"

    def open(self, sealed: str, row: str) -> str:
        """The plaintext that was sealed for that row, or Unreadable."""
        key_id, body = _parts(sealed, row)
        key = self._ring.get(key_id)
        if key is None:
            raise Unreadable(row, f"sealed with key {key_id}, which is not among {', '.join(self._ring)}")
        try:
            filled = key.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], _bound(row, key_id))
        except InvalidTag:
            raise Unreadable(row, f"not what key {key_id} sealed for this row") from None
        return filled.rstrip(b"\x00")[:-1].decode()

    def fingerprint(self, plaintext: str) -> str:
        """64 hex digits that are equal when, and only when, the plaintexts are."""
        return hmac.new(self._fingerprint_key, plaintext.encode(), hashlib.sha256).hexdigest()

    def needs_rekey(self, sealed: str) -> bool:
        """Whether another key than the first sealed it."""
        return _parts(sealed, "a sealed value")[0] != self._sealing


def _derived(key: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=b"sellerwatch fingerprint v1").derive(key)


def _bound(row: str, key_id: str) -> bytes:
    return f"{row}:{key_id}".encode()


def _filled(plaintext: str) -> bytes:
    return (plaintext.encode() + b"\x80").ljust(SHORTEST, b"\x00")


def _parts(sealed: str, row: str) -> tuple[str, bytes]:
    version, _, rest = sealed.partition(".")
    key_id, _, text = rest.partition(".")
    if version != "v1" or not KEY_ID.fullmatch(key_id):
        raise Unreadable(row, "not of the form v1.<key id>.<base64>")
    try:
        body = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable(row, "its last part is not base64") from None
    # Base64 has spare bits at its end: a flip there would decode to the same bytes.
    if base64.b64encode(body).decode() != text or len(body) < NONCE_BYTES + SHORTEST + TAG_BYTES:
        raise Unreadable(row, "its last part is not base64 of a nonce, a ciphertext and a tag")
    return key_id, body


def keys_beside(path: Path, make: Callable[[], str]) -> str:
    """What the key file holds, made first if there is none; two processes that start at once get the same.

    The file is complete before it gets its name, and gets it only if nobody else was faster.
    """
    try:
        if not path.exists():
            _place(path, make())
        return _kept(path)
    except OSError as error:
        raise Unavailable(f"the key file {path}: {error.strerror or type(error).__name__}") from error


def _place(path: Path, secret: str) -> None:
    # mkstemp makes it with mode 0600.
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secret + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        Path(draft).unlink()


def _kept(path: Path) -> str:
    with path.open(encoding="ascii", errors="replace") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise Conflict("KEY_FILE_OPEN", f"{path} may be read by others (mode {mode:04o}): chmod 600 {path}")
        secret = file.read().strip()
    if not secret:
        raise Conflict("KEY_FILE_EMPTY", f"{path} is empty: put the key back, or remove the file to have one made")
    return secret
