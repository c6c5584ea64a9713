"""What several routes ask of the house: whether a seller is known, and how many tasks a crawl began with."""

from typing import Final

from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.ports.store import Unit
from sellerwatch.wiring import House

PLAN_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 0.05


async def check_seller(house: House, seller_id: str) -> None:
    """Unknown when there is no such seller."""
    if await house.store.read(lambda unit: unit.sellers.get(seller_id)) is None:
        raise Unknown("seller", seller_id)


async def planned(house: House, execution_id: str) -> int | None:
    """The number of its first tasks, waited for a little: another process may be the one that plans it. None when it
    is not known soon enough."""

    async def look() -> int | None:
        while True:
            count = await house.store.read(lambda unit: _first_tasks(unit, execution_id))
            if count is not None:
                return count
            await house.clock.sleep(LOOK_SECONDS)

    try:
        return await house.clock.within(PLAN_SECONDS, look())
    except TimeoutError:
        return None


def _first_tasks(unit: Unit, execution_id: str) -> int | None:
    """None while it is STARTED. Follow-ups that came meanwhile are not counted."""
    execution = unit.executions.get(execution_id)
    if execution is None or execution.status is ExecutionStatus.STARTED:
        return None
    pages = unit.tasks.list_pages(execution_id)
    began = min((page.created_at for page in pages), default=None)
    return sum(page.created_at == began for page in pages)
