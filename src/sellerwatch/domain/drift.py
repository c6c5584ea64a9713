"""Drift: the marketplace writes otherwise than it used to. Seen in how many documents, never in one.

Counted while a crawl is absorbed, and compared with what is usual for the seller: the crawls before it that passed.

    batch ─▶ tally ─▶ crawl (all of it) ───────────────▶ learned, when the crawl has ended and passed
                 └──▶ recent (a window that slides) ─▶ breach of a limit ─▶ quarantine (domain/quarantines.py)

A share is judged on a sample that is large enough, so that a small shop never trips; a first crawl has nothing to be
compared with and teaches only. How much can pass before a limit is met is bounded: less than the smallest sample at a
crawl's beginning, later the limit's share of `WINDOW` documents; of changed fields the limit's share of the shop.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from sellerwatch.domain import forms
from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import Document, DocumentKind
from sellerwatch.domain.meaning import Meaning

WINDOW = 400
"""So many documents of a kind, at most twice that, are recent: older ones count half, then a quarter …"""
LEARNED_MAX = 4_000
"""So many documents are usual's memory; with more, the older ones fade."""
JUMP = 5
"""A price that is so many times as high, or as low, as in the last version has jumped; to nothing always has."""
FULL_PAGES_MIN = 3
PAGE_SHARE = 0.5
"""Full pages that hold less than this of what they usually hold, or more than its inverse."""
_NOT_A_FIELD = frozenset({"status", "sellerId"})
_EMPTY = (None, ())

Sections: TypeAlias = dict[str, dict[str, float]]


class Measure(StrEnum):
    MISSING = "MISSING"
    UNREADABLE = "UNREADABLE"
    JUMPED = "JUMPED"
    CHANGED = "CHANGED"
    PAGES = "PAGES"


@dataclass(frozen=True, slots=True)
class Limit:
    """How far a share may lie above the usual one, and on how many it is judged at least."""

    above: float
    sample: int
    hits: int
    needs_usual: bool
    """Nothing is judged before as large a sample has shown what is usual; else usual is none."""
    why: str


LIMITS: Mapping[Measure, Limit] = MappingProxyType(
    {
        Measure.MISSING: Limit(
            0.3,
            20,
            10,
            needs_usual=True,
            why="a seller leaves out a field of some products, not of a third of the shop",
        ),
        Measure.UNREADABLE: Limit(
            0.2, 20, 10, needs_usual=True, why="what can't be read is a type that changed or a field that was renamed"
        ),
        Measure.JUMPED: Limit(
            0.5, 20, 10, needs_usual=False, why="one price is mistyped; most of them jump when their unit has changed"
        ),
        Measure.CHANGED: Limit(
            0.5, 50, 30, needs_usual=False, why="half a shop changes the same field in a sale, or when its form changed"
        ),
    }
)


