"""Counters and histograms of this process, and the page that Prometheus reads: the one module that knows its client.

Promises: `ports.meter.Meter`; every declared series exists from the beginning, at 0; a status that no RFC knows is
"other", so that nobody outside can make series. Two houses in one process have each their own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import product
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from sellerwatch.entry.metrics.declared import DECLARED, PREFIX, Kind
from sellerwatch.ports.meter import NO_ANSWER
from sellerwatch.ports.wire import NoAnswerWhy

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_STATUSES: Final = frozenset({*(str(int(status)) for status in HTTPStatus), *NoAnswerWhy, NO_ANSWER})
_OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Sample:
    """A gauge's value; the labels' values in their declared order."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


class Metrics:
    """`ports.meter.Meter`, and what became of it."""

    def __init__(self) -> None:
        # When a series came to be is a series of its own to that client, and of use to nobody here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry(auto_describe=False)
        self._gauges = _Gauges()
        self._registry.register(self._gauges)
        self._counters: dict[str, dict[tuple[str, ...], Counter]] = {}
        self._histograms: dict[str, dict[tuple[str, ...], Histogram]] = {}
        self._families: dict[str, Counter | Histogram] = {}
        for one in DECLARED:
            labels = tuple(one.labels)
            if one.kind is Kind.COUNTER:
                self._families[one.name] = Counter(one.series, one.about, labels, registry=self._registry)
                self._counters[one.name] = {}
            elif one.kind is Kind.HISTOGRAM:
                self._families[one.name] = Histogram(
                    one.series, one.about, labels, registry=self._registry, buckets=one.buckets
                )
                self._histograms[one.name] = {}
            if one.kind is not Kind.GAUGE:
                for values in product(*one.labels.values()):
                    self._at(one.name, values)

    def page(self, gauges: Iterable[Sample] = ()) -> bytes:
        """All of it, in Prometheus' text format, with the gauges as they were last seen."""
        self._gauges.samples = tuple(gauges)
        return generate_latest(self._registry)

    def request(self, kind: str, status: str, seconds: float) -> None:
        self._count("requests_total", 1, kind, _status(status))
        self._observe("request_seconds", seconds, kind)

    def lease(self, result: str, count: int = 1) -> None:
        self._count("leases_total", count, result)

    def lease_wait(self, seconds: float) -> None:
        self._observe("lease_wait_seconds", seconds)

    def task(self, kind: str, result: str, count: int = 1) -> None:
        self._count("tasks_total", count, kind, result)

    def execution(self, status: str, count: int = 1) -> None:
        self._count("executions_total", count, status)

    def change(self, kind: str) -> None:
        self._count("changes_total", 1, kind)

    def delivery(self, status: str, lag_seconds: float | None) -> None:
        self._count("deliveries_total", 1, _status(status))
        if lag_seconds is not None:
            self._observe("delivery_lag_seconds", lag_seconds)

    def swept(self, sweep: str, found: int) -> None:
        self._count("sweep_found_total", found, sweep)

    def led(self, step: str) -> None:
        self._count("pool_leads_total", 1, step)

    def schedule_delay(self, seconds: float) -> None:
        self._observe("schedule_delay_seconds", seconds)

    def done_again(self, why: str) -> None:
        self._count("transactions_again_total", 1, why)

    def _count(self, name: str, by: int, *labels: str) -> None:
        counter = self._counters[name].get(labels)
        (counter or self._at(name, labels)).inc(by)

    def _observe(self, name: str, value: float, *labels: str) -> None:
        histogram = self._histograms[name].get(labels)
        (histogram or self._at(name, labels)).observe(max(0.0, value))

    def _at(self, name: str, labels: tuple[str, ...]) -> Any:
        """The series of these labels; kept, because to look one up by its labels costs more than to count."""
        family = self._families[name]
        series = family.labels(*labels) if labels else family
        kept: dict[tuple[str, ...], Any] = self._counters[name] if name in self._counters else self._histograms[name]
        kept[tuple(str(label) for label in labels)] = series
        return series


class _Gauges(Collector):
    """What was seen last, as Prometheus' client wants it."""

    samples: Sequence[Sample] = ()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        families = {
            one.name: GaugeMetricFamily(PREFIX + one.name, one.about, labels=list(one.labels))
            for one in DECLARED
            if one.kind is Kind.GAUGE
        }
        for sample in self.samples:
            families[sample.name].add_metric(list(sample.labels), sample.value)
        return families.values()


def _status(text: str) -> str:
    return text if text in _STATUSES else _OTHER
