"""Products: the same documents, the same product, in whatever order and however often they come."""

from collections.abc import Iterable
from copy import deepcopy
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders import NOON, at
from pages import a_detail, a_list_item, a_search_item, an_option, options_of
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import ChangeKind, DocumentKind, content_hash
from sellerwatch.domain.outbox import EventType
from sellerwatch.domain.products import Fetched, Product, ProductStatus, Seen, announce

LIST, DETAIL, OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION
ITEM = 1000


def _options(*stocks: int) -> bytes:
    return options_of(*(an_option(5000 + n, stock=stock) for n, stock in enumerate(stocks)))


BODIES: dict[DocumentKind, list[bytes]] = {
    LIST: [
        orjson.dumps(a_list_item(ITEM)),
        orjson.dumps(a_list_item(ITEM, appPrice="500,000", price="510,000")),
        orjson.dumps(a_list_item(ITEM, tagList=[], normalPrice=None)),
        orjson.dumps(a_list_item(ITEM, likeCount=9)),
    ],
    DETAIL: [
        a_detail(ITEM),
        a_detail(ITEM, sellingPrice=1, discountPrice=1),
        a_detail(ITEM, stock=0, isSoldOut=True),
        a_detail(ITEM, sellerId="other"),
        a_detail(ITEM, sellerId="NORD", images=[]),
    ],
    OPTION: [_options(1, 1), _options(1, 0), _options(1), b"[]"],
}


@cache
def fetched(kind: DocumentKind, which: int = 0, minute: int = 0) -> Fetched:
    body = BODIES[kind][which]
    return Fetched(Parse().document(kind, ITEM, body), content_hash(body), at(60 * minute))


def of(kind: DocumentKind, body: bytes, minute: int = 0) -> Fetched:
    return Fetched(Parse().document(kind, ITEM, body), content_hash(body), at(60 * minute))


def a_product() -> Product:
    return Product.discover(ITEM, "nord", NOON)


def a_complete_product() -> Product:
    product = a_product()
    product.apply([fetched(LIST), fetched(DETAIL), fetched(OPTION)], NOON)
    return product


def known(product: Product) -> tuple[object, ...]:
    """All that must not depend on the order. (In which case a seller's id is written is no difference.)"""
    fields = {name: value for name, value in product.fields.items() if value is not None}
    seller_id = product.seller_id.casefold()
    return fields, product.seen, product.is_complete, seller_id, product.last_seen_at, product.status


DOCUMENTS = st.sampled_from(DocumentKind).flatmap(
    lambda kind: st.builds(fetched, st.just(kind), st.integers(0, len(BODIES[kind]) - 1), st.integers(0, 3))
)
MANY = st.lists(DOCUMENTS, min_size=1, max_size=9)


def applied(observations: Iterable[list[Fetched]]) -> Product:
    product = a_product()
    for number, observation in enumerate(observations):
        product.apply(observation, at(3600 + number))
    return product


# ── I8, I16: order and repetition ──


@given(st.permutations([LIST, DETAIL, OPTION]), st.tuples(*(st.integers(0, len(BODIES[kind]) - 1) for kind in BODIES)))
def test_three_documents_make_the_same_product_in_any_order(order: list[DocumentKind], which: tuple[int, ...]) -> None:
    chosen = dict(zip(BODIES, which, strict=True))
    together = applied([[fetched(kind, chosen[kind]) for kind in BODIES]])
    one_by_one = applied([[fetched(kind, chosen[kind])] for kind in order])
    assert known(one_by_one) == known(together)
    assert one_by_one.is_complete
    assert one_by_one.version == together.version == 1
    assert one_by_one.data() == together.data()


@given(MANY, st.data())
def test_any_order_and_repetition_of_documents_makes_the_same_product(
    documents: list[Fetched], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(documents + data.draw(st.lists(st.sampled_from(documents), max_size=4))))
    assert known(applied([one] for one in shuffled)) == known(applied([one] for one in documents))


@given(MANY, st.integers(1, 4))
def test_it_does_not_matter_how_documents_fall_into_observations(documents: list[Fetched], size: int) -> None:
    in_groups = [documents[start : start + size] for start in range(0, len(documents), size)]
    assert known(applied(in_groups)) == known(applied([one] for one in documents))


