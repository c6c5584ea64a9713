"""The fake marketplace: which path is what, who is let in, what is answered.

In this order, as on the real one: the doorkeeper (429), what goes wrong anyway, the token (401, or 400 when it came as a
cookie), the document. Every request counts for the doorkeeper, whatever is answered.
"""

import gzip
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

from protego import Protego

from sellerwatch.domain.robots import CRAWLER
from sellerwatch.sandbox import pages
from sellerwatch.sandbox.cache import Cache
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.faults import Fault, Faults, maintenance, spoil
from sellerwatch.sandbox.gate import Gate
from sellerwatch.sandbox.reply import HTML, JSON, Reply, refusal, retry_after
from sellerwatch.sandbox.world import Product, Shop, World

MINI_SHOP_PATH = "/mustit-api/facade-api/v1/searchmini-shop-search"
MINI_SHOP_OTHER_PATH = "/mustit-api/facade-api/v1/search/mini-shop-search"
SEARCH_PATH = "/mustit-api/facade-api/v1/search/items"
_DETAIL = ("/mustit-api/facade-api/v1/item/", "/detail/top")
_OPTION = ("/mustit-api/legacy-api/v1/auction_products/", "/options")
_KINDS = {
    "/": "TOKEN",
    "/robots.txt": "ROBOTS",
    MINI_SHOP_PATH: "MINI_SHOP",
    MINI_SHOP_OTHER_PATH: "MINI_SHOP",
    SEARCH_PATH: "SEARCH",
}
_DOCUMENTS = frozenset({"DETAIL", "OPTION", "MINI_SHOP", "SEARCH"})
PAGE_SIZE_MAX = 500
_HOME = "<!doctype html><html lang=ko><title>샌드박스 장터</title><body>어서 오세요</body></html>".encode()
_COMPANIONS = ("nid=", "mustit_uid=")
_FOREIGN_EVERY = 15


class Asked(NamedTuple):
    """A request to the marketplace, taken apart."""

    kind: str
    item_no: int
    path: str
    query: str
    target: str

    def arguments(self) -> dict[str, str]:
        """The query, decoded once."""
        return dict(parse_qsl(self.query, keep_blank_values=True))


