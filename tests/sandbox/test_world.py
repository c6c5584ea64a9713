"""Promises of the fake world: the same from the same seed, consistent in itself, cheap when large."""

import os
import subprocess
import sys
from hashlib import blake2b

import orjson
import pytest

from sandbox.visits import Visitor, a_sandbox, detail_path, list_path, module, option_path
from sellerwatch.domain.errors import Conflict, Invalid, Unknown
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.world import OUTSIDER, World

STORY = """
from hashlib import blake2b
from sandbox.visits import Visitor, a_sandbox, detail_path, list_path, option_path
sandbox = a_sandbox({"atelier": 40, "lunaire": 7}, noise=True, rates={"html": 5, "bad_price": 20, "drop": 5}, jitter_ms=9)
visitor, told = Visitor(sandbox).log_in(), blake2b()
sandbox.mutate(0.2)
for item_no in sandbox.world.listed():
    for target in (list_path(0, 20), detail_path(item_no), option_path(item_no)):
        told.update(repr(visitor.ask(target)).encode())
told.update(repr(sandbox.stats()).encode())
print(told.hexdigest())
"""


def run_story(hash_seed: str) -> str:
    environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-c", STORY], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_the_same_seed_gives_the_same_bytes_in_processes_of_different_hash_seeds():
    assert run_story("1") == run_story("4242")


def test_another_seed_gives_another_world():
    one, other = World(1, {"atelier": 5}), World(2, {"atelier": 5})
    assert [one.product(item) for item in one.listed()] != [other.product(item) for item in other.listed()]


def test_a_product_is_the_same_whether_it_was_kept_or_made_again():
    world = World(3, {"atelier": 6000})
    first = [world.product(item) for item in world.listed()[:50]]
    for item_no in world.listed():
        world.product(item_no)
    assert [world.product(item) for item in world.listed()[:50]] == first


def test_chance_is_even_enough_and_streams_do_not_touch():
    chance = Chance("dice")
    thrown = [chance.between(1, 6) for _ in range(6000)]
    assert {*thrown} == {1, 2, 3, 4, 5, 6}
    assert all(850 < thrown.count(face) < 1150 for face in range(1, 7))
    assert Chance("a", "bc").draw() != Chance("ab", "c").draw()
    assert sorted(Chance(1).shuffled(range(50))) == list(range(50))
    assert len({*Chance(1).sample(range(50), 20)}) == 20


def test_a_list_page_of_500_has_the_size_of_a_real_one():
    sandbox = a_sandbox({"atelier": 600})
    body = Visitor(sandbox).log_in().ask(list_path()).body
    document = orjson.loads(body)
    assert 400_000 < len(body) < 2_000_000
    assert 40_000 < len(orjson.dumps(document["groupResult"])) < 65_000
    assert document.keys() == {"count", "indexName", "groupResult", "items"}


def test_a_detail_has_the_size_of_a_real_one():
    sandbox = a_sandbox({"atelier": 50})
    visitor = Visitor(sandbox).log_in()
    sizes = [len(visitor.ask(detail_path(item)).body) for item in sandbox.world.listed()]
    assert 7_000 < sum(sizes) / len(sizes) < 10_000


def test_pages_together_hold_every_item_once_and_the_count_says_how_many():
    sandbox = a_sandbox({"atelier": 47})
    visitor = Visitor(sandbox).log_in()
    assert visitor.page(0, 1)["count"] == 47
    items = [item["itemNo"] for page_no in range(3) for item in visitor.page(page_no, 20)["items"]]
    assert items == sandbox.world.shops["atelier"].order
    assert items == sorted(items, reverse=True)
    assert visitor.page(3, 20)["items"] == []


def test_the_other_mini_shop_path_answers_the_same():
    visitor = Visitor(a_sandbox()).log_in()
    other = list_path().replace("searchmini-shop-search", "search/mini-shop-search")
    assert visitor.ask(other).body == visitor.ask(list_path()).body


def test_an_unknown_shop_is_an_empty_one():
    document = Visitor(a_sandbox()).log_in().page(seller="nobody")
    assert (document["count"], document["items"]) == (0, [])


@pytest.mark.parametrize("query", ["pageNo=0", "sellerId=atelier&pageSize=501", "sellerId=atelier&pageNo=-1"])
def test_a_list_without_sense_is_refused(query):
    path = list_path().partition("?")[0]
    assert Visitor(a_sandbox()).log_in().ask(f"{path}?{query}").status == 400


def test_list_entry_detail_and_options_are_views_of_one_truth():
    sandbox = a_sandbox({"atelier": 60})
    visitor = Visitor(sandbox).log_in()
    for entry in visitor.page()["items"]:
        truth = sandbox.truth(entry["itemNo"])
        document = visitor.read(detail_path(entry["itemNo"]))
        info, options = module(document, "ProductInfoModule"), visitor.read(option_path(entry["itemNo"]))
        assert entry["price"] == f"{info['discountPrice']:,}" == f"{truth['discountPrice']:,}"
        assert entry["discountRate"] == str(info["discountRate"]) == str(truth["discountRate"])
        assert entry["appPrice"] == f"{truth['appPrice']:,}"
        assert entry["name"] == info["itemName"] == truth["name"]
        assert info["sellingPrice"] == truth["sellingPrice"] == truth["price"]
        assert [url.partition("/_dims_/")[0] for url in entry["imageUrlList"]] == truth["images"]
        assert [url.partition("/_dims_/")[0] for url in module(document, "ProductBannersModule")["images"]] == truth[
            "images"
        ]
        assert info["stock"] == truth["stock"]
        assert info["isSoldOut"] is truth["soldOut"] is (truth["stock"] == 0)
        shown = [{name: option[name] for name in ("optionNo", "color", "size", "stock")} for option in options]
        assert shown == truth["options"]
        assert sum(option["stock"] for option in options) == info["stock"] or not options


