"""The vault: nothing but the right key and the right row opens what it sealed, and nothing of it is ever shown."""

import base64
import hashlib
import hmac
import re
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.vault import Vault, keys_beside
from sellerwatch.domain.errors import Conflict, Invalid, Trouble, Unavailable, Unreadable

OLD, NEW = ("old", bytes(range(32))), ("new", bytes(range(32, 64)))
ROW = "user_agent_token.token_value:17"
CANARY = "canary-token-0123456789"


def a_vault(*keys, seed=1):
    return Vault(keys or (OLD,), SeededChance(seed).token_bytes)


@given(st.text(), st.text())
def test_what_was_sealed_opens_again_and_has_the_form_of_a_token(plaintext, row):
    if not (encodable(plaintext) and encodable(row)):
        return
    vault = a_vault()
    sealed = vault.seal(plaintext, row)
    assert re.fullmatch(r"v1\.old\.[A-Za-z0-9+/]{42,}={0,2}", sealed)
    assert len(sealed.split(".")[2]) >= 44
    assert vault.open(sealed, row) == plaintext


def encodable(text):
    return not any(0xD800 <= ord(mark) <= 0xDFFF for mark in text)


def test_each_sealing_takes_a_fresh_nonce():
    vault = a_vault()
    sealed = {vault.seal(CANARY, ROW) for _ in range(100)}
    nonces = {base64.b64decode(each.split(".")[2])[:12] for each in sealed}
    assert len(sealed) == len(nonces) == 100


def test_any_flipped_bit_is_an_error_that_shows_no_secret():
    vault = a_vault(NEW, OLD)
    sealed = vault.seal(CANARY, ROW).encode()
    for place in range(len(sealed)):
        for bit in range(8):
            spoiled = bytearray(sealed)
            spoiled[place] ^= 1 << bit
            with pytest.raises(Unreadable) as caught:
                vault.open(spoiled.decode("latin-1"), ROW)
            assert CANARY not in str(caught.value)
            assert isinstance(caught.value, Trouble)


@pytest.mark.parametrize(
    "sealed", ["", "v1", "v1.old", "v1.old.", "v2.old.AAAA", "v1.old.AAAA", "v1.ol:d.AAAA", "x" * 99]
)
def test_what_is_not_sealed_at_all_is_unreadable(sealed):
    with pytest.raises(Unreadable):
        a_vault().open(sealed, ROW)


@pytest.mark.parametrize("row", ["user_agent_token.token_value:18", "user_agent_token.cookies:17", "", ROW + ":old"])
def test_another_row_does_not_open_it(row):
    with pytest.raises(Unreadable, match="not what key old sealed"):
        a_vault().open(a_vault().seal(CANARY, ROW), row)


def test_an_unknown_key_is_named_and_no_secret_with_it():
    with pytest.raises(Unreadable, match="key new, which is not among old") as caught:
        a_vault(OLD).open(a_vault(NEW).seal(CANARY, ROW), ROW)
    assert CANARY not in str(caught.value)


def test_another_key_under_the_same_id_does_not_open_it():
    with pytest.raises(Unreadable):
        a_vault(("old", NEW[1])).open(a_vault(OLD).seal(CANARY, ROW), ROW)


def test_a_rotation_loses_nothing_at_any_step():
    before, during, after = a_vault(OLD), a_vault(NEW, OLD), a_vault(NEW)
    sealed = before.seal(CANARY, ROW)
    assert not before.needs_rekey(sealed)
    assert during.needs_rekey(sealed)
    renewed = during.seal(during.open(sealed, ROW), ROW)
    assert renewed.startswith("v1.new.")
    assert not during.needs_rekey(renewed)
    assert after.open(renewed, ROW) == CANARY
    with pytest.raises(Unreadable):
        after.open(sealed, ROW)


def test_fingerprints_stay_the_same_while_a_rotation_is_under_way():
    assert a_vault(OLD).fingerprint(CANARY) == a_vault(NEW, OLD).fingerprint(CANARY)
    assert a_vault(OLD).fingerprint(CANARY) != a_vault(NEW).fingerprint(CANARY)
    assert a_vault(OLD).fingerprint(CANARY) != a_vault(OLD).fingerprint(CANARY + "x")
    assert re.fullmatch(r"[0-9a-f]{64}", a_vault().fingerprint(""))


def test_the_fingerprint_is_not_made_with_the_sealing_key_itself():
    assert a_vault(OLD).fingerprint(CANARY) != hmac.new(OLD[1], CANARY.encode(), hashlib.sha256).hexdigest()


def test_the_repr_names_the_keys_and_shows_none():
    assert repr(a_vault(NEW, OLD)) == "Vault(keys=['new', 'old'])"


@pytest.mark.parametrize("keys", [(), (OLD, OLD), (("short", b"x"),), (("a.b", OLD[1]),), (("", OLD[1]),)])
def test_a_bad_ring_is_refused_without_showing_a_key(keys):
    with pytest.raises(Invalid) as caught:
        Vault(keys, bytes)
    assert repr(OLD[1]) not in str(caught.value)


def test_kept_keys_are_made_once_for_their_owner_alone(tmp_path):
    path = tmp_path / "x.db.token-keys"
    assert keys_beside(path, lambda: "first") == "first"
    assert keys_beside(path, lambda: "second") == "first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_two_that_start_at_once_get_the_same_keys(tmp_path):
    path = tmp_path / "keys"
    assert keys_beside(path, lambda: keys_beside(path, lambda: "faster") and "slower") == "faster"
    other = tmp_path / "others"
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda number: keys_beside(other, lambda: f"key {number}"), range(32)))) == 1
    assert sorted(tmp_path.iterdir()) == [path, other]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_file_that_others_may_read_is_refused(tmp_path, mode):
    path = tmp_path / "keys"
    path.write_text(CANARY)
    path.chmod(mode)
    with pytest.raises(Conflict, match="chmod 600") as caught:
        keys_beside(path, lambda: "new")
    assert CANARY not in str(caught.value)


def test_an_empty_key_file_is_refused_and_not_filled(tmp_path):
    path = tmp_path / "keys"
    path.touch(0o600)
    with pytest.raises(Conflict, match="is empty"):
        keys_beside(path, lambda: "new")


def test_a_place_that_cannot_be_written_is_trouble(tmp_path):
    with pytest.raises(Unavailable, match="No such file"):
        keys_beside(tmp_path / "none" / "keys", lambda: "new")
