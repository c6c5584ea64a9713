"""Simulations: whole houses on virtual time. Through bad days, and what came of it; or as large as an operation is or may
become, and how it would fare.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.cli.door import end_badly, group
from sellerwatch.entry.cli.forecast import operation_of, tell_forecast
from sellerwatch.entry.cli.options import Json, meant
from sellerwatch.entry.console.tables import complain, draw, put_json, right, say, table
from sellerwatch.entry.console.text import count, grouped
from sellerwatch.simulation.scale import DAYS_MAX, IDENTITIES_MAX, INTERVAL_MAX, PRODUCTS_MAX, SELLERS_MAX

if TYPE_CHECKING:
    from sellerwatch.simulation.place import Outcome, Scenario

app = group("Simulations.")


def _among(faults: str) -> tuple[str, ...]:
    """Those that are named."""
    from sellerwatch.simulation.faults import NAMES  # noqa: PLC0415

    if faults in {"all", "light", "none"}:
        return ()
    named = tuple(filter(None, faults.split(",")))
    unknown = [name for name in named if name not in NAMES]
    if unknown or not named:
        raise Invalid("faults", unknown[0] if unknown else faults, "all, light, none or names that --list shows")
    return named


_EPILOG = """Examples: sellerwatch simulate --seed 7 --story

