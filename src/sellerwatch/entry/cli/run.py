"""What runs: the whole system or a part of it, the sandbox, a crawl, the demonstration."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Invalid, Unavailable
from sellerwatch.domain.ids import checked_seller_id
from sellerwatch.entry.cli.door import end_badly, group, run, settings_of
from sellerwatch.entry.cli.options import check_one, checked
from sellerwatch.entry.console.progress import crawl_progress
from sellerwatch.entry.console.tables import complain, say
from sellerwatch.entry.console.text import count

if TYPE_CHECKING:
    from sellerwatch.entry.process import Plan
    from sellerwatch.ports.reports import ExecutionRow
    from sellerwatch.sandbox.conditions import Conditions
    from sellerwatch.wiring import House

app = group("What runs.")

LIFE_SECONDS = 30.0
LOOK_SECONDS = 0.5
SHOPS = "atelier=1200,lunaire=600"


def shops_of(text: str) -> dict[str, int]:
    """`atelier=1200,lunaire=600`, or numbers alone."""
    shops: dict[str, int] = {}
    for number, part in enumerate(filter(None, map(str.strip, text.split(","))), start=1):
        name, _, amount = part.rpartition("=")
        name = name or f"shop-{number}"
        if not (amount.isascii() and amount.isdigit() and len(amount) <= 7) or name in shops:
            raise Invalid("shops", text, "a list like atelier=1200,lunaire=600, or like 1200,600")
        shops[name] = int(amount)
    return shops


def _rates(text: str) -> dict[str, float]:
    from sellerwatch.sandbox.conditions import check_rates  # noqa: PLC0415 - slow to load

    rates: dict[str, float] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, percent = part.partition("=")
        try:
            rates[name] = float(percent)
        except ValueError:
            raise Invalid("rates", text, "a list like html=1,drop=0.5") from None
    check_rates(rates)
    return rates


def _secret(text: str) -> None:
    from sellerwatch.sandbox.receiver import signing_key  # noqa: PLC0415 - slow to load

    signing_key(text)


Host = Annotated[str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of the API; 0: one that is free.")]
WatchPort = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port of health and metrics.", show_default="one that is free")
]
Shops = Annotated[
    str,
    typer.Option(
        "--sellers",
        metavar="NAME=N,…",
        help="Shops and how many products each has; or numbers alone.",
        callback=checked(shops_of),
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed makes the same world.")]
Limit = Annotated[int, typer.Option("--limit", min=0, help="Requests an hour for each User-Agent; 0: no limit.")]
Latency = Annotated[float, typer.Option("--latency", min=0, help="Milliseconds until an answer.")]
Errors = Annotated[float, typer.Option("--error-rate", min=0, max=100, help="Percent of answers that are errors.")]


@app.command(epilog="Example: sellerwatch up --sandbox")
def up(
    ctx: typer.Context,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="With a fake marketplace and product server.")] = False,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    sellers: Annotated[
        str,
        typer.Option("--sandbox-sellers", metavar="NAME=N,…", help="Its shops.", callback=checked(shops_of)),
    ] = SHOPS,
    seed: Annotated[int, typer.Option("--sandbox-seed", help="Its seed.")] = 1,
    limit: Annotated[int, typer.Option("--sandbox-limit", min=0, help="Its limit an hour.")] = 80,
    sandbox_port: Annotated[
        int | None,
        typer.Option("--sandbox-port", min=0, max=65535, help="Its port.", show_default="8090, or a free one"),
    ] = None,
) -> None:
    """Run the whole system in one process. API, schedule, relays, worker, sweeps."""
    from sellerwatch.entry.process import Plan, new_secret  # noqa: PLC0415 - everything is behind it

    conditions = None
    if sandbox:
        conditions = _conditions(sellers, seed=seed, limit=limit, secret=new_secret())
    _run(ctx, Plan(host=host, port=port, conditions=conditions, sandbox_port=sandbox_port))


@app.command(epilog="Example: sellerwatch api --port 8080")
def api(ctx: typer.Context, host: Host = "127.0.0.1", port: Port = 8080) -> None:
    """Run the API alone; any number of processes."""
    _run_role(ctx, "api", host, port)


@app.command(epilog="Example: sellerwatch worker")
def worker(ctx: typer.Context, host: Host = "127.0.0.1", port: WatchPort = 0) -> None:
    """Run a worker alone; any number of processes. It crawls."""
    _run_role(ctx, "worker", host, port)


@app.command(epilog="Example: sellerwatch scheduler")
def scheduler(ctx: typer.Context, host: Host = "127.0.0.1", port: WatchPort = 0) -> None:
    """Run the rest alone; any number of processes. Schedule, relays, processing, delivery and sweeps."""
    _run_role(ctx, "ticker", host, port)


@app.command(epilog="Example: sellerwatch sandbox --sellers atelier=1200,lunaire=600 --error-rate 2")
def sandbox(
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: one that is free.")] = 8090,
    sellers: Shops = SHOPS,
    seed: Seed = 1,
    limit: Limit = 80,
    latency: Latency = 0.0,
    jitter: Annotated[float, typer.Option("--jitter", min=0, help="Milliseconds that latency varies by.")] = 0.0,
    error_rate: Errors = 0.0,
    rates: Annotated[
        str,
        typer.Option(
            "--rates",
            metavar="FAULT=PERCENT,…",
            help="Other faults, see /__.",
            callback=checked(_rates),
        ),
    ] = "",
    noise: Annotated[bool, typer.Option("--noise", help="Let what means nothing vary with each answer.")] = False,
    secret: Annotated[
        str | None,
        typer.Option("--secret", help="Deliveries must be signed with it.", callback=checked(_secret)),
    ] = None,
) -> None:
    """Run the fake marketplace and product server alone, to develop against."""
    from sellerwatch.entry.process import sandbox_alone, started  # noqa: PLC0415 - everything is behind it

    conditions = _conditions(
        sellers,
        seed=seed,
        limit=limit,
        secret=secret,
        latency=latency,
        jitter=jitter,
        error_rate=error_rate,
        rates=rates,
        is_noisy=noise,
    )
    started(sandbox_alone(conditions, host, port, say))


@app.command(epilog="Example: sellerwatch crawl dmont --wait")
def crawl(
    ctx: typer.Context,
    seller_id: Annotated[
        str | None, typer.Argument(metavar="SELLER", help="Whom to crawl now.", callback=checked(checked_seller_id))
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until it has ended.")] = False,
    cancel: Annotated[str | None, typer.Option("--cancel", metavar="EXECUTION", help="End this one instead.")] = None,
) -> None:
    """Crawl a seller now, or cancel a crawl."""
    check_one(ctx, "SELLER or --cancel", first=seller_id is not None, second=cancel is not None)
    if cancel is not None:
        cancelled = run(ctx, lambda house: house.repair.cancel_execution(cancel))
        say(f"execution {cancel} is cancelled" + (f", {count(cancelled, 'open task')} with it" if cancelled else ""))
    elif seller_id is not None and not run(ctx, lambda house: _crawl(house, seller_id, is_waited_for=wait)):
        end_badly()


@app.command(epilog="Example: sellerwatch demo --sellers 2 --products 100")
def demo(
    sellers: Annotated[int, typer.Option("--sellers", min=1, help="How many.")] = 3,
    products: Annotated[int, typer.Option("--products", min=1, help="Of each seller.")] = 200,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="DIR", help="Keep the database there.")] = None,
    seed: Seed = 1,
) -> None:
    """Show all of it at work against the sandbox, and account for what was found. Exit 1 if anything is missing."""
    from rich.console import Console  # noqa: PLC0415 - slow to load

    from sellerwatch.entry.demo import conditions_of  # noqa: PLC0415 - everything is behind it
    from sellerwatch.entry.demo import demo as play  # noqa: PLC0415
    from sellerwatch.entry.process import started  # noqa: PLC0415
    from sellerwatch.entry.stage import Stage  # noqa: PLC0415

    try:
        conditions_of(sellers, products, seed)
    except Invalid as refused:
        raise typer.BadParameter(str(refused)) from None
    console = Console(highlight=False, soft_wrap=True) if not Console().is_terminal else Console(highlight=False)
    if not started(play(sellers, products, keep, Stage(console), seed)).is_right:
        end_badly()


def _conditions(
    sellers: str,
    *,
    seed: int,
    limit: int,
    secret: str | None,
    latency: float = 0.0,
    jitter: float = 0.0,
    error_rate: float = 0.0,
    rates: str = "",
    is_noisy: bool = False,
) -> "Conditions":
    from sellerwatch.sandbox.conditions import Conditions  # noqa: PLC0415 - slow to load

    try:
        return Conditions(
            seed=seed,
            shops=shops_of(sellers),
            hourly_limit=limit,
            latency_ms=latency,
            jitter_ms=jitter,
            error_rate=error_rate,
            rates=_rates(rates),
            noise=is_noisy,
            secret=secret,
        )
    except Invalid as refused:
        # Each by itself was right; together they are not.
        raise typer.BadParameter(str(refused)) from None


def _run_role(ctx: typer.Context, role: str, host: str, port: int) -> None:
    from sellerwatch.entry.process import Plan  # noqa: PLC0415 - everything is behind it

    _run(ctx, Plan(roles=frozenset({role}), host=host, port=port))


def _run(ctx: typer.Context, plan: "Plan") -> None:
    from sellerwatch.entry.process import run as run_plan  # noqa: PLC0415 - everything is behind it
    from sellerwatch.entry.process import started  # noqa: PLC0415

    started(run_plan(plan, lambda overrides: settings_of(ctx, **overrides), say))


async def _crawl(house: "House", seller_id: str, *, is_waited_for: bool) -> bool:
    execution = await house.trigger.crawl_now(seller_id)
    say(f"execution {execution.execution_id} of {seller_id} has begun")
    return await _wait(house, execution.execution_id) if is_waited_for else True


async def _wait(house: "House", execution_id: str) -> bool:
    """Whether it ended well."""
    began = house.clock.now()
    with crawl_progress() as progress:
        while True:
            found = await house.reports.execution(execution_id)
            if found is None:
                raise Unavailable(f"execution {execution_id} is gone")
            progress.show([found.execution])
            if not found.execution.is_open:
                return _told(found.execution)
            await _check_life(house, began)
            await house.clock.sleep(LOOK_SECONDS)


async def _check_life(house: "House", began: datetime) -> None:
    """Somebody must be there to do the work."""
    now = house.clock.now()
    if (now - began).total_seconds() <= LIFE_SECONDS:
        return
    overview = await house.reports.overview(now)
    if not any("worker" in process.role.split("+") for process in overview.processes):
        raise Unavailable(
            f"no worker has shown life for {LIFE_SECONDS:.0f} s: start one with `sellerwatch up`; the crawl stays open"
        )


def _told(row: "ExecutionRow") -> bool:
    if row.status == "FAILED":
        complain(f"error: the crawl of {row.seller_id} FAILED: {row.error_message}")
        return False
    failed = f", {count(row.failed_tasks, 'task')} failed" if row.failed_tasks else ""
    note = f" ({row.error_message})" if row.error_message else ""
    say(f"{row.seller_id}: {row.status}, {count(row.completed_tasks, 'task')} done{failed}{note}")
    return True
