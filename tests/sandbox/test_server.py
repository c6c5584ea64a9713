"""Promises of the server: the same answers over a socket, in order, on connections that stay open."""

import asyncio

import aiohttp
import orjson
import pytest

from sandbox.visits import NOON, SECRET, a_sandbox, an_event, detail_path, list_path
from sellerwatch.sandbox.faults import Fault
from sellerwatch.sandbox.receiver import sign, signing_key
from sellerwatch.sandbox.server import serve

AGENT = {"User-Agent": "Mozilla/5.0 (test)"}


@pytest.fixture
def sandbox():
    return a_sandbox({"atelier": 30}, secret=SECRET)


@pytest.fixture
async def site(sandbox):
    async with serve(sandbox, lambda: NOON) as url, aiohttp.ClientSession(url, headers=AGENT) as session:
        yield session


async def log_in(site):
    async with site.get("/") as reply:
        token = reply.cookies["token"].value
        site.cookie_jar.clear()
        return {"Authorization": f"Bearer {token}"}


async def test_a_whole_visit_over_http(sandbox, site):
    token = await log_in(site)
    async with site.get(list_path(), headers=token) as reply:
        items = [item["itemNo"] for item in (await reply.json())["items"]]
    assert items == sandbox.world.listed()
    async with site.get(detail_path(items[0]), headers=token) as reply:
        assert reply.content_type == "application/json"
        assert (await reply.json())["moduleList"]
    event = an_event(sandbox, items[0])
    body, stamp = orjson.dumps(event), str(int(NOON))
    signed = {
        "webhook-id": event["eventId"],
        "webhook-timestamp": stamp,
        "webhook-signature": sign(signing_key(SECRET), event["eventId"], stamp, body),
    }
    async with site.post("/products", data=body, headers=signed) as reply:
        assert reply.status == 200
    async with site.get("/__stats") as reply:
        stats = await reply.json()
    assert stats["requests"]["total"] == 3
    assert stats["receiver"]["deliveries"] == 1
    assert stats["violations"] == 0


async def test_the_control_paths_answer_over_http(sandbox, site):
    item_no = sandbox.world.listed()[0]
    async with site.post("/__mutate", json={"share": 0.1, "seed": 1}) as reply:
        account = await reply.json()
    assert account["items"] == 3
    async with site.get(f"/__truth/{item_no}") as reply:
        assert (await reply.json())["productData"] == orjson.loads(orjson.dumps(sandbox.truth(item_no)))
    async with site.get("/__truth", params={"seller": "atelier"}) as reply:
        assert (await reply.json())["count"] == 30
    for path, status in (("/__", 200), ("/__truth/1", 404), ("/__truth/x", 404), ("/__truth?seller=no", 404),
                         ("/__copy/1", 404), ("/__nothing", 404)):  # fmt: skip
        async with site.get(path) as reply:
            assert reply.status == status


async def test_a_dropped_connection_is_an_error_at_the_other_end_and_a_cut_body_too(sandbox, site):
    token = await log_in(site)
    for name in ("drop", "cut"):
        # Twice, because clients try an idempotent request again on a connection that was kept.
        sandbox.stage("MINI_SHOP", Fault(name=name), times=2)
        with pytest.raises(aiohttp.ClientError):
            async with site.get(list_path(), headers=token) as reply:
                await reply.read()
        sandbox.market.faults.clear()
    async with site.get(list_path(), headers=token) as reply:
        assert reply.status == 200


async def test_replies_leave_in_the_order_of_the_requests_though_the_first_is_slow(sandbox):
    sandbox.stage("ROBOTS", Fault(name="slow", seconds=0.02))
    async with serve(sandbox, lambda: NOON) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        line = "GET {} HTTP/1.1\r\nhost: x\r\nuser-agent: x\r\n{}\r\n"
        writer.write((line.format("/robots.txt", "") + line.format("/", "connection: close\r\n")).encode())
        told = await reader.read()
        writer.close()
    assert told.index(b"User-agent: *") < told.index(b"set-cookie: token=")


async def test_what_is_not_http_is_refused(sandbox):
    async with serve(sandbox, lambda: NOON) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\x00\x01 nonsense\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_the_limit_holds_over_http_and_is_counted():
    sandbox = a_sandbox(hourly_limit=3)
    async with serve(sandbox, lambda: NOON) as url, aiohttp.ClientSession(url, headers=AGENT) as site:
        token = await log_in(site)
        statuses = []
        for _ in range(4):
            async with site.get(list_path(0, 1), headers=token) as reply:
                statuses.append(reply.status)
    assert statuses == [200, 200, 429, 429]
    assert sandbox.stats()["violations"] == 2
