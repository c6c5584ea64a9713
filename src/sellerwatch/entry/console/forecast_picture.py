"""A forecast as a picture: one SVG file that needs nothing else. Above: the budget, hour by hour. Below: when within its
day a product is read, crawl by crawl. Light or dark as whoever looks at it has it.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from sellerwatch.entry.console.forecast import basis, budget_shares, headroom, verdict
from sellerwatch.entry.console.text import count
from sellerwatch.simulation.forecast import Forecast
from sellerwatch.simulation.scale import DAY_SECONDS

WIDTH, HEIGHT = 960, 640
_LEFT, _RIGHT = 64, 24
_TOP, _HIGH = 168, 150
_BELOW, _HIGH_BELOW = 394, 150
_WIDE: Final = WIDTH - _LEFT - _RIGHT
_STYLE: Final = """
  svg { --ink: #1d2430; --soft: #6b7585; --line: #dfe4ea; --paper: #ffffff; --blue: #2f6fde; --good: #1d8a5b;
        --bad: #c9362c; --last: #b5dcc9; --most: #6dbb97; --half: #1d8a5b; --out: #c9362c; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e8ecf2; --soft: #98a3b3; --line: #2c3542; --paper: #141a22; --blue: #6ea1ff; --good: #4cc38a;
          --bad: #ff7b72; --last: #1f4a38; --most: #2f8560; --half: #4cc38a; --out: #ff7b72; } }
  text { font: 13px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif; fill: var(--ink); }
  .paper { fill: var(--paper); } .soft { fill: var(--soft); } .small { font-size: 11.5px; }
  .title { font-size: 19px; font-weight: 650; } .name { font-size: 13.5px; font-weight: 600; }
  .yes { fill: var(--good); } .no { fill: var(--bad); } .end { text-anchor: end; } .middle { text-anchor: middle; }
  .grid { stroke: var(--line); stroke-width: 1; } .limit { stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 5 4; }
  .used { fill: var(--blue); } .last { fill: var(--last); } .most { fill: var(--most); } .half { fill: var(--half); }
  .late { fill: var(--bad); } .outage { fill: var(--out); opacity: .16; }
"""


def pictured(found: Forecast, faults: str) -> str:
    """The whole file."""
    operation = found.operation
    answer, _, rest = verdict(found).partition("; ")
    asked = (
        f"{count(operation.sellers, 'shop')}, {count(operation.products, 'product')}, "
        f"{count(operation.identities, 'identity', 'identities')}, {count(operation.days, 'day')}, faults: {faults}"
    )
    left = f"{max(0.0, 100 - found.used_percent):.0f} % of the budget is left on a usual day"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(verdict(found))}">'
    )
    parts = [
        opening,
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="10"/>',
        _text(32, 42, answer, f"title {'yes' if found.is_fresh else 'no'}"),
        _text(32, 66, f"{rest}; {left}"),
        _text(32, 88, "; ".join(headroom(found)[:2])),
        _text(32, 110, asked, "soft"),
        *_budget(found),
        *_freshness(found),
        _text(32, HEIGHT - 20, basis(found), "soft small"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _budget(found: Forecast) -> Iterator[str]:
    yield _text(32, _TOP - 18, "Requests, hour by hour, in percent of the identities' budget", "name")
    shares = budget_shares(found)
    slot = _WIDE / len(shares)
    for percent in (0, 50, 100):
        y = _TOP + _HIGH * (1 - percent / 100)
        yield _line(y, "limit" if percent == 100 else "grid")
        yield _text(_LEFT - 8, y + 4, f"{percent} %", "soft small end")
    for at, name, seconds in found.lived.outages:
        x, wide = _LEFT + slot * at / 3600, max(2.0, slot * seconds / 3600)
        if x < _LEFT + _WIDE:
            about = f"<title>{escape(name.replace('_', ' '))}, {seconds / 60:.0f} min</title>"
            yield f'<rect class="outage" x="{x:.1f}" y="{_TOP}" width="{wide:.1f}" height="{_HIGH}">{about}</rect>'
    gap = 1 if slot >= 4 else 0
    for hour, share in enumerate(shares):
        high = _HIGH * share / 100
        about = f"<title>day {hour // 24 + 1}, hour {hour % 24}: {share:.0f} %</title>"
        yield (
            f'<rect class="used" x="{_LEFT + slot * hour:.2f}" y="{_TOP + _HIGH - high:.1f}" '
            f'width="{max(slot - gap, 0.4):.2f}" height="{high:.1f}">{about}</rect>'
        )
    yield from _days(found, _TOP + _HIGH, len(shares) * 3600 / DAY_SECONDS)


def _freshness(found: Forecast) -> Iterator[str]:
    days = found.operation.interval_days
    hours, bottom = 24 * days, _BELOW + _HIGH_BELOW
    yield _text(32, _BELOW - 18, "Hours from when all shops are due until so many products are read", "name")
    for place, (kind, text) in enumerate((("half", "half of them"), ("most", "95 %"), ("last", "all"))):
        at = WIDTH - 250 + (0, 100, 158)[place]
        yield f'<rect class="{kind}" x="{at}" y="{_BELOW - 28}" width="11" height="11" rx="2"/>'
        yield _text(at + 16, _BELOW - 18, text, "soft small")
    for part in range(5):
        y = bottom - _HIGH_BELOW * part / 4
        yield _line(y, "limit" if part == 4 else "grid")
        yield _text(_LEFT - 8, y + 4, f"{hours * part / 4:g} h", "soft small end")
    slot = _WIDE / len(found.periods)
    wide = min(slot * 0.7, 46)
    for place, period in enumerate(found.periods):
        x, is_late = _LEFT + slot * (place + 0.5) - wide / 2, period.complete < period.due
        spread = period.delay_hours
        for kind, end in (("last", spread.most), ("most", spread.p95), ("half", spread.p50)):
            high = _HIGH_BELOW * min(1.0, (end or 0.0) / hours)
            about = f"<title>crawl {period.number}: {end or 0:.1f} h</title>"
            yield (
                f'<rect class="{"late" if is_late and kind == "last" else kind}" x="{x:.1f}" y="{bottom - high:.1f}" '
                f'width="{wide:.1f}" height="{high:.1f}" rx="2">{about}</rect>'
            )
    yield from _days(found, bottom, float(found.scale.days))


def _days(found: Forecast, y: float, days: float) -> Iterator[str]:
    step = max(1, round(days / 15))
    for day in range(0, found.scale.days, step):
        yield _text(_LEFT + _WIDE * (day + 0.5) / days, y + 18, f"day {day + 1}", "soft small middle")


def _line(y: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
