"""Sellers: what their fields may hold."""

from copy import deepcopy

import pytest

from builders import NOON, a_seller, at
from sellerwatch.domain.errors import Conflict, Invalid
from sellerwatch.domain.sellers import CrawlSource, Seller, SellerStatus


def test_a_seller_begins_active_daily_and_by_its_own_shop() -> None:
    seller = Seller.register("nord", "Nord", NOON)
    assert (seller.status, seller.interval_days, seller.crawl_source) == ("ACTIVE", 1, CrawlSource.MINI_SHOP)
    assert (seller.total_product_count, seller.created_at, seller.updated_at) == (0, NOON, NOON)


@pytest.mark.parametrize("days", [1, 2, 29, 30])
def test_an_interval_is_from_a_day_to_thirty(days: int) -> None:
    seller = a_seller()
    seller.change_interval(days, at(1))
    assert (seller.interval_days, seller.updated_at) == (days, at(1))


@pytest.mark.parametrize("days", [0, -1, 31, 365, 10**30, float("nan"), float("inf")])
def test_any_other_interval_is_refused_and_leaves_the_old_one(days: int) -> None:
    seller = a_seller(interval_days=7)
    before = deepcopy(seller)
    with pytest.raises(Invalid):
        seller.change_interval(days, at(1))
    with pytest.raises(Invalid):
        Seller.register("nord", "Nord", NOON, interval_days=days)
    assert seller == before


@pytest.mark.parametrize("name", ["", " ", "\t\n", "\u3000", "x" * 201])
def test_a_name_is_something_and_not_too_long(name: str) -> None:
    seller = a_seller()
    before = deepcopy(seller)
    with pytest.raises(Invalid):
        seller.rename(name, at(1))
    with pytest.raises(Invalid):
        Seller.register("nord", name, NOON)
    assert seller == before


@pytest.mark.parametrize("name", ["x", "x" * 200, 'Nord "1"; DROP TABLE', "노르드", "=1+1"])
def test_a_name_is_kept_as_it_is_given(name: str) -> None:
    assert Seller.register("nord", name, NOON).name == name


def test_a_count_is_never_below_zero() -> None:
    seller = a_seller()
    seller.record_product_count(0, at(1))
    with pytest.raises(Invalid):
        seller.record_product_count(-1, at(2))
    assert (seller.total_product_count, seller.updated_at) == (0, at(1))


def test_activating_and_deactivating_tell_whether_they_changed_anything() -> None:
    seller = a_seller()
    assert [seller.activate(at(1)), seller.deactivate(at(2)), seller.deactivate(at(3))] == [False, True, False]
    assert (seller.is_active, seller.updated_at) == (False, at(2))


def test_an_active_seller_is_not_removed() -> None:
    with pytest.raises(Conflict) as refused:
        a_seller().check_removable()
    assert refused.value.code == "SELLER_ACTIVE"
    a_seller(status=SellerStatus.INACTIVE).check_removable()
