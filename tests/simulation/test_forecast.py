"""A forecast: an operation lived in small tells what it would be in the whole."""

from io import StringIO
from math import isclose
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from sellerwatch.domain.errors import Invalid, Refused
from sellerwatch.entry.cli.forecast import live
from sellerwatch.entry.console.forecast import drawn, verdict
from sellerwatch.entry.console.forecast_picture import pictured
from sellerwatch.ports.pool import Limits
from sellerwatch.settings import Settings, load
from sellerwatch.simulation.forecast import Forecast, forecast
from sellerwatch.simulation.miniature import OWN, Spread, lived
from sellerwatch.simulation.scale import Operation, resources, scaled
from sellerwatch.simulation.weather import rates_of

SMALL = Operation(sellers=2, products=40, identities=2, days=2)
A_DAY = 2 * 8 * 24 * 3600 / 3630
"""So many requests two identities make that may ask eight times an hour."""


def the_settings(**overrides: object) -> Settings:
    return load(overrides={**OWN, "identity_hourly_limit": 8, **overrides})


def a_forecast(operation: Operation, level: str = "none", **given: Any) -> Forecast:
    settings = given.pop("settings", None) or the_settings()
    return forecast(operation, settings, rates_of(level), live, **given)


# ── scale ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_one_of_many_is_divided_by_one_factor_and_what_is_a_requests_own_is_not() -> None:
    whole = Operation(sellers=40, products=20_000, identities=100, days=30)
    small = scaled(whole, Limits(), 42_000, 9_000)
    assert small.factor == 25
    assert (small.identities, small.products, small.concurrency) == (4, 800, 4)
    assert small.site_requests_per_second == pytest.approx(0.4)
    per_identity = {round(each.a_day) for each in resources(Limits(), 100) if each.name == "identities"}
    assert per_identity == {190_413}


def test_an_operation_that_can_be_lived_whole_is() -> None:
    small = scaled(SMALL, Limits(), 120, 9_000)
    assert (small.factor, small.products, small.identities, small.days) == (1.0, 40, 2, 2)


def test_the_factor_leaves_the_identities_a_whole_number() -> None:
    for identities in (5, 7, 33, 101):
        small = scaled(Operation(sellers=3, products=5_000, identities=identities, days=9), Limits(), 10_000, 30_000)
        assert isclose(small.identities * small.factor, identities)


def test_fewer_days_are_lived_where_even_the_smallest_world_asks_for_too_much() -> None:
    whole = Operation(sellers=40, products=20_000, identities=100, days=30)
    assert scaled(whole, Limits(), 42_000, 9_000).days == 5
    assert scaled(whole, Limits(), 42_000, 9_000, factor=25).days == 30


def test_more_products_than_can_be_read_are_not_lived_with() -> None:
    small = scaled(Operation(sellers=1, products=10_000_000, identities=4, days=3), Limits(), 7_600, 9_000)
    assert small.products < 20_000


@pytest.mark.parametrize(
    ("name", "value"), [("sellers", 0), ("identities", 0), ("days", 0), ("products", 10**9), ("interval_days", 31)]
)
def test_a_size_that_makes_no_sense_is_refused(name: str, value: int) -> None:
    with pytest.raises(Invalid, match=name.removesuffix("_days")):
        Operation(**{"sellers": 1, "products": 10, "identities": 1, "days": 1, name: value})


def test_a_shop_without_a_product_is_refused() -> None:
    with pytest.raises(Invalid, match="each of 5 sellers"):
        Operation(sellers=5, products=4, identities=1, days=1)


# ── weather ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("level", ["", "bad", "error", "error=x", "error=101", "error=nan", "skew=1", "all"])
def test_a_level_that_nobody_knows_is_refused(level: str) -> None:
    with pytest.raises(Invalid, match="--faults"):
        rates_of(level)