sellerwatch simulate --sellers 40 --products 20000 --identities 100 --days 30 --faults light"""


@app.command(epilog=_EPILOG)
def simulate(
    ctx: typer.Context,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed tells the same story.")] = 1,
    seeds: Annotated[int, typer.Option("--count", min=1, help="So many seeds, from that one on.")] = 1,
    faults: Annotated[
        str | None,
        typer.Option(
            "--faults",
            metavar="all|light|none|NAME,…",
            help="What may go wrong; see --list. In a forecast: none, light, heavy or NAME=RATE,…",
        ),
    ] = None,
    deaths: Annotated[
        int, typer.Option("--deaths", min=0, help="Instead: a process dies at every N-th of its crossings, once each.")
    ] = 0,
    is_told: Annotated[bool, typer.Option("--story", help="Tell the story of each seed.")] = False,
    is_listed: Annotated[bool, typer.Option("--list", help="Show what can go wrong.")] = False,
    sellers: Annotated[
        int | None, typer.Option("--sellers", min=1, max=SELLERS_MAX, help="Forecast: so many shops.")
    ] = None,
    products: Annotated[
        int | None, typer.Option("--products", min=1, max=PRODUCTS_MAX, help="Forecast: in all of them together.")
    ] = None,
    per_seller: Annotated[
        int | None, typer.Option("--per-seller", min=1, help="Instead of --products: in each.")
    ] = None,
    identities: Annotated[
        int | None, typer.Option("--identities", min=1, max=IDENTITIES_MAX, help="Forecast: so many identities.")
    ] = None,
    days: Annotated[int | None, typer.Option("--days", min=1, max=DAYS_MAX, help="Forecast: so many days.")] = None,
    interval: Annotated[
        int | None, typer.Option("--interval", min=1, max=INTERVAL_MAX, help="Forecast: days between two crawls.")
    ] = None,
    is_mine: Annotated[bool, typer.Option("--mine", help="Forecast: what was not said, as in my database.")] = False,
    scale: Annotated[
        float | None, typer.Option("--scale", metavar="N", min=1, help="Forecast: 1 : N, all days; 1: the whole, slow.")
    ] = None,
    picture: Annotated[Path | None, typer.Option("--picture", metavar="FILE.svg", help="Forecast: draw it.")] = None,
    json: Json = False,
) -> None:
    """Bad days on virtual time, or a forecast for a size. The real house in a simulated world: every invariant checked from
    outside; or for an operation of some size, whether all of it is fresh, what is left of the budget, and what breaks first.
    """
    if is_listed:
        _list_faults()
        return
    given = {
        "sellers": sellers,
        "products": products,
        "identities": identities,
        "days": days,
        "interval": interval,
    }
    if is_mine or any(value is not None for value in (*given.values(), per_seller)):
        operation = operation_of(ctx, given, per_seller, mine=is_mine)
        tell_forecast(ctx, operation, faults or "light", scale, picture, seed=seed, json=json)
        return
    for name, value in (("--scale", scale), ("--picture", picture)):
        if value is not None:
            said = "is of a forecast: say --sellers, --products, --identities, --days or --mine, too"
            raise typer.BadParameter(said, ctx, param_hint=name)
    among = faults or "all"
    meant(ctx, "--faults", lambda: _among(among))
    _tell_stories(_deaths(seed, deaths) if deaths else _scenarios(seed, seeds, among), json=json, is_told=is_told)


def _tell_stories(scenarios: Iterable["Scenario"], *, json: bool, is_told: bool) -> None:
    outcomes = []
    for scenario in scenarios:
        outcome = _lived(scenario)
        outcomes.append(outcome)
        if not json:
            _tell(outcome, is_told=is_told)
        if outcome.violations and not json:
            _tell_smallest(outcome)
    if json:
        put_json([_shape(outcome) for outcome in outcomes])
    else:
        _account(outcomes)
    if any(outcome.violations for outcome in outcomes):
        complain("error: an invariant was violated")
        end_badly()


def _lived(scenario: "Scenario") -> "Outcome":
    from sellerwatch.entry.up import run_up  # noqa: PLC0415 - everything is behind it
    from sellerwatch.simulation.town import lived  # noqa: PLC0415

    return lived(scenario, run_up)


def _scenarios(seed: int, seeds: int, faults: str) -> Iterator["Scenario"]:
    from sellerwatch.simulation.faults import LIGHT, drawn  # noqa: PLC0415
    from sellerwatch.simulation.town import scenario_of  # noqa: PLC0415

    for each in range(seed, seed + seeds):
        scenario = scenario_of(each)
        if faults != "all":
            among = LIGHT if faults == "light" else _among(faults)
            scenario = replace(scenario, rates={} if faults == "none" else drawn(each, among))
        yield scenario


def _deaths(seed: int, step: int) -> Iterator["Scenario"]:
    """One short walk of one small shop; its process dies at the next crossing each time."""
    from sellerwatch.simulation.place import Scenario  # noqa: PLC0415

    scenario = Scenario(seed, {"shop1": 1}, identities=4, houses=1, hours=0.5, rates={}, crawl_hours=9)
    crossings = _lived(scenario).crossings
    for die_at in range(0, crossings, step):
        yield replace(scenario, die_at=die_at)


def _tell(outcome: "Outcome", *, is_told: bool) -> None:
    scenario = outcome.scenario
    if is_told:
        for line in outcome.timeline:
            say(line)
    where = f"seed {scenario.seed}" if scenario.die_at is None else f"death at crossing {scenario.die_at}"
    say(
        f"{where}: {outcome.days:.1f} days, {count(outcome.requests, 'request')}, "
        f"{count(sum(outcome.happened.values()), 'fault')} of {count(len(outcome.happened), 'kind')}, "
        f"{count(len(outcome.violations), 'violation')}, trace {outcome.fingerprint[:12]}"
    )


def _tell_smallest(outcome: "Outcome") -> None:
    from sellerwatch.simulation.story import shrunk  # noqa: PLC0415

    for violation in outcome.violations:
        complain(f"  {violation}")
    smallest = shrunk(outcome, _lived)
    scenario = smallest.scenario
    say(
        f"  the same happens with {scenario.houses} process(es), shops {dict(scenario.shops)}, {scenario.hours:g} h and:"
    )
    say(f"  {', '.join(f'{name} {rate:g}' for name, rate in scenario.rates.items()) or 'no fault at all'}")
    for line in smallest.timeline:
        say(f"  {line}")


def _account(outcomes: list["Outcome"]) -> None:
    happened: Counter[str] = Counter()
    for outcome in outcomes:
        happened.update(outcome.happened)
    if happened:
        rows = [(name, grouped(times)) for name, times in happened.most_common()]
        draw(table(["what went wrong", right("times")], rows))
    days = sum(outcome.days for outcome in outcomes)
    violations = sum(len(outcome.violations) for outcome in outcomes)
    say(f"{count(len(outcomes), 'story', 'stories')}, {days:.1f} days lived, {count(violations, 'violation')}")


def _list_faults() -> None:
    from sellerwatch.simulation.faults import KINDS  # noqa: PLC0415

    rows = [(kind.name, kind.where, kind.about, f"{kind.most:g}", kind.unit) for kind in KINDS]
    draw(table(["name", "strikes", "what happens", right("at most"), ""], rows))


def _shape(outcome: "Outcome") -> dict[str, object]:
    scenario = outcome.scenario
    return {
        "seed": scenario.seed,
        "shops": dict(scenario.shops),
        "identities": scenario.identities,
        "processes": scenario.houses,
        "rates": dict(scenario.rates),
        "dieAt": scenario.die_at,
        "days": round(outcome.days, 3),
        "requests": outcome.requests,
        "deliveries": outcome.deliveries,
        "closeArrivals": outcome.close_arrivals,
        "happened": dict(sorted(outcome.happened.items())),
        "violations": outcome.violations,
        "trace": outcome.fingerprint,
    }