@given(MANY)
def test_an_observation_repeated_changes_nothing_the_second_time(documents: list[Fetched]) -> None:
    product = applied([documents])
    before = known(product), product.version
    assert product.apply(documents, at(9999)) is None
    assert product.apply(reversed(documents), at(9999)) is None
    assert (known(product), product.version) == before


@given(MANY)
def test_the_fields_are_those_of_the_newest_document_of_each_kind(documents: list[Fetched]) -> None:
    product = applied([one] for one in documents)
    newest: dict[DocumentKind, Fetched] = {}
    for one in sorted(documents, key=lambda one: (one.at, one.raw_hash)):
        newest[one.document.kind] = one
    assert product.seen == {kind: Seen(one.document.digest, one.raw_hash, one.at) for kind, one in newest.items()}
    assert product.is_complete == (len(newest) == 3)
    fresh = applied([list(newest.values())])
    assert {name: value for name, value in product.fields.items() if value is not None} == {
        name: value for name, value in fresh.fields.items() if value is not None
    }


# ── lesson 40: ordered by the moment of the fetch ──


@pytest.mark.parametrize("kind", DocumentKind)
def test_an_older_document_changes_nothing(kind: DocumentKind) -> None:
    product = a_product()
    product.apply([fetched(one, 0, 3) for one in DocumentKind], at(200))
    before = known(product), product.version
    assert product.apply([fetched(kind, 1, 2)], at(300)) is None
    assert (known(product), product.version) == before
    assert product.apply([fetched(kind, 1, 4)], at(400)) is not None


def test_of_two_documents_of_one_moment_the_same_one_wins_whichever_came_first() -> None:
    one, other = fetched(DETAIL, 0, 1), fetched(DETAIL, 1, 1)
    assert applied([[one], [other]]).fields == applied([[other], [one]]).fields


def test_the_same_bytes_are_understood_anew_when_the_parser_was_mended() -> None:
    """Reprocessed, a raw bears its old moment; that it was seen since must not make it too old to be read."""
    product = a_complete_product()
    first = fetched(DETAIL)
    product.seen[DETAIL] = Seen(first.document.digest, first.raw_hash, at(7200))
    mended = deepcopy(first.document)
    object.__setattr__(mended, "fields", {**mended.fields, "originCountry": "Italy"})
    object.__setattr__(mended, "digest", "mended")
    change = product.apply([Fetched(mended, first.raw_hash, first.at)], at(9000))
    assert change is not None
    assert [one.field for one in change.fields] == ["originCountry"]
    assert product.seen[DETAIL] == Seen("mended", first.raw_hash, at(7200))


@pytest.mark.parametrize("minute", [0, -1])
def test_a_document_of_before_brings_no_ended_listing_back(minute: int) -> None:
    product = a_complete_product()
    product.miss(at(1000))
    product.miss(at(2000))
    assert product.apply([fetched(DETAIL, 0, minute), fetched(DETAIL, 1, -1)], at(3000)) is None
    assert product.status is ProductStatus.DELISTED


def test_what_a_newer_list_no_longer_says_does_not_stand_in_from_an_older_one() -> None:
    priced, unpriced = fetched(LIST, 0, 1), fetched(LIST, 2, 2)
    assert applied([[priced]]).fields["normalPrice"] == 1_075_000
    assert applied([[priced], [unpriced]]).fields.get("normalPrice") is None
    assert known(applied([[priced], [unpriced]])) == known(applied([[unpriced], [priced]]))


# ── versions and changes ──


def test_a_product_has_no_version_and_tells_nothing_before_it_is_complete() -> None:
    product = a_product()
    told = [
        product.apply([one], NOON)
        for one in (fetched(LIST), fetched(DETAIL), fetched(LIST, 1, 1), fetched(DETAIL, 1, 1))
    ]
    assert told == [None] * 4
    assert (product.version, product.is_complete, product.last_changed_at) == (0, False, None)
    created = product.apply([fetched(OPTION)], at(5))
    assert created is not None
    assert (created.kinds, created.version, created.fields) == ((ChangeKind.CREATED,), 1, ())
    assert (product.version, product.last_changed_at) == (1, at(5))


