"""The promises of ports/marketplace.py's Marketplace, against servers of our own; and where a token never goes."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.adapters.marketplace.client import Client
from sellerwatch.adapters.marketplace.transport import HttpTransport
from sellerwatch.adapters.vault import Vault
from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.errors import Invalid, Unreadable
from sellerwatch.domain.identities import SealedToken
from sellerwatch.ports.marketplace import Answer, NoAnswer
from sellerwatch.ports.pool import Lease
from sellerwatch.ports.wire import NoAnswerWhy, NoReply, RawReply

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
AGENT = 7
TOKEN = "canary-token-eyJhbGciOi.J9"
ROW = f"user_agent_token.token_value:{AGENT}"
COOKIES_ROW = f"user_agent_token.cookies:{AGENT}"


class Still:
    """A clock that moves when told to."""

    seconds = 0.0

    def now(self):
        return NOW + timedelta(seconds=self.seconds)

    def monotonic(self):
        return self.seconds


class Site:
    """A real server that keeps what it was asked, and answers as told."""

    def __init__(self) -> None:
        self.asked: list[web.BaseRequest] = []
        self.reply = lambda: web.Response(text="{}", content_type="application/json")

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        return self.reply()


class Scripted:
    """A transport without a wire."""

    def __init__(self, reply: RawReply | NoReply, clock=None, seconds=0.0) -> None:
        self.reply, self.clock, self.seconds = reply, clock, seconds
        self.sent: list[dict] = []

    async def send(self, url, headers, **limits):
        self.sent.append({"url": url, "headers": headers, **limits})
        if self.clock:
            self.clock.seconds += self.seconds
        if isinstance(self.reply, NoReply):
            raise self.reply
        return self.reply


@pytest.fixture
def clock() -> Still:
    return Still()


@pytest.fixture
def vault() -> Vault:
    return Vault([("k1", b"k" * 32)], SeededChance(1).token_bytes)


async def served(site: Site) -> tuple[web.ServerRunner, int]:
    runner = web.ServerRunner(web.Server(site.answer))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    return runner, runner.addresses[0][1]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    runner, site.port = await served(site)
    site.origin = f"http://127.0.0.1:{site.port}"
    yield site
    await runner.cleanup()


@pytest.fixture
async def client(site, vault, clock) -> AsyncIterator[Client]:
    transport = HttpTransport(site.origin, Http1)
    yield Client(transport, vault, Addresses(site.origin), clock)
    await transport.close()


def scripted(vault, clock, status=200, headers=(), body=b"{}", origin="https://shop.test", **options):
    transport = Scripted(RawReply(status, list(headers), body))
    return Client(transport, vault, Addresses(origin), clock, **options), transport


def token(vault, value=TOKEN, cookies=None) -> SealedToken:
    sealed = None if cookies is None else vault.seal(json.dumps(cookies), COOKIES_ROW)
    return SealedToken(vault.seal(value, ROW), vault.fingerprint(value), NOW, NOW + timedelta(hours=2), sealed)


def lease(token=None, seconds=30.0) -> Lease:
    return Lease("lease-1", AGENT, "Mozilla/5.0 (Test)", token, NOW, NOW + timedelta(seconds=seconds))


# fetch


async def test_it_makes_exactly_one_request_as_the_identity_of_the_lease(client, site, vault):
    url = f"{site.origin}/mustit-api/facade-api/v1/search/items?keyword=a%2Fb%20c&sort=LATEST&pageNo=1"
    answer = await client.fetch(url, lease(token(vault, cookies={"nid": "1", "mustit_uid": "x=y", "token": TOKEN})))
    assert (answer.status, answer.body, answer.content_type.partition(";")[0]) == (200, b"{}", "application/json")
    [asked] = site.asked
    assert f"{site.origin}{asked.raw_path}" == url
    assert asked.method == "GET"
    assert dict(asked.headers) == {
        "Host": f"127.0.0.1:{site.port}",
        "User-Agent": "Mozilla/5.0 (Test)",
        "Authorization": f"Bearer {TOKEN}",
        "Cookie": "nid=1; mustit_uid=x=y",
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",
    }


async def test_without_other_cookies_there_is_no_cookie(client, site, vault):
    await client.fetch(f"{site.origin}/x", lease(token(vault)))
    await client.fetch(f"{site.origin}/x", lease(token(vault, cookies={"token": TOKEN})))
    assert not any("Cookie" in asked.headers for asked in site.asked)


@pytest.mark.parametrize("status", [200, 204, 400, 401, 403, 404, 410, 429, 500, 503])
async def test_an_answer_is_what_came_back_of_whatever_status(client, site, vault, status):
    site.reply = lambda: web.Response(status=status, body=b"" if status == 204 else b"<html>")
    answer = await client.fetch(f"{site.origin}/x", lease(token(vault)))
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (status, b"" if status == 204 else b"<html>")
    assert len(site.asked) == 1


async def test_a_lease_that_holds_no_token_is_invalid_before_anything_is_sent(client, site):
    with pytest.raises(Invalid):
        await client.fetch(f"{site.origin}/x", lease())
    assert site.asked == []


async def test_a_token_that_cannot_be_opened_is_unreadable_before_anything_is_sent(client, site, vault, clock):
    other_row = SealedToken(vault.seal(TOKEN, "user_agent_token.token_value:8"), "f", NOW, NOW)
    for bad in (other_row, token(vault, "two\r\nlines"), token(vault, ""), token(vault, cookies=["no", "object"])):
        with pytest.raises(Unreadable) as caught:
            await client.fetch(f"{site.origin}/x", lease(bad))
        assert "two" not in str(caught.value)
        assert caught.value.__context__ is None or TOKEN not in repr(caught.value.__context__)
    assert site.asked == []


@pytest.mark.parametrize(
    ("left", "given"), [(30.0, 13.0), (10.0, 9.0), (1.5, 0.5)], ids=["as set", "the lease's end", "hardly any"]
)
async def test_a_request_ends_a_second_before_its_leases_deadline_at_the_latest(vault, clock, left, given):
    client, transport = scripted(vault, clock, connect_timeout=3.0, read_timeout=10.0)
    await client.fetch("https://shop.test/x", lease(token(vault), left))
    assert transport.sent[0]["total_seconds"] == pytest.approx(given)
    assert (transport.sent[0]["connect_timeout"], transport.sent[0]["max_bytes"]) == (3.0, 32 << 20)


@pytest.mark.parametrize("left", [1.0, 0.5, 0.0, -100.0])
async def test_a_lease_without_time_left_sends_nothing(vault, clock, left):
    client, transport = scripted(vault, clock)
    answer = await client.fetch("https://shop.test/x", lease(token(vault), left))
    assert isinstance(answer, NoAnswer)
    assert answer.why is NoAnswerWhy.TIMEOUT
    assert transport.sent == []


async def test_a_slow_body_ends_with_the_lease(client, site, vault):
    class Slow(web.StreamResponse):
        async def prepare(self, request):
            self.content_length = 100
            writer = await super().prepare(request)
            await self.write(b"{")
            return writer

    site.reply = Slow
    answer = await client.fetch(f"{site.origin}/x", lease(token(vault), 1.1))
    assert isinstance(answer, NoAnswer)


@pytest.mark.parametrize("why", NoAnswerWhy)
async def test_no_reply_is_no_answer_with_why_and_how_long_it_took(vault, clock, why):
    client = Client(Scripted(NoReply(why, "what happened"), clock, 1.25), vault, Addresses("https://shop.test"), clock)
    assert await client.fetch("https://shop.test/x", lease(token(vault))) == NoAnswer(why, "what happened", 1250)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("86400", 86400),
        ("86401", 86400),
        ("999999999", 86400),
        ("Wed, 18 Nov 2026 12:05:00 GMT", 300),
        ("Wed, 18 Nov 2026 21:05:00 +0900", 300),
        ("Wednesday, 18-Nov-26 12:05:00 GMT", 300),
        ("Wed Nov 18 12:05:00 2026", 300),
        ("Fri, 18 Nov 2033 12:05:00 GMT", 86400),
        ("Wed, 18 Nov 2026 11:59:00 GMT", None),
        ("-1", None),
        ("-99999", None),
        ("1.5", None),
        ("1e3", None),
        ("१२", None),
        ("9" * 5000, None),
        ("soon", None),
        ("", None),
        ("Wed, 99 Nov 2026 12:05:00 GMT", None),
        ("Wed, 18 Nov 99999 12:05:00 GMT", None),
        ("NaN", None),
        ("inf", None),
        ("120, 120", None),
    ],
)
async def test_retry_after_is_understood_in_both_forms_up_to_a_day_and_garbage_is_ignored(vault, clock, text, seconds):
    client, _ = scripted(vault, clock, 429, [("retry-after", text)])
    answer = await client.fetch("https://shop.test/x", lease(token(vault)))
    assert answer.retry_after == (None if seconds is None else timedelta(seconds=seconds))


# redirects


@pytest.mark.parametrize(
    ("location", "to"),
    [
        ("/b?c=%2F", "/b?c=%2F"),
        ("b", "/mustit-api/b"),
        ("?pageNo=2", "/mustit-api/a?pageNo=2"),
        ("https://shop.test/b#part", "/b"),
        ("https://SHOP.test:443/b", "/b"),
        ("//shop.test/b", "/b"),
        ("https://shop.test", "/"),
        ("../../../b", "/b"),
        ("//shop.test//evil.test/", "//evil.test/"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_within_the_host_is_told_and_not_followed(vault, clock, status, location, to):
    client, transport = scripted(vault, clock, status, [("location", location)])
    answer = await client.fetch("https://shop.test/mustit-api/a", lease(token(vault)))
    assert answer.redirect_to == f"https://shop.test{to}"
    assert len(transport.sent) == 1
    # Where it leads may be asked for, on a lease of its own.
    await client.fetch(answer.redirect_to, lease(token(vault)))


async def test_a_redirect_that_says_not_where_is_an_answer(vault, clock):
    client, _ = scripted(vault, clock, 302)
    answer = await client.fetch("https://shop.test/a", lease(token(vault)))
    assert (answer.status, answer.redirect_to) == (302, None)


METADATA = [
    "169.254.169.254",
    "2852039166",
    "0xA9FEA9FE",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "025177524776",
    "169.254.43518",
    "169.16689662",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[fd00:ec2::254]",
    "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
    "１６９.254.169.254",
    "१६९.254.169.254",
    "169。254。169。254",
    "169.254.169.254.",
    "metadata.google.internal",
    "metadata.google.internal.",
    "instance-data",
    "100.100.100.200",
    "192.0.0.192",
]
LOOPBACK = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.127.127.127",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "00000177.0.0.1",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "localhost.localdomain",
    "ⓛocalhost",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[::1%25lo]",
    "[::1%lo]",
    "127.0.0.1.nip.io",
    "spoofed.burpcollaborator.net",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "127.0.0.1%00.shop.test",
]
PRIVATE = ["10.0.0.1", "172.16.0.1", "192.168.0.1", "167772161", "0xa000001", "[fc00::1]", "[fe80::1]"]
LOOKALIKE = [
    "shop.test.",
    "shop.test.evil.test",
    "evil.test",
    "xshop.test",
    "shop.tes",
    "shop.testx",
    "www.shop.test",
    "shop．test",
    "shop。test",
    "ｓhop.test",
    "shop.test%2eevil.test",
    "shop%2etest",
    "shop.test%00.evil.test",
    "shop.test:444",
    "shop.test:80",
    "shop.test:0",
    "shop.test:99999",
    "shop.test:x",
    "user@evil.test",
    "shop.test@evil.test",
    "shop.test%40evil.test",
    "shop.test:443@evil.test",
    "user@shop.test",
    "user:password@shop.test",
    "@shop.test",
    ":@shop.test",
    "evil.test#@shop.test",
    "evil.test?@shop.test",
    "evil.test/@shop.test",
    "evil.test\\@shop.test",
    "shop.test\\@evil.test",
    "evil.test\\.shop.test",
    "shop.test\tevil.test",
    "shop.test\nevil.test",
    "shop.test\r\nHost: evil.test",
    "shop.test\x00evil.test",
    "shop.test evil.test",
    "[shop.test]",
    "[shop.test]@evil.test",
    "shop.test[evil.test]",
    "shоp.test",
    "xn--shp-0nd.test",
    "",
]
HOSTS = METADATA + LOOPBACK + PRIVATE + LOOKALIKE
WHOLE = [
    "http://shop.test/x",
    "HTTPS://evil.test/",
    "https:///shop.test/x",
    "https:/shop.test/x",
    "https:shop.test/x",
    "https:\\\\shop.test\\x",
    "https:/\\evil.test/x",
    "//evil.test/x",
    "///evil.test/x",
    "/\\evil.test/x",
    "\\\\evil.test\\x",
    "\\/evil.test/x",
    " https://evil.test/",
    "\thttps://evil.test/",
    "\x00https://evil.test/",
    "ht\ntps://evil.test/",
    "ftp://shop.test/x",
    "file:///etc/passwd",
    "gopher://shop.test:443/_GET",
    "dict://127.0.0.1:11211/",
    "data:text/html,x",
    "javascript:alert(1)",
    "ws://shop.test/x",
    "unix:///var/run/docker.sock",
    "jar:https://shop.test!/x",
    "view-source:https://shop.test/",
    "blob:https://shop.test/x",
    "https://https://shop.test/",
    "https://[",
    "https://[::1",
    "https://]/",
]
SAFE_IN_THEMSELVES = [
    "x\r\nHost: evil.test",
    "x\nX-Y: z",
    "x y",
    "x\ty",
    "x\x00",
    "x\\y",
    "é",
    "ｘ",
    "x\x7f",
    "x<y>",
    "\ud800",
]

REDIRECTS = [f"https://{host}/x" for host in HOSTS] + [f"//{host}/x" for host in HOSTS] + WHOLE
# Without a host of its own a relative location stays within the host: told apart from these below.
REQUESTS = [
    *(f"https://{host}/x" for host in HOSTS),
    *WHOLE,
    *(f"https://shop.test/{path}" for path in SAFE_IN_THEMSELVES),
    "",
    "/x",
    "x",
    "https://shop.test",
    "https://shop.test?x",
    "https://shop.test#x",
    "https://shop.test/x#fragment",
    "HTTPS://shop.test/x",
    "https://SHOP.test/x",
    "https://shop.test:443/x",
    "https://shop.test/x\n",
]
# Same host after all, for a reader of urls as for us: `https:///x` names no host, and neither does `https:x`.
WITHIN = {"https:///x", "///x", "https:/shop.test/x", "https:shop.test/x", "https:///shop.test/x", "///evil.test/x"}


def test_the_tables_are_long_enough():
    assert len(set(REQUESTS)) >= 120
    assert len(set(REDIRECTS) - WITHIN) >= 120


@pytest.mark.parametrize("url", REQUESTS)
async def test_a_url_that_is_not_the_marketplaces_is_invalid_before_anything_is_sent(vault, clock, url):
    client, transport = scripted(vault, clock)
    with pytest.raises(Invalid) as caught:
        await client.fetch(url, lease(token(vault)))
    assert TOKEN not in str(caught.value)
    assert transport.sent == []
    for kind in ("SEARCH", "MINI_SHOP", "DETAIL", "OPTION"):
        with pytest.raises(Invalid):
            Addresses("https://shop.test").check(kind, url)


@pytest.mark.parametrize("location", [location for location in REDIRECTS if location not in WITHIN])
async def test_a_redirect_to_another_host_or_scheme_is_never_followed(vault, clock, location):
    client, transport = scripted(vault, clock, 302, [("location", location)])
    answer = await client.fetch("https://shop.test/a", lease(token(vault)))
    assert isinstance(answer, NoAnswer)
    assert answer.why is NoAnswerWhy.FOREIGN_REDIRECT
    assert [sent["url"] for sent in transport.sent] == ["https://shop.test/a"]
    issued = await client.issue_token(lease())
    assert isinstance(issued.answer, NoAnswer)


@pytest.mark.parametrize("location", sorted(WITHIN))
async def test_a_location_without_a_host_stays_within_the_host(vault, clock, location):
    client, _ = scripted(vault, clock, 302, [("location", location)])
    answer = await client.fetch("https://shop.test/a", lease(token(vault)))
    assert isinstance(answer, NoAnswer) or answer.redirect_to.startswith("https://shop.test/")


@pytest.mark.parametrize("path", SAFE_IN_THEMSELVES)
async def test_a_redirect_with_what_no_url_holds_is_not_told(vault, clock, path):
    client, _ = scripted(vault, clock, 302, [("location", f"/{path}")])
    assert isinstance(await client.fetch("https://shop.test/a", lease(token(vault))), NoAnswer)


async def test_a_token_never_leaves_to_another_host(client, site, vault):
    other = Site()
    runner, port = await served(other)
    for location in (f"http://127.0.0.1:{port}/", f"//127.0.0.1:{port}/", f"http://localhost:{site.port}/"):
        site.reply = lambda location=location: web.Response(status=302, headers={"Location": location})
        assert isinstance(await client.fetch(f"{site.origin}/x", lease(token(vault))), NoAnswer)
    await runner.cleanup()
    assert other.asked == []
    assert len(site.asked) == 3


# issue_token


def lines(*cookies: str) -> list[tuple[str, str]]:
    return [("set-cookie", cookie) for cookie in cookies]


async def test_issue_token_asks_the_start_page_as_a_new_visitor(client, site, vault):
    def reply():
        response = web.Response(text="<html>", content_type="text/html")
        response.headers.add("Set-Cookie", f"token={TOKEN}; Path=/; Max-Age=3600; Secure; HttpOnly")
        response.headers.add("Set-Cookie", "nid=42; Path=/")
        return response

    site.reply = reply
    issued = await client.issue_token(lease(token(vault, "the old one", {"nid": "1"})))
    [asked] = site.asked
    assert (asked.method, asked.raw_path) == ("GET", "/")
    assert "Authorization" not in asked.headers
    assert "Cookie" not in asked.headers
    assert asked.headers["User-Agent"] == "Mozilla/5.0 (Test)"
    assert vault.open(issued.token.sealed, ROW) == TOKEN
    assert json.loads(vault.open(issued.token.cookies, COOKIES_ROW)) == {"nid": "42"}
    assert issued.token.fingerprint == vault.fingerprint(TOKEN)
    assert (issued.token.issued_at, issued.token.expires_at) == (NOW, NOW + timedelta(hours=1))
    assert issued.answer.status == 200
    # And what was issued can be used.
    await client.fetch(f"{site.origin}/x", lease(issued.token))
    assert site.asked[1].headers["Authorization"] == f"Bearer {TOKEN}"
    assert site.asked[1].headers["Cookie"] == "nid=42"


@pytest.mark.parametrize(
    ("attributes", "lifetime"),
    [
        ("", timedelta(hours=2)),
        ("; Max-Age=60", timedelta(minutes=1)),
        ("; max-age=60; Expires=Wed, 18 Nov 2026 13:00:00 GMT", timedelta(minutes=1)),
        ("; Expires=Wed, 18 Nov 2026 13:00:00 GMT", timedelta(hours=1)),
        ("; expires=Wed, 18-Nov-2026 13:00:00 GMT", timedelta(hours=1)),
        ("; Max-Age=soon; Expires=then", timedelta(hours=2)),
        ("; Max-Age=999999999999", timedelta(days=400)),
        ("; Expires=Fri, 31 Dec 9999 23:59:59 GMT", timedelta(days=400)),
        (f"; Max-Age={'9' * 5000}", timedelta(hours=2)),
    ],
)
async def test_a_tokens_lifetime_is_its_cookies_else_two_hours(vault, clock, attributes, lifetime):
    client, _ = scripted(vault, clock, 200, lines(f"token={TOKEN}{attributes}"))
    issued = await client.issue_token(lease())
    assert issued.token.expires_at == NOW + lifetime
    assert issued.token.cookies is None


@pytest.mark.parametrize(
    "cookies",
    [
        (),
        ("nid=1",),
        ("token=",),
        ("token",),
        ("Token=x",),
        ("token=x; Max-Age=0",),
        ("token=x; Max-Age=-1",),
        ("token=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT",),
        ("token=x", "token=deleted; Max-Age=0"),
        ("token=x; Domain=evil.test",),
        ("token=x; Domain=xshop.test",),
        ("token=x\r\nX: y",),
        ("token=\x00",),
        ("token=토큰",),
        ("token=" + "x" * 5000,),
    ],
)
async def test_an_answer_without_a_usable_token_gives_none(vault, clock, cookies):
    client, _ = scripted(vault, clock, 200, lines(*cookies))
    issued = await client.issue_token(lease())
    assert issued.token is None
    assert issued.answer.status == 200


@pytest.mark.parametrize("status", [400, 403, 429, 500])
async def test_a_refusal_gives_no_token_whatever_its_cookies(vault, clock, status):
    client, _ = scripted(vault, clock, status, [*lines(f"token={TOKEN}"), ("retry-after", "9")])
    issued = await client.issue_token(lease())
    assert issued.token is None
    assert (issued.answer.status, issued.answer.retry_after) == (status, timedelta(seconds=9))


async def test_the_last_cookie_of_a_name_counts_and_quotes_are_not_part_of_it(vault, clock):
    client, _ = scripted(
        vault, clock, 200, lines("token=old", f'token="{TOKEN}"; Domain=.shop.test', "a=1", "a=2; Max-Age=0", "b=x y")
    )
    issued = await client.issue_token(lease())
    assert vault.open(issued.token.sealed, ROW) == TOKEN
    assert json.loads(vault.open(issued.token.cookies, COOKIES_ROW)) == {"b": "x y"}


async def test_no_plaintext_is_in_what_comes_out(vault, clock):
    client, _ = scripted(vault, clock, 200, lines(f"token={TOKEN}", "nid=canary-cookie"))
    issued = await client.issue_token(lease())
    answer = await client.fetch("https://shop.test/x", lease(issued.token))
    shown = repr([issued, answer, client, vault, issued.token])
    assert "canary" not in shown
