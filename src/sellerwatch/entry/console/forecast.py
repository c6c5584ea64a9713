"""A forecast as it is drawn: one line that answers, a table, two charts, and what breaks first. All of the whole operation:
what was lived in small is told as large as it stands for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from sellerwatch.entry.console.tables import right, table
from sellerwatch.entry.console.text import age, count, grouped
from sellerwatch.simulation.forecast import Forecast
from sellerwatch.simulation.miniature import Period, Spread

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

CHART_COLUMNS: Final = 96
_CHART_ROWS: Final = 6
_BAR_COLUMNS: Final = 48
_PERIODS_DRAWN: Final = 31
_HOURS_LEAST: Final = 1.95
"""What is shorter is told in minutes."""
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
NAMES: Final = {
    "identities": "the identities' budget",
    "site": "the ceiling of the whole site",
    "concurrency": "requests under way at once",
}


def verdict(found: Forecast) -> str:
    """The answer, in a line."""
    within = f"within {24 * found.operation.interval_days} hours of being due"
    if found.is_fresh:
        rest = f"the last one after {_h(found.slowest_hours)}"
        if found.missed_percent:
            rest += f"; {found.missed_percent:.2g} % of the readings fail, and are made good by the next crawl"
        return f"yes: every product is read {within}; {rest}"
    if found.late:
        share = found.late / sum(period.due for period in found.periods)
        late = "no crawl ends" if share == 1 else f"{100 * share:.0f} % of the crawls do not end"
        return f"no: not every product is read {within}; {late} before the next one is due"
    return f"no: not every product is read {within}; {found.missed_percent:.0f} % of the readings fail"


def waiting(found: Forecast) -> str:
    """How long a change may wait, in a line."""
    days = "a day" if found.operation.interval_days == 1 else f"{found.operation.interval_days} days"
    if found.oldest_hours is None:
        return "how long a change waits is not known before the second crawl"
    lag = max((period.lag_seconds.most or 0.0 for period in found.periods[1:]), default=0.0)
    return (
        f"a change is read at the latest {_h(found.oldest_hours)} after it was made ({days} at most until its shop is due, "
        f"then its turn), and delivered {age(lag)} later at the latest"
    )


def headroom(found: Forecast) -> list[str]:
    """What breaks first, and where."""
    operation, first = found.operation, found.needs[0]
    lines = [
        f"breaks first: {NAMES[first.name]}; {first.used_percent:.0f} % of it "
        + ("is used" if first.used_percent <= 100 else "would be needed")
    ]
    most, days = _about(found.products_most), operation.interval_days
    per_shop = _about(found.products_most // operation.sellers)
    every = "a day" if days == 1 else f"every {days} days"
    lines.append(
        f"these {count(operation.identities, 'identity', 'identities')} read up to ≈ {most} products {every}"
        f" (≈ {per_shop} a shop)"
    )
    if found.identities_least is None:
        lines.append("more identities would not help: something else is in the way")
    else:
        lines.append(
            f"these {count(operation.products, 'product')} need ≥ "
            f"{count(found.identities_least, 'identity', 'identities')}"
        )
    return lines


def basis(found: Forecast) -> str:
    """How it is known."""
    scale, operation = found.scale, found.operation
    days = count(scale.days, "day") if scale.days >= operation.days else f"{scale.days} of {operation.days} days"
    if scale.factor == 1:
        return f"lived by the real house on virtual time: {days}, {count(found.lived.requests, 'request')}"
    shops = count(len(scale.shops), "shop")
    return (
        f"lived by the real house on virtual time at a scale of 1 : {scale.factor:.3g}: {days}, {shops} with "
        f"{count(scale.products, 'product')}, {count(scale.identities, 'identity', 'identities')}, "
        f"{count(found.lived.requests, 'request')}"
    )


def drawn(found: Forecast, faults: str) -> "Group":
    from rich.console import Group  # noqa: PLC0415 - slow to load
    from rich.text import Text  # noqa: PLC0415

    operation = found.operation
    asked = (
        f"{count(operation.sellers, 'shop')}, {count(operation.products, 'product')}, "
        f"{count(operation.identities, 'identity', 'identities')}, {count(operation.days, 'day')}, faults: {faults}"
    )
    parts: list[Any] = [
        Text(verdict(found), style="bold green" if found.is_fresh else "bold red"),
        Text(
            f"budget: {found.used_percent:.0f} % used on a usual day, {max(0.0, 100 - found.used_percent):.0f} % left"
        ),
        Text(waiting(found)),
        *(Text(line) for line in headroom(found)),
        Text(asked, style="dim"),
        Text(basis(found), style="dim"),
        table(*_table(found)),
        Text("requests, hour by hour, in percent of the identities' budget", style="bold"),
        *_budget_chart(found),
        Text(""),
        Text("hours from when all shops are due until so many products are read", style="bold"),
        *_bars(found),
    ]
    parts += [Text(f"the house called it an error: {line}", style="red") for line in found.lived.mistakes]
    return Group(*parts)


def columns_of(found: Forecast) -> list[tuple[str, Period]]:
    """The first crawl, a usual one, and the worst; fewer where there were fewer."""
    periods, word = found.periods, "day" if found.operation.interval_days == 1 else "crawl"
    chosen = [(f"first {word}", periods[0])]
    rest = periods[1:]
    if rest:
        usual = sorted(rest, key=lambda period: period.delay_hours.most or 0.0)[(len(rest) - 1) // 2]
        chosen.append((f"usual {word}", usual))
        worst = max(rest, key=_badness)
        if worst is not usual and _badness(worst) > _badness(usual):
            chosen.append((f"worst {word} ({worst.number})", worst))
    return chosen


def _badness(period: Period) -> tuple[int, int, float]:
    return period.due - period.complete, period.missed, round(period.delay_hours.most or 0.0, 1)


def _table(found: Forecast) -> tuple[Sequence[Any], Iterator[Sequence[object]]]:
    chosen = columns_of(found)
    factor, operation = found.scale.factor, found.operation
    budget = found.budget * operation.interval_days

    def requests(period: Period) -> str:
        return f"{_about(period.requests * factor)}  ({100 * period.requests * factor / budget:.0f} %)"

    def failed(period: Period) -> str:
        return f"{100 * period.failed / max(1, period.requests):.1f} %"

    def complete(period: Period) -> str:
        return f"{round(operation.sellers * period.complete / period.due)} of {operation.sellers}"

    def missed(period: Period) -> str:
        share = found.unread_percent(period)
        return f"{share:.2g} %" if share else "none"

    rows: list[tuple[str, Callable[[Period], str]]] = [
        ("requests (of the budget)", requests),
        ("  of them failed", failed),
        ("crawls complete in time", complete),
        ("products not read", missed),
        ("read after being due: half · 95 % · last", lambda period: _hours(period.delay_hours)),
        ("from reading to reading: half · 95 % · longest", lambda period: _hours(period.age_hours)),
        ("changes delivered", lambda period: _about(period.delivered * factor)),
        ("delivered after the answer: half · 95 % · last", lambda period: _ages(period.lag_seconds)),
    ]
    return ["", *(right(title) for title, _ in chosen)], (
        (name, *(tell(period) for _, period in chosen)) for name, tell in rows
    )


def _budget_chart(found: Forecast) -> Iterator["Text"]:
    from rich.text import Text  # noqa: PLC0415 - slow to load

    shares = budget_shares(found)
    per_column = max(1, -(-len(shares) // CHART_COLUMNS))
    wide = max(1, min(4, CHART_COLUMNS // len(shares)))
    heights = [max(shares[at : at + per_column]) for at in range(0, len(shares), per_column)]
    for row in range(_CHART_ROWS, 0, -1):
        label = {_CHART_ROWS: "100 %", _CHART_ROWS // 2: " 50 %"}.get(row, "     ")
        cells = "".join(_cell(share / 100 * _CHART_ROWS - row + 1) * wide for share in heights)
        yield Text(f"{label} ┤", style="dim").append(cells, style="cyan")
    per_day = 24 * wide / per_column
    marks = [" "] * (len(heights) * wide + 8)
    for day in range(found.scale.days + 1):
        at, text = round(day * per_day), str(day)
        if at + len(text) <= len(marks) and (per_day >= 4 or day % 5 == 0):
            marks[at : at + len(text)] = text
    hours = f", the highest of {per_column} h each" if per_column > 1 else ""
    yield Text(f"  0 % ┼{'─' * (len(heights) * wide)}", style="dim")
    yield Text(f"       {''.join(marks).rstrip()}   days{hours}", style="dim")


def budget_shares(found: Forecast) -> list[float]:
    """Requests of each hour, in percent of what the identities may make in it."""
    an_hour = found.budget / 24 / found.scale.factor
    return [min(100.0, 100 * requests / an_hour) for requests in found.lived.hours]


def _cell(level: float) -> str:
    return _EIGHTHS[round(8 * min(1.0, max(0.0, level)))]


def _bars(found: Forecast) -> Iterator["Text"]:
    from rich.text import Text  # noqa: PLC0415 - slow to load

    hours = 24.0 * found.operation.interval_days
    step = -(-len(found.periods) // _PERIODS_DRAWN)
    yield (
        Text("             0 h")
        .append(f"{hours:.0f} h".rjust(_BAR_COLUMNS - 3))
        .append("      █ half ▓ 95 % ░ all", "dim")
    )
    for period in found.periods[::step]:
        spread = period.delay_hours
        ends = [round(_BAR_COLUMNS * (end or 0.0) / hours) for end in (spread.p50, spread.p95, spread.most)]
        bar = "█" * ends[0] + "▓" * (ends[1] - ends[0]) + "░" * (ends[2] - ends[1])
        is_late = period.complete < period.due
        line = Text(f"{period.number:>9}  ", style="dim").append("│", "dim")
        line.append(bar.ljust(_BAR_COLUMNS), "red" if is_late else "green").append("│", "dim")
        yield line.append(f" {_h(spread.most)}" + (", and not all of them" if is_late or period.missed else ""))


def shown(found: Forecast, faults: str) -> dict[str, Any]:
    """As JSON."""
    operation, scale, factor = found.operation, found.scale, found.scale.factor
    return {
        "verdict": verdict(found),
        "isFresh": found.is_fresh,
        "sellers": operation.sellers,
        "products": operation.products,
        "identities": operation.identities,
        "days": operation.days,
        "intervalDays": operation.interval_days,
        "faults": faults,
        "requestsADay": round(found.demand),
        "budgetADay": round(found.budget),
        "capacityADay": round(found.capacity),
        "budgetUsedPercent": round(found.used_percent, 2),
        "budgetLeftPercent": round(max(0.0, 100 - found.used_percent), 2),
        "crawlsLate": found.late,
        "missedPercent": round(found.missed_percent, 4),
        "slowestHours": _rounded(found.slowest_hours),
        "oldestHours": _rounded(found.oldest_hours),
        "breaksFirst": found.needs[0].name,
        "resources": [
            {"name": need.name, "requestsADay": round(need.a_day), "usedPercent": round(need.used_percent, 2)}
            for need in found.needs
        ],
        "productsMost": found.products_most,
        "identitiesLeast": found.identities_least,
        "lived": {
            "scale": round(factor, 4),
            "days": scale.days,
            "shops": list(scale.shops),
            "identities": scale.identities,
            "requests": found.lived.requests,
        },
        "periods": [_period(period) for period in found.periods],
        "requestsByHour": found.lived.hours,
        "outages": [
            {"atSeconds": round(at), "name": name, "seconds": round(lasts)} for at, name, lasts in found.lived.outages
        ],
        "errors": found.lived.mistakes,
    }


def _period(period: Period) -> dict[str, Any]:
    return {
        "number": period.number,
        "requests": period.requests,
        "failed": period.failed,
        "crawlsDue": period.due,
        "crawlsComplete": period.complete,
        "read": period.read,
        "missed": period.missed,
        "readAfterHours": _spread(period.delay_hours),
        "ageHours": _spread(period.age_hours),
        "delivered": period.delivered,
        "lagSeconds": _spread(period.lag_seconds),
        "undelivered": period.undelivered,
    }


def _spread(spread: Spread) -> dict[str, float | None]:
    return {"p50": _rounded(spread.p50), "p95": _rounded(spread.p95), "max": _rounded(spread.most)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _h(hours: float | None) -> str:
    if hours is None:
        return "–"
    return f"{hours:.1f} h" if hours >= _HOURS_LEAST else f"{60 * hours:.0f} min"


def _hours(spread: Spread) -> str:
    return " · ".join(map(_h, (spread.p50, spread.p95, spread.most))) if spread.most is not None else "–"


def _ages(spread: Spread) -> str:
    return " · ".join(map(age, (spread.p50, spread.p95, spread.most))) if spread.most is not None else "–"


def _about(number: float) -> str:
    """To three digits: more would be made up."""
    whole = round(number)
    less = max(0, len(str(whole)) - 3)
    return grouped(round(whole, -less))