def test_faults_of_ones_own_are_taken_with_their_rates() -> None:
    assert rates_of("error=2,market_down=0.5") == {"error": 2.0, "market_down": 0.5}


# ── forecasts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def quiet() -> Forecast:
    return a_forecast(SMALL, requests_max=1_000)


@pytest.mark.slow
def test_what_fits_is_read_within_its_day_and_the_rest_of_the_budget_is_left(quiet: Forecast) -> None:
    assert quiet.is_fresh
    assert [(period.due, period.complete, period.read, period.missed) for period in quiet.periods] == [
        (2, 2, 40, 0)
    ] * 2
    assert quiet.demand == pytest.approx(2 * 40 + 2 * 2 + 2 * 24, abs=4)
    assert quiet.used_percent == pytest.approx(100 * quiet.demand / A_DAY)
    assert quiet.lived.mistakes == []
    assert A_DAY / 2 * 0.75 < quiet.products_most < A_DAY / 2
    assert quiet.identities_least == 1


@pytest.mark.slow
def test_the_same_arguments_tell_the_same(quiet: Forecast) -> None:
    again = lived(quiet.scale, the_settings(), rates_of("none"), live)
    assert again == quiet.lived


@pytest.mark.slow
def test_it_is_drawn_told_and_pictured(quiet: Forecast) -> None:
    console = Console(width=140, record=True, file=StringIO())
    console.print(drawn(quiet, "none"))
    text = console.export_text()
    assert text.startswith("yes: every product is read within 24 hours of being due")
    for line in ("breaks first: the identities' budget", "100 % ┤", "crawls complete in time", "█ half"):
        assert line in text
    picture = ET.fromstring(pictured(quiet, "<light>"))
    assert picture.tag.endswith("svg")
    assert len(picture.findall(".//*[@class='used']")) == 48


@pytest.mark.slow
def test_too_many_products_are_told_with_what_would_do() -> None:
    found = a_forecast(Operation(sellers=2, products=500, identities=2, days=2), requests_max=2_000)
    assert not found.is_fresh
    assert verdict(found).startswith("no: not every product is read within 24 hours of being due; no crawl ends")
    assert A_DAY / 2 * 0.75 < found.products_most < A_DAY / 2
    assert found.identities_least is not None
    # A thousand requests for the products, and a dozen of each identity for its tokens.
    assert 1000 / (A_DAY / 2) < found.identities_least <= 7


@pytest.mark.slow
def test_in_small_it_is_as_in_the_whole() -> None:
    """The bounds that the documentation states."""
    operation = Operation(sellers=6, products=240, identities=12, days=2)
    whole = a_forecast(operation, factor=1, requests_max=1_000)
    small = a_forecast(operation, factor=3, requests_max=1_000)
    assert (whole.scale.factor, small.scale.factor) == (1.0, 3.0)
    assert whole.is_fresh == small.is_fresh
    assert small.demand == pytest.approx(whole.demand, rel=0.05)
    assert small.used_percent == pytest.approx(whole.used_percent, abs=2)
    for ours, theirs in zip(small.periods, whole.periods, strict=True):
        assert ours.delay_hours.most == pytest.approx(theirs.delay_hours.most, abs=0.5)
        # Budgets come back by the hour: half of the products may fall on either side of one.
        assert ours.delay_hours.p50 == pytest.approx(theirs.delay_hours.p50, abs=1.0)


def test_where_nothing_may_be_asked_that_is_said() -> None:
    with pytest.raises(Refused, match="IDENTITY_HOURLY_LIMIT is 0"):
        a_forecast(SMALL, settings=the_settings(identity_hourly_limit=0))


def test_a_spread_is_of_the_values_it_was_made_of() -> None:
    assert Spread.of([]) == Spread(None, None, None)
    assert Spread.of([3.0]) == Spread(3.0, 3.0, 3.0)
    assert Spread.of([float(number) for number in range(1, 101)]) == Spread(50.0, 95.0, 100.0)
