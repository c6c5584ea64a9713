"""What the store promises of robots.txt: one row for each origin, the same for every process."""

from datetime import timedelta

from builders import NOON
from sellerwatch.domain.robots import RobotsFile
from sellerwatch.ports.store import Store


async def test_it_is_kept_as_it_was_written(store: Store) -> None:
    full = RobotsFile(
        "https://a.test", NOON, "Disallow: /한국\n" * 20_000, NOON - timedelta(days=1), 3, "HTTP 503", "me", NOON
    )
    bare = RobotsFile("https://b.test", NOON + timedelta(microseconds=1))
    for file in (full, bare):
        await store.transact(lambda unit, file=file: unit.robots.save(file))
    assert await store.read(lambda unit: unit.robots.get("https://a.test")) == full
    assert await store.transact(lambda unit: unit.robots.lock("https://b.test")) == bare
    assert await store.read(lambda unit: unit.robots.get("https://c.test")) is None


async def test_written_anew_it_is_the_same_row_and_what_is_too_long_is_cut(store: Store) -> None:
    file = RobotsFile("https://a.test", NOON, "Disallow: /")
    await store.transact(lambda unit: unit.robots.save(file))
    file.miss("x" * 5000, NOON, 0.5)
    await store.transact(lambda unit: unit.robots.save(file))
    kept = await store.read(lambda unit: unit.robots.get("https://a.test"))
    assert kept is not None
    assert (kept.failures, len(kept.problem or ""), kept.next_at) == (1, 2048, file.next_at)
