"""The sandbox beside the house, in the same process: a marketplace and a product server to work against."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.time import Clock
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.sandbox.server import serve

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Pretended:
    sandbox: Sandbox
    address: str

    @property
    def settings(self) -> Mapping[str, object]:
        """What points a house at it, by the names of settings."""
        conditions = self.sandbox.conditions
        return {
            "marketplace_url": self.address,
            "product_server_url": self.address + conditions.products_path,
            "product_server_secret": conditions.secret,
        }


@asynccontextmanager
async def pretended(
    conditions: Conditions, clock: Clock, *, host: str = LOOPBACK, port: int = 0
) -> AsyncIterator[Pretended]:
    """The sandbox at work, until the block ends. Port 0: one that is free."""
    sandbox = Sandbox(conditions)
    serving = serve(sandbox, lambda: clock.now().timestamp(), host, port)
    try:
        address = await serving.__aenter__()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"the sandbox cannot listen on {host}:{port}: {reason}; choose another --port") from None
    try:
        yield Pretended(sandbox, address)
    finally:
        await serving.__aexit__(None, None, None)


def shown_shops(shops: Mapping[str, int]) -> str:
    named = [f"{seller} {amount}" for seller, amount in list(shops.items())[:5]]
    return ", ".join(named) + (f" and {len(shops) - 5} more" if len(shops) > 5 else "")
