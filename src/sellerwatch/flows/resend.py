"""Resend: products are told once more, as they are now: all of them, or those of which the receiver has not our version.

    ours, page by page  ─┐
                         ├─▶ missing there, or older: the newest row WAITING again, one commit for some hundreds
    theirs, line by line ┘   newer there, or unknown here: told to the operator, nothing else

The row keeps its id, so that a receiver which does know it is not told twice; one that was pruned is written anew
under the same id. What is on its way stays as it is. Of everything the receiver named one bit is remembered, so the
number of products does not matter; interrupted, it has done a part, and doing it again does the rest.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice

from sellerwatch.domain.changes import Change
from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.outbox import OutboxStatus, ProductEvent
from sellerwatch.domain.products import Product, ProductStatus, announce
from sellerwatch.ports.store import Standing, Store, Unit
from sellerwatch.ports.time import Bell, Clock

BATCH = 500
SAMPLES = 5
Versions = tuple[int, int]
"""An item, and a version of it."""


@dataclass(slots=True)
class Suspicion:
    """What the receiver says and we can't explain: how often, and the first few (item, version there, version here)."""

    count: int = 0
    samples: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, item_no: int, there: int, here: int) -> None:
        self.count += 1
        if len(self.samples) < SAMPLES:
            self.samples.append((item_no, there, here))


@dataclass(slots=True)
class Resent:
    """What came of it so far, or, in a trial, would have."""

    compared: int = 0
    same: int = 0
    missing: int = 0
    older: int = 0
    newer: Suspicion = field(default_factory=Suspicion)
    unknown: Suspicion = field(default_factory=Suspicion)
    """Items that we don't know, or not completely."""
    sent: int = 0
    """Told once more."""
    on_their_way: int = 0
    """Their newest version waits, is being sent, or is held: it stays as it is."""


@dataclass(frozen=True, slots=True)
class Resend:
    store: Store
    clock: Clock
    bell: Bell

    async def everything(self, seller_id: str | None = None, *, is_trial: bool = False) -> AsyncIterator[Resent]:
        """Every complete product, of one seller or of all; incomplete ones were never told."""
        done, after = Resent(), 0
        yield done
        while ours := await self._ours(after, seller_id):
            await self._send(done, [one.item_no for one in ours], is_trial=is_trial)
            after = ours[-1].number
            yield done

    async def difference(self, theirs: Iterable[Versions], *, is_trial: bool = False) -> AsyncIterator[Resent]:
        """What the receiver's versions lack of ours; after every few hundreds, what came of it so far."""
        done, named = Resent(), _Numbers()
        yield done
        lines = iter(theirs)
        while some := list(islice(lines, BATCH)):
            older = await self._compare(done, named, some)
            await self._send(done, older, is_trial=is_trial)
            yield done
        after = 0
        while ours := await self._ours(after, None):
            missing = [one.item_no for one in ours if one.number not in named]
            done.missing += len(missing)
            await self._send(done, missing, is_trial=is_trial)
            after = ours[-1].number
            yield done

    async def _ours(self, after: int, seller_id: str | None) -> list[Standing]:
        return await self.store.read(lambda unit: unit.products.standings_after(after, BATCH, seller_id))

    async def _compare(self, done: Resent, named: "_Numbers", theirs: Sequence[Versions]) -> list[int]:
        """The items of which they have an older version."""
        ours = await self.store.read(lambda unit: unit.products.standings([item_no for item_no, _ in theirs]))
        older = []
        for item_no, there in theirs:
            done.compared += 1
            known = ours.get(item_no)
            if known is None:
                done.unknown.add(item_no, there, 0)
                continue
            named.add(known.number)
            if there > known.version:
                done.newer.add(item_no, there, known.version)
            elif there < known.version:
                older.append(item_no)
            else:
                done.same += 1
        done.older += len(older)
        return older

    async def _send(self, done: Resent, item_nos: Sequence[int], *, is_trial: bool) -> None:
        if not item_nos:
            return
        run = self.store.read if is_trial else self.store.transact
        sent, on_their_way = await run(partial(_again, item_nos=item_nos, at=self.clock.now(), is_trial=is_trial))
        done.sent, done.on_their_way = done.sent + sent, done.on_their_way + on_their_way
        if sent and not is_trial:
            self.bell.ring("deliver")


class _Numbers:
    """A set of rows' numbers, a bit each."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, number: int) -> None:
        place, bit = divmod(number, 8)
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 - len(self._bits)))
        self._bits[place] |= 1 << bit

    def __contains__(self, number: int) -> bool:
        place, bit = divmod(number, 8)
        return place < len(self._bits) and bool(self._bits[place] & 1 << bit)


def _again(unit: Unit, item_nos: Sequence[int], at: datetime, *, is_trial: bool) -> tuple[int, int]:
    """How many were told once more, and how many were on their way anyway."""
    rows = [_as_it_is(product) for product in unit.products.lock(item_nos).values() if product.version]
    known = {event.outbox_id: event for event in unit.events.lock([row.outbox_id for row in rows])}
    ended = [event for event in known.values() if event.status in {OutboxStatus.COMPLETED, OutboxStatus.FAILED}]
    sent = len(rows) - len(known) + len(ended)
    if not is_trial:
        unit.events.add([row for row in rows if row.outbox_id not in known])
        for event in ended:
            event.repeat(at)
        unit.events.put(ended)
    return sent, len(rows) - sent


def _as_it_is(product: Product) -> ProductEvent:
    """The row of the product's newest version, as it would be written if nothing had changed but its being lost."""
    kinds = (ChangeKind.DELISTED,) if product.status is ProductStatus.DELISTED else ()
    changed_at = product.last_changed_at or product.updated_at
    about = (product.product_id, product.item_no, product.seller_id, product.version)
    event = announce(product, Change("", *about, kinds, (), changed_at))
    event.seen_at = None
    return event
