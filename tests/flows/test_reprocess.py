"""What reprocessing promises: a trial tells the truth, only real differences are told, and it may be ended anywhere."""

import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from builders import NOON, a_seller, an_id, at
from desk import new_house
from pages.items import a_list_item
from pages.products import a_detail, an_option, options_of
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import Document, DocumentKind, content_hash
from sellerwatch.domain.outbox import ProductEvent
from sellerwatch.domain.products import Product
from sellerwatch.domain.raws import Raw, RawStatus, raw_id
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.flows import reprocess as reprocessing
from sellerwatch.flows.absorb import Absorb
from sellerwatch.flows.reprocess import Reprocess, Reprocessed
from sellerwatch.ports.time import Chance

LIST, DETAIL, OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION
LONG_AGO = NOON - timedelta(days=1)


class Mended(Parse):
    """A parser that was mended since: it reads a name without what is in brackets, and knows what a promise costs."""

    def document(self, kind: DocumentKind, item_no: int, raw: bytes) -> Document:
        if kind is DETAIL:
            raw = raw.replace(b'"\xea\xb0\x80\xea\xb2\xa9\xeb\xac\xb8\xec\x9d\x98"', b"777000")
        document = super().document(kind, item_no, raw)
        name = document.fields.get("name")
        if kind is not DETAIL or not isinstance(name, str) or "(" not in name:
            return document
        fields = {**document.fields, "name": name.partition("(")[0].strip()}
        return replace(document, fields=fields, digest=content_hash(orjson.dumps(fields)))


class HalfChance:
    def random(self) -> float:
        return 0.5