class Market:
    """The marketplace's side of the sandbox."""

    def __init__(self, conditions: Conditions, world: World) -> None:
        self._conditions = conditions
        self._cache = Cache(conditions.cache_bytes)
        self._asked: Counter[str] = Counter()
        self.world = world
        self.gate = Gate(conditions)
        self.faults = Faults(conditions.seed, "faults", conditions.marketplace_rates())
        self.counts: Counter[tuple[str, int]] = Counter()
        self.renamed: dict[str, str] = {}
        """Keys of documents that are called otherwise from some day on, as on the real one: without a word."""
        self.disallowed = 0
        """Requests that its robots.txt forbids."""
        self.hang_out(conditions.robots)

    def hang_out(self, robots: str) -> None:
        """Let robots.txt say this from now on."""
        self.robots = robots
        self._rules = Protego.parse(robots)

    def answer(self, method: str, target: str, headers: Mapping[str, str], now: float) -> Reply:
        """One request; `headers` by lower-case name."""
        asked = _taken_apart(target)
        self.disallowed += not self._rules.can_fetch(target, CRAWLER)
        reply = self._admitted(method, asked, headers, now)
        if self.renamed and reply.status == 200 and asked.kind in _DOCUMENTS:
            for old, new in self.renamed.items():
                reply.body = reply.body.replace(f'"{old}":'.encode(), f'"{new}":'.encode())
        if self._conditions.latency_ms or self._conditions.jitter_ms:
            reply.delay += self._latency(target)
        if self._conditions.gzip and len(reply.body) > 512 and "gzip" in headers.get("accept-encoding", ""):
            _compress(reply)
        self.counts[asked.kind, reply.status] += 1
        return reply

    def _admitted(self, method: str, asked: Asked, headers: Mapping[str, str], now: float) -> Reply:
        user_agent = headers.get("user-agent")
        if not user_agent:
            return refusal(400, "User-Agent is missing")
        wait = self.gate.admit(user_agent, now)
        if wait is not None:
            seconds = self._conditions.retry_after_seconds or wait
            return refusal(429, "Too Many Requests", retry_after(self._conditions.retry_after, seconds, now))
        if method != "GET":
            return refusal(405, "Method Not Allowed", [("allow", "GET")])
        places = (asked.target, asked.path, asked.kind, "*")
        met = self.faults.meet(places, asked.target, is_document=asked.kind not in {"TOKEN", "ROBOTS"})
        if met is None:
            return self._served(asked, user_agent, headers, now)
        reply = self._instead(met[0], asked, user_agent, now)
        if reply is None:
            self._unsettle(*met, asked)
            reply = self._served(asked, user_agent, headers, now, wrong_item=met[0].name == "wrong_item")
            if reply.status == 200 and (reply.headers[0][1] == JSON or met[0].name in {"cut", "lost", "slow"}):
                spoil(reply, *met)
        return reply

    def _instead(self, fault: Fault, asked: Asked, user_agent: str, now: float) -> Reply | None:
        """The answer a fault gives without looking at the request."""
        match fault.name:
            case "drop":
                return Reply(0, drop=True)
            case "html":
                return maintenance()
            case "empty":
                return Reply(200, [("content-type", JSON)])
            case "redirect":
                inside = f"{asked.target}{'&' if asked.query else '?'}moved=1"
                return Reply(fault.status or 302, [("location", fault.location or inside)])
            case "answer":
                return Reply(fault.status or 200, list(fault.headers), fault.body)
            case "unauthorized":
                self.gate.revoke(user_agent)
                return refusal(fault.status or 401, "Unauthorized")
        status = {"error": 503, "throttle": 429, "gone": 404}.get(fault.name)
        if status is None:
            return None
        told = retry_after(fault.retry_after, fault.retry_after_seconds, now)
        return refusal(fault.status or status, fault.name, told)

    def _unsettle(self, fault: Fault, chance: Chance, asked: Asked) -> None:
        """Items of the shop that was asked for move while it is being read."""
        if fault.name == "shuffle" and asked.kind in {"MINI_SHOP", "SEARCH"}:
            arguments = asked.arguments()
            shop = self.world.shop(arguments.get("sellerId") or arguments.get("keyword", ""))
            if shop is None or not shop.order:
                return
            half = len(shop.order) // 2
            for _ in range(chance.between(1, 3)):
                self.world.bump(shop.seller, chance.between(half, len(shop.order) - 1))

    def _served(
        self, asked: Asked, user_agent: str, headers: Mapping[str, str], now: float, *, wrong_item: bool = False
    ) -> Reply:
        if asked.kind == "TOKEN":
            return Reply(200, [("content-type", HTML), *self.gate.issue(user_agent, now)], _HOME)
        if asked.kind == "ROBOTS":
            return Reply(200, [("content-type", "text/plain;charset=UTF-8")], self.robots.encode())
        cookies = headers.get("cookie", "")
        if cookies.startswith("token=") or "; token=" in cookies:
            return refusal(400, "token is no cookie here")
        known = self.gate.knows(user_agent, headers.get("authorization", ""), now)
        if not known or (self._conditions.strict_cookies and not all(name in cookies for name in _COMPANIONS)):
            return refusal(401, "Unauthorized")
        match asked.kind:
            case "DETAIL" | "OPTION":
                return self._item(asked, wrong_item=wrong_item)
            case "MINI_SHOP":
                return self._mini_shop(asked)
            case "SEARCH":
                return self._search(asked)
        return refusal(404, "Not Found")

    def _item(self, asked: Asked, *, wrong_item: bool) -> Reply:
        item_no = asked.item_no
        if wrong_item and asked.kind == "DETAIL":
            item_no = self._neighbour(item_no)
        product = self.world.product(item_no)
        if product is None or not self.world.is_listed(item_no):
            return refusal(410 if item_no % 3 == 0 else 404, "판매가 종료된 상품입니다")
        noise = self._noise(asked.target)
        if noise is not None:
            return _json(self._item_document(asked.kind, product, noise))
        key = (asked.kind, item_no, self.world.revision(item_no))
        return _json(self._cache.get(key, lambda: self._item_document(asked.kind, product, None)))

    def _item_document(self, kind: str, product: Product, noise: Chance | None) -> bytes:
        if kind == "OPTION":
            return pages.dump(pages.options(product, noise), noise)
        shop = self.world.shop(product.seller) or self.world.outsider
        return pages.dump(pages.detail(product, shop, noise), noise)

    def _neighbour(self, item_no: int) -> int:
        product = self.world.product(item_no)
        shop = self.world.shop(product.seller) if product else None
        others = [other for other in (shop.order[:2] if shop else ()) if other != item_no]
        return others[0] if others else self.world.outsider.order[0]

    def _mini_shop(self, asked: Asked) -> Reply:
        arguments = asked.arguments()
        page_no, page_size = _number(arguments, "pageNo", 0), _number(arguments, "pageSize", 20)
        seller = arguments.get("sellerId", "")
        if page_no is None or page_size is None or not 1 <= page_size <= PAGE_SIZE_MAX or not seller:
            return refusal(400, "sellerId, pageNo or pageSize")
        shop = self.world.shop(seller) or Shop(seller, 0)
        noise = self._noise(asked.target)
        if noise is not None:
            return _json(self._page(shop, page_no, page_size, noise))
        key = ("MINI_SHOP", shop.seller, shop.revision, page_no, page_size)
        return _json(self._cache.get(key, lambda: self._page(shop, page_no, page_size, None)))

    def _page(self, shop: Shop, page_no: int, page_size: int, noise: Chance | None) -> bytes:
        chosen = shop.order[page_no * page_size : (page_no + 1) * page_size]
        return pages.dump(pages.mini_shop(shop, self._products(chosen), noise), noise)

    def _search(self, asked: Asked) -> Reply:
        arguments = asked.arguments()
        keyword, page_no = arguments.get("keyword", ""), _number(arguments, "pageNo", 1)
        if not keyword or not page_no:
            return refusal(400, "keyword or pageNo")
        size = self._conditions.search_page_size
        shop = self.world.shop(keyword) or Shop(keyword, 0)
        first = (page_no - 1) * size
        # A client that encodes the link again sends `0%2C40` where `0,40` was meant, and gets nothing.
        if page_no > 1 and arguments.get("previousIdx") != f"{page_no - 1},{first}":
            return refusal(400, "previousIdx")
        found = self._found(shop, first, size)
        following = None if first >= len(shop.order) else _next_url(keyword, page_no, first + size)
        noise = self._noise(asked.target)
        document = pages.search(keyword, found, page_no=page_no, next_url=following, total=len(shop.order), noise=noise)
        return _json(pages.dump(document, noise))

    def _found(self, shop: Shop, first: int, size: int) -> list[Product]:
        """A page of the shop's items; one of another shop stands between them now and then."""
        found = self._products(shop.order[first : first + size])
        strangers = self.world.outsider.order
        for place in range(_FOREIGN_EVERY // 2, len(found), _FOREIGN_EVERY):
            found[place:place] = self._products([strangers[(first + place) % len(strangers)]])
        return found

    def _products(self, items: list[int]) -> list[Product]:
        return [product for item_no in items if (product := self.world.product(item_no)) is not None]

    def _noise(self, target: str) -> Chance | None:
        if not self._conditions.noise:
            return None
        self._asked[target] += 1
        return Chance(self._conditions.seed, "noise", target, self._asked[target])

    def _latency(self, target: str) -> float:
        conditions = self._conditions
        if not conditions.jitter_ms:
            return conditions.latency_ms / 1000
        self._asked["latency " + target] += 1
        chance = Chance(conditions.seed, "latency", target, self._asked["latency " + target])
        return (conditions.latency_ms + conditions.jitter_ms * chance.share()) / 1000


def _taken_apart(target: str) -> Asked:
    path, _, query = target.partition("?")
    kind = _KINDS.get(path)
    if kind is not None:
        return Asked(kind, 0, path, query, target)
    for name, (start, end) in (("DETAIL", _DETAIL), ("OPTION", _OPTION)):
        if path.startswith(start) and path.endswith(end):
            digits = path[len(start) : -len(end)]
            if digits.isascii() and digits.isdigit() and len(digits) <= 15:
                return Asked(name, int(digits), path, query, target)
    return Asked("OTHER", 0, path, query, target)


def _next_url(keyword: str, page_no: int, last: int) -> str:
    """Relative, and percent-encoded already, the comma included."""
    return (
        f"/v1/search/items?keyword={quote(keyword, safe='')}&sort=LATEST&f=us:NEW,lwp:Y"
        f"&pageNo={page_no + 1}&beforeItemType=Normal&previousIdx={page_no}%2C{last}"
    )


def _number(arguments: Mapping[str, str], name: str, default: int) -> int | None:
    text = arguments.get(name)
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _json(body: bytes) -> Reply:
    return Reply(200, [("content-type", JSON)], body)


def _compress(reply: Reply) -> None:
    reply.body = gzip.compress(reply.body, 1, mtime=0)
    reply.headers.append(("content-encoding", "gzip"))
