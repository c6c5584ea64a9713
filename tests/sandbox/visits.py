"""A visitor of the sandbox: one User-Agent with its token, asking without any socket."""

import base64

import orjson

from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.market import MINI_SHOP_PATH
from sellerwatch.sandbox.receiver import sign, signing_key
from sellerwatch.sandbox.reply import Reply
from sellerwatch.sandbox.sandbox import Sandbox

NOON = 1_760_000_000.0
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def a_sandbox(shops=None, **conditions) -> Sandbox:
    """A small world without a limit, unless told otherwise."""
    return Sandbox(Conditions(**{"seed": 5, "shops": shops or {"atelier": 30}, "hourly_limit": 0, **conditions}))


class Visitor:
    """Asks one request a second, beginning at noon."""

    def __init__(self, sandbox: Sandbox, user_agent: str = "Mozilla/5.0 (test)") -> None:
        self.sandbox = sandbox
        self.user_agent = user_agent
        self.now = NOON
        self.token = ""
        self.companions = ""

    def log_in(self) -> "Visitor":
        cookies = [value for name, value in self.ask("/").headers if name == "set-cookie"]
        named = dict(cookie.partition(";")[0].split("=", 1) for cookie in cookies)
        self.token = named.pop("token")
        self.companions = "; ".join(f"{name}={value}" for name, value in named.items())
        return self

    def ask(self, target: str, **more: str) -> Reply:
        self.now += 1
        headers = {"User-Agent": self.user_agent, "Accept": "application/json"}
        if self.token:
            headers |= {"Authorization": f"Bearer {self.token}", "Cookie": self.companions}
        return self.sandbox.answer("GET", target, headers | more, b"", self.now)

    def read(self, target: str):
        reply = self.ask(target)
        assert reply.status == 200, (reply.status, reply.body[:200])
        return orjson.loads(reply.body)

    def page(self, page_no: int = 0, page_size: int = 500, seller: str = "atelier"):
        return self.read(list_path(page_no, page_size, seller))

    def info(self, item_no: int):
        return module(self.read(detail_path(item_no)), "ProductInfoModule")


def list_path(page_no: int = 0, page_size: int = 500, seller: str = "atelier") -> str:
    return f"{MINI_SHOP_PATH}?sellerId={seller}&pageNo={page_no}&pageSize={page_size}&order=LATEST"


def detail_path(item_no: int) -> str:
    return f"/mustit-api/facade-api/v1/item/{item_no}/detail/top"


def option_path(item_no: int) -> str:
    return f"/mustit-api/legacy-api/v1/auction_products/{item_no}/options"


def module(document, kind: str):
    return next(one["data"] for one in document["moduleList"] if one["type"] == kind)


def an_event(sandbox: Sandbox, item_no: int, version: int = 1, **changed):
    return {
        "eventType": "PRODUCT_CREATED" if version == 1 else "PRODUCT_UPDATED",
        "eventId": f"event-{item_no}-{version}",
        "version": version,
        "itemNo": item_no,
        "sellerId": "atelier",
        "changes": [],
        "productData": sandbox.truth(item_no),
        **changed,
    }


def deliver(sandbox: Sandbox, event, *, key: str = "", at: float = NOON, secret: str = SECRET, **headers: str) -> Reply:
    body = orjson.dumps(event)
    key = key or event["eventId"]
    signed = {
        "Idempotency-Key": key,
        "webhook-id": key,
        "webhook-timestamp": str(int(at)),
        "webhook-signature": sign(signing_key(secret), key, str(int(at)), body),
    }
    return sandbox.answer("POST", "/products", signed | headers, body, at)