class Place:
    def __init__(self, database: Database) -> None:
        self.database, self.store, self.clock = database, SqlStore(database), SystemClock()
        self.bell = AsyncBell(self.clock)

    def reprocess(self, *, is_mended: bool = True) -> Reprocess:
        return Reprocess(self.store, Mended() if is_mended else Parse(), self.clock, self.bell)

    async def run(self, *, is_trial: bool = False, since: Any = LONG_AGO, is_mended: bool = True) -> Reprocessed:
        told = [done async for done in self.reprocess(is_mended=is_mended).run(since, is_trial=is_trial)]
        return told[-1]

    async def crawl(self, *raws: Raw) -> None:
        """Stored, and absorbed by the parser as it was."""
        chance: Chance = HalfChance()  # type: ignore[assignment]
        await self.store.transact(lambda unit: unit.raws.put(raws))
        while (await Absorb(self.store, Parse(), self.clock, chance, self.bell).run()).raws:
            pass

    async def product(self, item_no: int = 1000) -> Product:
        found = await self.store.read(lambda unit: unit.products.get(item_no))
        assert found is not None
        return found

    async def changes(self, item_no: int = 1000) -> list[Change]:
        return await self.store.read(lambda unit: unit.changes.of_item(item_no))

    async def event(self, change: Change) -> ProductEvent:
        product = await self.product(change.item_no)
        outbox_id = reprocessing.announce(product, change).outbox_id
        [event] = await self.store.read(lambda unit: unit.events.lock([outbox_id]))
        return event

    async def raws(self, *raws: Raw) -> list[RawStatus]:
        found = await self.store.read(lambda unit: unit.raws.lock_by_id([raw.raw_id for raw in raws]))
        return [next(one.status for one in found if one.raw_id == raw.raw_id) for raw in raws]

    async def everything(self) -> Sequence[Any]:
        def dump(connection: Any) -> list[Any]:
            tables = ("products", "product_raw_data", "product_changes", "product_outbox")
            return [list(connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY id")) for table in tables]

        return await self.database.read(dump)


def a_raw(kind: DocumentKind, body: bytes, second: float = 0, *, item_no: int = 1000, seller_id: str = "nord") -> Raw:
    digest, execution = content_hash(body), an_id(f"crawl/{second}")
    return Raw(
        raw_id(item_no, kind, digest),
        item_no,
        seller_id,
        an_id("task"),
        execution,
        kind,
        body,
        digest,
        at(second),
        NOON,
    )


def all_three(item_no: int = 1000, second: float = 0, **detail: object) -> list[Raw]:
    return [
        a_raw(LIST, orjson.dumps(a_list_item(item_no)), second, item_no=item_no),
        a_raw(DETAIL, a_detail(item_no, **detail), second, item_no=item_no),
        a_raw(OPTION, options_of(an_option(item_no)), second, item_no=item_no),
    ]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with new_house(tmp_path) as database:
        yield Place(database)


async def test_a_trial_tells_field_by_field_what_the_run_then_does_and_changes_nothing(place: Place) -> None:
    for item_no in (1000, 1001):
        await place.crawl(*all_three(item_no))
    await place.crawl(*all_three(1002, itemName="plain"))
    before = await place.everything()
    told = await place.run(is_trial=True)
    assert await place.everything() == before
    assert (told.items, told.items_total, told.raws, told.events, told.created) == (3, 3, 9, 2, 0)
    assert told.fields.keys() == {"name"}
    name = told.fields["name"]
    old = "노르드 여성 울 코트(네이비) AN1000"
    assert (name.count, name.samples[0]) == (2, (1000, old, "노르드 여성 울 코트"))
    assert await place.run() == told
    assert [change.version for change in await place.changes()] == [1, 2]
    assert [change.version for change in await place.changes(1002)] == [1]
    assert (await place.product()).fields["name"] == "노르드 여성 울 코트"


async def test_what_was_done_is_found_done_and_the_rest_is_done(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reprocessing, "ITEMS", 2)
    for item_no in range(1000, 1005):
        await place.crawl(*all_three(item_no))
    # Killed after the second of three batches: a generator that nobody asks any more goes no further.
    run = place.reprocess().run(LONG_AGO)
    counts = [(await anext(run)).items for _ in range(3)]
    await run.aclose()  # type: ignore[attr-defined]
    assert counts == [0, 2, 4]
    rest = await place.run()
    assert (rest.items, rest.events) == (5, 1)
    after = await place.everything()
    again = await place.run()
    assert (again.events, again.fields) == (0, {})
    assert await place.everything() == after
    assert [len(await place.changes(item_no)) for item_no in range(1000, 1005)] == [2] * 5


async def test_an_items_documents_make_one_change_whatever_crawls_they_came_from(place: Place) -> None:
    await place.crawl(*all_three())
    await place.crawl(a_raw(OPTION, options_of(an_option(5)), 50))
    failed = a_raw(DETAIL, a_detail(sellingPrice="가격문의", stock=9), 60)
    await place.crawl(failed)
    assert await place.raws(failed) == [RawStatus.FAILED]
    told = await place.run(is_trial=True)
    assert (told.events, set(told.fields)) == (1, {"name", "sellingPrice", "stock"})
    assert await place.run() == told
    assert await place.raws(failed) == [RawStatus.PROCESSED]
    *_, change = await place.changes()
    assert {one.field: one.new for one in change.fields}["sellingPrice"] == 777000
    assert [(proof.kind, proof.raw_hash) for proof in change.proofs] == [(DETAIL, failed.raw_hash)]
    assert change.execution_id == failed.execution_id
    # It has been due since the answer came.
    assert (await place.event(change)).seen_at == failed.crawled_at


async def test_what_is_read_otherwise_is_due_since_it_was_read_not_since_it_was_answered(place: Place) -> None:
    await place.crawl(*all_three())
    await place.run()
    *_, change = await place.changes()
    assert change.proofs[0].at == NOON
    assert (await place.event(change)).seen_at == change.changed_at > NOON + timedelta(hours=1)


async def test_of_each_kind_the_newest_counts_and_what_waits_is_left_to_wait(place: Place) -> None:
    first, second = all_three(), a_raw(DETAIL, a_detail(stock=1), 10)
    await place.crawl(*first)
    await place.crawl(second)
    waiting = a_raw(OPTION, options_of(an_option(77)), 20)
    waiting.next_attempt_at = NOON + timedelta(days=99_999)
    await place.store.transact(lambda unit: unit.raws.put([waiting]))
    done = await place.run()
    # The list entry and the newer detail; not the older detail, and of the options neither.
    assert (done.raws, done.passed_over) == (2, 3)
    assert (await place.product()).fields["stock"] == 1
    assert await place.raws(waiting) == [RawStatus.PENDING]


async def test_content_that_came_back_counts_as_the_newest(place: Place) -> None:
    first, second = a_detail(stock=1), a_detail(stock=2)
    await place.crawl(*all_three(stock=1))
    await place.crawl(a_raw(DETAIL, second, 10))
    await place.crawl(a_raw(DETAIL, first, 20))
    await place.run()
    assert (await place.product()).fields["stock"] == 1
    assert (await place.run(is_trial=True)).events == 0


async def test_what_is_still_not_understood_is_told_and_the_newest_that_is_stands_in(place: Place) -> None:
    await place.crawl(*all_three())
    broken = a_raw(DETAIL, a_detail(stock="many"), 60)
    await place.crawl(broken)
    done = await place.run()
    assert {where: tally.count for where, tally in done.not_understood.items()} == {"DETAIL.stock": 1}
    assert done.not_understood["DETAIL.stock"].samples[0][0] == 1000
    assert await place.raws(broken) == [RawStatus.FAILED]
    assert (await place.product()).fields["name"] == "노르드 여성 울 코트"


async def test_an_item_whose_first_documents_failed_becomes_a_product(place: Place) -> None:
    await place.crawl(*all_three(sellingPrice="가격문의"))
    told = await place.run(is_trial=True)
    assert (told.events, told.created) == (1, 1)
    assert await place.run() == told
    [created] = await place.changes()
    assert (created.version, [kind.value for kind in created.kinds]) == (1, ["CREATED"])


async def test_another_sellers_item_in_a_search_stays_a_strangers(place: Place) -> None:
    seller = a_seller("mine", crawl_source=CrawlSource.SEARCH)
    await place.store.transact(lambda unit: unit.sellers.add(seller))
    foreign = a_raw(DETAIL, a_detail(sellingPrice="가격문의"), seller_id="mine")
    await place.crawl(foreign)
    assert (await place.run()).events == 0
    assert await place.store.read(lambda unit: unit.products.get(1000)) is None
    assert await place.raws(foreign) == [RawStatus.PROCESSED]


async def test_a_delisted_product_is_not_brought_back_by_reading_it_again(place: Place) -> None:
    await place.crawl(*all_three())
    product = await place.product()
    for second in (10, 20):
        product.miss(at(second))
    await place.store.transact(lambda unit: unit.products.save([product]))
    await place.run()
    *_, change = await place.changes()
    assert [one.field for one in change.fields] == ["name"]
    assert (await place.product()).status.value == "DELISTED"


async def test_documents_of_before_are_left_alone(place: Place) -> None:
    await place.crawl(*all_three(1000, -7200), *all_three(1001))
    done = await place.run(since=NOON - timedelta(hours=1))
    assert (done.items_total, done.raws) == (1, 3)
    assert len(await place.changes(1000)) == 1


async def test_memory_does_not_grow_with_the_number_of_items(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reprocessing, "ITEMS", 5)
    picture = "<p>" + "x" * 40_000 + "</p>"

    async def peak(items: range) -> int:
        for item_no in items:
            await place.crawl(*all_three(item_no, descriptionMarkUp=picture))
        tracemalloc.start()
        await place.run(is_trial=True)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few = await peak(range(1000, 1010))
    # 2.5 MB of documents more, were they all held.
    assert await peak(range(1010, 1070)) < few + 1_000_000
