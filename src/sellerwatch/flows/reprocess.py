"""Reprocess: what was crawled since a moment is read once more, as after mending a parser.

    item by item, in the order of their numbers: of each kind the newest raw ─▶ product ─▶ change, product outbox
    one commit for some items, or, as a trial, none

Only real differences become changes, and one per item: what the product rests on says the same when it is read the
same. So it may be ended anywhere and begun again: what is done is found done, and the rest follows. Raws that FAILED
and are newer than what the product rests on count; what waits to be absorbed is left to that. So is what was quarantined
since: it is read once more there, whole observations at a time, and judged anew (domain/quarantines.py); a trial
tells of it with the rest. Nothing here can ask the marketplace: there is nobody to ask it with.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import ChangeKind, DocumentKind
from sellerwatch.domain.meaning import MEANING, Meaning
from sellerwatch.domain.outbox import ProductEvent
from sellerwatch.domain.products import Fetched, Product, announce
from sellerwatch.domain.raws import Raw, RawStatus, raw_id
from sellerwatch.ports.marketplace import Reader
from sellerwatch.ports.store import Head, RawSign, Store, Unit
from sellerwatch.ports.time import Bell, Clock
from sellerwatch.steps import holding
from sellerwatch.steps.reading import NotUnderstood, is_foreign, read, sources_of

ITEMS = 50
"""So many at a time: their documents are held in memory."""
_HELD_AT_ONCE = 500
SAMPLES = 3
_READ = frozenset({RawStatus.PROCESSED, RawStatus.FAILED})
_TRIED = _READ | {RawStatus.HELD}
Pile = dict[tuple[int, DocumentKind], list[str]]
"""Of each item and kind the raws that may be read, the best one last."""


@dataclass(slots=True)
class FieldTally:
    """Of one field, or one reason: how often, and the first few."""

    count: int = 0
    samples: list[tuple[int, Any, Any]] = field(default_factory=list)
    """Item, old, new; of what is not understood: item, why, None."""

    def add(self, item_no: int, old: Any, new: Any) -> None:
        self.count += 1
        if len(self.samples) < SAMPLES:
            self.samples.append((item_no, old, new))


@dataclass(slots=True)
class Reprocessed:
    """What came of it so far, or, in a trial, would have."""

    items_total: int = 0
    items: int = 0
    raws: int = 0
    """Read once more."""
    passed_over: int = 0
    """Older content that something newer has taken the place of, or what waits to be absorbed anyway."""
    created: int = 0
    """Products that become complete by it."""
    events: int = 0
    fields: dict[str, FieldTally] = field(default_factory=dict)
    not_understood: dict[str, FieldTally] = field(default_factory=dict)
    quarantines: int = 0
    """Whose documents are absorbed and judged anew; those are not counted here."""

    def count(self, change: Change) -> None:
        self.events += 1
        self.created += ChangeKind.CREATED in change.kinds
        for one in change.fields:
            self.fields.setdefault(one.field, FieldTally()).add(change.item_no, one.old, one.new)


@dataclass(frozen=True, slots=True)
class Reprocess:
    store: Store
    reader: Reader
    clock: Clock
    bell: Bell
    meaning: Meaning = MEANING

    async def run(self, since: datetime, *, is_trial: bool = False) -> AsyncIterator[Reprocessed]:
        """After every few items, what came of it so far; at least once."""
        done = Reprocessed(await self.store.read(lambda unit: unit.raws.count_items_since(since)))
        transact = self.store.read if is_trial else self.store.transact
        after = 0
        if not is_trial:
            done.quarantines = await self._judge_anew(since)
        yield done
        while item_nos := await self.store.read(partial(_next_items, since=since, after=after)):
            batch = _Batch(self.reader, self.meaning, since, self.clock.now(), is_trial=is_trial)
            some = await transact(partial(batch.work, item_nos=item_nos))
            _add(done, some)
            done.items, after = done.items + len(item_nos), item_nos[-1]
            if some.events and not is_trial:
                self.bell.ring("deliver")
            yield done

    async def _judge_anew(self, since: datetime) -> int:
        """What is quarantined waits to be absorbed from now on; a crash in between leaves the rest to the sweep."""
        at = self.clock.now()
        ended = await self.store.transact(lambda unit: len(holding.reprocess(unit, since, at)))
        while ended and await self.store.transact(lambda unit: holding.let_some_go(unit, at, _HELD_AT_ONCE)):
            self.bell.ring("absorb")
        return ended


@dataclass(frozen=True, slots=True)
class _News:
    """What one commit will write."""

    products: list[Product] = field(default_factory=list)
    """Those that say something else now, or rest on another document."""
    changes: list[Change] = field(default_factory=list)
    events: list[ProductEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Batch:
    reader: Reader
    meaning: Meaning
    since: datetime
    at: datetime
    is_trial: bool

    def work(self, unit: Unit, item_nos: Sequence[int]) -> Reprocessed:
        result = Reprocessed()
        signs = unit.raws.signs_since(item_nos, self.since)
        pile = _pile(signs, unit.products.heads(item_nos))
        chosen = self._read(unit, pile, result)
        result.raws, result.passed_over = len(chosen), len(signs) - len(chosen)
        products = unit.products.lock(item_nos)
        sources = sources_of(unit, (raw for raw, _ in chosen))
        news = _News()
        for item_no, pairs in _by_item(chosen).items():
            if item_no in unit.products.spoilt():
                continue
            product, documents = products.get(item_no), [fetched for _, fetched in pairs]
            newest = max((raw for raw, _ in pairs), key=lambda raw: raw.crawled_at)
            if product is None:
                if is_foreign(sources, newest.seller_id, documents):
                    continue
                product = Product.discover(item_no, newest.seller_id, min(fetched.at for fetched in documents))
                products[item_no] = product
            self._apply(product, documents, newest.execution_id, news)
        for change in news.changes:
            result.count(change)
        if not self.is_trial:
            unit.products.save(news.products)
            unit.changes.add(news.changes)
            unit.events.add(news.events)
            unit.raws.save(list(_understood_now(chosen, products, self.at)))
        return result

    def _apply(self, product: Product, documents: Sequence[Fetched], execution_id: str, news: _News) -> None:
        before = deepcopy(product)
        change = product.apply(documents, self.at, execution_id, self.meaning)
        if product != replace(before, updated_at=self.at):
            news.products.append(product)
        if change is None:
            return
        event = announce(product, change, self.meaning)
        if {seen.raw_hash for seen in before.seen.values()}.issuperset(proof.raw_hash for proof in change.proofs):
            # The answer is old; that it says this is known since it was read anew.
            event.seen_at = self.at
        news.changes.append(change)
        news.events.append(event)

    def _read(self, unit: Unit, pile: Pile, result: Reprocessed) -> list[tuple[Raw, Fetched]]:
        """Of each item and kind the newest that can be understood; none where one waits to be absorbed."""
        chosen: list[tuple[Raw, Fetched]] = []
        while pile:
            raws = unit.raws.lock_by_id([raw_ids.pop() for raw_ids in pile.values()])
            for raw in raws:
                key = (raw.item_no, raw.kind)
                if raw.status not in (_TRIED if self.is_trial else _READ):
                    del pile[key]
                    continue
                fetched = read(self.reader, raw)
                if isinstance(fetched, NotUnderstood):
                    tally = result.not_understood.setdefault(fetched.where, FieldTally())
                    tally.add(raw.item_no, fetched.why, None)
                    continue
                chosen.append((raw, fetched))
                del pile[key]
            pile = {key: raw_ids for key, raw_ids in pile.items() if raw_ids}
        return chosen


def _next_items(unit: Unit, since: datetime, after: int) -> list[int]:
    return unit.raws.items_since(since, after, ITEMS)


def _pile(signs: Iterable[RawSign], heads: dict[int, Head]) -> Pile:
    """What is not older than the document that the product rests on."""
    ranked: dict[tuple[int, DocumentKind], list[tuple[datetime, bool, str]]] = {}
    for sign in signs:
        head = heads.get(sign.item_no)
        seen = head.seen.get(sign.kind) if head else None
        is_applied = seen is not None and sign.raw_id == raw_id(sign.item_no, sign.kind, seen.raw_hash)
        if seen is None or is_applied or sign.crawled_at > seen.at:
            # The same bytes seen again later moved the product's moment, not the raw's.
            at = max(sign.crawled_at, seen.at) if seen and is_applied else sign.crawled_at
            ranked.setdefault((sign.item_no, sign.kind), []).append((at, is_applied, sign.raw_id))
    return {key: [raw_id for _, _, raw_id in sorted(ranks)] for key, ranks in ranked.items()}


def _by_item(chosen: Iterable[tuple[Raw, Fetched]]) -> dict[int, list[tuple[Raw, Fetched]]]:
    items: dict[int, list[tuple[Raw, Fetched]]] = {}
    for raw, fetched in chosen:
        items.setdefault(raw.item_no, []).append((raw, fetched))
    return items


def _understood_now(chosen: Iterable[tuple[Raw, Fetched]], products: dict[int, Product], at: datetime) -> Iterable[Raw]:
    """Those that had FAILED are PROCESSED; of the others nothing is to be written."""
    for raw, _ in chosen:
        if raw.status is RawStatus.FAILED:
            product = products.get(raw.item_no)
            raw.again(at)
            raw.processed(product.product_id if product else None, at)
            yield raw


def _add(total: Reprocessed, some: Reprocessed) -> None:
    total.raws += some.raws
    total.passed_over += some.passed_over
    total.created += some.created
    total.events += some.events
    for mine, theirs in ((total.fields, some.fields), (total.not_understood, some.not_understood)):
        for name, tally in theirs.items():
            known = mine.setdefault(name, FieldTally())
            known.count += tally.count
            known.samples += tally.samples[: SAMPLES - len(known.samples)]
