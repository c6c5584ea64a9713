"""A product server with everything that can be wrong with one: what it holds in the end is what we hold (I2).

It fails three times in ten, repeats what it has been told, is slow, answers when nobody waits any more, goes away for
an hour and comes back, while products change all the time.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from sellerwatch.ports.outside import ProductServer, Receipt
from sellerwatch.ports.time import Clock
from simulation.village import a_village
from simulation.virtual import run_virtually

PATIENCE = 8.0
BAD = {"error": 9, "throttle": 3, "drop": 7, "lost": 7, "slow": 4}
QUICK = {"sweep_seconds": 30, "site_requests_per_second": 100, "identities": 60, "product_outbox_retries": 20}


class Watched:
    """Waits for an answer as long as the real one does, and keeps what was sent."""

    def __init__(self, server: ProductServer, clock: Clock) -> None:
        self._server, self._clock = server, clock
        self.sent: list[tuple[int, int, str, bytes]] = []
        self.late = 0
        self.under_way: set[int] = set()
        self.side_by_side: list[int] = []

    async def deliver(self, event_id: str, payload: Mapping[str, Any], at: datetime, context: str) -> Receipt:
        item_no = payload["itemNo"]
        self.side_by_side += [item_no] if item_no in self.under_way else []
        self.under_way.add(item_no)
        self.sent.append((item_no, payload["version"], event_id, orjson.dumps(dict(payload))))
        try:
            return await self._clock.within(PATIENCE, self._server.deliver(event_id, payload, at, context))
        except TimeoutError:
            self.late += 1
            return Receipt(None, error=f"no answer within {PATIENCE:g} s")
        finally:
            self.under_way.remove(item_no)


@pytest.mark.parametrize("seed", [301, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (302, 303))])
def test_whatever_the_receiver_does_its_copy_is_ours_in_the_end_in_order_and_nothing_twice_under_two_keys(
    seed: int,
) -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 15}, "receiver_rates": BAD, "receiver_latency_ms": 300}
        async with a_village(seed, conditions, **QUICK) as village:
            deliver, faults = village.house.deliver, village.sandbox.receiver.faults
            assert deliver is not None
            watched = deliver.server = Watched(deliver.server, village.clock)
            await village.register("a")
            for round_no in range(9):
                if round_no == 4:
                    faults.set_rates({"drop": 100})
                if round_no == 7:
                    # An hour later.
                    faults.set_rates(BAD)
                await village.ended(await village.house.trigger.crawl_now("a"))
                village.sandbox.mutate(0.5, seed=seed + round_no)
                await village.clock.sleep(1200)
            await village.ended(await village.house.trigger.crawl_now("a"))
            await village.settled(24 * 3600)
            await village.check()
            received = village.sandbox.receiver.shown()
            assert watched.late > 0
            assert received["repeats"] > 0  # type: ignore[operator]
            last: dict[int, int] = {}
            bodies: dict[str, bytes] = {}
            keys: dict[tuple[int, int], str] = {}
            for item_no, version, event_id, body in watched.sent:
                assert version >= last.get(item_no, 0)
                last[item_no] = version
                assert bodies.setdefault(event_id, body) == body
                assert keys.setdefault((item_no, version), event_id) == event_id
            assert watched.side_by_side == []
            lags = await village.house.reports.lags(village.clock.now() - timedelta(days=2))
            assert lags.longest is not None
            assert lags.longest > timedelta(minutes=55)

    run_virtually(story())
