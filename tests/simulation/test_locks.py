"""Locks save work and do nothing else: with two schedulers each sweep is run about as often as with one, and a house whose
locks always say yes, or always no, comes to the same ends.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from sellerwatch.entry.up import run_up
from sellerwatch.ports.meter import Unmetered
from sellerwatch.simulation.town import lived, scenario_of
from sellerwatch.wiring import House
from simulation.village import Mortal, Village, a_village, on_file
from simulation.virtual import run_virtually

EVERY, LOOKS = 60, 20


class Answering:
    """Locks that always say the same."""

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer

    async def take(self, _name: str, _seconds: float) -> bool:
        return self.answer

    async def give_back(self, _names: Iterable[str]) -> None: ...


class Sweeps(Unmetered):
    def __init__(self) -> None:
        self.times: Counter[str] = Counter()

    def swept(self, sweep: str, found: int) -> None:
        self.times[sweep] += 1


def swept(folder: Path, houses: int, answer: bool | None = None, die_after: int | None = None) -> Counter[str]:
    """How often each sweep was run while nothing was to be done. `answer`: of the locks; None: theirs."""
    seen = Sweeps()

    async def story() -> None:
        settings = {"database_url": on_file(folder), "sweep_seconds": EVERY}
        async with a_village(91, {"shops": {"a": 1}}, is_running=False, meter=seen, **settings) as village:
            mortals: list[Mortal] = []
            for number in range(houses):
                house = village.house if number == 0 else village.raise_house(poll_seconds=600)
                if answer is not None:
                    house.turns.locks = Answering(answer=answer)
                mortal = Mortal(house, die_after) if number == 0 and die_after else None
                mortals += [mortal] if mortal else []
                village.move_in(house)
                await village.clock.sleep(EVERY / 3)
            await village.clock.sleep(EVERY * LOOKS)
            for mortal in mortals:
                assert mortal.died.is_set()
                mortal.is_buried = True

    run_virtually(story())
    return seen.times


@pytest.mark.slow
def test_two_schedulers_sweep_little_more_than_one_does(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "unlocked").mkdir()
    alone = swept(tmp_path / "alone", 1)
    assert alone["stuck_tasks"] >= LOOKS
    unlocked = swept(tmp_path / "unlocked", 2, answer=True)
    assert unlocked["stuck_tasks"] >= 1.9 * alone["stuck_tasks"]
    together = swept(tmp_path, 2)
    # By and by who was refused all the time does it once all the same.
    assert alone["stuck_tasks"] <= together["stuck_tasks"] <= 1.2 * alone["stuck_tasks"]
    assert sum(together.values()) <= 1.25 * sum(alone.values())


def test_a_scheduler_that_was_killed_with_every_lock_in_hand_is_followed_by_the_other(tmp_path: Path) -> None:
    times = swept(tmp_path, 2, die_after=400)
    assert times["stuck_tasks"] >= LOOKS - 4


@pytest.mark.slow
@pytest.mark.parametrize("answer", [True, False])
def test_a_shop_is_crawled_whole_by_two_houses_whatever_their_locks_say(tmp_path: Path, answer: bool) -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 8}, "latency_ms": 300}
        settings = {"database_url": on_file(tmp_path), "sweep_seconds": 20, "identities": 20}
        async with a_village(92, conditions, is_running=False, **settings) as village:
            for house in (village.house, village.raise_house(poll_seconds=15)):
                house.turns.locks = Answering(answer=answer)
                village.move_in(house)
            await village.register("a")
            await crawled_with_a_worker_that_vanishes(village)
            village.sandbox.mutate(0.5)
            await village.crawl("a")
            await village.check()

    run_virtually(story())


async def crawled_with_a_worker_that_vanishes(village: Village) -> None:
    execution = await village.house.trigger.crawl_now("a")

    async def vanished() -> bool:
        return bool(await village.change("UPDATE crawler_tasks SET attempt_id = 'gone' WHERE status = 'RUNNING'"))

    await village.until(vanished, 60, "nothing runs", 0.05)
    await village.ended(execution)
    await village.change("UPDATE crawl_executions SET status = 'ABANDONED' WHERE status = 'RUNNING'")
    await village.settled()


@pytest.mark.slow
@pytest.mark.parametrize("answer", [True, False])
def test_bad_days_are_lived_through_whatever_the_locks_say(answer: bool) -> None:
    def tampered(house: House) -> None:
        house.turns.locks = Answering(answer=answer)

    outcome = lived(scenario_of(8), run_up, tampered)
    assert outcome.violations == []
    assert sum(outcome.happened.values()) > 0
