"""Keys of machines, keys of issuers, and how often either may be used."""

import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from doors import KEY, KEY_ENTRY, Door, ShiftedClock, door, logs
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.adapters.issuer import KEY_SET_BYTES, HttpIssuer
from sellerwatch.domain.errors import Invalid, Unavailable
from sellerwatch.entry.api.api_keys import WRONG_MAX
from sellerwatch.entry.api.keys import FRESH_SECONDS, LAST_RESORT_SECONDS, PAUSE_SECONDS
from sellerwatch.entry.api.limits import KNOWN_MAX, Allowance

TRIGGER = "/api/internal/crawling/trigger"
POOL = "/api/v1/user-agents/status"
MINE = {"RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()), "EdDSA": ed25519.Ed25519PrivateKey.generate()}  # fmt: skip


class AnIssuer:
    """Publishes what a test gives it, and counts who asks."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.content: bytes | Exception = b""
        self.asked = 0
        self.publish(*keys)

    def publish(self, *keys: dict[str, Any]) -> None:
        self.content = json.dumps({"keys": keys}).encode()

    async def key_set(self) -> bytes:
        self.asked += 1
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


def jwk(algorithm: str, kid: str, key: Any = None, **more: Any) -> dict[str, Any]:
    shape = get_default_algorithms()[algorithm].to_jwk((key or MINE[algorithm]).public_key(), as_dict=True)
    return {**shape, "kid": kid, "use": "sig", "alg": algorithm, "key_ops": ["verify"], **more}


def signed(at: Door, algorithm: str, kid: str | None, key: Any = None, **head: Any) -> str:
    now = int(at.clock.now().timestamp())
    claims = {
        "iss": "sellerwatch",
        "aud": "sellerwatch-api",
        "sub": "x",
        "iat": now,
        "exp": now + 600,
        "role": "VIEWER",
    }
    named = {"alg": algorithm, **({"kid": kid} if kid else {}), **head}
    text = ".".join(based(json.dumps(part).encode()) for part in (named, claims))
    return f"{text}.{based(get_default_algorithms()[algorithm].sign(text.encode(), key or MINE[algorithm]))}"


def based(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def trusting(path: Path, issuer: AnIssuer, algorithm: str = "EdDSA", **more: object) -> Any:
    return door(path, issuer=issuer, jwt_algorithm=algorithm, jwt_jwks_url="https://issuer.example/keys", **more)


def stands_still(at: Door) -> None:
    """Its time goes by hand only, however slow the machine."""

    def standing() -> float:
        return at.clock.ahead.total_seconds()

    at.clock.monotonic = standing  # type: ignore[method-assign]


async def status(at: Door, token: str) -> int:
    return (await at.call("GET", POOL, token=token)).status


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("algorithm", MINE)
async def test_a_published_key_is_enough_and_is_asked_for_once(tmp_path: Path, algorithm: str) -> None:
    issuer = AnIssuer(jwk(algorithm, "k1"))
    async with trusting(tmp_path, issuer, algorithm) as at:
        assert [await status(at, signed(at, algorithm, "k1")) for _ in range(5)] == [200] * 5
        assert await status(at, signed(at, algorithm, None)) == 200
        assert issuer.asked == 1


async def test_a_key_is_chosen_by_name_among_the_published_only(tmp_path: Path) -> None:
    other = ed25519.Ed25519PrivateKey.generate()
    issuer = AnIssuer(jwk("EdDSA", "k1"), jwk("EdDSA", "k2", other))
    async with trusting(tmp_path, issuer) as at:
        assert await status(at, signed(at, "EdDSA", "k2", other)) == 200
        assert await status(at, signed(at, "EdDSA", "k1", other)) == 401
        assert await status(at, signed(at, "EdDSA", None)) == 401
        for kid in ("k3", "../k1", "https://evil.example/k1", "k1' OR 1=1", ""):
            assert await status(at, signed(at, "EdDSA", kid or None, other)) == 401
        for name in ("jku", "x5u", "jwk", "x5c", "crit"):
            assert await status(at, signed(at, "EdDSA", "k1", **{name: "https://evil.example/keys"})) == 401


async def test_keys_rotate_both_accepted_then_the_old_one_refused(tmp_path: Path) -> None:
    new = ed25519.Ed25519PrivateKey.generate()
    issuer = AnIssuer(jwk("EdDSA", "old"))
    async with trusting(tmp_path, issuer) as at:
        old = signed(at, "EdDSA", "old")
        assert await status(at, old) == 200
        issuer.publish(jwk("EdDSA", "old"), jwk("EdDSA", "new", new))
        await at.clock.sleep(PAUSE_SECONDS)
        assert await status(at, signed(at, "EdDSA", "new", new)) == 200
        assert await status(at, old) == await status(at, signed(at, "EdDSA", "old")) == 200
        issuer.publish(jwk("EdDSA", "new", new))
        await at.clock.sleep(FRESH_SECONDS)
        assert await status(at, old) == await status(at, signed(at, "EdDSA", "old")) == 401
        assert await status(at, signed(at, "EdDSA", "new", new)) == 200


async def test_names_made_up_make_no_traffic(tmp_path: Path) -> None:
    issuer = AnIssuer(jwk("EdDSA", "k1"))
    async with trusting(tmp_path, issuer) as at:
        assert [await status(at, signed(at, "EdDSA", f"made-up-{number}")) for number in range(50)] == [401] * 50
        assert issuer.asked == 1
        await at.clock.sleep(PAUSE_SECONDS)
        assert [await status(at, signed(at, "EdDSA", f"again-{number}")) for number in range(50)] == [401] * 50
        assert issuer.asked == 2


async def test_an_issuer_that_is_away_leaves_its_last_keys_in_force_for_a_day(tmp_path: Path) -> None:
    issuer = AnIssuer(jwk("EdDSA", "k1"))
    async with trusting(tmp_path, issuer) as at:
        assert await status(at, signed(at, "EdDSA", "k1")) == 200
        for trouble in (Unavailable("away"), b"<html>", b'{"keys": 1}', b'{"keys": [' + b"{}," * 200 + b"{}]}"):
            issuer.content = trouble
            await at.clock.sleep(FRESH_SECONDS)
            assert await status(at, signed(at, "EdDSA", "k1")) == 200
        await at.clock.sleep(LAST_RESORT_SECONDS)
        answer = await at.call("GET", POOL, token=signed(at, "EdDSA", "k1"))
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        issuer.publish(jwk("EdDSA", "k1"))
        await at.clock.sleep(PAUSE_SECONDS)
        assert await status(at, signed(at, "EdDSA", "k1")) == 200


@pytest.mark.parametrize(
    "keys",
    [
        [jwk("EdDSA", "k1", use="enc")],
        [jwk("EdDSA", "k1", alg="RS256")],
        [jwk("EdDSA", "k1", key_ops=["sign"])],
        [jwk("EdDSA", "k1", key_ops="verify")],
        [jwk("EdDSA", "k1", x="AAAA")],
        [{**jwk("EdDSA", "k1"), "kid": 1}],
        [jwk("EdDSA", "k1"), jwk("EdDSA", "k1", ed25519.Ed25519PrivateKey.generate())],
        [jwk("RS256", "k1", alg="EdDSA")],
        [{"kty": "oct", "kid": "k1", "k": "AAAA"}],
        ["k1", None, 7, {}],
        [],
    ],
)
async def test_a_published_key_that_is_not_for_this_is_none(tmp_path: Path, keys: list[Any]) -> None:
    async with trusting(tmp_path, AnIssuer(*keys)) as at:
        assert await status(at, signed(at, "EdDSA", "k1")) == 401


async def test_a_weak_published_key_is_none(tmp_path: Path) -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    async with trusting(tmp_path, AnIssuer(jwk("RS256", "k1", weak)), "RS256") as at:
        assert await status(at, signed(at, "RS256", "k1", weak)) == 401


async def test_the_key_set_comes_from_the_configured_url_and_no_further(unused_server: Any) -> None:
    dial = Http1
    for head, body in [
        (b"302 Found\r\nLocation: /elsewhere", b""),
        (b"500 No", b""),
        (b"200 OK", b" " * (KEY_SET_BYTES + 1)),
    ]:
        async with unused_server(head, body) as (address, seen):
            issuer = HttpIssuer(f"{address}/keys", dial)
            with pytest.raises(Unavailable):
                await issuer.key_set()
            await issuer.close()
            assert seen == [b"GET /keys HTTP/1.1"]
    with pytest.raises(Invalid):
        HttpIssuer("http://issuer.example/keys", dial)


@pytest.fixture
def unused_server() -> Any:
    import asyncio  # noqa: PLC0415 - only here
    from contextlib import asynccontextmanager  # noqa: PLC0415

    @asynccontextmanager
    async def serving(head: bytes, body: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
        seen: list[bytes] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = await reader.readuntil(b"\r\n\r\n")
            seen.append(asked.splitlines()[0])
            writer.write(b"HTTP/1.1 " + head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen

    return serving


NOT_QUITE: list[list[tuple[str, str]]] = [
    [],
    [("x-api-key", "")],
    [("x-api-key", " ")],
    [("x-api-key", KEY.upper())],
    [("x-api-key", KEY[:-1])],
    [("x-api-key", KEY + " ")],
    [("x-api-key", KEY_ENTRY)],
    [("x-api-key", KEY_ENTRY.partition(":")[2])],
    [("x-api-key", "é\xff\xfe")],
    [("x-api-key", "x" * 10_000)],
    [("x-api-key", KEY), ("x-api-key", KEY)],
    [("x-api-key", KEY), ("x-api-key", "")],
    [("authorization", f"Bearer {KEY}")],
]


async def test_a_key_that_is_not_quite_right_is_401(at: Door) -> None:
    for headers in NOT_QUITE:
        answer = await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", headers=headers)
        assert (answer.status, answer.json()["errorCode"]) == (401, "UNAUTHORIZED"), headers
        assert answer.headers["www-authenticate"] == "X-API-Key", headers


async def test_a_key_is_taken_from_its_header_only(at: Door) -> None:
    for query in (f"?X-API-Key={KEY}", f"?apiKey={KEY}"):
        assert (await at.call("POST", TRIGGER + query.replace(" ", "+"), {"sellerId": "a"}, token="")).status == 401


async def test_several_keys_are_good_at_once_and_none_is_when_none_is_configured(tmp_path: Path) -> None:
    entries = ",".join(f"{name}:{hashlib.sha256(name.encode()).hexdigest()}" for name in ("old-key", "new-key"))
    async with door(tmp_path, api_keys=entries) as at:
        for key, expected in [("old-key", 404), ("new-key", 404), (KEY, 401)]:
            assert (await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", key=key)).status == expected
    async with door(tmp_path, api_keys=None) as at:
        for key in (KEY, " ", "None"):
            assert (await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", key=key)).status == 401


async def test_lesson_55_nothing_is_open_by_default_and_what_is_blank_opens_nothing(tmp_path: Path) -> None:
    async with door(tmp_path, api_keys=None) as at:
        for headers in ([], [("x-api-key", "")], [("x-api-key", " ")], [("x-api-key", "\t")]):
            answer = await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", headers=headers)
            assert answer.status == 401, headers
        for headers in ([], [("authorization", "")], [("authorization", "Bearer")], [("authorization", "Bearer ")]):
            answer = await at.call("GET", "/api/v1/sellers", token="", headers=headers)
            assert answer.status == 401, headers


async def test_a_key_leaves_no_trace_in_the_log_but_its_name(at: Door) -> None:
    with logs(at.house.settings, at.clock) as told:
        await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", key=KEY)
        await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", key="swk_wrong-and-seen")
    assert "tests" in told.getvalue()
    assert KEY not in told.getvalue()
    assert "swk_wrong" not in told.getvalue()


async def test_who_guesses_keys_is_told_to_wait_and_who_has_one_is_not(at: Door) -> None:
    stands_still(at)

    async def tried(key: str, client: str = "10.0.0.1") -> Any:
        return await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", key=key, client=client)

    answers = [(await tried(f"swk_{number}")).status for number in range(WRONG_MAX + 5)]
    assert answers == [401] * WRONG_MAX + [429] * 5
    last = await tried("swk_again")
    assert last.json()["errorCode"] == "TOO_MANY_REQUESTS"
    assert 1 <= int(last.headers["retry-after"]) <= 60
    assert (await tried(KEY)).status == 404
    assert (await tried("swk_other", client="10.0.0.2")).status == 401
    # One key from many addresses is one guess too often as well.
    many = [(await tried("swk_same", client=f"10.1.0.{number}")).status for number in range(WRONG_MAX + 1)]
    assert many[-1] == 429
    await at.clock.sleep(60)
    assert (await tried("swk_9")).status == 401


async def test_each_credential_has_its_own_rate(tmp_path: Path) -> None:
    async with door(tmp_path, api_requests_per_second=5) as at:
        stands_still(at)
        mine, theirs = at.token(), at.token()
        assert [await status(at, mine) for _ in range(12)] == [200] * 10 + [429] * 2
        limited = await at.call("GET", POOL, token=mine, headers=[("accept-language", "ko")])
        assert (limited.headers["retry-after"], "잠시" in limited.json()["message"]) == ("1", True)
        assert await status(at, theirs) == 200
        assert (await at.call("POST", TRIGGER, {"sellerId": "a"}, token="", key=KEY)).status == 404
        assert (await at.call("GET", "/actuator/health", token="")).status == 200
        await at.clock.sleep(1)
        assert [await status(at, mine) for _ in range(6)] == [200] * 5 + [429]


def test_an_allowance_forgets_those_who_rested_longest_and_never_grows() -> None:
    clock = ShiftedClock()
    allowance = Allowance(clock, 1, 1)
    assert (allowance.take("first"), allowance.take("first") > 0) == (0, True)
    for number in range(KNOWN_MAX + 10):
        allowance.take(f"name {number}")
    assert len(allowance._buckets) == KNOWN_MAX
    assert allowance.take("first") == 0
    assert Allowance(clock, 0, 0).take("anybody") > 0


async def test_a_decent_request_id_is_kept_and_stands_in_the_log(at: Door) -> None:
    for given in ("a-b_c.d:1", "x" * 128, "019a0000-0000-7000-8000-000000000000"):
        with logs(at.house.settings, at.clock) as told:
            answer = await at.call("GET", "/nowhere", headers=[("x-request-id", given)])
        assert answer.headers["x-request-id"] == given
        assert given in told.getvalue()


async def test_an_indecent_request_id_is_replaced(at: Door) -> None:
    for given in ("", "a b", "x" * 129, "a\nb", "<script>", "é", "${jndi:ldap://x}", "a\x1b[31m"):
        with logs(at.house.settings, at.clock) as told:
            answer = await at.call("GET", "/nowhere", headers=[("x-request-id", given)])
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f-]{27}", answer.headers["x-request-id"]), given
        assert not given or given not in told.getvalue(), given
    twice = [("x-request-id", "one"), ("x-request-id", "two")]
    assert (await at.call("GET", "/nowhere", headers=twice)).headers["x-request-id"] not in {"one", "two"}
