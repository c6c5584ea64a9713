"""Who is let in: good tokens, and a table of bad ones that all meet the same answer."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import get_default_algorithms

from doors import SECRET, Door, ShiftedClock, door, logs
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.domain.errors import Invalid, Refused
from sellerwatch.entry.api.tokens import NotAuthenticated, Role, Tokens, issue
from sellerwatch.settings import Settings, load

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
AT = int(NOW.timestamp())
HEAD: dict[str, Any] = {"alg": "HS256", "typ": "JWT"}
CLAIMS: dict[str, Any] = {
    "iss": "sellerwatch", "aud": "sellerwatch-api", "sub": "somebody", "iat": AT, "exp": AT + 600, "role": "ADMIN",
}  # fmt: skip


class StandingClock(ShiftedClock):
    def now(self) -> datetime:
        return NOW


def based(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(head: str, claims: str, secret: str = SECRET, digest: str = "sha256") -> str:
    text = f"{head}.{claims}"
    return f"{text}.{based(hmac.new(secret.encode(), text.encode(), digest).digest())}"


def token(head: dict[str, Any] | None = None, without: str = "", **claims: Any) -> str:
    told = {name: value for name, value in {**CLAIMS, **claims}.items() if name != without}
    return signed(based(json.dumps({**HEAD, **(head or {})}).encode()), based(json.dumps(told).encode()))


def raw(claims: str, head: str = json.dumps(HEAD)) -> str:
    return signed(based(head.encode()), based(claims.encode()))


def text_of(**claims: Any) -> str:
    return json.dumps({**CLAIMS, **claims})


GOOD = token()
HEAD_PART, CLAIMS_PART, SIGNATURE = GOOD.split(".")


def flipped_last() -> str:
    """The last character holds spare bits: another one with the same bytes must not do."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return GOOD[:-1] + alphabet[alphabet.index(GOOD[-1]) ^ 1]


def none(spelling: str, signature: str = "") -> str:
    return f"{based(json.dumps({'alg': spelling, 'typ': 'JWT'}).encode())}.{CLAIMS_PART}.{signature}"


BAD: dict[str, str | Callable[[], str]] = {
    **{f"alg {each!r}": none(each) for each in ("none", "None", "NONE", "nOnE", "", " none", "none ", "HS256\x00")},
    **{f"alg {each!r}, signature kept": none(each, SIGNATURE) for each in ("none", "HS384", "hs256", "RS256", "ES256")},
    "alg missing": raw(text_of(), json.dumps({"typ": "JWT"})),
    "alg null": token({"alg": None}),
    "alg a list": token({"alg": ["HS256"]}),
    "alg HS512, signed so": signed(based(b'{"alg":"HS512"}'), CLAIMS_PART, digest="sha512"),
    "typ of something else": token({"typ": "secevent+jwt"}),
    "typ no text": token({"typ": 1}),
    "kid a path": token({"kid": "../../../dev/null"}),
    "kid SQL": token({"kid": "x' UNION SELECT 'secret' --"}),
    "kid a url": token({"kid": "https://evil.example/key"}),
    "kid of a megabyte": token({"kid": "k" * 1_000_000}),
    "kid a list": token({"kid": ["k1"]}),
    "kid nobody knows": token({"kid": "other"}),
    "jku": token({"jku": "https://evil.example/jwks"}),
    "x5u": token({"x5u": "https://evil.example/x5u"}),
    "jwk": token({"jwk": {"kty": "oct", "k": based(SECRET.encode())}}),
    "x5c": token({"x5c": ["MIIB"]}),
    "crit": token({"crit": ["exp"]}),
    "jku null": token({"jku": None}),
    "head a list": raw(text_of(), "[]"),
    "head a text": raw(text_of(), '"HS256"'),
    "head with alg twice": raw(text_of(), '{"alg":"none","alg":"HS256"}'),
    "another secret": signed(HEAD_PART, CLAIMS_PART, "another secret, just as long as the right one"),
    "an empty secret": signed(HEAD_PART, CLAIMS_PART, ""),
    **{f"{each} missing": token(without=each) for each in ("exp", "iat", "aud", "iss", "sub")},
    "exp past": token(iat=AT - 700, exp=AT - 31),
    "exp a text": token(exp=str(AT + 600)),
    "exp null": token(exp=None),
    "exp true": token(exp=True),
    "exp a list": token(exp=[AT + 600]),
    "exp NaN": raw(text_of(exp=float("nan"))),
    "exp Infinity": raw(text_of(exp=float("inf"))),
    "exp 10^400": raw(text_of().replace(str(AT + 600), "1" + "0" * 400)),
    "exp 1e400": raw(text_of().replace(str(AT + 600), "1e400")),
    "exp below zero": token(exp=-1),
    "exp beyond the calendar": token(exp=10**15),
    "exp before iat": token(iat=AT + 20, exp=AT + 10),
    "exp twice": raw(text_of()[:-1] + f', "exp": {AT + 600}}}'),
    "a lifetime of more than a day": token(exp=AT + 86401),
    "nbf to come": token(nbf=AT + 31),
    "nbf a text": token(nbf="0"),
    "iat to come": token(iat=AT + 31),
    "iat a text": token(iat=str(AT)),
    "iss another": token(iss="somebody"),
    "iss null": token(iss=None),
    "iss a list": token(iss=["sellerwatch"]),
    "aud another": token(aud="other-api"),
    "aud a list": token(aud=["sellerwatch-api"]),
    "aud a longer one": token(aud="sellerwatch-api2"),
    "sub empty": token(sub=""),
    "sub a number": token(sub=7),
    "sub too long": token(sub="x" * 256),
    "role a number": token(role=1),
    "role an object": token(role={"ADMIN": True}),
    "role a list of lists": token(role=[["ADMIN"]]),
    "role twice": raw(text_of()[:-1] + ', "role": "ADMIN"}'),
    "claims a list": raw("[]"),
    "claims no JSON": raw("{"),
    "claims no UTF-8": signed(HEAD_PART, based(b'{"sub":"\xff"}')),
    "claims nested without end": raw("[" * 3000 + "]" * 3000),
    "padding": GOOD + "=",
    "base64 of the other alphabet": GOOD.replace(".", ".+", 1),
    "a space in it": GOOD[:20] + " " + GOOD[20:],
    "a line break after it": GOOD + "\n",
    "five segments": GOOD + ".a.b",
    "two segments": f"{HEAD_PART}.{CLAIMS_PART}",
    "one segment": HEAD_PART,
    "no signature": f"{HEAD_PART}.{CLAIMS_PART}.",
    "half a signature": GOOD[:-20],
    "a signature and more": GOOD + "AAAA",
    "the first bit of the signature flipped": f"{HEAD_PART}.{CLAIMS_PART}.{'B' if SIGNATURE[0] == 'A' else 'A'}{SIGNATURE[1:]}",
    "a spare bit at the end flipped": flipped_last,
    "the claims of another token": f"{HEAD_PART}.{based(text_of(role='ADMIN', sub='x').encode())}.{SIGNATURE}",
    "nothing": "",
    "dots": "..",
    "digits of other scripts": GOOD[:10] + "\u0661" + GOOD[10:],
}


