"""The politeness of a day as it is drawn: what went out, how close together, and what followed when we were told to wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from sellerwatch.domain.politeness import Manners, Peak, Plea, Politeness
from sellerwatch.entry.console.shapes import time
from sellerwatch.entry.console.tables import Column, right, table
from sellerwatch.entry.console.text import age, count, grouped

if TYPE_CHECKING:
    from rich.console import Group

_IDENTITIES_SHOWN, _PLEAS_SHOWN = 20, 20


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the settings allow, to hold the day against."""

    in_an_hour: int
    gap_seconds: float
    per_second: float


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    zone: tzinfo
    seen: Politeness
    allowed: Allowed

    def broken(self) -> list[str]:
        """Which of the limits did not hold, each in a line."""
        allowed, seen = self.allowed, self.seen
        over = [number for number, its in seen.identities.items() if its.in_an_hour.requests > allowed.in_an_hour]
        early = [plea for plea in seen.pleas if not plea.is_heeded]
        close = {number: its.smallest_gap for number, its in seen.identities.items() if self._is_close(its)}
        lines = []
        if over:
            lines.append(f"{_named(over)} went out more than {allowed.in_an_hour} times in an hour")
        if seen.site.exceeds(allowed.per_second):
            lines.append(f"{seen.site.in_a_second.requests} requests in one second, {allowed.per_second:g} are allowed")
        if close:
            least = min(gap.total_seconds() for gap in close.values() if gap is not None)
            lines.append(
                f"{_named(list(close))} went out again after {least:.3f} s, {allowed.gap_seconds:g} s is the minimum"
            )
        if early:
            lines.append(f"{_named([plea.agent_id for plea in early])} asked again before Retry-After was over")
        return lines

    def remarks(self) -> list[str]:
        """What looks like a limit that did not hold, and is none."""
        second, per_second = self.seen.site.in_a_second, self.allowed.per_second
        if self.seen.site.exceeds(per_second) or second.requests <= max(1.0, per_second):
            return []
        said = f"{second.requests} requests left in one second, where leases for {per_second:g} are given"
        return [f"{said}: a request may leave a moment after its lease"]

    def _is_close(self, its: Manners) -> bool:
        return its.smallest_gap is not None and its.smallest_gap.total_seconds() < self.allowed.gap_seconds


def drawn(day: Day, *, everyone: bool = False) -> "Group":
    from rich.console import Group  # noqa: PLC0415 - slow to load
    from rich.text import Text  # noqa: PLC0415

    site, zone = day.seen.site, day.zone
    headline = f"{day.day} ({zone}): {count(site.requests, 'request')}, {count(len(day.seen.identities), 'identity', 'identities')}"
    if not site.requests:
        return Group(Text(f"{day.day} ({zone}): no request went out", style="bold"))
    parts: list[object] = [Text(headline, style="bold")]
    broken = day.broken()
    parts += [Text(line, style="bold red") for line in broken] or [Text("every limit was kept", style="green")]
    parts += [Text(line, style="dim") for line in day.remarks()]
    drawings = _identities(day, everyone=everyone) + _pleas(day, everyone=everyone)
    parts += [Text(each) if isinstance(each, str) else each for each in drawings]
    return Group(*parts)  # type: ignore[arg-type]  # all of them are drawings


def shown(day: Day) -> dict[str, Any]:
    """As JSON."""
    return {
        "date": day.day.isoformat(),
        "timeZone": str(day.zone),
        "allowed": {
            "requestsInAnHour": day.allowed.in_an_hour,
            "secondsBetween": day.allowed.gap_seconds,
            "siteRequestsInASecond": day.allowed.per_second,
        },
        "broken": day.broken(),
        "remarks": day.remarks(),
        "site": _manners(day.seen.site),
        "identities": [{"agentId": number} | _manners(its) for number, its in sorted(day.seen.identities.items())],
        "patience": [_plea(plea) for plea in day.seen.pleas],
    }


