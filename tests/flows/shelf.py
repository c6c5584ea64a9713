"""A seller's shop as documents, and the steps that make products of them: no requests, no sandbox, SQLite in memory.

`crawl` does what settling would have done with the answers of one execution; the rest is the real thing.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson

from builders import NOON, an_execution
from doors import upgraded
from pages import a_detail, a_list_item, options_of
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.reports import SqlReports
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import DocumentKind, content_hash
from sellerwatch.domain.executions import Execution, ExecutionStatus, ListState
from sellerwatch.domain.meaning import MEANING, Meaning
from sellerwatch.domain.outbox import OutboxStatus, ProductEvent
from sellerwatch.domain.products import Product, ProductStatus
from sellerwatch.domain.quarantines import Quarantine
from sellerwatch.domain.raws import Raw, raw_id
from sellerwatch.flows.absorb import Absorb
from sellerwatch.flows.decide import Decide
from sellerwatch.flows.delist import Delist
from sellerwatch.flows.reprocess import Reprocess, Reprocessed
from sellerwatch.ports.store import Touch, Unit

MINI_SHOP, DETAIL, OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION
Documents = dict[DocumentKind, bytes]
SELLER = "nord"


def documents(item_no: int, *, entry: Mapping[str, object] | None = None, **info: object) -> Documents:
    """An item's three; `info` goes into its detail, `entry` into its list entry."""
    return {
        MINI_SHOP: orjson.dumps(a_list_item(item_no, **(entry or {}))),
        DETAIL: a_detail(item_no, **info),
        OPTION: options_of(),
    }


def a_shop(count: int, **info: object) -> dict[int, Documents]:
    return {item_no: documents(item_no, **info) for item_no in range(1000, 1000 + count)}


class StandingClock:
    """Time passes when a crawl does."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@dataclass
class Shelf:
    database: Database
    store: SqlStore
    clock: StandingClock
    absorb: Absorb
    delist: Delist
    decide: Decide
    crawls: int = 0
    changes: list[Change] = field(default_factory=list)

    def understand(self, meaning: Meaning) -> None:
        """As after a new version has been started."""
        known = self.absorb
        self.absorb = Absorb(
            known.store, Parse(meaning), known.clock, known.chance, known.bell, known.flap_seconds, meaning, known.batch
        )

    async def crawl(
        self,
        shop: Mapping[int, Documents],
        *,
        seller_id: str = SELLER,
        hours: float = 24,
        absorbed: bool = True,
        is_complete: bool = True,
        full_pages: tuple[int, int] = (0, 0),
    ) -> Execution:
        """One crawl of the shop, absorbed and settled."""
        self.crawls += 1
        await self.clock.sleep(hours * 3600)
        execution = an_execution(
            seller_id,
            name=self.crawls,
            status=ExecutionStatus.COMPLETED,
            at=self.clock.now() - timedelta(minutes=1),
            list_state=ListState.COMPLETE if is_complete else ListState.INCOMPLETE,
            full_pages=full_pages[0],
            full_page_entries=full_pages[1],
        )
        await self.store.transact(lambda unit: self._settle(unit, execution, shop))
        if absorbed:
            await self.process()
        return execution

    async def process(self) -> list[Change]:
        """Absorb and settle until nothing is left; what changed."""
        changes: list[Change] = []
        while (absorbed := await self.absorb.run()).raws:
            changes += absorbed.changes
        while (settled := await self.delist.run())[0]:
            changes += settled[1]
        self.changes += changes
        return changes

    async def read_once_more(self, since: datetime, *, is_trial: bool = False) -> Reprocessed:
        known = self.absorb
        reprocess = Reprocess(self.store, known.reader, self.clock, known.bell, known.meaning)
        return [done async for done in reprocess.run(since, is_trial=is_trial)][-1]

    async def product(self, item_no: int) -> Product | None:
        return await self.store.read(lambda unit: unit.products.get(item_no))

    async def quarantine(self, execution: Execution) -> Quarantine | None:
        found = await self.store.transact(lambda unit: unit.quarantines.of([execution.execution_id]))
        return found.get(execution.execution_id)

    async def events(self, status: OutboxStatus) -> list[ProductEvent]:
        reports = SqlReports(self.database)
        from sellerwatch.ports.reports import Box  # noqa: PLC0415

        rows = await reports.outbox_after(Box.PRODUCT, 0, 100_000, status=status.value)
        return await self.store.transact(lambda unit: unit.events.lock([row.outbox_id for row in rows]))

    async def alerts(self) -> list[str]:
        rows = await self.store.read(lambda unit: unit.chores.alerts_to_tell(self.clock.now(), 0))
        return [row[0] for row in rows]

    async def raws(self) -> Mapping[str, int]:
        return (await SqlReports(self.database).overview(self.clock.now())).raws

    def _settle(self, unit: Unit, execution: Execution, shop: Mapping[int, Documents]) -> None:
        at = self.clock.now()
        heads = unit.products.heads(shop)
        raws, touches = [], []
        for item_no, found in shop.items():
            head = heads.get(item_no)
            for kind, body in found.items():
                raw_hash = content_hash(body)
                seen = head.seen.get(kind) if head and head.status is ProductStatus.ACTIVE else None
                if seen and seen.raw_hash == raw_hash:
                    touches.append(Touch(item_no, kind, raw_hash, at))
                    execution.saw_same(kind)
                    continue
                identity = raw_id(item_no, kind, raw_hash)
                about = (identity, item_no, execution.seller_id, "task", execution.execution_id)
                raws.append(Raw(*about, kind, body, raw_hash, at, at))
        unit.raws.put(raws)
        unit.products.touch(touches)
        unit.listings.add(execution.execution_id, execution.seller_id, [(item_no, 0) for item_no in shop])
        unit.executions.add(execution)


@asynccontextmanager
async def a_shelf(*, flap_seconds: float = 0, batch: int = 300, on: Database | None = None) -> AsyncIterator[Shelf]:
    """`on`: a database that somebody else made and closes."""
    database = on or Database(upgraded(), inline=True)
    store, clock = SqlStore(database), StandingClock()
    bell = AsyncBell(clock)
    yield Shelf(
        database,
        store,
        clock,
        Absorb(store, Parse(), clock, SeededChance(1), bell, flap_seconds, MEANING, batch),
        Delist(store, clock, bell, flap_seconds),
        Decide(store, clock, bell, flap_seconds),
    )
    if on is None:
        database.close()


def of_kinds(changes: Iterable[Change]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for change in changes:
        for kind in change.kinds:
            counted[kind.value] = counted.get(kind.value, 0) + 1
    return counted