def test_noise_changes_the_bytes_of_every_answer_and_no_truth():
    sandbox = a_sandbox({"atelier": 10}, noise=True)
    visitor = Visitor(sandbox).log_in()
    before = dict(sandbox.truths("atelier"))
    item_no = sandbox.world.listed()[0]
    for target in (list_path(), detail_path(item_no)):
        assert len({visitor.ask(target).body for _ in range(5)}) == 5
    assert dict(sandbox.truths("atelier")) == before


def test_search_scrolls_to_an_end_with_ads_and_strangers_between():
    sandbox = a_sandbox({"atelier": 50}, search_page_size=20)
    visitor = Visitor(sandbox).log_in()
    url, found, kinds = "/v1/search/items?keyword=atelier&sort=LATEST&pageNo=1", [], set()
    pages = 0
    while url:
        document = visitor.read("/mustit-api/facade-api" + url)
        kinds |= {one["type"] for one in document["moduleList"]}
        items = [one["data"]["itemNo"] for one in document["moduleList"] if one["type"] == "SearchItemV2"]
        found += items
        url, pages = document.get("nextApiUrl"), pages + 1
    assert items == []
    assert pages == 4
    assert {"SearchItemV2", "SearchAdBanner", "VerticalMargin"} <= kinds
    own = [item_no for item_no in found if sandbox.world.product(item_no).seller == "atelier"]
    assert own == sandbox.world.shops["atelier"].order
    strangers = {*found} - {*own}
    assert strangers
    assert all(visitor.info(item_no)["sellerId"] == OUTSIDER for item_no in strangers)


def test_a_next_link_that_was_encoded_again_is_refused():
    visitor = Visitor(a_sandbox({"atelier": 90})).log_in()
    first = visitor.read("/mustit-api/facade-api/v1/search/items?keyword=atelier&sort=LATEST&pageNo=1")
    link = "/mustit-api/facade-api" + first["nextApiUrl"]
    assert "%2C" in link
    assert visitor.ask(link).status == 200
    assert visitor.ask(link.replace("%2C", "%252C")).status == 400


def test_items_come_go_return_and_change_hands():
    sandbox = a_sandbox({"atelier": 10, "lunaire": 3})
    visitor, world = Visitor(sandbox).log_in(), sandbox.world
    fresh = sandbox.add_products("atelier", 2)
    assert [item["itemNo"] for item in visitor.page()["items"]][:2] == fresh[::-1]
    (gone,) = sandbox.remove_products("atelier", 1)
    assert visitor.page()["count"] == 11
    assert visitor.ask(detail_path(gone)).status in {404, 410}
    assert sandbox.truth(gone)["status"] == "DELISTED"
    world.bring_back(gone)
    assert visitor.page()["items"][0]["itemNo"] == gone
    assert sandbox.truth(gone)["status"] == "ACTIVE"
    world.transfer(gone, "lunaire")
    assert visitor.page()["count"] == 11
    assert visitor.page(seller="lunaire")["items"][0]["itemNo"] == gone
    assert visitor.info(gone)["sellerId"] == "lunaire"


def test_what_makes_no_sense_is_refused_with_its_name():
    sandbox = a_sandbox()
    for refused, wrong in (
        (lambda: Conditions(rates={"htlm": 1}), Invalid),
        (lambda: Conditions(error_rate=101), Invalid),
        (lambda: Conditions(rates={"html": 60, "drop": 60}), Invalid),
        (lambda: Conditions(retry_after="soon"), Invalid),
        (lambda: Conditions(products_path="/__x"), Invalid),
        (lambda: sandbox.mutate(1.5), Invalid),
        (lambda: sandbox.mutate(0.1, only=("colour",)), Invalid),
        (lambda: sandbox.add_products("atelier", -1), Invalid),
        (lambda: sandbox.remove_products("nobody", 1), Unknown),
        (lambda: sandbox.truth(1), Unknown),
        (lambda: sandbox.world.add_shop("ATELIER", 1), Conflict),
    ):
        with pytest.raises(wrong):
            refused()


def test_what_is_kept_stays_within_its_bytes():
    sandbox = a_sandbox({"atelier": 100}, cache_bytes=200_000)
    visitor = Visitor(sandbox).log_in()
    seen = blake2b()
    for item_no in sandbox.world.listed():
        seen.update(visitor.ask(detail_path(item_no)).body)
        assert sandbox.market._cache.size <= 200_000
    again = blake2b()
    for item_no in sandbox.world.listed():
        again.update(visitor.ask(detail_path(item_no)).body)
    assert again.digest() == seen.digest()
