"""Taking turns: a lock saves work, and whatever it says, what has to be done is done."""

from collections.abc import Iterable

from contracts.pool_world import FakeClock
from sellerwatch.domain.errors import Unavailable
from sellerwatch.steps.turns import Turns


class Answering:
    """Locks that say what they are told to; None: they are away."""

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.given_back: list[str] = []

    async def take(self, name: str, seconds: float) -> bool:
        self.asked.append(f"{name} {seconds:g}")
        if self.answer is None:
            raise Unavailable("locks: away")
        return self.answer

    async def give_back(self, names: Iterable[str]) -> None:
        if self.answer is None:
            raise Unavailable("locks: away")
        self.given_back += names


def turns_of(locks: Answering, patience: int = 9) -> tuple[Turns, FakeClock]:
    clock = FakeClock()
    return Turns(locks, clock, patience), clock


async def looks(turns: Turns, clock: FakeClock, times: int, every: float = 10, name: str = "sweep") -> list[bool]:
    """As a loop looks, again and again."""
    seen = []
    for _ in range(times):
        seen.append(await turns.is_ours(name, every))
        clock.go(every)
    return seen


async def test_it_is_our_turn_when_the_lock_is_ours_and_when_nobody_can_say_whose_it_is() -> None:
    for answer, is_ours in ((True, True), (None, True), (False, False)):
        turns, _ = turns_of(Answering(answer))
        assert await turns.is_ours("sweep", 10) is is_ours


async def test_while_a_turn_lasts_its_holder_asks_nobody_and_prolongs_it_before_it_ends() -> None:
    locks = Answering(True)
    turns, clock = turns_of(locks)
    assert await looks(turns, clock, 9) == [True] * 9
    assert locks.asked == ["sweep 42"] * 3
    locks.answer = False
    # What was a turn of before is asked for again, and is another's by now.
    clock.go(100)
    assert not await turns.is_ours("sweep", 10)


async def test_a_turn_is_never_longer_than_a_minute_however_seldom_it_comes() -> None:
    locks = Answering(True)
    turns, clock = turns_of(locks)
    assert await looks(turns, clock, 3, every=3600) == [True] * 3
    assert locks.asked == ["sweep 62"] * 3


async def test_who_was_refused_asks_again_when_half_a_turn_is_over() -> None:
    locks = Answering(False)
    turns, clock = turns_of(locks)
    assert await looks(turns, clock, 3) == [False] * 3
    assert len(locks.asked) == 1
    locks.answer = True
    assert await turns.is_ours("sweep", 10)


async def test_who_is_passed_over_again_and_again_does_it_all_the_same_and_then_waits_again() -> None:
    turns, clock = turns_of(Answering(False), patience=3)
    assert await looks(turns, clock, 9) == [False, False, False, True] * 2 + [False]


async def test_each_name_is_counted_by_itself() -> None:
    turns, _ = turns_of(Answering(False), patience=1)
    assert [await turns.is_ours(name, 10) for name in ("one", "two", "one", "two", "one")] == [
        *(False, False, True, True, False)
    ]


async def test_only_what_is_ours_is_passed_on_and_only_once() -> None:
    locks = Answering(True)
    turns, _ = turns_of(locks)
    for name in ("a", "b", "c"):
        await turns.is_ours(name, 10)
    await turns.pass_on("b", "unknown")
    await turns.pass_on("b")
    assert locks.given_back == ["b"]
    await turns.pass_on()
    assert locks.given_back == ["b", "a", "c"]
    locks.answer = False
    assert not await turns.is_ours("a", 10)


async def test_what_can_not_be_passed_on_is_left_to_run_out() -> None:
    locks = Answering(True)
    turns, _ = turns_of(locks)
    await turns.is_ours("sweep", 10)
    locks.answer = None
    await turns.pass_on()
    locks.answer = True
    await turns.pass_on()
    assert locks.given_back == []