@pytest.fixture
def tokens() -> Tokens:
    return Tokens(settings_with(), StandingClock())


def settings_with(**more: object) -> Settings:
    return load(overrides={"database_url": "sqlite://", "jwt_secret": SECRET, **more})


def believed(tokens: Tokens, given: str) -> bool:
    try:
        tokens.read([f"Bearer {given}"])
    except NotAuthenticated:
        return False
    return True


def test_there_are_enough_bad_tokens() -> None:
    assert len(BAD) >= 60


def test_the_token_that_the_bad_ones_are_made_of_is_good(tokens: Tokens) -> None:
    bearer = tokens.read([f"Bearer {GOOD}"])
    assert (bearer.subject, bearer.roles) == ("somebody", {Role.ADMIN})


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_is_not_believed(tokens: Tokens, name: str) -> None:
    bad = BAD[name]
    assert not believed(tokens, bad if isinstance(bad, str) else bad())


async def test_every_bad_token_gets_the_same_answer_and_leaves_no_trace(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        at.clock.ahead = NOW - at.clock.now()
        with logs(at.house.settings, at.clock) as told:
            bodies = await answers_to_bad_tokens(at)
        for bad in BAD.values():
            given = bad if isinstance(bad, str) else bad()
            assert len(given) < 20 or given[:60] not in told.getvalue()
        assert "/api/v1/executions/x" in told.getvalue()
        assert len(bodies) == 1
        assert json.loads(bodies.pop())["errorCode"] == "UNAUTHORIZED"


async def answers_to_bad_tokens(at: Door) -> set[str]:
    bodies = set()
    for name, bad in BAD.items():
        given = bad if isinstance(bad, str) else bad()
        header = f"Bearer {given}".encode().decode("latin-1")
        answer = await at.call("GET", "/api/v1/executions/x", token="", headers=[("authorization", header)])
        assert answer.status == 401, name
        assert answer.headers["www-authenticate"].startswith("Bearer")
        problem = answer.json()
        problem.pop("timestamp")
        bodies.add(json.dumps(problem))
    return bodies


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [""],
        [GOOD],
        ["Bearer"],
        [f"Basic {GOOD}"],
        [f"Bearer  {GOOD}"],
        [f"Bearer\t{GOOD}"],
        [f"Bearer {GOOD} x"],
        [f"Bearer {GOOD}", f"Bearer {GOOD}"],
        [f"Bearer {GOOD}, Bearer {GOOD}"],
    ],
)
def test_a_header_that_is_not_one_bearer_token_is_not_believed(tokens: Tokens, headers: list[str]) -> None:
    with pytest.raises(NotAuthenticated):
        tokens.read(headers)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": AT - 29, "iat": AT - 600},
        {"iat": AT + 29},
        {"nbf": AT + 29},
        {"exp": AT + 86400},
        {"iat": AT + 0.5},
        {"aud": "sellerwatch-api", "more": {"of": ["others"]}},
    ],
)
def test_a_clock_that_is_a_little_off_does_no_harm(tokens: Tokens, claims: dict[str, Any]) -> None:
    assert believed(tokens, token(**claims))


