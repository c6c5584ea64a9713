"""Step 4, absorb: documents → products, changes, product outbox.

    one commit: ripe raws, whole observations at a time ─▶ products ─▶ changes ─▶ product outbox, raws PROCESSED

One crawl of an item is one observation: its list entry, detail and options are applied together, in that order, and
make at most one version, one change and one event. A raw that can't be understood is FAILED with its error and takes
neither its siblings nor its neighbours with it. Nothing is called outside: the whole step is one transaction, and a
crash in its middle leaves everything as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sellerwatch.domain import traces
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.outbox import ProductEvent, backoff
from sellerwatch.domain.products import Fetched, Product, announce
from sellerwatch.domain.raws import Raw, RawStatus
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.ports.marketplace import Reader
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.traces import UNTRACED, Span, Traces
from sellerwatch.steps.reading import NotUnderstood, is_foreign, read, sources_of

_ORDER = {DocumentKind.MINI_SHOP: 0, DocumentKind.DETAIL: 1, DocumentKind.OPTION: 2}
_TOLD = (DocumentKind.DETAIL, DocumentKind.OPTION, DocumentKind.MINI_SHOP)
_BACKOFF_SECONDS, _BACKOFF_CEILING = 60.0, 3600.0
_SAMPLE = 200


@dataclass(frozen=True, slots=True)
class Absorbed:
    raws: int
    failed: int
    changes: tuple[Change, ...]


@dataclass(slots=True)
class _Batch:
    """What one commit will write."""

    products: dict[int, Product]
    sources: dict[str, CrawlSource]
    at: datetime
    chance: float
    touched: dict[int, Product] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    events: list[ProductEvent] = field(default_factory=list)
    drift: list[tuple[DocumentKind, str, str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Absorb:
    store: Store
    reader: Reader
    clock: Clock
    chance: Chance
    bell: Bell
    batch: int = 300
    traces: Traces = UNTRACED

    async def run(self) -> Absorbed:
        at = self.clock.now()
        # Drawn outside the transaction, which may be tried again.
        chance = self.chance.random()
        absorbed, spans = await self.store.transact(lambda unit: self._write(unit, at, chance))
        if spans:
            now = self.clock.now()
            self.traces.tell(replace(span, ended=now) for span in spans)
        if absorbed.changes:
            self.bell.ring("deliver")
        return absorbed

    def _write(self, unit: Unit, at: datetime, chance: float) -> tuple[Absorbed, list[Span]]:
        raws = unit.raws.lock_ripe(at, self.batch)
        if not raws:
            return Absorbed(0, 0, ()), []
        products = unit.products.lock({raw.item_no for raw in raws if raw.item_no})
        batch = _Batch(products, sources_of(unit, raws), at, chance)
        for observation in _observations(raws):
            self._observe(batch, observation)
        unit.products.save(list(batch.touched.values()))
        unit.changes.add(batch.changes)
        unit.events.add(batch.events)
        unit.raws.save(raws)
        unit.chores.note_drift(batch.drift, at)
        failed = sum(raw.status is RawStatus.FAILED for raw in raws)
        return Absorbed(len(raws), failed, tuple(batch.changes)), batch.spans

    def _observe(self, batch: _Batch, raws: Sequence[Raw]) -> None:
        readable: list[tuple[Raw, Fetched]] = []
        for raw in raws:
            fetched = read(self.reader, raw)
            if isinstance(fetched, NotUnderstood):
                pause = backoff(raw.retry_count, _BACKOFF_SECONDS, _BACKOFF_CEILING, batch.chance)
                raw.failed(fetched.why, batch.at + pause)
                batch.drift.append((raw.kind, fetched.where, "unreadable", fetched.why[:_SAMPLE]))
                continue
            document = fetched.document
            batch.drift += [(raw.kind, name, "missing", str(raw.item_no)) for name in document.missing]
            batch.drift += [(raw.kind, name, "unknown", str(raw.item_no)) for name in document.unknown]
            readable.append((raw, fetched))
        if not readable:
            return
        item_no, seller_id = raws[0].item_no, raws[0].seller_id
        product = batch.products.get(item_no)
        if product is None and is_foreign(batch.sources, seller_id, (fetched for _, fetched in readable)):
            for raw, _ in readable:
                raw.processed(None, batch.at, "another seller's item in the search: skipped")
            return
        product = product or Product.discover(item_no, seller_id, min(fetched.at for _, fetched in readable))
        batch.products[item_no] = batch.touched[item_no] = product
        change = product.apply((fetched for _, fetched in readable), batch.at, raws[0].execution_id)
        for raw, _ in readable:
            raw.processed(product.product_id, batch.at)
        if change:
            batch.changes.append(change)
            batch.events.append(announce(product, change))
        if self.traces.is_on:
            self._trace(batch, [raw for raw, _ in readable], change)

    def _trace(self, batch: _Batch, raws: Sequence[Raw], change: Change | None) -> None:
        """An observation belongs to the trace of its detail's task, and follows from the others' too."""
        first, *others = sorted(raws, key=lambda raw: _TOLD.index(raw.kind))
        parent = traces.crawled(first.task_id)
        context = traces.child(parent, f"absorb/{first.item_no}")
        facts: dict[str, str | int] = {
            "seller.id": first.seller_id,
            "item.no": first.item_no,
            "version": change.version if change else 0,
        }
        links = tuple(dict.fromkeys(traces.crawled(raw.task_id) for raw in others))
        batch.spans.append(Span("absorb", context, parent, batch.at, batch.at, facts, links=links))
        if change:
            batch.events[-1].payload[traces.CARRIED] = context


def _observations(raws: Sequence[Raw]) -> list[list[Raw]]:
    """By execution and item, oldest first, documents in the order in which they are applied."""
    groups: dict[tuple[str, int], list[Raw]] = {}
    for raw in sorted(raws, key=lambda raw: (raw.crawled_at, _ORDER[raw.kind])):
        groups.setdefault((raw.execution_id, raw.item_no), []).append(raw)
    for group in groups.values():
        group.sort(key=lambda raw: _ORDER[raw.kind])
    return list(groups.values())
