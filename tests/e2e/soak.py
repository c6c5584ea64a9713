"""The distributed system under fire, for as long as told, and what became of it.

    make soak SOAK="--minutes 10 --sellers 3 --products 1000 --seed 7"

Crawls are triggered by rules that fire, by commands, and by changes in the shops, while processes of every role are killed,
Redis is lost and flushed, MariaDB is restarted and the queue is away for ten seconds at a time. At the end everything must be
settled, true, delivered, and within budget; the account says how often what was done.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from e2e.region import PATIENCE, Region, a_region
from e2e.town import pause, until

STRIKES = (
    "kill scheduler",
    "kill worker",
    "kill worker",
    "kill api",
    "mariadb",
    "redis lost",
    "redis flushed",
    "queue",
)
MOST = {"redis lost": 2, "redis flushed": 2}
"""With each, what can't be known counts as spent: more often, and for the rest of the hour there is nothing to crawl with."""
AWAY_SECONDS = 10.0
AGAIN = 0.2
"""So often a strike is followed by changes in the shops and another crawl."""
QUICK = {
    "claim_seconds": 5,
    "lease_seconds": 12,
    "task_attempt_seconds": 10,
    "sweep_seconds": 1,
    "task_stuck_seconds": 20,
}
DAY = 86_400


def main() -> int:
    asked = _asked()
    with tempfile.TemporaryDirectory(prefix="sellerwatch-soak-") as folder, a_region(Path(folder), **QUICK) as region:
        shops = {f"shop{number}": asked.products for number in range(1, asked.sellers + 1)}
        done = soak(region, shops, random.Random(asked.seed), asked.minutes * 60, asked.seed)
        received, seen = region.stats()["receiver"], region.stats()
        sys.stdout.write(f"{', '.join(f'{count} x {what}' for what, count in sorted(done.items()))}\n")
        sys.stdout.write(
            f"{seen['requests']['total']} requests, {seen['violations']} violations, {seen['peakWindow']} at most in an hour; "
            f"{received['deliveries']} deliveries taken, {received['repeats']} repeated, {received['outOfOrder']} out of order\n"
        )
    return 0


def soak(region: Region, shops: dict[str, int], chance: random.Random, seconds: float, seed: int) -> Counter[str]:
    """So long under fire, then left alone until all is settled and checked. What was done, how often."""
    region.sandbox("--seed", str(seed), "--latency", "50", "--jitter", "50", **shops)
    for role in ("api", "scheduler", "worker", "worker"):
        region.role(role)
    for seller in shops:
        region.does("seller", "add", seller, "--name", seller.title(), "--crawl")
    ends, done = time.monotonic() + seconds, Counter[str]()
    while time.monotonic() < ends:
        pause(chance.uniform(1, 8))
        what = chance.choice([each for each in STRIKES if done[each] < MOST.get(each, seconds)])
        strike(region, what, chance)
        done[what] += 1
        region.supervise()
        if chance.random() < AGAIN:
            # An open crawl is left alone, and the changes are seen by the next one.
            region.mutate(0.02, seed=chance.randrange(2**32))
            done["crawls begun meanwhile"] += region.type("crawl", chance.choice(sorted(shops))).code == 0
    until(region.is_at_rest, PATIENCE, lambda: what_holds(region))
    region.mutate(0.02, seed=chance.randrange(2**32))
    for seller in shops:
        region.does("crawl", seller)
    settled(region)
    return done


def strike(region: Region, what: str, chance: random.Random) -> None:
    assert region.mariadb
    assert region.redis
    assert region.aws
    match what.split():
        case ["kill", role]:
            places = [place for place, (name, _) in enumerate(region.at_work) if name == role]
            region.replace(chance.choice(places))
        case ["mariadb"]:
            region.mariadb.stop(kill=True)
            pause(chance.uniform(0, 2))
            region.mariadb.start(anew=False)
        case ["redis", "lost"]:
            region.redis.kill()
            pause(chance.uniform(0, 20))
            region.redis.start()
        case ["redis", "flushed"]:
            region.redis.now.say("FLUSHALL")
        case _:
            region.aws.pause()
            pause(AWAY_SECONDS)
            region.aws.go_on()


def settled(region: Region) -> None:
    """Everything at its end, true, delivered in order, within budget, and every process alive."""
    until(region.is_at_rest, PATIENCE, lambda: what_holds(region))
    assert region.is_alive(), [running.says()[-2000:] for _, running in region.at_work if not running.is_alive()]
    region.check_truth()


def what_holds(region: Region) -> str:
    sellers = region.rows(
        "SELECT seller_id FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')"
    )
    told = [region.type("explain", "seller", str(seller)).out for (seller,) in sellers]
    return "\n".join([f"still open: {region.open_things()}", *told])


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--sellers", type=int, default=3)
    parser.add_argument("--products", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
