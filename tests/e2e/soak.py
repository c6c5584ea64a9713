"""The distributed system under fire, for as long as told, and what became of it.

    make soak SOAK="--minutes 10 --sellers 3 --products 1000 --seed 7"    strikes by chance, for so long
    make soak SOAK="--kills 20"       so many kills of any process, and each other strike once, in an order by chance
    make soak SOAK="--kills 0"        none at all: do the shops come whole?

The first crawls are begun by rules that fire, later ones by commands, while processes of every role are killed, Redis is
lost and flushed, MariaDB is restarted, and the queue is away or answers errors for ten seconds at a time. Strikes hit while
a crawl is open. At the end everything must be settled, true, delivered, and within budget; the account says how often what
was done. Identities' budgets stand: 100 of them crawl some 4 000 products an hour, `--identities` adds more.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
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
    "queue errors",
)
ONCE = ("mariadb", "redis flushed", "queue errors")
"""Beside counted kills."""
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
SEEDED = 100


def main() -> int:
    asked = _asked()
    with tempfile.TemporaryDirectory(prefix="sellerwatch-soak-") as folder, a_region(Path(folder), **QUICK) as region:
        shops = {f"shop{number}": asked.products for number in range(1, asked.sellers + 1)}
        began = time.monotonic()
        done = soak(region, shops, random.Random(asked.seed), asked)
        received, seen = region.stats()["receiver"], region.stats()
        told = ", ".join(f"{count} x {what}" for what, count in sorted(done.items())) or "nothing was struck"
        sys.stdout.write(f"{told}; {time.monotonic() - began:.0f} s\n")
        sys.stdout.write(
            f"{len(region.products())} products of {asked.sellers} sellers whole and true, none left over\n"
        )
        sys.stdout.write(
            f"{seen['requests']['total']} requests, {seen['violations']} violations, {seen['peakWindow']} at most in an hour; "
            f"{received['deliveries']} deliveries taken, {received['repeats']} repeated, {received['outOfOrder']} out of order\n"
        )
    return 0


def soak(region: Region, shops: dict[str, int], chance: random.Random, asked: argparse.Namespace) -> Counter[str]:
    """Under fire, then left alone until all is settled and checked. What was done, how often."""
    region.sandbox("--seed", str(asked.seed), "--latency", "50", "--jitter", "50", **shops)
    if asked.identities > SEEDED:
        browsers = region.folder / "browsers"
        browsers.write_text("".join(f"Mozilla/5.0 (soak {number})\n" for number in range(SEEDED, asked.identities)))
        region.does("agents", "add", str(browsers))
    for role in ("api", "scheduler", "worker", "worker"):
        region.role(role)
    for seller in shops:
        region.does("seller", "add", seller, "--name", seller.title())
    fired(region, len(shops))
    done = Counter[str]()
    for what in planned(asked, chance, done):
        pause(chance.uniform(1, 8))
        if asked.kills is not None and not under_way(region):
            done["crawls begun meanwhile"] += changed(region, shops, chance)
        strike(region, what, chance)
        done[what] += 1
        region.supervise()
        if asked.kills is None and chance.random() < AGAIN:
            # An open crawl is left alone, and the changes are seen by the next one.
            region.mutate(0.02, seed=chance.randrange(2**32))
            done["crawls begun meanwhile"] += region.type("crawl", chance.choice(sorted(shops))).code == 0
    if done:
        until(region.is_at_rest, asked.patience, lambda: what_holds(region))
        changed(region, shops, chance)
    settled(region, asked.patience)
    return done


def planned(asked: argparse.Namespace, chance: random.Random, done: Counter[str]) -> Iterator[str]:
    """What is struck, one after the other."""
    if asked.kills is not None:
        strikes = ["kill"] * asked.kills + [*ONCE] * bool(asked.kills)
        chance.shuffle(strikes)
        yield from strikes
        return
    ends = time.monotonic() + asked.minutes * 60
    while time.monotonic() < ends:
        yield chance.choice([each for each in STRIKES if done[each] < MOST.get(each, sys.maxsize)])


def fired(region: Region, times: int) -> None:
    """Every rule fires; each firing begins a crawl, so many in all."""
    assert region.aws is not None
    until(lambda: not region.open_things(), PATIENCE, lambda: f"not announced: {region.open_things()}")
    region.aws.advance(DAY)
    count = "SELECT count(*) FROM crawling_schedule_executions"
    until(lambda: region.count(count) >= times, PATIENCE, lambda: f"no crawl began: {region.count(count)}")


def under_way(region: Region) -> int:
    return region.count("SELECT count(*) FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')")


def changed(region: Region, shops: dict[str, int], chance: random.Random) -> int:
    """Some products are, and every shop is crawled again; in how many that was begun."""
    region.mutate(0.02, seed=chance.randrange(2**32))
    return sum(region.type("crawl", seller).code == 0 for seller in shops)


def strike(region: Region, what: str, chance: random.Random) -> None:
    assert region.mariadb
    assert region.redis
    assert region.aws
    match what.split():
        case ["kill"]:
            region.replace(chance.randrange(len(region.at_work)))
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
        case ["queue", "errors"]:
            region.aws.fail(AWAY_SECONDS)
            pause(AWAY_SECONDS)
        case _:
            region.aws.pause()
            pause(AWAY_SECONDS)
            region.aws.go_on()


def settled(region: Region, patience: float = PATIENCE) -> None:
    """Everything at its end, true, delivered in order, within budget, and every process alive."""
    until(region.is_at_rest, patience, lambda: what_holds(region))
    assert region.is_alive(), [running.says()[-2000:] for _, running in region.at_work if not running.is_alive()]
    region.check_truth()


def what_holds(region: Region) -> str:
    sellers = region.rows(
        "SELECT seller_id FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')"
    )
    told = [region.type("explain", "seller", str(seller)).out for (seller,) in sellers]
    return "\n".join([f"still open: {region.open_things()}", *told])


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m e2e.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--sellers", type=int, default=3)
    parser.add_argument("--products", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, help="so many, and each other strike once, instead of --minutes")
    parser.add_argument("--identities", type=int, default=SEEDED)
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds in which everything must have settled")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
