"""What ports/store.py promises of sellers, their schedules and the scheduler outbox, on every engine."""

import pytest

from builders import a_notice, a_schedule, a_seller, an_id, at
from sellerwatch.domain.outbox import OutboxStatus, ScheduleNotice
from sellerwatch.domain.schedules import ScheduleEvent, ScheduleStatus
from sellerwatch.domain.sellers import CrawlSource, SellerStatus
from sellerwatch.ports.store import Claim, Store

UPDATED, DEACTIVATED = ScheduleEvent.UPDATED, ScheduleEvent.DEACTIVATED


async def test_a_seller_comes_back_as_it_was_added_and_saved(store: Store) -> None:
    seller = a_seller(name="가게", crawl_source=CrawlSource.SEARCH, interval_days=3)
    assert await store.transact(lambda unit: unit.sellers.add(seller))
    assert await store.read(lambda unit: unit.sellers.get("shop-1")) == seller
    seller.rename("Shop", at(1))
    seller.deactivate(at(2))
    seller.change_interval(7, at(3))
    seller.record_product_count(12, at(4))
    await store.transact(lambda unit: unit.sellers.save(seller))
    assert await store.transact(lambda unit: unit.sellers.lock("shop-1")) == seller
    assert await store.read(lambda unit: unit.sellers.get("SHOP-1")) is None


async def test_a_seller_that_exists_is_left_as_it_is(store: Store) -> None:
    await store.transact(lambda unit: unit.sellers.add(a_seller()))
    assert not await store.transact(lambda unit: unit.sellers.add(a_seller(name="another")))
    assert await store.read(lambda unit: unit.sellers.get("shop-1")) == a_seller()


async def test_a_removed_seller_takes_its_schedule_along(store: Store) -> None:
    for shop in ("shop-1", "shop-2"):
        await store.transact(
            lambda unit, shop=shop: (unit.sellers.add(a_seller(shop)), unit.schedules.add(a_schedule(shop)))
        )
    await store.transact(lambda unit: unit.sellers.remove("shop-1"))
    assert await store.read(lambda unit: unit.sellers.get("shop-1")) is None
    assert await store.read(lambda unit: unit.schedules.of_seller("shop-1")) is None
    assert await store.read(lambda unit: unit.schedules.of_seller("shop-2")) == a_schedule("shop-2")


async def test_inactive_are_those_that_are_inactive_or_gone(store: Store) -> None:
    await store.transact(
        lambda unit: (
            unit.sellers.add(a_seller("on")),
            unit.sellers.add(a_seller("off", status=SellerStatus.INACTIVE)),
        )
    )
    assert await store.read(lambda unit: unit.sellers.inactive(["on", "off", "gone"])) == {"off", "gone"}


@pytest.mark.parametrize("days", [1, 30])
async def test_a_schedule_comes_back_as_it_was_added_and_saved(store: Store, days: int) -> None:
    schedule = a_schedule(days=days)
    await store.transact(lambda unit: unit.schedules.add(schedule))
    assert await store.read(lambda unit: unit.schedules.of_seller("shop-1")) == schedule
    schedule.change_interval(5, at(1))
    schedule.note_triggered(at(2))
    schedule.give_up(at(3))
    await store.transact(lambda unit: unit.schedules.save(schedule))
    assert await store.transact(lambda unit: unit.schedules.lock("shop-1")) == schedule
    assert await store.transact(lambda unit: unit.schedules.lock_by_id(schedule.schedule_id)) == schedule
    assert await store.transact(lambda unit: unit.schedules.lock_by_id(an_id("nobody"))) is None


async def test_due_schedules_come_the_longest_due_first(store: Store) -> None:
    early, late, off, failed = (a_schedule(shop, at=at(n)) for n, shop in enumerate(("a", "b", "c", "d")))
    off.status, failed.status = ScheduleStatus.INACTIVE, ScheduleStatus.FAILED
    for schedule in (late, failed, off, early):
        await store.transact(lambda unit, schedule=schedule: unit.schedules.add(schedule))
    due = late.next_run_at
    assert await store.transact(lambda unit: unit.schedules.lock_due(due, 10)) == [early, late]
    assert await store.transact(lambda unit: unit.schedules.lock_due(failed.next_run_at, 10)) == [early, late, failed]
    assert await store.transact(lambda unit: unit.schedules.lock_due(failed.next_run_at, 1)) == [early]


async def add_notices(store: Store, *notices: ScheduleNotice) -> None:
    for notice in notices:
        await store.transact(lambda unit, notice=notice: unit.notices.add(notice))


async def claimed(store: Store, seconds: float = 0, owner: str = "ticker-1") -> list[ScheduleNotice]:
    claim = Claim(owner, until=at(seconds + 30), at=at(seconds))
    return await store.transact(lambda unit: unit.notices.claim(claim, 10))


async def test_a_due_notice_is_claimed_once(store: Store) -> None:
    notice, later = a_notice("shop-1"), a_notice("shop-2", at=at(10))
    await add_notices(store, notice, notice, later)
    [mine] = await claimed(store, 9)
    notice.status = OutboxStatus.SENDING
    assert mine == notice
    assert await claimed(store, 9, "ticker-2") == []


async def test_a_notice_waits_for_the_older_ones_of_its_schedule(store: Store) -> None:
    first, second, third = a_notice(), a_notice(event=UPDATED), a_notice(event=DEACTIVATED)
    await add_notices(store, first, second, third, a_notice("shop-2"))
    one, other = await claimed(store)
    assert (one.event_type, other.schedule_id) == (first.event_type, an_id("schedule/shop-2"))
    assert await claimed(store) == []
    one.failed("throttled", 5, at(20))
    assert await store.transact(lambda unit: unit.notices.save([one], "ticker-1")) == 1
    assert await claimed(store, 19) == []
    [one] = await claimed(store, 20)
    one.completed(at(21))
    await store.transact(lambda unit: unit.notices.save([one], "ticker-1"))
    [two] = await claimed(store, 21)
    assert two.event_type is UPDATED


async def test_only_what_is_still_claimed_is_saved(store: Store) -> None:
    await add_notices(store, a_notice())
    [late] = await claimed(store)
    assert await store.transact(lambda unit: unit.notices.free_zombies(at(29), 10)) == 0
    assert await store.transact(lambda unit: unit.notices.free_zombies(at(30), 10)) == 1
    [mine] = await claimed(store, 30, "ticker-2")
    late.completed(at(31))
    assert await store.transact(lambda unit: unit.notices.save([late], "ticker-1")) == 0
    mine.failed("refused", 5, at(40), is_final=True)
    assert await store.transact(lambda unit: unit.notices.save([mine], "ticker-2")) == 1


async def test_locked_notices_are_put_back_whoever_claims_them(store: Store) -> None:
    await add_notices(store, a_notice())
    [notice] = await claimed(store)
    notice.failed("x" * 3000, 0, at(1))
    await store.transact(lambda unit: unit.notices.put([notice]))
    [locked] = await store.transact(lambda unit: unit.notices.lock([notice.outbox_id, an_id("nobody")]))
    assert (locked.status, locked.error_message) == (OutboxStatus.FAILED, "x" * 2048)
    locked.again(at(2))
    await store.transact(lambda unit: unit.notices.put([locked]))
    assert [each.outbox_id for each in await claimed(store, 2)] == [notice.outbox_id]
