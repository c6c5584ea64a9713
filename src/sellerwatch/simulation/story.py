"""A seed that went wrong, made smaller: the fewest faults, shops and hours with which it still goes wrong the same way.

Every fault has a stream of its own, so that one can be left out and the others stay as they were.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from sellerwatch.simulation.place import Outcome, Scenario


def shrunk(found: Outcome, live: Callable[[Scenario], Outcome], tries_max: int = 60) -> Outcome:
    """The smallest story that was found with the first of the violations in it; `found` itself when nothing can go."""
    wanted = _name(found.violations[0])
    best, tries = found, 0
    while tries < tries_max:
        for smaller in _smaller(best.scenario):
            tries += 1
            outcome = live(smaller)
            if wanted in map(_name, outcome.violations):
                best = outcome
                break
            if tries >= tries_max:
                break
        else:
            return best
    return best


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """What is left out next, the most first."""
    names = sorted(scenario.rates)
    half = len(names) // 2
    if half > 1:
        for part in (names[:half], names[half:]):
            yield replace(scenario, rates={name: scenario.rates[name] for name in part})
    for name in names:
        yield replace(scenario, rates={other: scenario.rates[other] for other in names if other != name})
    for shop in sorted(scenario.shops) if len(scenario.shops) > 1 else ():
        yield replace(scenario, shops={other: size for other, size in scenario.shops.items() if other != shop})
    for shop, size in sorted(scenario.shops.items()):
        if size > 1:
            yield replace(scenario, shops={**scenario.shops, shop: size // 2})
    if scenario.houses > 1:
        yield replace(scenario, houses=1)
    if scenario.hours > 1:
        yield replace(scenario, hours=scenario.hours / 2)


def _name(violation: str) -> str:
    return violation.partition(":")[0]
