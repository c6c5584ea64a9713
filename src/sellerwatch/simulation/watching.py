"""What must be true whatever happened, seen from outside: by the marketplace that counts, by the receiver that compares,
and by the database that is looked at between two transactions.

    always      arrivals per identity (I1, I18), where requests go (I9), what the audit may never find (I4, I6, I7, I13)
    at the end  truth and copies (I2, I8, I16, I17), tasks and attempts (I3, I15), secrets (I10), raws (I12), mistakes

I5 is kept by construction: work in a transaction is a plain function, which can't await. I11 and I14 have no checker here;
they have stories of their own.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from sellerwatch.adapters.sql import audit
from sellerwatch.domain.documents import content_hash
from sellerwatch.ports.pool import Lease
from sellerwatch.ports.wire import RawReply
from sellerwatch.sandbox.truth import disagreements
from sellerwatch.simulation.faults import NAMES, Where
from sellerwatch.simulation.place import Place

TROUBLES: Final = frozenset({"Unavailable", "Unreadable", "OperationalError", "TimeoutError", "Trouble", "Buried"})
"""What may be logged as an error while the world is bad; anything else is a mistake of ours."""
_OURS: Final = {Where.PROCESS, Where.DATABASE, Where.POOL, Where.QUEUE, Where.CLOCK}
_REST_SECONDS: Final = 3600.0


class Watching:
    def __init__(self, town: Place) -> None:
        self._town = town
        self._rests_until: dict[str, float] = {}
        self._leased_at: dict[int, datetime] = {}

    def leased(self, lease: Lease) -> None:
        """I1: between two leases of one identity lies its interval, whoever asked for them."""
        before = self._leased_at.get(lease.agent_id)
        least = timedelta(seconds=self._town.office.settings.identity_min_interval)
        if before is not None and lease.leased_at - before < least:
            self._town.wrong("I1", f"identity {lease.agent_id} was leased again after {lease.leased_at - before}")
        self._leased_at[lease.agent_id] = lease.leased_at

    def given_back(self, agent_ids: Sequence[int]) -> None:
        """Unused, with its budget and its interval."""
        for agent_id in agent_ids:
            self._leased_at.pop(agent_id, None)

    def heard(self, target: str, user_agent: str, reply: RawReply, at: float) -> None:
        """One answer of the marketplace, as it leaves it. (I9) A request is of the marketplace's own origin. (I18) After
        its 429 an identity asks nothing until its suspension and what `Retry-After` said are over; looked at where
        nothing of ours may lose what was heard."""
        if not target.startswith("/"):
            self._town.wrong("I9", f"a request to {target}")
        rests_until = self._rests_until.get(user_agent, 0.0)
        if at < rests_until - 1 and self._hears_everything():
            self._town.wrong("I18", f"{user_agent} asked again {rests_until - at:.0f} s too early")
        if reply.status == 429:
            self._rests_until[user_agent] = at + max(_REST_SECONDS, _asked_for(reply))

    async def at_the_end(self) -> None:
        self._requests()
        self._mistakes()
        await self._products()
        await self._attempts()
        await self._raws()
        self._secrets()

    def _hears_everything(self) -> bool:
        return not any(NAMES[name].where in _OURS for name in self._town.luck.rates)

    def _requests(self) -> None:
        """I1: in no sliding hour of the marketplace's own did an identity come more often than its limit."""
        town = self._town
        if violations := town.sandbox.stats()["violations"]:
            town.wrong("I1", f"the marketplace counted {violations} requests over the limit")

    def _mistakes(self) -> None:
        """Errors that nobody foresaw are mistakes of ours."""
        for kind, what in self._town.log:
            if kind not in TROUBLES:
                self._town.wrong("a mistake", f"{kind}: {what}")

    async def _products(self) -> None:
        """I8, I16, I17: after a crawl in good days every product is what the marketplace shows, whatever came before.
        I2: and the receiver's copy is what we hold, told in order of version, each change from where the last ended."""
        town = self._town
        for seller in town.scenario.shops:
            truths = dict(town.sandbox.truths(seller))
            known = await town.products(list(truths))
            for item_no, truth in truths.items():
                product = known.get(item_no)
                if product is None or not product.is_complete:
                    town.wrong("I8 I16 I17", f"item {item_no} of {seller} is not complete")
                elif fields := disagreements(truth, product.data()):
                    town.wrong("I8 I16 I17", f"item {item_no} of {seller} is wrong in {fields}")
        await self._copies()
        await self._absences()
        received = town.sandbox.receiver.shown()
        for name in ("outOfOrder", "mismatches", "badSignatures", "keysReused", "unreadable"):
            if received[name]:
                town.wrong("I2", f"the receiver saw {received[name]} {name}: {received['stories']}")

    async def _copies(self) -> None:
        town = self._town
        found = await audit.rows(town.office.database, "SELECT item_no FROM products WHERE is_complete = 1")
        item_nos = [int(str(item_no)) for (item_no,) in found]
        products = await town.products(item_nos)
        for item_no, product in products.items():
            copy = town.sandbox.receiver.copy(item_no) or {}
            ours = orjson.loads(orjson.dumps(product.data()))
            if (copy.get("version"), copy.get("productData")) != (product.version, ours):
                town.wrong(
                    "I2", f"of item {item_no} we hold version {product.version}, the receiver {copy.get('version')}"
                )

    async def _absences(self) -> None:
        """I17: nothing was ever told to be gone that the marketplace still shows; who left a shop never comes back."""
        town = self._town
        shown = {item_no for seller in town.scenario.shops for item_no, _ in town.sandbox.truths(seller)}
        gone = await audit.rows(
            town.office.database,
            "SELECT DISTINCT item_no FROM product_changes WHERE kinds LIKE '%DELISTED%' ORDER BY 1",
        )
        for (item_no,) in gone:
            if int(str(item_no)) in shown:
                town.wrong("I17", f"item {item_no} was delisted, and never left")

    async def _raws(self) -> None:
        """I12: what was stored is what was hashed when it came."""
        kept = await audit.rows(
            self._town.office.database, "SELECT raw_id, raw_json, raw_hash FROM product_raw_data ORDER BY id"
        )
        for raw_id, content, wanted in kept:
            if content_hash(str(content).encode()) != wanted:
                self._town.wrong("I12", f"raw {raw_id} is not what it was")

    async def _attempts(self) -> None:
        """I3, I15: every task has ended, and none was tried more often than its setting says."""
        town = self._town
        settings = town.office.settings
        for what, count in (
            await audit.tried_too_often(town.office.database, settings.task_retries, settings.task_abandons)
        ).items():
            town.wrong("I15", f"{count} tasks with {what}")

    def _secrets(self) -> None:
        """I10: no token stands in the database or the log in the clear."""
        town = self._town
        tokens = [token for visitor in town.sandbox.market.gate.visitors.values() for token in visitor.tokens]
        written = audit.image(town.office.database)
        said = "\n".join(what for _, what in town.log) + "\n".join(town.outcome.timeline)
        for token in tokens:
            if token.encode() in written or token in said:
                town.wrong("I10", "a token stands in the clear")


def _asked_for(reply: RawReply) -> float:
    asked = reply.header("retry-after")
    return float(asked) if asked and asked.isdigit() else 0.0
