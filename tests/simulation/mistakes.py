"""Deliberate mistakes in the house, each of which the checkers of a town must catch: who catches nothing proves nothing.

`python -m simulation.mistakes`, from `tests`, lives with each of them and prints which invariant caught it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sellerwatch.domain.leadership import Engine
from sellerwatch.entry.up import run_up
from sellerwatch.ports.outside import Receipt
from sellerwatch.ports.pool import Grant, Report
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


def asks_elsewhere(house: House) -> None:
    send = house.transport.send  # type: ignore[union-attr]

    async def elsewhere(url: str, *arguments: Any, **named: Any) -> Any:
        return await send(url.replace("127.0.0.1", "127.0.0.2") if "/detail" in url else url, *arguments, **named)

    house.transport.send = elsewhere  # type: ignore[method-assign, union-attr]


def gives_used_leases_back(house: House) -> None:
    report = house.pool.report

    async def unspent(reports: Sequence[Report]) -> list[bool]:
        await house.pool.cancel([(one.lease_id, one.agent_id) for one in reports if not one.is_issue])
        return await report(reports)

    house.pool.report = unspent  # type: ignore[method-assign]


def begins_a_new_window_on_the_hour(house: House) -> None:
    lease, hours = house.pool.lease, [0.0]

    async def fixed(count: int) -> Grant:
        if house.clock.monotonic() // 1800 != hours[0]:
            hours[0] = house.clock.monotonic() // 1800
            await house.database.write(lambda connection: connection.exec_driver_sql("DELETE FROM pool_window"))
        return await lease(count)

    house.pool.lease = fixed  # type: ignore[method-assign]


def keeps_no_patience(house: House) -> None:
    report = house.pool.report

    async def impatient(reports: Sequence[Report]) -> list[bool]:
        return await report([replace(one, retry_after=None) for one in reports])

    house.pool.report = impatient  # type: ignore[method-assign]


class Changed:
    """A store in which this one verb does something else."""

    def __init__(self, store: object, verb: str, instead: Callable[..., Any]) -> None:
        self._store, self._verb, self._instead = store, verb, instead

    def __getattr__(self, name: str) -> Any:
        return self._instead if name == self._verb else getattr(self._store, name)


def otherwise(store: str, verb: str, change: Callable[..., Any]) -> Callable[[House], None]:
    """In every transaction this verb is called with something else: `change(call, *arguments)`."""

    def make(house: House) -> None:
        transact = house.store.transact

        async def changed(work: Callable[[Any], Any]) -> Any:
            def through(unit: Any) -> Any:
                owner = getattr(unit, store)
                call = getattr(owner, verb)
                setattr(unit, store, Changed(owner, verb, lambda *given, **named: change(call, *given, **named)))
                return work(unit)

            return await transact(through)

        house.store.transact = changed  # type: ignore[method-assign]

    return make


def sends_nothing(house: House) -> None:
    async def taken(messages: Sequence[object]) -> list[None]:
        return [None] * len(messages)

    house.queue.send = taken  # type: ignore[method-assign, assignment]


NEVER = datetime(2100, 1, 1, tzinfo=UTC)
CROWD = replace(QUIET, shops={"shop1": 60}, identities=1)
HOURLY = replace(SMALL, hours=5, crawl_hours=1)
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
    Mistake("requests go to another host", "I9", asks_elsewhere),
    Mistake("a used lease is given back as if it were not", "I1", gives_used_leases_back, scenario=CROWD),
    Mistake("the window begins anew on the half hour", "I1", begins_a_new_window_on_the_hour, scenario=CROWD),
    Mistake("Retry-After is not heeded", "I18", keeps_no_patience, {"retry_after": 200.0}, HOURLY),
    Mistake(
        "a task goes on its way again at a moment that never comes",
        "I3 I4 lateness",
        otherwise("publications", "again", lambda call, rows: call([(task_id, NEVER) for task_id, _ in rows])),
        {"html": 60.0},
    ),
    Mistake("tasks are marked as sent before they are", "I8 I16 I17", sends_nothing),
    Mistake("nobody is told of what was refused", "I2", never("chores", "raise_alert"), {"server_gone": 60.0}),
)


def main() -> None:
    for mistake in MISTAKES:
        outcome = made(mistake)
        caught = sorted({violation.partition(":")[0] for violation in outcome.violations})
        print(f"{mistake.about:<52} {'caught' if mistake.invariant in caught else 'MISSED':<8} {', '.join(caught)}")  # noqa: T201


if __name__ == "__main__":
    main()
