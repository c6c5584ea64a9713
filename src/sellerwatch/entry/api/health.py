"""Health: whether what this process needs answers. Honest, cheap, and asking nothing of the marketplace.

Promises: looked at once a second at the most, however many ask; a component that does not answer within two seconds is
DOWN, and so is a pool that no engine leads; one that is back is UP by itself. `live` says only that the process answers.
No secret and no inner detail is told.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
from fastapi import FastAPI, Response

from sellerwatch.domain.errors import Refused, SellerwatchError, Unavailable
from sellerwatch.entry.api.answers import answer
from sellerwatch.entry.api.guard import EVERYONE
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes.health import Alive, ComponentHealth, Health
from sellerwatch.ports.pool import WhyNot
from sellerwatch.wiring import House

KEPT_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 2.0


class Doctor:
    """Looks at the components, and remembers for a second what it saw."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._turn = asyncio.Lock()
        self._seen: Health | None = None
        self._until = 0.0

    async def look(self) -> Health:
        async with self._turn:
            if self._seen is None or self._house.clock.monotonic() >= self._until:
                self._seen = await self._look()
                self._until = self._house.clock.monotonic() + KEPT_SECONDS
            return self._seen

    async def _look(self) -> Health:
        house = self._house
        checks: dict[str, Callable[[], Awaitable[object]]] = {
            "database": house.check_schema,
            "pool": self._pool,
            "queue": house.queue.depth,
        }
        seen = await asyncio.gather(*(self._check(name, check) for name, check in checks.items()))
        components = dict(zip(checks, seen, strict=True))
        is_up = all(component.status == "UP" for component in seen)
        return Health(status="UP" if is_up else "DOWN", components=components)

    async def _pool(self) -> None:
        outlook = await self._house.pool.outlook()
        if outlook.why is WhyNot.AWAY:
            raise Unavailable("no engine leads the pool")

    async def _check(self, name: str, check: Callable[[], Awaitable[object]]) -> ComponentHealth:
        try:
            await self._house.clock.within(PATIENCE_SECONDS, check())
        except TimeoutError:
            return ComponentHealth(status="DOWN", detail="no answer in time")
        except Refused:
            return ComponentHealth(status="DOWN", detail="not of this version: the schema must be upgraded")
        except SellerwatchError:
            return ComponentHealth(status="DOWN", detail="away")
        except Exception as error:  # noqa: BLE001 - a health check that raises would hide what is ill
            structlog.get_logger().warning("health check failed", component=name, error=type(error).__name__)
            return ComponentHealth(status="DOWN", detail="failed")
        return ComponentHealth(status="UP")


def add_routes(app: FastAPI, house: House) -> None:
    doctor = Doctor(house)

    others: dict[int | str, dict[str, Any]] = {503: {"model": Health, "description": "a component is DOWN"}}

    async def look() -> Response:
        seen = await doctor.look()
        return answer(seen.model_dump(exclude_none=True), 200 if seen.status == "UP" else 503)

    @route(app, "GET", "/actuator/health", EVERYONE, Health, others=others)
    async def health() -> Response:
        """Whether database, pool and queue answer; 503 when one does not."""
        return await look()

    @route(app, "GET", "/actuator/health/ready", EVERYONE, Health, others=others)
    async def health_ready() -> Response:
        """The same: whether this process can do its work now."""
        return await look()

    @route(app, "GET", "/actuator/health/live", EVERYONE, Alive)
    async def health_live() -> Response:
        """Whether the process answers at all."""
        return answer({"status": "UP"})

    @route(app, "GET", "/health/ready", EVERYONE, Health, others=others)
    async def ready() -> Response:
        """Short for `/actuator/health/ready`."""
        return await look()

    @route(app, "GET", "/health/live", EVERYONE, Alive)
    async def live() -> Response:
        """Short for `/actuator/health/live`."""
        return await health_live()
