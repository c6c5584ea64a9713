"""An operator's desk for tests: a new database with things in it, and commands typed at it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from typer.testing import CliRunner

from builders import NOON
from doors import new_database
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.changes import Change, FieldChange
from sellerwatch.domain.documents import ChangeKind, DocumentKind
from sellerwatch.domain.outbox import OutboxStatus, ProductEvent
from sellerwatch.domain.products import Product, Seen, announce
from sellerwatch.domain.raws import Raw, RawStatus, raw_id
from sellerwatch.entry.cli import app
from sellerwatch.ports.store import Unit

T = TypeVar("T")
BRAND = {"brandCode": 153, "brandName": "Maison", "brandNameKr": "메종"}


@contextmanager
def new_house(folder: Path) -> Iterator[Database]:
    """An empty database at the newest revision; work runs on the test's own thread."""
    file = folder / "sellerwatch.db"
    file.write_bytes(new_database())
    database = Database(engine(f"sqlite:///{file}"), inline=True)
    yield database
    database.close()


@dataclass(frozen=True, slots=True)
class Said:
    exit_code: int
    out: str
    err: str
    raised: BaseException | None

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problems(self) -> list[str]:
        return self.err.splitlines()


@dataclass(frozen=True, slots=True)
class Desk:
    """A terminal in a folder of its own, and the database there behind the commands' back."""

    folder: Path

    @classmethod
    def furnished(cls, folder: Path) -> "Desk":
        """With a database at the newest revision, and nothing in it."""
        desk = cls(folder)
        desk.file.write_bytes(new_database())
        return desk

    @property
    def file(self) -> Path:
        return self.folder / "sellerwatch.db"

    def type(self, *words: str, **environment: str) -> Said:
        settings = {"SELLERWATCH_DATABASE_URL": f"sqlite:///{self.file}", **environment}
        result = CliRunner().invoke(app, list(words), env=settings, prog_name="sellerwatch")
        return Said(result.exit_code, result.stdout, result.stderr, result.exception)

    def plant(self, work: Callable[[Unit], T]) -> T:
        if not self.file.exists():
            self.file.write_bytes(new_database())
        database = Database(engine(f"sqlite:///{self.file}"), inline=True)
        try:
            return asyncio.run(SqlStore(database).transact(work))
        finally:
            database.close()


def a_product(item_no: int = 1000, *, seller_id: str = "shop-1", version: int = 1, **fields: Any) -> Product:
    """Complete, all three documents seen at noon."""
    product = Product.discover(item_no, seller_id, NOON)
    product.version, product.last_changed_at = version, NOON
    product.seen = {kind: Seen("d" * 32, f"{kind.value.lower():0>32}", NOON) for kind in DocumentKind}
    product.fields = {"name": f"Item {item_no}", "sellingPrice": 599000, **BRAND, **fields}
    return product


def a_change(product: Product, version: int, field: str = "sellingPrice", old: Any = 1, new: Any = 2) -> Change:
    fields = (FieldChange(field, old, new),)
    return Change(
        f"{product.product_id[:-4]}{version:04d}",
        product.product_id,
        product.item_no,
        product.seller_id,
        version,
        (ChangeKind.PRICE,),
        fields,
        NOON,
    )


def an_event(product: Product, version: int, status: OutboxStatus, **other: Any) -> ProductEvent:
    event = announce(product, a_change(product, version))
    event.status = status
    for name, value in other.items():
        setattr(event, name, value)
    return event


def a_raw(
    item_no: int = 1000,
    kind: DocumentKind = DocumentKind.DETAIL,
    *,
    raw_hash: str,
    status: RawStatus = RawStatus.PROCESSED,
    crawled_at: datetime = NOON,
    **other: Any,
) -> Raw:
    raw = Raw(
        raw_id(item_no, kind, raw_hash), item_no, "shop-1", "task", "execution", kind, b"{}", raw_hash, crawled_at, NOON
    )
    raw.status = status
    for name, value in other.items():
        setattr(raw, name, value)
    return raw


def hash_of(kind: DocumentKind) -> str:
    """Of the bytes that a complete product's document of this kind came as."""
    return f"{kind.value.lower():0>32}"
