"""Metrics, as Prometheus reads them: which there are, what is counted as it happens, and what is read when asked.

    declared   every name, its kind, labels and meaning; docs/metrics.md is made from it
    counting   counters and histograms of this process
    looking    gauges of the whole system, from database, pool and queue

Counters are a process's own: add them up over processes. Gauges say the same in every process: take one of them.
"""

from sellerwatch.entry.metrics.counting import Metrics

__all__ = ["Metrics"]
