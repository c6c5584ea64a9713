"""Addresses of the marketplace: built from its configured origin, a template and a validated id; nothing else.

A url that came in an answer is data. Of `nextApiUrl` only path and query are taken, already encoded, and only when
they are a search; whatever else a request is to go to is compared, whole, with what this module would build.
"""

import re
from dataclasses import dataclass
from functools import cache

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.ids import checked_seller_id

FACADE = "/mustit-api/facade-api"
MINI_SHOP_PATH = f"{FACADE}/v1/searchmini-shop-search"
SEARCH_PATH = f"{FACADE}/v1/search/items"
LEGACY = "/mustit-api/legacy-api/v1/auction_products"
_ORIGIN = re.compile(
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?", re.ASCII
)
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+", re.ASCII)
_SEARCH_QUERY = re.compile(r"(?!\?)(?:[A-Za-z0-9\-._~=&+:,;@!$'()*/?]|%[0-9A-Fa-f]{2}){0,1800}", re.ASCII)
_ITEM_NO = r"[1-9][0-9]{0,17}"


@dataclass(frozen=True, slots=True)
class Addresses:
    origin: str
    mini_shop_path: str = MINI_SHOP_PATH

    def __post_init__(self) -> None:
        if not _ORIGIN.fullmatch(self.origin):
            raise Invalid("MARKETPLACE_URL", self.origin, "scheme and host only, like https://m.web.mustit.co.kr")
        if not _PATH.fullmatch(self.mini_shop_path):
            raise Invalid("MINI_SHOP_PATH", self.mini_shop_path, f"a path and no more, like {MINI_SHOP_PATH}")

    def token(self) -> str:
        return f"{self.origin}/"

    def robots(self) -> str:
        return f"{self.origin}/robots.txt"

    def mini_shop(self, seller_id: str, page_no: int, page_size: int) -> str:
        seller = checked_seller_id(seller_id)
        query = f"sellerId={seller}&pageNo={page_no}&pageSize={page_size}&order=LATEST"
        return f"{self.origin}{self.mini_shop_path}?{query}"

    def search(self, seller_id: str) -> str:
        return f"{self.origin}{SEARCH_PATH}?keyword={checked_seller_id(seller_id)}&sort=LATEST&pageNo=1"

    def next_search(self, path_and_query: str) -> str:
        """The next page as the last one named it (`/v1/search/items?…`): never encoded again, never appended to."""
        prefix = SEARCH_PATH.removeprefix(FACADE) + "?"
        query = path_and_query.removeprefix(prefix)
        if query == path_and_query or not _SEARCH_QUERY.fullmatch(query):
            raise Invalid("nextApiUrl", path_and_query, f"{prefix}…, percent-encoded")
        return f"{self.origin}{FACADE}{path_and_query}"

    def detail(self, item_no: int) -> str:
        return f"{self.origin}{FACADE}/v1/item/{item_no}/detail/top"

    def option(self, item_no: int) -> str:
        return f"{self.origin}{LEGACY}/{item_no}/options"

    def check(self, kind: str, url: str) -> str:
        """`url` if it is one that a task of this kind may ask for, else Invalid."""
        if not _pattern(self, kind).fullmatch(url):
            raise Invalid("requestUrl", url, f"a {kind} address of {self.origin}")
        return url


@cache
def _pattern(addresses: Addresses, kind: str) -> re.Pattern[str]:
    origin = re.escape(addresses.origin)
    if kind == "MINI_SHOP":
        query = r"sellerId=[A-Za-z0-9._-]{1,64}&pageNo=(?:0|[1-9][0-9]{0,5})&pageSize=[1-9][0-9]{0,6}&order=LATEST"
        return re.compile(rf"{origin}{re.escape(addresses.mini_shop_path)}\?{query}", re.ASCII)
    if kind == "SEARCH":
        return re.compile(rf"{origin}{re.escape(SEARCH_PATH)}\?{_SEARCH_QUERY.pattern}", re.ASCII)
    if kind == "DETAIL":
        return re.compile(rf"{origin}{re.escape(FACADE)}/v1/item/{_ITEM_NO}/detail/top", re.ASCII)
    if kind == "OPTION":
        return re.compile(rf"{origin}{re.escape(LEGACY)}/{_ITEM_NO}/options", re.ASCII)
    raise Invalid("taskType", kind, "SEARCH, MINI_SHOP, DETAIL or OPTION")