@pytest.mark.parametrize(
    ("kind", "body", "kinds", "fields"),
    [
        (DETAIL, a_detail(ITEM, sellingPrice=5), {ChangeKind.PRICE}, {"sellingPrice"}),
        (DETAIL, a_detail(ITEM, stock=0), {ChangeKind.STOCK}, {"stock"}),
        (DETAIL, a_detail(ITEM, isSoldOut=True), {ChangeKind.SOLD_OUT}, {"soldOut"}),
        (DETAIL, a_detail(ITEM, itemName="other"), {ChangeKind.INFO}, {"name"}),
        (DETAIL, a_detail(ITEM, images=[]), {ChangeKind.IMAGES}, {"images"}),
        (DETAIL, a_detail(ITEM, largeCategory="가방"), {ChangeKind.CATEGORY}, {"category"}),
        (DETAIL, a_detail(ITEM, shippingFee=3000), {ChangeKind.SHIPPING}, {"shipping"}),
        (DETAIL, a_detail(ITEM, sellerId="other"), {ChangeKind.SELLER}, {"sellerId"}),
        (OPTION, b"[]", {ChangeKind.OPTIONS}, {"options"}),
        (OPTION, _options(1, 0), {ChangeKind.OPTIONS}, {"options"}),
        (LIST, orjson.dumps(a_list_item(ITEM, appPrice="1")), {ChangeKind.PRICE}, {"appPrice"}),
        (LIST, orjson.dumps(a_list_item(ITEM, tagList=[])), {ChangeKind.INFO}, {"tags"}),
        (
            DETAIL,
            a_detail(ITEM, stock=0, isSoldOut=True, sellingPrice=5),
            {ChangeKind.STOCK, ChangeKind.SOLD_OUT, ChangeKind.PRICE},
            {"stock", "soldOut", "sellingPrice"},
        ),
    ],
)
def test_each_kind_of_change_is_told_by_its_name(
    kind: DocumentKind, body: bytes, kinds: set[ChangeKind], fields: set[str]
) -> None:
    product = a_complete_product()
    change = product.apply([of(kind, body, 5)], at(300))
    assert change is not None
    assert (set(change.kinds), {one.field for one in change.fields}, change.version) == (kinds, fields, 2)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (LIST, orjson.dumps(a_list_item(ITEM, likeStatus=True, likeCount=5, webSpacingInfo="even"))),
        (
            LIST,
            orjson.dumps(a_list_item(ITEM, price="1", normalPrice="1", imageUrlList=[], discountRate="1", name="x")),
        ),
        (LIST, orjson.dumps(a_list_item(ITEM, appPrice=537500), option=orjson.OPT_SORT_KEYS)),
        (LIST, orjson.dumps(a_search_item(ITEM, tagList=a_list_item()["tagList"]))),
        (DETAIL, a_detail(ITEM, sellerId="NoRd")),
        (DETAIL, a_detail(ITEM, isLowestPrice=False, countPriceComparison=0, userDiscountInfo={})),
        (OPTION, options_of(an_option(5001), an_option(5000))),
        (OPTION, options_of(an_option(5000, itemNo=1), an_option(5001, itemNo=2))),
    ],
)
def test_what_means_the_same_is_seen_and_nothing_more(kind: DocumentKind, body: bytes) -> None:
    product = a_complete_product()
    fields = deepcopy(product.fields)
    assert product.apply([of(kind, body, 5)], at(300)) is None
    assert (product.version, product.fields, product.seller_id) == (1, fields, "nord")
    assert (product.seen[kind].at, product.last_seen_at) == (at(300), at(300))


def test_documents_of_one_observation_make_one_version_and_one_change() -> None:
    product = a_complete_product()
    change = product.apply([fetched(LIST, 1, 5), fetched(DETAIL, 2, 5), fetched(OPTION, 3, 5)], at(400))
    assert change is not None
    assert (product.version, change.version) == (2, 2)
    assert {ChangeKind.PRICE, ChangeKind.SOLD_OUT, ChangeKind.STOCK, ChangeKind.OPTIONS} <= set(change.kinds)


def test_there_and_back_within_one_observation_is_no_change() -> None:
    product = a_complete_product()
    assert product.apply([fetched(DETAIL, 1, 5), fetched(DETAIL, 0, 6)], at(400)) is None
    assert product.version == 1


