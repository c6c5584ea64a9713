"""What it costs to be watched: the walk untold, counted, and counted and traced, each in a fresh process, in turns.

`python -m bench.insight [shops x products] [rounds]`. Spans go to a collector in this process that reads and forgets
them; its CPU is not counted. The least of the rounds stands for each: noise only adds.
"""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.measured import run
from bench.walk import Complaints, crawl_twice
from bench.world import world

WAYS = ("untold", "counted", "traced")


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    taken = 0

    def do_POST(self) -> None:
        Collector.taken += len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is said."""


def main() -> None:
    amount = sys.argv[1] if len(sys.argv) > 1 else "2x300"
    count, products = map(int, amount.split("x"))
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    shops = {f"shop-{number}": products for number in range(count)}
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            found[way].append(_one(way, shops, f"http://127.0.0.1:{collector.server_port}"))
    print(f"{amount} products, CPU s per 1 000, least of {rounds}: first crawl, second crawl")
    base = [min(each[lap] for each in found["untold"]) for lap in (0, 1)]
    for way in WAYS:
        least = [min(each[lap] for each in found[way]) for lap in (0, 1)]
        ratios = ", ".join(f"x {one / two:.2f}" for one, two in zip(least, base, strict=True))
        print(f"{way:<8} {least[0]:.2f} {least[1]:.2f}  ({ratios})")
    print(f"{Collector.taken / 1e6:.1f} MB of spans")


def _one(way: str, shops: dict[str, int], collector: str) -> list[float]:
    with world(shops) as url:
        command = [sys.executable, "-m", "bench.insight", "--child", url, json.dumps(shops), way, collector]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    laps: list[float] = json.loads(done.stdout.splitlines()[-1])
    return laps


def _child(url: str, shops: str, way: str, collector: str) -> None:
    from sellerwatch.adapters.clock import SystemClock  # noqa: PLC0415 - each way loads what it needs and no more
    from sellerwatch.adapters.http1.wire import Http1  # noqa: PLC0415
    from sellerwatch.entry.metrics import Metrics  # noqa: PLC0415

    told: dict[str, object] = {}
    if way != "untold":
        told["meter"] = Metrics()
    if way == "traced":
        from sellerwatch.adapters.otlp import OtlpTraces  # noqa: PLC0415

        told["traces"] = OtlpTraces(collector, {}, SystemClock(), Http1, version="bench", instance="bench")
    Complaints().listen()
    account = run(crawl_twice(url, json.loads(shops), **told))
    print(json.dumps([lap.cpu_per_1000 for lap in account.laps]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:])
    else:
        main()
