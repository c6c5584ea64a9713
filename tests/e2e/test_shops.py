"""Two large shops against the marketplace's own limit: three and two list pages, 7 214 requests for 100 identities.

Only the ceiling over the whole site is lifted. The identities' budgets, the minimum interval and the sandbox's 429 stand.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from e2e.town import Running, Town, a_town
from sellerwatch.sandbox.truth import agrees

pytestmark = pytest.mark.slow

SHOPS = {"atelier": 1200, "lunaire": 600}
ROBOTS = 1
CRAWL = (1 + 3 + 2 * 1200) + (1 + 2 + 2 * 600)
"""Requests: each shop's count, its list pages, and two documents of every item; tokens come on top."""
CRAWL_SECONDS = 240

Changes = dict[str, tuple[object, object]]
"""Old and new value by field."""


def test_two_shops_are_known_whole_and_then_exactly_what_changed(tmp_path: Path) -> None:
    with a_town(tmp_path) as town:
        town.sandbox("--seed", "11", **SHOPS)
        up = town.up()
        up.until_it_says("changes go to")
        for seller in SHOPS:
            town.does("seller", "add", seller, "--name", seller.title())
        crawl(town, up)
        town.check(set(), deliveries=1800)

        changes = made(town.mutate(0.01, seed=7))
        assert len(changes) == 18
        crawl(town, up)
        town.check(set(changes), deliveries=1800 + 18)
        wrong = {
            item: (made, told(town, item)) for item, made in changes.items() if not is_told(made, told(town, item))
        }
        assert wrong == {}

        seen = town.stats()
        tokens = sum(visitor["tokens"] for visitor in seen["identities"].values())
        assert tokens == len(seen["identities"]) == 100
        assert seen["requests"]["byStatus"] == {"200": 2 * CRAWL + tokens + ROBOTS}
        assert (seen["violations"], seen["receiver"]["repeats"]) == (0, 0)
        assert seen["receiver"]["requests"] == 1800 + 18


def crawl(town: Town, up: Running) -> None:
    for seller in SHOPS:
        town.does("crawl", seller)
    town.until_settled(CRAWL_SECONDS, up)


def made(changes: list[dict[str, Any]]) -> dict[int, Changes]:
    """By the sandbox, item by item."""
    by_item: dict[int, Changes] = defaultdict(dict)
    for change in changes:
        by_item[change["itemNo"]][change["field"]] = (change["old"], change["new"])
    return dict(by_item)


def told(town: Town, item: int) -> Changes:
    """By the newest event."""
    [copy] = town.copies({item}).values()
    assert (copy["eventType"], copy["version"]) == ("PRODUCT_UPDATED", 2)
    # The pictures in a description follow from it: the sandbox counts them as the description.
    return {
        each["field"]: (each["old"], each["new"]) for each in copy["changes"] if each["field"] != "descriptionImages"
    }


def is_told(made: Changes, told: Changes) -> bool:
    return made.keys() == told.keys() and all(
        agrees(old, told[field][0]) and agrees(new, told[field][1]) for field, (old, new) in made.items()
    )
