"""A careful weekend script: aiohttp, batched SQLite in WAL, change detection by hash, changes posted as they are found.

It does the same job while nothing goes wrong. It has no tasks, attempts, outboxes, budgets, retries, history of raws or
recovery: what a crash or a bad answer leaves behind is the reader's to imagine.
"""

import asyncio
import hashlib
import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import orjson

from bench.measured import Account, Lap, Meter, run, tell
from bench.visitor import Visitor, in_lanes, visitor
from bench.world import PRODUCTS_PATH, change_some

BATCH = 500
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE products (item_no INTEGER PRIMARY KEY, seller TEXT, hash BLOB, version INTEGER, data BLOB);
CREATE TABLE changes (item_no INTEGER, version INTEGER, fields BLOB, PRIMARY KEY (item_no, version));
"""
_INFO = ("itemName", "brandName", "brandNameKr", "brandCode", "normalPrice", "sellingPrice", "discountPrice",
         "discountRate", "stock", "isSoldOut")  # fmt: skip


class Script:
    """The script, with its memory: the hash and version of every product."""

    def __init__(self, guest: Visitor, database: sqlite3.Connection) -> None:
        self._guest, self._database = guest, database
        self._known = {item: (digest, version) for item, digest, version in database.execute(
            "SELECT item_no, hash, version FROM products"
        )}  # fmt: skip
        self._products: list[tuple] = []
        self._changes: list[tuple] = []
        self.posted = 0

    async def crawl(self, shops: dict[str, int]) -> None:
        entries = await self._guest.listed(shops)
        await in_lanes(entries, lambda entry: self._look_at(*entry))
        self._write()

    async def _look_at(self, seller: str, entry: dict) -> None:
        item_no = entry["itemNo"]
        detail, options = await asyncio.gather(self._guest.detail(item_no), self._guest.options(item_no))
        data = _product(entry, orjson.loads(detail), orjson.loads(options))
        body = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
        digest = hashlib.blake2b(body, digest_size=16).digest()
        known, version = self._known.get(item_no, (None, 0))
        if known == digest:
            return
        version += 1
        fields = [] if known is None else self._differences(item_no, data)
        self._known[item_no] = digest, version
        self._products.append((item_no, seller, digest, version, body))
        self._changes.append((item_no, version, orjson.dumps(fields)))
        if len(self._products) >= BATCH:
            self._write()
        await self._post(item_no, version, fields, data)

    def _differences(self, item_no: int, data: dict) -> list[dict]:
        self._write()
        (body,) = self._database.execute("SELECT data FROM products WHERE item_no = ?", (item_no,)).fetchone()
        before = orjson.loads(body)
        return [{"field": name, "old": before[name], "new": new} for name, new in data.items() if before[name] != new]

    def _write(self) -> None:
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO products VALUES (?, ?, ?, ?, ?)", self._products)
            self._database.executemany("INSERT INTO changes VALUES (?, ?, ?)", self._changes)
        self._products, self._changes = [], []

    async def _post(self, item_no: int, version: int, fields: list[dict], data: dict) -> None:
        event = {
            "eventType": "PRODUCT_UPDATED" if fields else "PRODUCT_CREATED",
            "itemNo": item_no,
            "version": version,
            "changes": fields,
            "productData": data,
        }
        headers = {"Idempotency-Key": f"{item_no}-{version}", "Content-Type": "application/json"}
        async with self._guest.session.post(PRODUCTS_PATH, data=orjson.dumps(event), headers=headers) as response:
            await response.read()
            response.raise_for_status()
        self.posted += 1


def _product(entry: dict, detail: dict, options: list[dict]) -> dict:
    """What is business of the three documents."""
    modules = {module["type"]: module["data"] for module in detail["moduleList"]}
    info = modules["ProductInfoModule"]
    about = modules.get("ProductDetailInfoModule", {})
    return {
        **{name: info[name] for name in _INFO},
        "category": [info.get(f"{level}CategoryCode") for level in ("header", "large", "medium", "small")],
        "images": [url.partition("/_dims_/")[0] for url in modules["ProductBannersModule"]["images"]],
        "shipping": [
            {"type": item["data"]["shippingType"], "fee": item["data"]["shippingFee"]}
            for item in modules["ShippingModule"]["items"]
            if item["type"] == "SHIPPING"
        ],
        "appPrice": _won(entry["appPrice"]),
        "originalPrice": _won(entry["originalPrice"]),
        "tags": sorted(tag["title"] for tag in entry["tagList"]),
        "origin": about.get("originCountry"),
        "status": about.get("itemStatus"),
        "description": about.get("descriptionMarkUp"),
        "options": sorted(
            ([option["optionNo"], option["color"], option["size"], option["stock"]] for option in options),
            key=lambda option: option[0],
        ),
    }


def _won(price: str | int) -> int:
    return int(price.replace(",", "")) if isinstance(price, str) else price


async def crawl_twice(url: str, shops: dict[str, int]) -> Account:
    account = Account()
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "weekend.db")
        database.executescript(_SCHEMA)
        for name in ("first", "second"):
            if account.laps:
                account.note = f"{change_some(url)} changed before the second"
            with Meter(Lap(name, sum(shops.values()))) as lap:
                async with visitor(url) as guest:
                    script = Script(guest, database)
                    await script.crawl(shops)
            lap.delivered = script.posted
            account.laps.append(lap)
        database.close()
    return account


if __name__ == "__main__":
    tell(run(crawl_twice(sys.argv[1], json.loads(sys.argv[2]))))
