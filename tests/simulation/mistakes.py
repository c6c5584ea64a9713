"""Deliberate mistakes in the house, each of which the checkers of a town must catch: who catches nothing proves nothing.

`python -m simulation.mistakes`, from `tests`, lives with each of them and prints which invariant caught it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sellerwatch.domain.leadership import Engine
from sellerwatch.entry.up import run_up
from sellerwatch.ports.outside import Receipt
from sellerwatch.ports.pool import Report
from sellerwatch.simulation.place import Outcome, Scenario
from sellerwatch.simulation.town import lived
from sellerwatch.steps.leading import LeadingPool
from sellerwatch.wiring import House

QUIET = Scenario(seed=1, shops={"shop1": 2}, identities=4, houses=1, hours=1, rates={}, crawl_hours=9)
SMALL = replace(QUIET, shops={"shop1": 4}, identities=2)


@dataclass(frozen=True)
class Mistake:
    about: str
    invariant: str
    """Which one it must violate."""
    make: Callable[[House], None]
    rates: Mapping[str, float] = field(default_factory=dict)
    scenario: Scenario = SMALL


def made(mistake: Mistake) -> Outcome:
    return lived(replace(mistake.scenario, rates=mistake.rates), run_up, mistake.make)


class Deaf:
    """A store that takes this one word for done."""

    def __init__(self, store: object, verb: str, answer: object) -> None:
        self._store, self._verb, self._answer = store, verb, answer

    def __getattr__(self, name: str) -> Any:
        return (lambda *_, **__: self._answer) if name == self._verb else getattr(self._store, name)


def never(store: str, verb: str, answer: object = None) -> Callable[[House], None]:
    """Of every transaction this is left out."""

    def make(house: House) -> None:
        transact = house.store.transact

        async def without(work: Callable[[Any], Any]) -> Any:
            def through(unit: Any) -> Any:
                setattr(unit, store, Deaf(getattr(unit, store), verb, answer))
                return work(unit)

            return await transact(through)

        house.store.transact = without  # type: ignore[method-assign]

    return make


def unheard(port: str, verb: str, answer: object) -> Callable[[House], None]:
    """This call of a port does nothing, and says that it did."""

    def make(house: House) -> None:
        async def nothing(*_: object, **__: object) -> object:
            return answer

        setattr(getattr(house, port), verb, nothing)

    return make


def takes_any_answer_for_yes(house: House) -> None:
    deliver: Callable[..., Awaitable[Receipt]] = house.product_server.deliver  # type: ignore[union-attr]

    async def yes(*arguments: Any, **named: Any) -> Receipt:
        await deliver(*arguments, **named)
        return Receipt(200)

    house.product_server.deliver = yes  # type: ignore[method-assign, union-attr]


def another_key_each_time(house: House) -> None:
    deliver: Callable[..., Awaitable[Receipt]] = house.product_server.deliver  # type: ignore[union-attr]

    async def renamed(event_id: str, *arguments: Any, **named: Any) -> Receipt:
        return await deliver(f"{event_id}-{house.clock.monotonic()}", *arguments, **named)

    house.product_server.deliver = renamed  # type: ignore[method-assign, union-attr]


def limits(**other: float) -> Callable[[House], None]:
    def make(house: House) -> None:
        assert isinstance(house.pool, LeadingPool)
        pool: Any = house.pool.engines[Engine.SQL]
        pool._allowed = pool._limits = replace(pool._limits, **other)

    return make


def hears_no_429(house: House) -> None:
    report = house.pool.report

    async def deaf(reports: Sequence[Report]) -> list[bool]:
        await report([one for one in reports if one.http_status != 429])
        await house.pool.cancel([(one.lease_id, one.agent_id) for one in reports if one.http_status == 429])
        return [True] * len(reports)

    house.pool.report = deaf  # type: ignore[method-assign]


def tries_for_ever(house: House) -> None:
    assert house.outside is not None
    settling: Any = house.outside.crawl._settling
    settling._rules = replace(settling._rules, task_retries=50)


def works_on_nothing(house: House) -> None:
    async def nothing(_: object) -> None:
        return None

    assert house.outside is not None
    house.outside.crawl.work = nothing  # type: ignore[method-assign]


CROWD = replace(QUIET, shops={"shop1": 60}, identities=1)
MISTAKES = (
    Mistake("a delivery is marked before it is sent", "I2", unheard("product_server", "deliver", Receipt(200))),
    Mistake("a refused delivery is taken for an accepted one", "I2", takes_any_answer_for_yes, {"server_error": 80.0}),
    Mistake("a repeated delivery has another key", "I2", another_key_each_time, {"server_lost": 60.0}),
    Mistake("SUCCESS is written before the documents", "an item asked for without its documents", never("raws", "put")),
    Mistake("a change has no row in the outbox", "a change that nobody is told of", never("events", "add")),
    Mistake("a change is not kept", "a version without its change", never("changes", "add")),
    Mistake("tasks have no row in the outbox", "I3 I4 lateness", never("publications", "add", 0)),
    Mistake("the counters of a crawl are not kept", "counters that are not their tasks", never("executions", "save")),
    Mistake("products are not kept", "I8 I16 I17", never("products", "save")),
    Mistake("the interval of an identity is forgotten", "I1", limits(min_interval_seconds=0.0)),
    Mistake("the window of an identity is forgotten", "I1", limits(hourly_limit=10_000), scenario=CROWD),
    Mistake("the window is a minute long", "I1", limits(window_seconds=60.0), scenario=CROWD),
    Mistake("a 429 is not heard", "I18", hears_no_429, {"throttle": 60.0}),
    Mistake("a task is tried for ever", "I15", tries_for_ever, {"html": 60.0}),
    Mistake("what is received is never worked on", "I8 I16 I17", works_on_nothing),
    Mistake("documents are never absorbed", "I3 I4 lateness", never("raws", "lock_ripe", [])),
)


def main() -> None:
    for mistake in MISTAKES:
        outcome = made(mistake)
        caught = sorted({violation.partition(":")[0] for violation in outcome.violations})
        print(f"{mistake.about:<52} {'caught' if mistake.invariant in caught else 'MISSED':<8} {', '.join(caught)}")  # noqa: T201


if __name__ == "__main__":
    main()
