"""The world that is crawled: the sandbox in a process of its own, so that what it costs is nobody's; no latency, no limits.

with world({"shop-01": 500}) as url: ...
"""

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import uvloop

from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.sandbox.server import serve

PRODUCTS_PATH = "/products"
CHANGED_SHARE = 0.01


@contextmanager
def world(shops: Mapping[str, int]) -> Iterator[str]:
    """The address of a fresh world; it ends with the block, or with this process."""
    command = [sys.executable, "-m", "bench.world", json.dumps(shops)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise SystemExit("bench: the sandbox did not start")
        try:
            yield url
        finally:
            process.stdin.close()
            process.wait(timeout=10)


def change_some(url: str) -> int:
    """Change one product in a hundred; how many that were."""
    body = json.dumps({"share": CHANGED_SHARE, "seed": 7}).encode()
    with urllib.request.urlopen(f"{url}/__mutate", data=body) as response:
        return json.load(response)["items"]


def stats(url: str) -> dict:
    with urllib.request.urlopen(f"{url}/__stats") as response:
        return json.load(response)


async def _serve(shops: Mapping[str, int]) -> None:
    conditions = Conditions(shops=shops, hourly_limit=0, min_interval_seconds=0, products_path=PRODUCTS_PATH)
    async with serve(Sandbox(conditions), time.time) as url:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(json.loads(sys.argv[1])))
