"""What ports/reports promises of a product's past: any moment, any two of them, what proved a version, what carried it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import NOON, an_execution, an_id, at
from desk import a_raw, new_house
from sellerwatch.adapters.sql.reports import SqlReports
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.changes import Change, Proof
from sellerwatch.domain.documents import Document, DocumentKind
from sellerwatch.domain.outbox import EventType, OutboxStatus, ProductEvent
from sellerwatch.domain.products import Fetched, Product, ProductStatus, announce
from sellerwatch.ports.reports import Lags
from sellerwatch.ports.store import Unit

LIST, DETAIL, OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION
HASHES = {LIST: "1" * 32, DETAIL: "2" * 32, OPTION: "3" * 32}
FIRST: dict[DocumentKind, dict[str, Any]] = {
    LIST: {"appPrice": 900, "tags": ("new",)},
    DETAIL: {"name": "coat", "sellingPrice": 1000, "stock": 3, "images": ("a", "b")},
    OPTION: {"options": ({"optionNo": 1, "stock": 1},)},
}


class Place:
    """A database, and what would have happened if these documents had come at these seconds after noon."""

    def __init__(self, database: Any) -> None:
        self.database = database
        self.store, self.reports = SqlStore(database), SqlReports(database)
        self.product = Product.discover(1, "shop-1", NOON)
        self.events: list[ProductEvent] = []
        self.states: list[tuple[datetime, dict[str, Any]]] = []

    async def see(self, second: float, *documents: Fetched) -> Change | None:
        return await self.note(self.product.apply(documents, at(second), an_id(f"crawl/{second}")))

    async def note(self, change: Change | None) -> Change | None:
        if change:
            self.events.append(announce(self.product, change))
            state = {**self.product.fields, "sellerId": self.product.seller_id, "status": self.product.status}
            self.states.append((change.changed_at, state))

        def write(unit: Unit) -> None:
            unit.products.save([self.product])
            if change:
                unit.changes.add([change])
                unit.events.add(self.events[-1:])

        await self.store.transact(write)
        return change

    async def create(self) -> None:
        await self.see(10, *(a_document(kind, second=place) for place, kind in enumerate(DocumentKind)))


def a_document(
    kind: DocumentKind, digest: str = "", *, second: float = 0, seller_id: str = "shop-1", **fields: Any
) -> Fetched:
    said = {**FIRST[kind], **fields}
    digest = digest or HASHES[kind]
    document = Document(kind, 1, seller_id if kind is DETAIL else None, said, digest)
    return Fetched(document, digest, at(second))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with new_house(tmp_path) as database:
        yield Place(database)


async def test_a_product_is_told_as_it_was_at_any_moment_since_it_was_complete(place: Place) -> None:
    await place.create()
    await place.see(20, a_document(DETAIL, "a" * 32, second=19, sellingPrice=900, stock=None))
    await place.see(30, a_document(DETAIL, "b" * 32, second=29, seller_id="shop-2", sellingPrice=900, stock=None))
    await place.note(place.product.miss(at(35)))
    await place.note(place.product.miss(at(40)))
    await place.note(place.product.relist(at(50)))
    ask = place.reports.product
    assert await ask(1, at(9)) is None
    first = await ask(1, at(10))
    assert first is not None
    assert (first.version, first.is_complete, first.last_changed_at) == (1, True, at(10))
    assert (first.fields["sellingPrice"], first.fields["stock"], first.seller_id) == (1000, 3, "shop-1")
    assert first.fields["options"] == FIRST[OPTION]["options"]
    # When it was last seen by then nobody kept.
    assert first.last_seen_at is None
    second = await ask(1, at(29))
    assert second is not None
    assert (second.version, second.fields["sellingPrice"], "stock" in second.fields) == (2, 900, False)
    statuses = [(row.version, row.seller_id, row.status) for s in (30, 40, 50) if (row := await ask(1, at(s)))]
    assert statuses == [
        (3, "shop-2", ProductStatus.ACTIVE),
        (4, "shop-2", ProductStatus.DELISTED),
        (5, "shop-2", ProductStatus.ACTIVE),
    ]
    assert await ask(1, at(60)) == await ask(1)
    assert await ask(2, at(60)) is None


async def test_of_a_product_that_is_not_complete_no_past_is_kept(place: Place) -> None:
    await place.see(10, a_document(DETAIL, second=9))
    assert await place.reports.product(1, at(8)) is None
    assert await place.reports.product(1, at(9)) == await place.reports.product(1)


async def test_the_difference_of_two_moments_is_told_whatever_was_in_between(place: Place) -> None:
    await place.create()
    await place.see(20, a_document(DETAIL, "a" * 32, second=19, sellingPrice=900, name="hat"))
    await place.see(30, a_document(DETAIL, "b" * 32, second=29, sellingPrice=800))
    found = await place.reports.difference(1, at(10), at(30))
    assert found is not None
    assert (found.from_version, found.to_version) == (1, 3)
    assert [one.shown() for one in found.fields] == [{"field": "sellingPrice", "old": 1000, "new": 800}]
    nothing = await place.reports.difference(1, at(31), at(99))
    assert nothing is not None
    assert (nothing.from_version, nothing.to_version, nothing.fields) == (3, 3, ())
    born = await place.reports.difference(1, at(0), at(25))
    assert born is not None
    assert (born.from_version, born.to_version) == (0, 2)
    assert {one.field: one.new for one in born.fields}["name"] == "hat"
    assert {one.old for one in born.fields} == {None}
    before = await place.reports.difference(1, at(0), at(9))
    assert before is not None
    assert before.fields == ()
    assert await place.reports.difference(2, at(0), at(9)) is None


VALUES = st.fixed_dictionaries(
    {"sellingPrice": st.integers(0, 3), "images": st.lists(st.sampled_from("ab"), max_size=2).map(tuple)},
    optional={"stock": st.none() | st.integers(0, 2), "name": st.sampled_from(["coat", "hat"])},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(VALUES, max_size=8))
async def test_every_version_is_read_back_as_it_was(tmp_path_factory: Any, told: list[dict[str, Any]]) -> None:
    with new_house(tmp_path_factory.mktemp("past")) as database:
        place = Place(database)
        await place.create()
        for number, fields in enumerate(told):
            second = 20 + number
            await place.see(second, a_document(DETAIL, f"{number:032}", second=second, **fields))
        for moment, state in place.states:
            row = await place.reports.product(1, moment)
            assert row is not None
            known = {**row.fields, "sellerId": row.seller_id, "status": row.status}
            assert known == {name: value for name, value in state.items() if value is not None}


async def test_a_version_is_told_with_the_documents_that_prove_it(place: Place) -> None:
    await place.create()
    price, stock = a_document(DETAIL, "a" * 32, second=19, sellingPrice=1), a_document(OPTION, "b" * 32, options=())
    await place.store.transact(lambda unit: unit.raws.put([a_raw(1, DETAIL, raw_hash="a" * 32)]))
    # The list says something else, but nothing that is the product's.
    await place.see(20, a_document(LIST, "c" * 32, second=18, name="other"), price, stock)
    await place.note(place.product.miss(at(30)))
    await place.note(place.product.miss(at(40), an_execution().execution_id))
    created, changed, gone = await place.reports.versions_after(1, 0, 10)
    assert [(proof.kind, proof.fetched_at) for proof in created.proofs] == [
        (LIST, at(0)),
        (DETAIL, at(1)),
        (OPTION, at(2)),
    ]
    assert [(proof.kind, proof.raw_id, proof.is_kept) for proof in changed.proofs] == [
        (DETAIL, Proof(DETAIL, "a" * 32, at(19)).raw_id(1), True)
    ]
    assert changed.execution_id == an_id("crawl/20")
    assert (gone.proofs, gone.execution_id) == ((), an_execution().execution_id)
    assert [row.change.version for row in await place.reports.versions_after(1, 1, 1)] == [2]
    assert await place.reports.versions_after(9, 0, 10) == []


async def test_a_version_is_told_with_the_delivery_that_carried_it_or_will(place: Place) -> None:
    await place.create()
    for number in range(2, 6):
        await place.see(number * 10, a_document(DETAIL, f"{number:032}", second=number * 10, sellingPrice=number))
    first, second, third, fourth, fifth = place.events
    # CREATED and the next were folded into the third; the fourth was given up; the fifth waits.
    second.supersede(first, at(60))
    third.supersede(second, at(60))
    third.completed(at(61))
    fourth.status = OutboxStatus.SENDING
    fourth.failed("HTTP 400", 5, at(99), is_final=True)
    await place.store.transact(lambda unit: unit.events.put(place.events))
    rows = [row.delivery for row in await place.reports.versions_after(1, 0, 10)]
    assert [(one.outbox_id, one.version, one.status, one.confirmed_at, one.note) for one in rows if one] == [
        *[(third.outbox_id, 3, "COMPLETED", at(61), None)] * 3,
        (fourth.outbox_id, 4, "FAILED", None, "HTTP 400"),
        (fifth.outbox_id, 5, "WAITING", None, None),
    ]
    assert third.event_type is EventType.CREATED
    await place.store.transact(lambda unit: unit.chores.prune("product_outbox", at(9999), 10))
    assert [row.delivery is None for row in await place.reports.versions_after(1, 0, 10)] == [True] * 3 + [False] * 2


async def test_all_changes_are_read_in_one_order_and_by_seller_and_time(place: Place) -> None:
    await place.create()
    await place.see(20, a_document(DETAIL, "a" * 32, second=19, sellingPrice=900))
    await place.see(30, a_document(DETAIL, "b" * 32, second=29, seller_id="shop-2", sellingPrice=900))
    first, *rest = await place.reports.all_changes_after(0, 2)
    rest += await place.reports.all_changes_after(rest[-1].number, 2)
    assert [row.version for row in (first, *rest)] == [1, 2, 3]
    assert [row.version for row in await place.reports.all_changes_after(0, 9, since=at(20))] == [2, 3]
    assert [row.version for row in await place.reports.all_changes_after(0, 9, seller_id="shop-2")] == [3]


async def test_a_lag_counts_from_the_answer_to_the_confirmation(place: Place) -> None:
    assert await place.reports.lags(NOON) == Lags(0)
    await place.create()
    for number in range(2, 22):
        await place.see(number * 10, a_document(DETAIL, f"{number:032}", second=number * 10 - 5, sellingPrice=number))
    *confirmed, folded = place.events
    for number, event in enumerate(confirmed, 1):
        event.completed((event.seen_at or NOON) + timedelta(seconds=number))
    folded.completed(at(9999), "discarded")
    await place.store.transact(lambda unit: unit.events.put(place.events))
    lags = await place.reports.lags(NOON)
    assert lags == Lags(20, timedelta(seconds=10), timedelta(seconds=19), timedelta(seconds=20))
    assert (await place.reports.lags(at(200))).count == 1
    assert confirmed[0].lag == timedelta(seconds=1)
    assert folded.lag is None
