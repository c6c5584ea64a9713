"""What it costs to be watched: what is told of one product alone, then the walk untold, counted, and counted and traced,
in turns, side by side in one process.

`python -m bench.insight [shops x products] [rounds]`; `alone` for the first part only. Spans are made, encoded and sent to
the sandbox, which has no place for them and says so: what a collector would do with them is its own affair. The least of
the rounds stands for each: noise only adds.
"""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from bench.measured import Account, run
from bench.walk import Complaints, crawl_twice
from bench.world import world
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.adapters.otlp import OtlpTraces
from sellerwatch.domain.traces import child, crawled, root
from sellerwatch.entry.metrics import Metrics
from sellerwatch.ports.meter import UNMETERED, Meter
from sellerwatch.ports.traces import Span

WAYS = ("untold", "counted", "traced")


def main() -> None:
    amount = sys.argv[1] if len(sys.argv) > 1 else "2x300"
    alone()
    if amount == "alone":
        return
    count, products = map(int, amount.split("x"))
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    shops = {f"shop-{number}": products for number in range(count)}
    Complaints().listen()
    found: dict[str, list[Account]] = {way: [] for way in WAYS}
    # The first walk of a process loads and compiles what the others find ready.
    _one("untold", shops)
    for number in range(rounds):
        # Each way comes first now and then.
        for way in (*WAYS[number % 3 :], *WAYS[: number % 3]):
            found[way].append(_one(way, shops))
    print(f"{amount} products, CPU s per 1 000, least of {rounds}: first crawl, second crawl")
    least = {way: [min(each.laps[lap].cpu_per_1000 for each in found[way]) for lap in (0, 1)] for way in WAYS}
    for way, laps in least.items():
        ratios = ", ".join(f"x {one / two:.2f}" for one, two in zip(laps, least["untold"], strict=True))
        print(f"{way:<8} {laps[0]:.2f} {laps[1]:.2f}  ({ratios})")


def alone() -> None:
    """CPU of telling one product's first crawl: two attempts, one change, one delivery."""
    metrics, traces = Metrics(), OtlpTraces("http://127.0.0.1:1", {}, SystemClock(), Http1, version="1", instance="1")
    print(f"told to nobody {_least(lambda _: _count(UNMETERED)):.1f} us a product")
    print(f"counted        {_least(lambda _: _count(metrics)):.1f} us")
    print(f"spans made     {_least(_spans):.1f} us, {len(_spans(1))} of them")
    made = [span for number in range(20) for span in _spans(number)]
    encoded = _least(lambda _: traces.encoded(made), 20)
    print(f"spans encoded  {encoded / 20:.1f} us")


def _least(work: Callable[[int], object], times: int = 2000) -> float:
    """Microseconds of one call, the least of a few rounds."""
    rounds = []
    for _ in range(7):
        began = time.process_time()
        for number in range(times):
            work(number)
        rounds.append((time.process_time() - began) / times)
    return min(rounds) * 1e6


def _count(meter: Meter) -> None:
    for kind in ("DETAIL", "OPTION"):
        meter.request(kind, "200", 0.1)
        meter.task(kind, "SUCCESS")
    meter.change("CREATED")
    meter.delivery("200", 3.0)


def _spans(number: int) -> list[Span]:
    now, spans = datetime.now(UTC), []
    for kind in ("DETAIL", "OPTION"):
        task_id = f"{kind}-{number}"
        begun, facts = root(task_id), {"task.id": task_id, "seller.id": "shop", "task.kind": kind}
        relayed, own = child(begun, "relay/1"), crawled(task_id)
        status = {"http.response.status_code": 200}
        spans += [
            Span("trigger", begun, None, now, now, facts),
            Span("relay", relayed, begun, now, now, facts),
            Span("crawl", own, relayed, now, now, {**facts, "task.status": "SUCCESS", "item.no": number}),
            Span("request", child(own, "request/0"), own, now, now, status, is_call=True),
        ]
    detail = crawled(f"DETAIL-{number}")
    absorbed = child(detail, "absorb")
    return [
        *spans,
        Span("absorb", absorbed, detail, now, now, {"item.no": number}, links=(detail,)),
        Span("deliver", child(absorbed, "deliver"), absorbed, now, now, {"event.id": "e"}, is_call=True),
    ]


def _one(way: str, shops: dict[str, int]) -> Account:
    with world(shops) as url:
        told: dict[str, object] = {} if way == "untold" else {"meter": Metrics()}
        if way == "traced":
            told["traces"] = OtlpTraces(url, {}, SystemClock(), Http1, version="bench", instance="bench")
        return run(crawl_twice(url, shops, **told))


if __name__ == "__main__":
    main()
