"""The bare fetch loop: asks for everything at concurrency 100 and keeps nothing. What fetching alone costs."""

import json
import sys

from bench.measured import Account, Lap, Meter, run, tell
from bench.visitor import in_lanes, visitor


async def fetch(url: str, shops: dict[str, int]) -> Account:
    lap = Lap("once", sum(shops.values()))
    with Meter(lap):
        async with visitor(url) as guest:
            items = [item["itemNo"] for _, item in await guest.listed(shops)]
            requests = [(ask, item_no) for item_no in items for ask in (guest.detail, guest.options)]
            await in_lanes(requests, lambda request: request[0](request[1]))
    return Account([lap], note=f"{len(items)} items, {len(requests)} item requests")


if __name__ == "__main__":
    tell(run(fetch(sys.argv[1], json.loads(sys.argv[2]))))
