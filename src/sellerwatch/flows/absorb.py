"""Step 4, absorb: documents → products, changes, product outbox.

    one commit: ripe raws, whole observations at a time ─▶ products ─▶ changes ─▶ product outbox, raws PROCESSED
                  └─ what their execution shows has drifted ─▶ nothing of it: raws and events HELD, an alert

One crawl of an item is one observation: its list entry, detail and options are applied together, in that order, and
make at most one version, one change and one event. A raw that can't be understood is FAILED with its error and takes
neither its siblings nor its neighbours with it. An execution's part of a batch is tried on copies of the products
first, counted, and judged (domain/drift.py); only what passes becomes true. Nothing is called outside: the whole step
is one transaction, and a crash in its middle leaves everything as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sellerwatch.domain import traces
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.drift import Tally, Watch
from sellerwatch.domain.meaning import MEANING, Meaning
from sellerwatch.domain.outbox import ProductEvent, backoff
from sellerwatch.domain.products import Fetched, Product, announce
from sellerwatch.domain.quarantines import Quarantine
from sellerwatch.domain.raws import Raw, RawStatus
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.ports.marketplace import Reader
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.traces import UNTRACED, Span, Traces
from sellerwatch.steps.holding import hold, open_for
from sellerwatch.steps.reading import NotUnderstood, is_foreign, read, sources_of
from sellerwatch.steps.strange import note_drift
from sellerwatch.steps.telling import tell

_ORDER = {DocumentKind.MINI_SHOP: 0, DocumentKind.DETAIL: 1, DocumentKind.OPTION: 2}
_TOLD = (DocumentKind.DETAIL, DocumentKind.OPTION, DocumentKind.MINI_SHOP)
_BACKOFF_SECONDS, _BACKOFF_CEILING = 60.0, 3600.0
_SAMPLE = 200
_SPOILT = "its product can't be read"


@dataclass(frozen=True, slots=True)
class Absorbed:
    raws: int
    failed: int
    changes: tuple[Change, ...]
    held: int = 0
    """Raws that went into a quarantine."""


@dataclass(slots=True)
class _Batch:
    """What one commit will write."""

    products: dict[int, Product]
    sources: dict[str, CrawlSource]
    at: datetime
    chance: float
    spoilt: set[int]
    """Items whose product can't be read."""
    touched: dict[int, Product] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    events: list[ProductEvent] = field(default_factory=list)
    drift: list[tuple[DocumentKind, str, str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    """Of a batch what belongs to one execution: tried, counted, not true yet."""

    watch: Watch | None
    quarantine: Quarantine | None
    tally: Tally = field(default_factory=Tally)
    applied: list[tuple[Raw, Product]] = field(default_factory=list)
    touched: dict[int, Product] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    events: list[ProductEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Absorb:
    store: Store
    reader: Reader
    clock: Clock
    chance: Chance
    bell: Bell
    flap_seconds: float = 0.0
    meaning: Meaning = MEANING
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
        batch = _Batch(products, sources_of(unit, raws), at, chance, unit.products.spoilt())
        by_execution = _observations(raws)
        watches = unit.drift.watch(by_execution)
        quarantines = unit.quarantines.of(watches)
        for execution_id, observations in by_execution.items():
            part = _Part(watches.get(execution_id), quarantines.get(execution_id))
            for observation in observations:
                self._observe(batch, part, observation)
            self._decide(unit, batch, part)
        unit.products.save(list(batch.touched.values()))
        unit.changes.add(batch.changes)
        tell(unit, batch.events, self.flap_seconds, at)
        unit.raws.save(raws)
        unit.drift.save(batch.watches, at)
        note_drift(unit, batch.drift, at)
        failed = sum(raw.status is RawStatus.FAILED for raw in raws)
        held = sum(raw.status is RawStatus.HELD for raw in raws)
        return Absorbed(len(raws), failed, tuple(batch.changes), held), batch.spans

    def _decide(self, unit: Unit, batch: _Batch, part: _Part) -> None:
        """What was tried becomes true, or waits, or is done with."""
        watch, quarantine, at = part.watch, part.quarantine, batch.at
        if watch is not None and quarantine is not None and quarantine.drops:
            for raw, _ in part.applied:
                raw.done_with(quarantine.status.lower(), at)
            return
        if watch is not None and not (quarantine is not None and quarantine.lets_pass):
            watch.take(part.tally)
            batch.watches.append(watch)
            is_open = quarantine is not None and quarantine.is_open
            if not is_open and (breach := watch.breach(self.meaning)):
                quarantine = open_for(unit, quarantine, watch.execution_id, watch.seller_id, breach, at)
                is_open = True
            if is_open and quarantine is not None:
                hold(unit, quarantine, [raw for raw, _ in part.applied], part.events, at)
                return
        for raw, product in part.applied:
            raw.processed(product.product_id, at)
        batch.products |= part.touched
        batch.touched |= part.touched
        batch.changes += part.changes
        batch.events += part.events

    def _observe(self, batch: _Batch, part: _Part, raws: Sequence[Raw]) -> None:
        if raws[0].item_no in batch.spoilt:
            for raw in raws:
                raw.failed(_SPOILT, batch.at + _pause(batch, raw))
            return
        readable = [(raw, fetched) for raw in raws if (fetched := self._read(batch, part, raw))]
        if not readable:
            return
        item_no, seller_id = raws[0].item_no, raws[0].seller_id
        known = part.touched.get(item_no) or batch.products.get(item_no)
        if known is None and is_foreign(batch.sources, seller_id, (fetched for _, fetched in readable)):
            for raw, _ in readable:
                raw.processed(None, batch.at, "another seller's item in the search: skipped")
            return
        product = known.copy() if known else Product.discover(item_no, seller_id, min(f.at for _, f in readable))
        product.spell_seller(seller_id)
        part.touched[item_no] = product
        was_complete = product.is_complete
        change = product.apply((fetched for _, fetched in readable), batch.at, raws[0].execution_id, self.meaning)
        part.applied += [(raw, product) for raw, _ in readable]
        if was_complete:
            part.tally.compare([fetched.document for _, fetched in readable], change, self.meaning)
        if change:
            part.changes.append(change)
            part.events.append(announce(product, change, self.meaning))
        if change or self.traces.is_on:
            self._trace(batch, part, [raw for raw, _ in readable], change)

    def _trace(self, batch: _Batch, part: _Part, raws: Sequence[Raw], change: Change | None) -> None:
        """An observation belongs to the trace of its detail's task, and follows from the others' too. Its event carries
        that on whether anybody collects spans here or not: the receiver may."""
        first, *others = sorted(raws, key=lambda raw: _TOLD.index(raw.kind))
        parent = traces.crawled(first.task_id)
        context = traces.child(parent, f"absorb/{first.item_no}")
        if change:
            part.events[-1].payload[traces.CARRIED] = context
        if not self.traces.is_on:
            return
        facts: dict[str, str | int] = {
            "seller.id": first.seller_id,
            "item.no": first.item_no,
            "version": change.version if change else 0,
        }
        links = tuple(dict.fromkeys(traces.crawled(raw.task_id) for raw in others))
        batch.spans.append(Span("absorb", context, parent, batch.at, batch.at, facts, links=links))

    def _read(self, batch: _Batch, part: _Part, raw: Raw) -> Fetched | None:
        """None: it can't be understood, and is FAILED with the reason."""
        item, fetched = str(raw.item_no), read(self.reader, raw)
        if isinstance(fetched, NotUnderstood):
            sample = fetched.why[:_SAMPLE]
            if not raw.retry_count:
                # Tried again it says nothing new of the marketplace.
                part.tally.refused(raw.kind, fetched.where, f"{item}: {sample}")
            raw.failed(fetched.why, batch.at + _pause(batch, raw))
            batch.drift.append((raw.kind, fetched.where, "unreadable", sample))
            return None
        document = fetched.document
        part.tally.read(document, item)
        batch.drift += [(raw.kind, name, "missing", item) for name in document.missing]
        batch.drift += [(raw.kind, name, "unknown", item) for name in document.unknown]
        return fetched


def _pause(batch: _Batch, raw: Raw) -> timedelta:
    return backoff(raw.retry_count, _BACKOFF_SECONDS, _BACKOFF_CEILING, batch.chance)


def _observations(raws: Sequence[Raw]) -> dict[str, list[list[Raw]]]:
    """By execution and item, oldest first, documents in the order in which they are applied."""
    executions: dict[str, dict[int, list[Raw]]] = {}
    for raw in sorted(raws, key=lambda raw: (raw.crawled_at, _ORDER[raw.kind])):
        executions.setdefault(raw.execution_id, {}).setdefault(raw.item_no, []).append(raw)
    for items in executions.values():
        for group in items.values():
            group.sort(key=lambda raw: _ORDER[raw.kind])
    return {execution_id: list(items.values()) for execution_id, items in executions.items()}