@dataclass(slots=True)
class Tally:
    """Counts by section and name. Sections: `documents` and `known` (of complete products) by kind; `missing` and
    `unreadable` by kind and field; `priced`, `jumped` and `changed` by field; `pages`."""

    sections: Sections = field(default_factory=dict)
    samples: dict[tuple[str, str], str] = field(default_factory=dict)
    """The first of each, for a person to look at."""

    def note(self, section: str, name: str, times: float = 1, sample: str = "") -> None:
        counts = self.sections.get(section)
        if counts is None:
            counts = self.sections[section] = {}
        counts[name] = counts.get(name, 0) + times
        if sample:
            self.samples.setdefault((section, name), sample)

    def add(self, other: "Tally") -> None:
        for section, counts in other.sections.items():
            for name, times in counts.items():
                self.note(section, name, times)
        for key, sample in other.samples.items():
            self.samples.setdefault(key, sample)

    def fade(self, share: float) -> None:
        """Everything counts for less."""
        for counts in self.sections.values():
            for name in counts:
                counts[name] *= share

    def of(self, section: str, name: str) -> float:
        return self.sections.get(section, {}).get(name, 0)

    def names(self, section: str) -> Iterable[str]:
        return self.sections.get(section, {})

    # What one observation adds.

    def read(self, document: Document, sample: str) -> None:
        self.note("documents", document.kind.value)
        for name in document.missing:
            self.note("missing", f"{document.kind.value}.{name}", sample=sample)

    def refused(self, kind: DocumentKind, where: str, sample: str) -> None:
        self.note("documents", kind.value)
        self.note("unreadable", where if where.startswith(kind.value) else f"{kind.value}.{where}", sample=sample)

    def compare(self, documents: Sequence[Document], change: Change | None, meaning: Meaning) -> None:
        """A product that was complete, and what these documents of it changed. A value that appears where none was
        known is no drift."""
        for document in documents:
            self.note("known", document.kind.value)
        if change is None:
            return
        missing = {name for document in documents for name in document.missing}
        for one in change.fields:
            if one.old in _EMPTY:
                continue
            sample = f"{change.item_no}: {forms.shown(one.old)} → {forms.shown(one.new)}"
            self.note("changed", one.field, sample=sample)
            if one.field in _NOT_A_FIELD:
                continue
            declared = meaning.field(one.field)
            if one.new in _EMPTY and one.field not in missing:
                self.note("missing", f"{declared.document.value}.{one.field}", sample=sample)
            if declared.form is forms.WON:
                self.note("priced", one.field)
                if _has_jumped(one.old, one.new):
                    self.note("jumped", one.field, sample=sample)


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that was met: which, of which field, how far, and an example."""

    measure: Measure
    field: str
    share: float
    usual: float
    hits: int
    of: int
    sample: str

    @property
    def text(self) -> str:
        match self.measure:
            case Measure.PAGES:
                return f"full pages hold {self.share:.0f} items, usually {self.usual:.0f}"
            case Measure.JUMPED:
                what = f"{self.field} is {JUMP} times as high or as low as before"
            case Measure.CHANGED:
                what = f"{self.field} has changed"
            case _:
                what = f"{self.field} is {self.measure.lower()}"
        sample = f"; {self.sample}" if self.sample else ""
        return f"{what} in {self.hits} of {self.of} ({self.share:.0%}, usually {self.usual:.0%}){sample}"


@dataclass(frozen=True, slots=True)
class Progress:
    """Of an execution, what was seen that led to no document: the same bytes again, by kind; and its full pages."""

    same: Mapping[DocumentKind, int] = field(default_factory=dict)
    full_pages: int = 0
    full_page_entries: int = 0


@dataclass(slots=True)
class Watch:
    """An execution under the guard's eyes."""

    execution_id: str
    seller_id: str
    usual: Tally | None
    """None: nothing is known yet, a first crawl."""
    progress: Progress = field(default_factory=Progress)
    crawl: Tally = field(default_factory=Tally)
    recent: Tally = field(default_factory=Tally)

    def take(self, batch: Tally) -> None:
        self.crawl.add(batch)
        self.recent.add(batch)
        if max(self.recent.sections.get("documents", {}).values(), default=0) >= 2 * WINDOW:
            self.recent.fade(0.5)

    def breach(self, meaning: Meaning) -> Breach | None:
        """The worst of the limits that are met."""
        if self.usual is None:
            return None
        found = [*self._by_document(), *self._jumped(), *self._changed(meaning), *self._pages(self.usual)]
        return max(found, key=lambda breach: abs(breach.share - breach.usual), default=None)

    def learned(self, *, afresh: bool) -> Tally:
        """What is usual once this crawl belongs to it. `afresh`: an operator said that this is how it is from now on."""
        usual = Tally()
        if self.usual is not None and not afresh:
            usual.add(self.usual)
        usual.add(self.crawl)
        for kind, times in self.progress.same.items():
            usual.note("known", kind.value, times)
        usual.note("pages", "full", self.progress.full_pages)
        usual.note("pages", "entries", self.progress.full_page_entries)
        most = max((n for s in ("documents", "known") for n in usual.sections.get(s, {}).values()), default=0)
        if most > LEARNED_MAX:
            usual.fade(LEARNED_MAX / most)
        usual.samples.clear()
        return usual

    def _by_document(self) -> Iterable[Breach]:
        for measure, section in ((Measure.MISSING, "missing"), (Measure.UNREADABLE, "unreadable")):
            for name in self.recent.names(section):
                kind = name.partition(".")[0].partition(" ")[0]
                yield from self._judge(measure, name, section, self.recent, "documents", kind)

    def _jumped(self) -> Iterable[Breach]:
        for name in self.recent.names("jumped"):
            yield from self._judge(Measure.JUMPED, name, "jumped", self.recent, "priced", name)

    def _changed(self, meaning: Meaning) -> Iterable[Breach]:
        for name in self.crawl.names("changed"):
            kind = DocumentKind.DETAIL if name in _NOT_A_FIELD else meaning.owner_of(name)
            same = self.progress.same.get(kind, 0)
            yield from self._judge(Measure.CHANGED, name, "changed", self.crawl, "known", kind.value, same)

    def _judge(
        self, measure: Measure, name: str, section: str, tally: Tally, whole: str, of: str, more: float = 0
    ) -> Iterable[Breach]:
        limit, hits, total = LIMITS[measure], tally.of(section, name), tally.of(whole, of) + more
        assert self.usual is not None
        known = self.usual.of(whole, of)
        if total < limit.sample or hits < limit.hits or (limit.needs_usual and known < limit.sample):
            return
        usual = self.usual.of(section, name) / known if known >= limit.sample else 0.0
        if hits / total > usual + limit.above:
            sample = tally.samples.get((section, name), "")
            yield Breach(measure, name, hits / total, usual, round(hits), round(total), sample)

    def _pages(self, usual: Tally) -> Iterable[Breach]:
        pages, known = self.progress.full_pages, usual.of("pages", "full")
        if pages < FULL_PAGES_MIN or known < FULL_PAGES_MIN:
            return
        now, before = self.progress.full_page_entries / pages, usual.of("pages", "entries") / known
        if now < before * PAGE_SHARE or now > before / PAGE_SHARE:
            yield Breach(Measure.PAGES, "items", now, before, self.progress.full_page_entries, pages, "")


def _has_jumped(old: object, new: object) -> bool:
    if type(old) is not int or type(new) is not int or old == 0:
        return False
    return new >= old * JUMP or new * JUMP <= old
