"""The dashboard and the alert rules ask for what there is."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from doors import door
from observed import Page, page_at
from sellerwatch.entry.metrics.declared import DECLARED

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "sellerwatch.json"
RULES = DEPLOY / "prometheus" / "sellerwatch.rules.yml"
WORDS = {
    "and", "by", "histogram_quantile", "ignoring", "increase", "max", "min", "on", "or", "rate", "sum", "unless", "without",
}  # fmt: skip
"""Of PromQL, what the queries here are made of; anything else is a metric or a label."""
SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
MATCHER = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"\s*')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
NAME = re.compile(r"(?<![\w.\"])[a-zA-Z_:][\w:]*")
RANGE = re.compile(r"\[\d+[smhd]\]")


def queries() -> Iterator[tuple[str, str]]:
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield f"panel {panel['title']}", target["expr"]
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", rule["expr"]


def problems(query: str, seen: Page) -> list[str]:
    """What it asks for that a live page does not have."""
    found: list[str] = []
    labels_at: list[str] = []

    def selected(match: re.Match[str]) -> str:
        name, inside = match.groups()
        for part in filter(None, inside.split(",")):
            matcher = MATCHER.fullmatch(part)
            if matcher is None:
                found.append(f"{part!r} selects nothing")
            elif matcher[1] not in seen.labels.get(name, ()):
                found.append(f"{name} has no label {matcher[1]}")
            elif matcher[2] in {"=", "!="} and matcher[3] not in seen.values[matcher[1]]:
                found.append(f"{matcher[1]} is never {matcher[3]!r}")
            elif matcher[2] in {"=~", "!~"}:
                ways = matcher[3].split("|")
                found.extend(
                    f"{matcher[1]} is never {way!r}"
                    for way in ways
                    if not any(re.fullmatch(way, value) for value in seen.values[matcher[1]])
                )
        return f" {name} "

    def grouped(match: re.Match[str]) -> str:
        labels_at.extend(filter(None, map(str.strip, match[1].split(","))))
        return " "

    rest = GROUPING.sub(grouped, RANGE.sub(" ", SELECTOR.sub(selected, query)))
    names = [name for name in NAME.findall(rest) if name not in WORDS]
    found += [f"no metric {name}" for name in names if name not in seen.labels]
    found += [
        f"none of {names} has a label {label}"
        for label in labels_at
        if not any(label in seen.labels.get(name, ()) for name in names)
    ]
    return found or ([] if names else ["it asks for nothing"])


async def live(tmp_path: Path) -> Page:
    async with door(tmp_path) as at:
        return await page_at(at)


async def test_lesson_50_every_query_of_dashboard_and_alerts_asks_a_live_page_for_what_it_has(tmp_path: Path) -> None:
    seen = await live(tmp_path)
    assert [(where, query, found) for where, query in queries() if (found := problems(query, seen))] == []


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("sum(rate(sellerwatch_task_total[5m]))", "no metric sellerwatch_task_total"),
        ('sellerwatch_tasks_open{state="WAITING"}', "has no label state"),
        ('sellerwatch_tasks_open{status="READY"}', "status is never 'READY'"),
        ('sum(rate(sellerwatch_tasks_total{result=~"SUCCESS|DONE"}[5m]))', "result is never 'DONE'"),
        ("max by (seller) (sellerwatch_up)", "has a label seller"),
        (
            "histogram_quantile(0.5, sum by (le) (rate(sellerwatch_request_seconds[5m])))",
            "no metric sellerwatch_request",
        ),
        ("vector(1)", "no metric vector"),
        ("1 > 0", "it asks for nothing"),
    ],
)
async def test_a_query_for_what_does_not_exist_is_found(tmp_path: Path, query: str, problem: str) -> None:
    assert problem in "\n".join(problems(query, await live(tmp_path)))


def test_lesson_51_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(query for where, query in queries() if where.startswith("panel"))
    assert [one.name for one in DECLARED if not re.search(rf"\b{one.series}(_bucket|_sum|_count)?\b", shown)] == []


def test_lesson_51_a_rate_of_success_divides_by_what_ended_and_not_by_what_was_tried() -> None:
    rates = [query for _, query in queries() if 'result="SUCCESS"' in query]
    assert len(rates) >= 2
    for query in rates:
        assert 'result=~"SUCCESS|FAILED"' in query


def test_every_alert_says_what_is_so_and_what_to_do() -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["action"]


def test_every_panel_has_a_place_of_its_own() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (column, line)
        for panel in panels
        for at in [panel["gridPos"]]
        for column in range(at["x"], at["x"] + at["w"])
        for line in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