def _identities(day: Day, *, everyone: bool) -> list[object]:
    columns = [Column("who"), right("requests"), right("failed"), right("told to wait")]
    columns += [
        right("most in 1 s"),
        Column("at"),
        right("most in 1 h"),
        Column("at"),
        right("smallest gap"),
        Column("at"),
    ]
    ranked = sorted(day.seen.identities.items(), key=_attention)
    some = ranked if everyone else ranked[:_IDENTITIES_SHOWN]
    rows = [_row("the site", day.seen.site, day.zone)] + [
        _row(f"identity {number}", its, day.zone) for number, its in some
    ]
    left_out = len(ranked) - len(some)
    return [table(columns, rows), *([f"{grouped(left_out)} identities more: --all"] if left_out else [])]


def _attention(found: tuple[int, Manners]) -> tuple[int, int, int, int]:
    """Who was told to wait first, then who went out most."""
    number, its = found
    return -its.asked_for_patience, -its.in_an_hour.requests, -its.requests, number


def _row(who: str, its: Manners, zone: tzinfo) -> tuple[object, ...]:
    second, hour = its.in_a_second, its.in_an_hour
    peaks = (second.requests, _clock(second.at, zone), hour.requests, _clock(hour.at, zone))
    gap = its.smallest_gap
    closest = "–" if gap is None else f"{gap.total_seconds():.3f} s"
    return (
        who,
        grouped(its.requests),
        its.failed,
        its.asked_for_patience,
        *peaks,
        closest,
        _clock(its.smallest_gap_at, zone),
    )


def _pleas(day: Day, *, everyone: bool) -> list[object]:
    if not day.seen.site.asked_for_patience:
        return ["nobody was told to wait: no 429, no Retry-After"]
    columns = [Column("told to wait"), right("identity"), right("status"), right("Retry-After")]
    columns += [right("rested"), Column("asked again"), Column("")]
    some = day.seen.pleas if everyone else day.seen.pleas[:_PLEAS_SHOWN]
    rows = [
        (
            _clock(plea.at, day.zone),
            plea.agent_id,
            plea.status,
            _span(plea.retry_after),
            _span(plea.rested),
            _clock(plea.next_at, day.zone, beside=plea.at) if plea.next_at else "not yet",
            "" if plea.is_heeded else "too soon",
        )
        for plea in some
    ]
    left_out = day.seen.site.asked_for_patience - len(some)
    hint = " (--all)" if len(some) < len(day.seen.pleas) else ""
    return [table(columns, rows), *([f"{grouped(left_out)} more{hint}"] if left_out else [])]


def _clock(at: datetime | None, zone: tzinfo, beside: datetime | None = None) -> str:
    """The time of day, with the day where it is another one."""
    if at is None:
        return "–"
    here = at.astimezone(zone)
    is_other = beside is not None and here.date() != beside.astimezone(zone).date()
    return f"{here:%m-%d %H:%M:%S}" if is_other else f"{here:%H:%M:%S}"


def _span(span: timedelta | None) -> str:
    return "–" if span is None else age(span.total_seconds())


def _named(numbers: list[int]) -> str:
    distinct = sorted(set(numbers))
    more = f" and {len(distinct) - 5} more" if len(distinct) > 5 else ""
    return f"identity {', '.join(map(str, distinct[:5]))}{more}"


def _manners(its: Manners) -> dict[str, Any]:
    return {
        "requests": its.requests,
        "failed": its.failed,
        "askedForPatience": its.asked_for_patience,
        "peakSecond": _peak(its.in_a_second),
        "peakHour": _peak(its.in_an_hour),
        "smallestGapSeconds": _seconds(its.smallest_gap),
        "smallestGapAt": time(its.smallest_gap_at),
    }


def _peak(peak: Peak) -> Mapping[str, Any]:
    return {"requests": peak.requests, "at": time(peak.at)}


def _plea(plea: Plea) -> dict[str, Any]:
    return {
        "agentId": plea.agent_id,
        "at": time(plea.at),
        "status": plea.status,
        "retryAfterSeconds": _seconds(plea.retry_after),
        "restedSeconds": _seconds(plea.rested),
        "nextRequestAt": time(plea.next_at),
        "heeded": plea.is_heeded,
    }


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else round(span.total_seconds(), 6)
