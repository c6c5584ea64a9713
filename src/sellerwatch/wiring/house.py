"""The house: everything that runs in one process, put together."""

from dataclasses import dataclass

from sellerwatch.adapters.alerts import WebhookAlerts
from sellerwatch.adapters.redis import RedisPool
from sellerwatch.adapters.sql import schema
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.server import Server, server_of
from sellerwatch.adapters.vault import Vault
from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.errors import Refused, Unavailable
from sellerwatch.flows.absorb import Absorb
from sellerwatch.flows.announce import Announce
from sellerwatch.flows.crawl import Crawl
from sellerwatch.flows.decide import Decide
from sellerwatch.flows.delist import Delist
from sellerwatch.flows.deliver import Deliver
from sellerwatch.flows.explain import Explain
from sellerwatch.flows.forget import Forget
from sellerwatch.flows.heal import Heal
from sellerwatch.flows.identities import Identities
from sellerwatch.flows.lead import Lead
from sellerwatch.flows.ledger import Ledger
from sellerwatch.flows.relay import Relay
from sellerwatch.flows.repair import Repair
from sellerwatch.flows.reprocess import Reprocess
from sellerwatch.flows.resend import Resend
from sellerwatch.flows.sellers import Sellers
from sellerwatch.flows.sync import Sync
from sellerwatch.flows.trigger import Heed, Plan, Trigger
from sellerwatch.ports.gauges import Gauges
from sellerwatch.ports.layout import Layout
from sellerwatch.ports.marketplace import Reader, Transport
from sellerwatch.ports.meter import Meter
from sellerwatch.ports.outside import Issuer, ProductServer
from sellerwatch.ports.partitions import Partitions
from sellerwatch.ports.pool import Pool
from sellerwatch.ports.queue import Queue
from sellerwatch.ports.reports import Reports
from sellerwatch.ports.store import Store
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.traces import Traces
from sellerwatch.settings import Settings
from sellerwatch.steps.asking import Asking
from sellerwatch.steps.turns import Turns


class SchemaBehind(Refused):
    """The database is not at the revision that this version needs."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The flows that need the marketplace; a house without its address has none of them."""

    addresses: Addresses
    asking: Asking
    plan: Plan
    relay: Relay
    crawl: Crawl
    heal: Heal


@dataclass(frozen=True, slots=True)
class House:
    settings: Settings
    owner: str
    clock: Clock
    chance: Chance
    bell: Bell
    database: Database
    store: Store
    pool: Pool
    queue: Queue
    turns: Turns
    months: Partitions
    vault: Vault
    reader: Reader
    reports: Reports
    gauges: Gauges
    sellers: Sellers
    trigger: Trigger
    heed: Heed | None
    """None without a queue of triggers."""
    sync: Sync | None
    """None where the schedule is built in."""
    layouts: tuple[Layout, ...]
    """Of the queues that are somewhere else than in the database."""
    absorb: Absorb
    delist: Delist
    decide: Decide
    deliver: Deliver | None
    """None without a product server: its rows wait."""
    announce: Announce
    identities: Identities
    lead: Lead
    ledger: Ledger
    explain: Explain
    forget: Forget
    repair: Repair
    reprocess: Reprocess
    resend: Resend
    outside: Outside | None
    transport: Transport | None
    """None without the marketplace's address."""
    alerts: WebhookAlerts
    product_server: ProductServer | None
    issuer: Issuer | None
    """None where tokens are checked with a key of the settings."""
    redis_pool: RedisPool | None
    """None where the pool is the database's only."""
    meter: Meter
    traces: Traces
    poll_seconds: float
    """What another process begins (a command, an API) is taken up within this; what this one begins, at once."""

    def upgrade(self) -> None:
        """Bring the database to this version's schema; harmless when it is there."""
        schema.upgrade(self.database.engine, now=self.clock.now())

    async def check_schema(self) -> None:
        stands = await self.database.read(schema.behind)
        if stands:
            raise SchemaBehind(f"the database is at {stands}: run `sellerwatch db upgrade`")

    async def server(self) -> Server | None:
        """Who keeps the database; None: a file or this process does."""
        return await server_of(self.database)

    async def load_pool(self) -> bool:
        """The pool with the members of the record. False: no engine leads it just now; the next one takes them over."""
        await self.lead.run()
        try:
            await self.identities.load()
        except Unavailable:
            if self.redis_pool is None:
                raise
            return False
        return True

    async def close(self) -> None:
        ours = (self.queue, self.heed and self.heed.queue, self.sync and self.sync.rules, *self.layouts)
        outward = (self.transport, self.product_server, self.issuer, self.alerts)
        for neighbour in (*ours, *outward, self.redis_pool, self.turns.locks, self.traces):
            if close := getattr(neighbour, "close", None):
                await close()
        self.database.close()