# ── the seller ──


def test_the_detail_says_whose_it_is_and_case_makes_no_other_seller() -> None:
    product = Product.discover(ITEM, "Nord", NOON)
    product.apply([fetched(LIST), fetched(DETAIL), fetched(OPTION)], NOON)
    assert product.seller_id == "Nord"
    moved = product.apply([fetched(DETAIL, 3, 5)], at(300))
    assert moved is not None
    assert (product.seller_id, moved.seller_id, moved.kinds) == ("other", "other", (ChangeKind.SELLER,))
    assert [one.shown() for one in moved.fields] == [{"field": "sellerId", "old": "Nord", "new": "other"}]


def test_by_its_own_crawl_a_seller_is_spelled_as_it_was_registered() -> None:
    product = a_complete_product()
    product.spell_seller("Nord")
    assert (product.seller_id, product.version) == ("Nord", 1)
    product.spell_seller("other")
    assert product.seller_id == "Nord"


def test_a_list_of_another_seller_moves_nothing() -> None:
    product = a_complete_product()
    product.apply([fetched(LIST, 1, 9)], at(600))
    assert product.seller_id == "nord"


# ── absences ──


def test_two_absences_in_a_row_end_a_listing_and_being_seen_begins_it_again() -> None:
    product = a_complete_product()
    assert product.miss(at(1)) is None
    gone = product.miss(at(2))
    assert gone is not None
    assert (gone.kinds, gone.version, product.status) == ((ChangeKind.DELISTED,), 2, ProductStatus.DELISTED)
    assert product.miss(at(3)) is None
    back = product.apply([fetched(DETAIL, 0, 5)], at(300))
    assert back is not None
    assert (back.kinds, back.version, product.absences) == ((ChangeKind.RELISTED,), 3, 0)


def test_a_page_that_was_fetched_before_an_absence_and_is_read_after_it_is_no_sighting() -> None:
    product = a_complete_product()
    product.miss(at(600))
    gone = product.miss(at(1200))
    late = product.apply([fetched(DETAIL, 1, 5)], at(1800))
    assert gone is not None
    assert late is not None
    assert late.kinds == (ChangeKind.PRICE,)
    assert (product.status, product.absences) == (ProductStatus.DELISTED, 2)


def test_seen_between_two_absences_it_stays() -> None:
    product = a_complete_product()
    for minute in range(1, 20):
        assert product.miss(at(minute)) is None
        if minute % 2:
            assert product.apply([fetched(DETAIL, 0, minute)], at(60 * minute)) is None
        else:
            assert product.relist(at(minute)) is None
    assert (product.status, product.version) == (ProductStatus.ACTIVE, 1)


def test_seen_in_a_list_again_it_is_relisted() -> None:
    product = a_complete_product()
    product.miss(at(1))
    product.miss(at(2))
    back = product.relist(at(3))
    assert back is not None
    assert back.kinds == (ChangeKind.RELISTED,)
    assert product.relist(at(4)) is None


def test_an_incomplete_product_comes_and_goes_untold() -> None:
    product = applied([[fetched(LIST)]])
    assert [product.miss(at(1)), product.miss(at(2)), product.relist(at(3))] == [None] * 3
    assert product.version == 0


def test_a_delisted_product_that_returns_with_another_price_tells_both() -> None:
    product = a_complete_product()
    product.miss(at(1))
    product.miss(at(2))
    back = product.apply([fetched(DETAIL, 1, 5)], at(300))
    assert back is not None
    assert set(back.kinds) == {ChangeKind.PRICE, ChangeKind.RELISTED}


# ── a whole life ──


