"""The person who runs the house: does what only a person may, and only once an alert or a state asks for it."""

from collections.abc import Iterable

from sellerwatch.adapters.sql import audit
from sellerwatch.domain.errors import Conflict, Trouble
from sellerwatch.simulation.loop import BEGINNING
from sellerwatch.simulation.place import Place

_REFUSED_ALERT = "delivery_failed"


class Person:
    def __init__(self, town: Place) -> None:
        self._town = town

    async def crawl(self, sellers: Iterable[str]) -> None:
        for seller in sellers:
            try:
                await self._town.office.trigger.crawl_now(seller)
                self._tell(f"crawls {seller}")
            except (Conflict, Trouble) as refusal:
                self._tell(f"can't crawl {seller}: {refusal}")

    async def attend(self) -> None:
        """Takes back identities that the marketplace blocked, says of a quarantined crawl that it is right, and of many
        products that they are really gone.
        """
        office = self._town.office
        for agent_id in await audit.blocked(office.database):
            self._tell(f"unblocks identity {agent_id}")
            await office.identities.unblock(agent_id)
        if quarantines := await audit.quarantined(office.database):
            self._tell(f"releases {len(quarantines)} quarantined")
            await office.decide.release(quarantines)
        for seller in await audit.unconfirmed(office.database):
            self._tell(f"confirms that products of {seller} are gone")
            await office.decide.confirm_delisting(seller)

    async def resend_what_was_refused(self) -> None:
        office = self._town.office
        if not await audit.refused(office.database):
            return
        if not await audit.is_alerted(office.database, _REFUSED_ALERT):
            self._town.wrong("I2", "deliveries FAILED and no alert tells of it")
        self._tell("resends what was refused")
        await office.repair.retry_since(BEGINNING)

    def _tell(self, what: str) -> None:
        self._town.tell("operator", what)
