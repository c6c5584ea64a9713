"""Which engine keeps which port, as the settings say."""

from pathlib import Path

import sellerwatch
from sellerwatch.adapters.issuer import HttpIssuer
from sellerwatch.adapters.product_server import HttpProductServer
from sellerwatch.adapters.redis import RedisPool
from sellerwatch.adapters.redis.connection import connected
from sellerwatch.adapters.redis.locks import RedisLocks
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.locks import SqlLocks
from sellerwatch.adapters.sql.queue import SqlQueue
from sellerwatch.domain.errors import Invalid
from sellerwatch.ports.layout import Layout
from sellerwatch.ports.locks import Locks
from sellerwatch.ports.outside import Issuer, ProductServer, Rules
from sellerwatch.ports.queue import Queue
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.traces import UNTRACED, Traces
from sellerwatch.ports.wire import Dial
from sellerwatch.settings import Settings, SqsAddress
from sellerwatch.wiring.measures import limits_of

_SQLITE_MAGIC = b"SQLite format 3\x00"


def check_file(file: Path | None) -> None:
    """Before a key is put beside it: a database of ours, or a place for one."""
    if file is None:
        return
    if not file.parent.is_dir():
        raise Invalid("SELLERWATCH_DATABASE_URL", str(file), "in a folder that exists")
    if file.is_file():
        with file.open("rb") as content:
            beginning = content.read(len(_SQLITE_MAGIC))
        if beginning not in {b"", _SQLITE_MAGIC}:
            raise Invalid("SELLERWATCH_DATABASE_URL", str(file), "a SQLite database")


def redis_pool_of(settings: Settings, chance: Chance) -> RedisPool | None:
    if settings.redis_url is None:
        return None
    return RedisPool(connected(settings.redis_url), chance, limits_of(settings), settings.pool_name)


def locks_of(settings: Settings, database: Database, clock: Clock, owner: str) -> Locks:
    """Who does what only one need do: in Redis where there is one, else in the database."""
    if settings.redis_url is None:
        return SqlLocks(database, clock, owner)
    return RedisLocks(connected(settings.redis_url), owner, settings.pool_name)


def queue_of(
    settings: Settings, database: Database, clock: Clock, chance: Chance, bell: Bell, poll_seconds: float
) -> Queue:
    """Tasks on their way to a worker: in SQS, or in the database."""
    if settings.queue is not None:
        return _sqs(settings, settings.queue, clock, chance, bell)
    return SqlQueue(
        database,
        clock,
        chance,
        "tasks",
        settings.claim_seconds,
        settings.queue_max_receives,
        bell=bell,
        poll_seconds=poll_seconds,
    )


def trigger_queue_of(settings: Settings, clock: Clock, chance: Chance, bell: Bell) -> Queue | None:
    """What EventBridge puts triggers into, if it does."""
    address = settings.trigger_queue
    return None if address is None else _sqs(settings, address, clock, chance, bell)


def schedule_rules_of(settings: Settings) -> Rules | None:
    """What fires the triggers by itself, if anything does."""
    address = settings.schedule
    if address is None:
        return None
    from sellerwatch.adapters.aws.connection import Connection  # noqa: PLC0415 - as below
    from sellerwatch.adapters.aws.eventbridge import EventBridge, Target  # noqa: PLC0415

    target = Target(address.bus, address.target_arn, address.role_arn, address.group_id)
    return EventBridge(Connection("events", address.region, address.endpoint), target)


def layouts_of(settings: Settings) -> list[Layout]:
    """Of the queues that are not in the database."""
    bus = settings.schedule.bus if settings.schedule else "default"
    addresses = [(settings.queue, None), (settings.trigger_queue, bus)]
    return [_layout(settings, address, bus) for address, bus in addresses if address is not None]


def _layout(settings: Settings, address: SqsAddress, bus: str | None) -> Layout:
    from sellerwatch.adapters.aws.connection import Connection  # noqa: PLC0415 - as below
    from sellerwatch.adapters.aws.layout import SqsLayout  # noqa: PLC0415
    from sellerwatch.adapters.aws.sqs import Queues  # noqa: PLC0415

    return SqsLayout(
        Connection("sqs", address.region, address.endpoint),
        Queues(address.name, address.dead_letters),
        settings.claim_seconds,
        settings.queue_max_receives,
        takes_from_bus=bus,
    )


def _sqs(settings: Settings, address: SqsAddress, clock: Clock, chance: Chance, bell: Bell) -> Queue:
    # A fifth of a second to load, and most houses have none.
    from sellerwatch.adapters.aws.connection import Connection  # noqa: PLC0415
    from sellerwatch.adapters.aws.sqs import Queues, SqsQueue  # noqa: PLC0415

    return SqsQueue(
        Connection("sqs", address.region, address.endpoint),
        clock,
        chance,
        bell,
        Queues(address.name, address.dead_letters),
        settings.claim_seconds,
        settings.queue_max_receives,
    )


def product_server_of(settings: Settings, clock: Clock, dial: Dial) -> ProductServer | None:
    if settings.product_server_url is None or settings.product_server_secret is None:
        return None
    return HttpProductServer(
        settings.product_server_url,
        settings.product_server_secret.get_secret_value(),
        clock,
        dial,
        allow_plain_http=settings.allow_plain_http,
    )


def traces_of(settings: Settings, owner: str, clock: Clock, dial: Dial) -> Traces:
    if settings.otel_exporter_otlp_endpoint is None:
        return UNTRACED
    from sellerwatch.adapters.otlp import OtlpTraces  # noqa: PLC0415 - slow to load, and only who traces needs it

    return OtlpTraces(
        settings.otel_exporter_otlp_endpoint,
        settings.otel,
        clock,
        dial,
        version=sellerwatch.__version__,
        instance=owner,
        allow_plain_http=settings.allow_plain_http,
    )


def issuer_of(settings: Settings, dial: Dial) -> Issuer | None:
    if settings.jwt_jwks_url is None or settings.jwt_algorithm == "HS256":
        return None
    return HttpIssuer(settings.jwt_jwks_url, dial, allow_plain_http=settings.allow_plain_http)
