"""To learn what changed, all of it, and nothing that didn't: a hundred kinds of noise, and one real change of each kind."""

from collections import Counter
from random import Random  # noqa: TID251  # seeded here

import pytest

from flows.noises import NOISES, REAL, Item, Real, an_item
from flows.shelf import Documents, a_shelf
from sellerwatch.domain.changes import Change
from sellerwatch.domain.meaning import MEANING
from sellerwatch.domain.outbox import OutboxStatus

FIRST = 1000


def noisy(item_no: int, *names: str) -> Documents:
    """An item's documents, written otherwise; the same number is always written the same."""
    chance, item = Random(item_no), an_item(item_no)  # no secret
    for name in names:
        NOISES[name](item, chance)
    return item.documents()


def still(count: int) -> dict[int, Documents]:
    return {item_no: an_item(item_no).documents() for item_no in range(FIRST, FIRST + count)}


def made_real(item: Item, real: Real) -> Documents:
    real.change(item)
    return item.documents()


def expected(real: Real, item_no: int) -> tuple[object, object]:
    """Images and descriptions bear the item's number."""
    return tuple(_numbered(value, item_no) for value in (real.old, real.new))  # type: ignore[return-value]


def _numbered(value: object, item_no: int) -> object:
    if isinstance(value, str):
        return value.replace("{item}", str(item_no))
    return tuple(_numbered(one, item_no) for one in value) if isinstance(value, tuple) else value


def test_there_are_a_hundred_kinds_of_noise_and_a_real_change_of_every_field() -> None:
    assert len(NOISES) >= 100
    assert {real.field for real in REAL} == {field.name for field in MEANING.fields if not field.stands_for} - {
        # It changes with the description, and with nothing else.
        "descriptionImages"
    }


@pytest.mark.parametrize("name", NOISES)
def test_each_noise_writes_something_else(name: str) -> None:
    assert any(noisy(number, name) != an_item(number).documents() for number in range(FIRST, FIRST + 9))


async def test_each_kind_of_noise_alone_changes_nothing() -> None:
    names = list(NOISES)
    async with a_shelf() as shelf:
        await shelf.crawl(still(len(names)))
        execution = await shelf.crawl({FIRST + n: noisy(FIRST + n, name) for n, name in enumerate(names)})
        later = [change for change in shelf.changes if change.version > 1]
        assert {names[change.item_no - FIRST]: change.fields for change in later} == {}
        assert await shelf.quarantine(execution) is None
        assert set(await shelf.raws()) == {"PROCESSED"}


async def test_each_real_change_alone_is_found_as_what_it_is() -> None:
    await _check_real(len(REAL))


@pytest.mark.slow
async def test_on_5000_products_with_all_kinds_of_noise_together_there_is_no_change_at_all() -> None:
    count, names = 5_000, list(NOISES)
    async with a_shelf() as shelf:
        await shelf.crawl(still(count))
        shop = {}
        for item_no in range(FIRST, FIRST + count):
            chance = Random(item_no * 7)  # no secret
            shop[item_no] = noisy(item_no, *chance.sample(names, chance.randint(1, 9)))
        execution = await shelf.crawl(shop)
        assert Counter(change.version for change in shelf.changes) == {1: count}
        assert await shelf.quarantine(execution) is None
        assert len(await shelf.events(OutboxStatus.WAITING)) == count


@pytest.mark.slow
async def test_on_5000_products_with_one_real_change_each_every_one_is_found_named_and_told() -> None:
    await _check_real(5_000)


async def _check_real(count: int) -> None:
    async with a_shelf() as shelf:
        await shelf.crawl(still(count))
        reals = {item_no: REAL[(item_no - FIRST) % len(REAL)] for item_no in range(FIRST, FIRST + count)}
        shop = {item_no: made_real(an_item(item_no), real) for item_no, real in reals.items()}
        execution = await shelf.crawl(shop)
        assert await shelf.quarantine(execution) is None
        found: dict[int, Change] = {change.item_no: change for change in shelf.changes if change.version > 1}
        assert len(found) == len(shelf.changes) - count == count
        for item_no, real in reals.items():
            change = found[item_no]
            old, new = expected(real, item_no)
            assert change.version == 2, item_no
            assert [(one.field, one.old, one.new) for one in change.fields] == [(real.field, old, new)], item_no
            assert change.kinds == (real.kind,), item_no
