"""Building the house from its settings; whatever is handed in takes the place of the real thing."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from sellerwatch.adapters.alerts import WebhookAlerts
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.adapters.marketplace.client import Client
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.adapters.marketplace.transport import HttpTransport
from sellerwatch.adapters.robots import ProtegoReader
from sellerwatch.adapters.schedules import BuiltinSchedules
from sellerwatch.adapters.sql.clues import SqlClues
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.gauges import SqlGauges
from sellerwatch.adapters.sql.partitions import SqlPartitions
from sellerwatch.adapters.sql.pool import SqlPool
from sellerwatch.adapters.sql.reports import SqlReports
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.adapters.vault import Vault, keys_beside
from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.leadership import Engine
from sellerwatch.flows.absorb import Absorb
from sellerwatch.flows.announce import Announce
from sellerwatch.flows.crawl import Crawl, Orders
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
from sellerwatch.ports.marketplace import Reader, Transport
from sellerwatch.ports.meter import UNMETERED, Meter
from sellerwatch.ports.outside import ProductServer
from sellerwatch.ports.partitions import Partitions
from sellerwatch.ports.pool import Pool
from sellerwatch.ports.queue import Queue
from sellerwatch.ports.store import Store
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.traces import Traces
from sellerwatch.settings import Settings, with_kept_keys
from sellerwatch.steps.asking import Asking
from sellerwatch.steps.leading import LeadingPool
from sellerwatch.steps.pausing import Pausing
from sellerwatch.steps.robots import Robots
from sellerwatch.steps.settling import Settling
from sellerwatch.steps.turns import Turns
from sellerwatch.wiring.engines import (
    check_file,
    issuer_of,
    layouts_of,
    locks_of,
    product_server_of,
    queue_of,
    redis_pool_of,
    schedule_rules_of,
    traces_of,
    trigger_queue_of,
)
from sellerwatch.wiring.house import House, Outside
from sellerwatch.wiring.measures import budget_of, heal_rules_of, lead_rules_of, limits_of, patience_of, rules_of

_POLL, _ALONE_POLL = 2.0, 600.0


@asynccontextmanager
async def opened(settings: Settings, *, meter: Meter = UNMETERED) -> AsyncIterator[House]:
    house = build(settings, meter=meter)
    try:
        yield house
    finally:
        await house.close()


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    chance: Chance | None = None,
    transport: Transport | None = None,
    product_server: ProductServer | None = None,
    is_alone: bool = False,
    poll_seconds: float | None = None,
    meter: Meter = UNMETERED,
    traces: Traces | None = None,
    database: Database | None = None,
) -> House:
    """The house as its settings say; whatever is handed in takes the place of the real thing.

    Alone (no other process, no other thread) transactions run inline and bells are enough: nothing is polled for.
    """
    clock, chance = clock or SystemClock(), chance or SystemChance()
    check_file(settings.database_file)
    poll_seconds = poll_seconds or (_ALONE_POLL if is_alone else _POLL)
    settings = with_kept_keys(settings, keys_beside, chance.token_bytes)
    bell = AsyncBell(clock)
    owner = f"{socket.gethostname()[:40]}:{os.getpid()}:{chance.token_bytes(4).hex()}"
    database = database or Database(
        engine(settings.database_url, pool_min=settings.database_pool_min, pool_max=settings.database_pool_max),
        inline=is_alone,
        threads=settings.database_pool_max,
        wait=clock.sleep,
        chance=chance.random,
        told=meter.done_again,
    )
    store: Store = SqlStore(database, settings.pool_name, now=clock.now)
    kept = SqlPool(database, clock, chance, limits_of(settings), settings.pool_name)
    elsewhere = redis_pool_of(settings, chance)
    engines: dict[Engine, Pool] = {Engine.SQL: kept, Engine.REDIS: elsewhere} if elsewhere else {Engine.SQL: kept}
    pool = LeadingPool(engines, store, clock)
    queue = queue_of(settings, database, clock, chance, bell, poll_seconds)
    months: Partitions = SqlPartitions(database)
    vault = Vault(settings.token_ring, chance.token_bytes)
    reader = Parse()
    dial = partial(Http1, allow_plain_http=settings.allow_plain_http)
    if transport is None and settings.marketplace_url is not None:
        transport = HttpTransport(settings.marketplace_url, dial)
    traces = traces or traces_of(settings, owner, clock, dial)
    alerts = WebhookAlerts(settings.alert_webhook_url, dial, allow_plain_http=settings.allow_plain_http)
    product_server = product_server or product_server_of(settings, clock, dial)
    outside = _outside(
        settings,
        owner,
        clock,
        chance,
        bell,
        store,
        pool,
        queue,
        vault,
        reader,
        transport,
        poll_seconds,
        meter,
        traces,
    )
    rules = schedule_rules_of(settings)
    trigger = Trigger(store, clock, chance, bell, meter)
    trigger_queue = trigger_queue_of(settings, clock, chance, bell)
    announce = Announce(
        store,
        rules or BuiltinSchedules(),
        alerts,
        clock,
        chance,
        owner,
        retries_max=settings.scheduler_outbox_retries,
        claim_seconds=settings.claim_seconds,
        alert_repeat_seconds=settings.alert_repeat_seconds,
    )
    return House(
        settings=settings,
        owner=owner,
        clock=clock,
        chance=chance,
        bell=bell,
        database=database,
        store=store,
        pool=pool,
        queue=queue,
        turns=Turns(locks_of(settings, database, clock, owner), clock),
        months=months,
        vault=vault,
        reader=reader,
        traces=traces,
        reports=SqlReports(database),
        gauges=SqlGauges(database),
        sellers=Sellers(store, clock, chance, bell, settings.schedule.target_arn if settings.schedule else None),
        trigger=trigger,
        heed=Heed(trigger, trigger_queue, min(poll_seconds, _POLL)) if trigger_queue else None,
        sync=Sync(store, rules, clock) if rules else None,
        layouts=tuple(layouts_of(settings)),
        absorb=Absorb(store, reader, clock, chance, bell, settings.flap_seconds, traces=traces),
        delist=Delist(store, clock, bell, settings.flap_seconds),
        decide=Decide(store, clock, bell, settings.flap_seconds),
        deliver=_deliver(settings, owner, clock, chance, store, product_server, traces),
        announce=announce,
        identities=Identities(
            store,
            pool,
            clock,
            bell,
            settings.identity_hourly_limit,
            outside.asking if outside else None,
            pool if elsewhere else None,
            meter,
            limits_of(settings).probation,
        ),
        lead=Lead(store, kept, elsewhere, clock, bell, budget_of(settings), lead_rules_of(settings)),
        ledger=Ledger(store, clock),
        explain=Explain(
            store, SqlClues(database), pool, queue, clock, product_server is not None, limits_of(settings).probation
        ),
        forget=Forget(
            store,
            clock,
            months,
            settings.raw_retention_days,
            settings.usage_retention_months,
            settings.metrics_timezone,
        ),
        repair=Repair(store, queue, clock, bell, meter),
        reprocess=Reprocess(store, reader, clock, bell),
        resend=Resend(store, clock, bell),
        outside=outside,
        transport=transport,
        alerts=alerts,
        product_server=product_server,
        issuer=issuer_of(settings, dial),
        redis_pool=elsewhere,
        meter=meter,
        poll_seconds=poll_seconds,
    )


def _outside(
    settings: Settings,
    owner: str,
    clock: Clock,
    chance: Chance,
    bell: Bell,
    store: Store,
    pool: Pool,
    queue: Queue,
    vault: Vault,
    reader: Reader,
    transport: Transport | None,
    poll_seconds: float,
    meter: Meter,
    traces: Traces,
) -> Outside | None:
    if settings.marketplace_url is None or transport is None:
        return None
    addresses = Addresses(settings.marketplace_url, settings.mini_shop_path)
    marketplace = Client(
        transport,
        vault,
        addresses,
        clock,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_response_bytes=settings.max_response_bytes,
    )
    group_seconds = settings.group_commit_ms / 1000
    robots = Robots(
        store,
        pool,
        marketplace,
        ProtegoReader(),
        addresses,
        clock,
        chance,
        bell,
        owner,
        settings.site_requests_per_second,
        is_obeyed=settings.respect_robots,
        meter=meter,
    )
    asking = Asking(
        pool, marketplace, addresses, clock, chance, bell, patience_of(settings), robots, group_seconds, meter
    )
    settling = Settling(store, reader, addresses, clock, chance, rules_of(settings))
    pausing = Pausing(store, clock)
    return Outside(
        addresses=addresses,
        asking=asking,
        plan=Plan(
            asking=asking,
            reader=reader,
            addresses=addresses,
            owner=owner,
            retries_max=settings.trigger_retries,
            page_size=settings.page_size,
            claim_seconds=settings.task_attempt_seconds + settings.claim_seconds,
            store=store,
            clock=clock,
            chance=chance,
            bell=bell,
            meter=meter,
        ),
        relay=Relay(
            store,
            queue,
            pool,
            addresses,
            clock,
            chance,
            bell,
            owner,
            ahead_seconds=settings.queue_ahead_seconds,
            retries_max=settings.task_outbox_retries,
            claim_seconds=settings.claim_seconds,
            page_size=settings.page_size,
            meter=meter,
            traces=traces,
        ),
        crawl=Crawl(
            store,
            pool,
            queue,
            asking,
            reader,
            clock,
            chance,
            bell,
            settling,
            pausing,
            owner,
            Orders(
                settings.concurrency,
                settings.claim_seconds,
                settings.shutdown_seconds,
                poll_seconds,
                settings.task_abandons,
            ),
            group_seconds,
            meter,
            traces,
        ),
        heal=Heal(store, queue, pool, addresses, clock, bell, heal_rules_of(settings), pausing, meter),
    )


def _deliver(
    settings: Settings,
    owner: str,
    clock: Clock,
    chance: Chance,
    store: Store,
    server: ProductServer | None,
    traces: Traces,
) -> Deliver | None:
    if server is None:
        return None
    return Deliver(
        store,
        server,
        clock,
        chance,
        owner,
        batch=settings.delivery_batch,
        concurrency=settings.delivery_concurrency,
        retries_max=settings.product_outbox_retries,
        claim_seconds=max(settings.claim_seconds, 60.0),
        traces=traces,
    )