@pytest.mark.parametrize(
    ("claim", "roles"),
    [
        ("ADMIN", {Role.ADMIN}),
        ("VIEWER", {Role.VIEWER}),
        (["VIEWER", "ADMIN"], {Role.ADMIN, Role.VIEWER}),
        (["offline_access", "VIEWER"], {Role.VIEWER}),
        ("admin", set()),
        ("ADMIN VIEWER", set()),
        ([], set()),
    ],
)
def test_a_role_is_a_text_or_a_list(tokens: Tokens, claim: object, roles: set[Role]) -> None:
    assert tokens.read([f"bearer {token(role=claim)}"]).roles == roles


def test_the_role_may_have_another_claim() -> None:
    tokens = Tokens(settings_with(jwt_role_claim="groups"), StandingClock())
    assert tokens.read([f"Bearer {token(groups=['VIEWER'])}"]).roles == {Role.VIEWER}


def keys() -> Iterator[tuple[str, Any]]:
    yield "RS256", rsa.generate_private_key(public_exponent=65537, key_size=2048)
    yield "ES256", ec.generate_private_key(ec.SECP256R1())
    yield "EdDSA", ed25519.Ed25519PrivateKey.generate()


KEYS = dict(keys())


def public(key: Any) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def signed_by(algorithm: str, key: Any, **head: Any) -> str:
    text = f"{based(json.dumps({'alg': algorithm, **head}).encode())}.{CLAIMS_PART}"
    return f"{text}.{based(get_default_algorithms()[algorithm].sign(text.encode(), key))}"


@pytest.mark.parametrize("algorithm", KEYS)
def test_an_issuers_public_key_is_enough(algorithm: str) -> None:
    tokens = Tokens(settings_with(jwt_algorithm=algorithm, jwt_public_key=public(KEYS[algorithm])), StandingClock())
    good = signed_by(algorithm, KEYS[algorithm], kid="2026-11")
    assert tokens.read([f"Bearer {good}"]).roles == {Role.ADMIN}
    assert not believed(tokens, good[:-2] + ("AA" if good[-2:] != "AA" else "BB"))
    assert not believed(tokens, signed_by(algorithm, KEYS[algorithm], kid="../key"))
    # The oldest trick: the public key taken for a shared secret.
    for text in (public(KEYS[algorithm]), public(KEYS[algorithm]).strip()):
        assert not believed(tokens, signed(HEAD_PART, CLAIMS_PART, text))
    assert not believed(tokens, GOOD)


def test_a_key_of_another_algorithm_is_refused_before_anything_is_served() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    other_curve = ec.generate_private_key(ec.SECP384R1())
    for algorithm, key in [("RS256", weak), ("ES256", other_curve)]:
        with pytest.raises(Refused, match="JWT_PUBLIC_KEY"):
            Tokens(settings_with(jwt_algorithm=algorithm, jwt_public_key=public(key)), StandingClock())


@pytest.mark.parametrize("role", Role)
def test_what_is_issued_is_believed_until_its_time_is_over(role: Role) -> None:
    settings, clock = settings_with(), ShiftedClock()
    given = issue(settings, role, timedelta(hours=1), clock, SeededChance(1))
    tokens = Tokens(settings, clock)
    assert tokens.read([f"Bearer {given}"]).roles == {role}
    clock.ahead = timedelta(minutes=59)
    assert believed(tokens, given)
    clock.ahead = timedelta(hours=1, seconds=31)
    assert not believed(tokens, given)
    assert not believed(tokens, given[:-1])


@pytest.mark.parametrize("hours", [0, -1, 24.1])
def test_a_token_of_no_time_or_too_long_a_time_is_not_issued(hours: float) -> None:
    with pytest.raises(Invalid, match="hours"):
        issue(settings_with(), Role.ADMIN, timedelta(hours=hours), ShiftedClock(), SeededChance(1))


def test_who_has_only_the_public_key_issues_nothing() -> None:
    settings = settings_with(jwt_algorithm="EdDSA", jwt_public_key=public(KEYS["EdDSA"]))
    with pytest.raises(Refused, match="JWT_SECRET"):
        issue(settings, Role.ADMIN, timedelta(hours=1), ShiftedClock(), SeededChance(1))


def test_a_keyed_hash_of_the_right_secret_is_what_counts() -> None:
    text = f"{HEAD_PART}.{CLAIMS_PART}"
    assert based(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest()) == SIGNATURE
