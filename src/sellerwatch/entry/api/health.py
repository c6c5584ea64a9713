"""Health: whether what this process needs answers. Honest, cheap, and asking nothing of the marketplace.

Promises: looked at once a second at the most, however many ask; a component that does not answer within two seconds is
DOWN, and so is a pool that no engine leads; one that is back is UP by itself. `live` says only that the process answers.
No secret and no inner detail is told.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog
from fastapi import FastAPI, Response

from sellerwatch.domain.errors import Refused, SellerwatchError, Unavailable
from sellerwatch.entry.api.guard import open_to_all
from sellerwatch.entry.api.shapes import Alive, ComponentHealth, Health
from sellerwatch.ports.pool import WhyNot
from sellerwatch.wiring import House

KEPT_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 2.0
_DOWN: Final[Mapping[int | str, dict[str, Any]]] = {503: {"model": Health, "description": "a component is DOWN"}}


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

    async def health(response: Response) -> Health:
        """Whether database, pool and queue answer; 503 when one does not."""
        seen = await doctor.look()
        response.status_code = 200 if seen.status == "UP" else 503
        return seen

    async def live() -> Alive:
        """Whether the process answers at all."""
        return Alive(status="UP")

    how: dict[str, Any] = {"openapi_extra": open_to_all(), "tags": ["health"], "response_model_exclude_none": True}
    app.get("/actuator/health", responses={**_DOWN}, **how)(health)
    for root, name in (("/actuator/health", ""), ("/health", "short_")):
        app.get(f"{root}/ready", responses={**_DOWN}, name=f"{name}ready", **how)(health)
        app.get(f"{root}/live", name=f"{name}live", **how)(live)