class TheLifeOfAProduct(RuleBasedStateMachine):
    """Documents late, early and twice; absences; and beside it what the receiver of the events would know."""

    @initialize()
    def begin(self) -> None:
        self.product = a_product()
        self.now = NOON
        self.changes: list[Change] = []
        self.states: dict[int, dict[str, Any]] = {}
        self.copy: dict[str, Any] | None = None

    def took(self, change: Change | None, before: dict[str, Any], version: int) -> None:
        after = self.state()
        if change is None:
            assert self.product.version == version
            assert not self.product.is_complete or before == after
            return
        assert self.product.version == change.version == version + 1
        assert (change.kinds == (ChangeKind.CREATED,)) == (version == 0)
        if version:
            assert {one.field for one in change.fields} == {
                name for name in {*before, *after} if before.get(name) != after.get(name)
            }
        self.changes.append(change)
        self.states[change.version] = after
        event = announce(self.product, change)
        assert (event.event_type is EventType.CREATED) == (version == 0)
        assert (event.event_type is EventType.DELISTED) == (ChangeKind.DELISTED in change.kinds)
        self.copy = event.payload["productData"]

    def state(self) -> dict[str, Any]:
        product = self.product
        return {**product.fields, "sellerId": product.seller_id, "status": product.status.value}

    @rule(minutes=st.integers(0, 3))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(documents=st.lists(DOCUMENTS, max_size=3), is_late=st.booleans())
    def observe(self, documents: list[Fetched], is_late: bool) -> None:
        moment: datetime = self.now - timedelta(minutes=2) if is_late else self.now
        observation = [Fetched(one.document, one.raw_hash, moment) for one in documents]
        before, version = self.state(), self.product.version
        self.took(self.product.apply(observation, self.now), before, version)

    @rule()
    def miss(self) -> None:
        before, version = self.state(), self.product.version
        self.took(self.product.miss(self.now), before, version)

    @rule()
    def relist(self) -> None:
        before, version = self.state(), self.product.version
        self.took(self.product.relist(self.now), before, version)
        assert self.product.status is ProductStatus.ACTIVE

    @invariant()
    def it_has_a_version_when_and_only_when_it_is_complete(self) -> None:
        assert (self.product.version > 0) == self.product.is_complete
        assert [change.version for change in self.changes] == list(range(1, self.product.version + 1))
        assert len({change.change_id for change in self.changes}) == len(self.changes)

    @invariant()
    def it_is_created_once(self) -> None:
        assert sum(ChangeKind.CREATED in change.kinds for change in self.changes) == bool(self.changes)

    @invariant()
    def its_listing_ends_after_two_absences_and_not_before(self) -> None:
        assert 0 <= self.product.absences <= 2
        assert self.product.status is ProductStatus.ACTIVE or self.product.absences == 2

    @invariant()
    def its_history_reads_back_to_every_version(self) -> None:
        state = self.state()
        for change in reversed(self.changes):
            assert {name: value for name, value in state.items() if value is not None} == {
                name: value for name, value in self.states[change.version].items() if value is not None
            }
            for one in change.fields:
                assert state.get(one.field) == one.new
                state[one.field] = one.old

    @invariant()
    def the_receivers_copy_is_ours(self) -> None:
        assert self.copy is None or self.copy == self.product.data()

    @invariant()
    def it_was_seen_as_late_as_its_newest_document(self) -> None:
        newest = max((seen.at for seen in self.product.seen.values()), default=NOON)
        assert self.product.last_seen_at == max(newest, NOON)


TestTheLifeOfAProduct = TheLifeOfAProduct.TestCase


# ── what is announced ──


def test_an_event_carries_the_whole_product_and_what_changed() -> None:
    product = a_complete_product()
    change = product.apply([fetched(DETAIL, 2, 5)], at(300))
    assert change is not None
    event = announce(product, change)
    assert event.payload == {
        "eventType": "PRODUCT_UPDATED",
        "eventId": event.outbox_id,
        "occurredAt": "2026-03-02T12:05:00.123Z",
        "version": 2,
        "itemNo": ITEM,
        "sellerId": "nord",
        "changes": [
            {"field": "stock", "old": 3, "new": 0},
            {"field": "soldOut", "old": False, "new": True},
        ],
        "productData": product.data(),
    }
    assert event.payload["productData"]["price"] == event.payload["productData"]["sellingPrice"]


def test_an_event_said_twice_is_the_same_event() -> None:
    product = a_product()
    created = product.apply([fetched(LIST), fetched(DETAIL), fetched(OPTION)], NOON)
    assert created is not None
    assert announce(product, created).outbox_id == announce(product, created).outbox_id
    assert announce(product, created).event_type is EventType.CREATED
