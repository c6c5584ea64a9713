"""Sellers and their schedules, as an operator changes them. Seller, schedule and outbox row change in one commit."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sellerwatch.domain.errors import Conflict, Unknown
from sellerwatch.domain.outbox import ScheduleNotice
from sellerwatch.domain.schedules import Schedule, ScheduleEvent
from sellerwatch.domain.sellers import CrawlSource, Seller
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Chance, Clock


@dataclass(frozen=True, slots=True)
class Sellers:
    store: Store
    clock: Clock
    chance: Chance
    bell: Bell
    target_arn: str | None = None

    async def register(
        self, seller_id: str, name: str, *, crawl_source: CrawlSource = CrawlSource.MINI_SHOP, interval_days: int = 1
    ) -> Seller:
        at = self.clock.now()
        seller = Seller.register(seller_id, name, at, crawl_source=crawl_source, interval_days=interval_days)
        schedule, event = Schedule.create(self.chance.uuid7(at), seller_id, interval_days, at)

        def work(unit: Unit) -> None:
            if not unit.sellers.add(seller):
                raise Conflict("SELLER_ALREADY_EXISTS", f"seller {seller_id} is registered already")
            unit.schedules.add(schedule)
            unit.notices.add(self._notice(schedule, event, at))

        await self.store.transact(work)
        self.bell.ring("announce")
        return seller

    async def rename(self, seller_id: str, name: str) -> Seller:
        return await self._change(seller_id, lambda seller, _, at: seller.rename(name, at))

    async def change_interval(self, seller_id: str, days: int) -> Seller:
        def change(seller: Seller, schedule: Schedule, at: datetime) -> ScheduleEvent | None:
            seller.change_interval(days, at)
            return schedule.change_interval(days, at)

        return await self._change(seller_id, change)

    async def activate(self, seller_id: str) -> Seller:
        def change(seller: Seller, schedule: Schedule, at: datetime) -> ScheduleEvent | None:
            seller.activate(at)
            return schedule.activate(at)

        return await self._change(seller_id, change)

    async def deactivate(self, seller_id: str) -> Seller:
        def change(seller: Seller, schedule: Schedule, at: datetime) -> ScheduleEvent | None:
            seller.deactivate(at)
            return schedule.deactivate(at)

        return await self._change(seller_id, change)

    async def remove(self, seller_id: str) -> None:
        def work(unit: Unit) -> None:
            seller = _known(unit.sellers.lock(seller_id), seller_id)
            seller.check_removable()
            open_one = unit.executions.open_of(seller_id)
            if open_one:
                raise Conflict(
                    "EXECUTION_IN_PROGRESS",
                    f"seller {seller_id} is being crawled: cancel that first",
                    open_one.execution_id,
                )
            unit.sellers.remove(seller_id)

        await self.store.transact(work)

    async def _change(
        self, seller_id: str, change: Callable[[Seller, Schedule, datetime], ScheduleEvent | None]
    ) -> Seller:
        at = self.clock.now()

        def work(unit: Unit) -> Seller:
            seller = _known(unit.sellers.lock(seller_id), seller_id)
            schedule = unit.schedules.lock(seller_id)
            if schedule is None:
                raise Unknown("schedule of seller", seller_id)
            event = change(seller, schedule, at)
            unit.sellers.save(seller)
            unit.schedules.save(schedule)
            if event:
                unit.notices.add(self._notice(schedule, event, at))
            return seller

        seller = await self.store.transact(work)
        self.bell.ring("announce")
        return seller

    def _notice(self, schedule: Schedule, event: ScheduleEvent, at: datetime) -> ScheduleNotice:
        payload: dict[str, object] = {"ruleName": schedule.rule_name}
        if event is not ScheduleEvent.DEACTIVATED:
            payload |= {
                "scheduleExpression": schedule.expression,
                "targetArn": self.target_arn,
                "input": {"sellerId": schedule.seller_id},
            }
        return ScheduleNotice.of(schedule.schedule_id, event, payload, at)


def _known(seller: Seller | None, seller_id: str) -> Seller:
    if seller is None:
        raise Unknown("seller", seller_id)
    return seller
