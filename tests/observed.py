"""A page of metrics as a test reads it."""

from collections import defaultdict
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from doors import Door, call
from sellerwatch.entry.metrics import Metrics
from sellerwatch.entry.metrics.looking import Looking
from sellerwatch.wiring import House

Series = tuple[str, tuple[tuple[str, str], ...]]


class Page:
    """Every series by its name and labels."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.series: dict[Series, float] = {}
        self.labels: dict[str, set[str]] = defaultdict(set)
        self.values: dict[str, set[str]] = defaultdict(set)
        for family in self.families.values():
            for sample in family.samples:
                self.series[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
                self.labels[sample.name] |= set(sample.labels)
                for label, value in sample.labels.items():
                    self.values[label].add(value)

    def of(self, name: str, **labels: str) -> float:
        """All series of that name with these labels among theirs, added up."""
        wanted = set(labels.items())
        return sum(value for (found, its), value in self.series.items() if found == name and wanted <= set(its))

    def by(self, name: str, label: str) -> dict[str, float]:
        """Those that are not 0, added up by one label."""
        found: dict[str, float] = defaultdict(float)
        for (one, its), value in self.series.items():
            if one == name and value:
                found[dict(its)[label]] += value
        return dict(found)


async def page_of(house: House, metrics: Metrics) -> Page:
    return Page(metrics.page(await Looking(house).samples()).decode())


async def page_at(door: Door, app: Any = None) -> Page:
    answer = await call(app or door.app, "GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Page(answer.body.decode())
