"""Identities: whom requests are made as, and what an operator does to them."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import FastAPI, Response

from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.entry.api.answers import answer, paged
from sellerwatch.entry.api.asked import AgentId, PageNo, PageSize
from sellerwatch.entry.api.guard import READERS, WRITERS
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes import Page
from sellerwatch.entry.api.shapes.identities import IdentityResponse, PoolResponse
from sellerwatch.entry.console import shapes
from sellerwatch.ports.reports import IdentityRow
from sellerwatch.wiring import House

_AGENTS: Final = "/api/v1/user-agents"
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


def add_routes(app: FastAPI, house: House) -> None:
    async def known(name: str) -> IdentityRow:
        found = await house.reports.identity(int(name) if _NUMBER.fullmatch(name) else name)
        if found is None:
            raise Unknown("identity", name)
        return found

    async def done(name: str, verb: Callable[[int], Awaitable[None]]) -> Response:
        await verb((await known(name)).agent_id)
        return answer(identity_shape(await known(name)))

    @route(app, "GET", f"{_AGENTS}/status", READERS, PoolResponse)
    async def show_pool() -> Response:
        """How the pool stands."""
        return answer(shapes.pool(await house.pool.figures()))

    @route(app, "GET", _AGENTS, READERS, Page[IdentityResponse])
    async def list_user_agents(status: IdentityStatus | None = None, page: PageNo = 0, size: PageSize = 20) -> Response:
        """The identities, by number."""
        return paged(await house.reports.identities(status=status, page=page, size=size), identity_shape)

    @route(app, "POST", f"{_AGENTS}/{{id}}/suspend", WRITERS, IdentityResponse, 404, 409)
    async def suspend_user_agent(name: AgentId) -> Response:
        """Let an identity rest: an hour later it recovers by itself, if its health allows."""
        return await done(name, house.identities.suspend)

    @route(app, "POST", f"{_AGENTS}/{{id}}/recover", WRITERS, IdentityResponse, 404, 409)
    async def recover_user_agent(name: AgentId) -> Response:
        """Bring a suspended identity back at once, with a fresh token."""
        return await done(name, house.identities.recover)

    @route(app, "POST", f"{_AGENTS}/{{id}}/block", WRITERS, IdentityResponse, 404, 409)
    async def block_user_agent(name: AgentId) -> Response:
        """Never use an identity again, until it is unblocked."""
        return await done(name, house.identities.block)

    @route(app, "POST", f"{_AGENTS}/{{id}}/unblock", WRITERS, IdentityResponse, 404, 409)
    async def unblock_user_agent(name: AgentId) -> Response:
        """Use a blocked identity again, with a fresh token."""
        return await done(name, house.identities.unblock)


def identity_shape(row: IdentityRow) -> dict[str, Any]:
    return {
        "agentId": row.agent_id,
        "userAgentId": row.user_agent_id,
        "userAgent": row.user_agent,
        "status": row.status.value,
        "healthScore": row.health_score,
        "breaker": row.breaker,
        "remainingRequests": row.remaining,
        "tokenIssuedAt": shapes.time(row.token_issued_at),
        "tokenExpiresAt": shapes.time(row.token_expires_at),
        "suspendedAt": shapes.time(row.suspended_at),
        "lastUsedAt": shapes.time(row.last_used_at),
        "requestsPerDay": row.requests_per_day,
        "usageCount": row.usage_count,
        "successCount": row.success_count,
        "failureCount": row.failure_count,
    }
