"""Every engine of the pool against a small model of its rules, over whatever order of calls Hypothesis thinks of.

The model keeps plain lists of moments and counts them anew each time; it knows exactly how many can be leased, so an
engine that gives one too many fails as one that gives one too few.
"""

import asyncio
from contextlib import ExitStack

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contracts.pool_world import ENGINES, afresh, held, identities, said, some_limits
from sellerwatch.domain.identities import Verdict
from sellerwatch.ports.pool import Lease, WhyNot

MEMBERS = 4
LIMITS = {
    "hourly_limit": 3,
    "window_seconds": 60.0,
    "guard_seconds": 2.0,
    "min_interval_seconds": 1.0,
    "lease_seconds": 5.0,
    "concurrency": 4,
    "site_requests_per_second": 5.0,
    # The breakers have tests of their own.
    "min_available_percent": 0.0,
    "site_failure_percent": 100.0,
    "identity_failure_threshold": 10_000,
}


class Rules(RuleBasedStateMachine):
    engine = "sql"
    server = None

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.runner = self.stack.enter_context(asyncio.Runner())
        self.world = self.stack.enter_context(held(self.run, afresh(self.engine, self.server)))
        self.limits = some_limits(**LIMITS)
        self.given: dict[int, list[float]] = {number: [] for number in range(1, MEMBERS + 1)}
        self.told: dict[int, float] = {}
        self.site: list[float] = []
        self.out: dict[str, Lease] = {}
        self.over: list[Lease] = []
        self.suspended: set[int] = set()

    @initialize()
    def begin(self) -> None:
        self.pools = [self.world.engine(self.limits) for _ in range(2)]
        self.run(self.pools[0].load(identities(MEMBERS)))

    def run(self, coroutine):
        return self.runner.run(coroutine)

    @property
    def now(self) -> float:
        return self.world.clock.monotonic()

    def can_go(self) -> int:
        """How many can be leased now, by counting."""
        lent = {lease.agent_id for lease in self.out.values()}
        free = sum(
            agent_id not in lent
            and agent_id not in self.suspended
            and not any(at > self.now - 1 for at in [*given, self.told.get(agent_id, -1)])
            and sum(at > self.now - 62 for at in given) < 3
            for agent_id, given in self.given.items()
        )
        return min(free, 4 - len(self.out), 5 - sum(at > self.now - 1 for at in self.site))

    def end_those_past(self) -> None:
        for lease in [each for each in self.out.values() if each.deadline <= self.world.clock.now()]:
            self.over.append(self.out.pop(lease.lease_id))

    @rule(count=st.integers(1, 6), by=st.integers(0, 1))
    def lease(self, count: int, by: int) -> None:
        expected = min(count, self.can_go())
        grant = self.run(self.pools[by].lease(count))
        assert len(grant.leases) == expected
        for lease in grant.leases:
            assert lease.agent_id not in {each.agent_id for each in self.out.values()}
            self.out[lease.lease_id] = lease
            self.given[lease.agent_id].append(self.now)
            self.site.append(self.now)
        assert (grant.why is None) == (len(grant.leases) == count)
        if grant.why is not None and not (grant.why is WhyNot.SUSPENDED and grant.next_at is None):
            assert grant.next_at > self.world.clock.now()

    @precondition(lambda self: self.out)
    @rule(data=st.data(), verdict=st.sampled_from([*[Verdict.SUCCESS] * 3, *Verdict]), by=st.integers(0, 1))
    def report(self, data, verdict: Verdict, by: int) -> None:
        chosen = data.draw(st.lists(st.sampled_from(sorted(self.out)), min_size=1, unique=True))
        leases = [self.out.pop(lease_id) for lease_id in chosen]
        assert self.run(self.pools[by].report([said(lease, verdict) for lease in leases])) == [True] * len(leases)
        self.over += leases
        self.told |= {lease.agent_id: self.now for lease in leases}
        healths = {each.identity.agent_id: each.identity for each in self.run(self.pools[by].standings())}
        self.suspended |= {agent_id for agent_id, each in healths.items() if each.status == "SUSPENDED"}
        if verdict is Verdict.RATE_LIMITED:
            assert self.suspended >= {lease.agent_id for lease in leases}

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def cancel(self, data) -> None:
        lease = self.out.pop(data.draw(st.sampled_from(sorted(self.out))))
        assert self.run(self.pools[0].cancel([(lease.lease_id, lease.agent_id)])) == 1
        moment = self.given[lease.agent_id].pop()
        self.site.remove(moment)
        self.over.append(lease)

    @precondition(lambda self: self.over)
    @rule(data=st.data())
    def report_or_cancel_late(self, data) -> None:
        lease = data.draw(st.sampled_from(self.over))
        assert self.run(self.pools[1].report([said(lease, Verdict.RATE_LIMITED)])) == [False]
        assert self.run(self.pools[1].cancel([(lease.lease_id, lease.agent_id)])) == 0

    @precondition(lambda self: self.suspended)
    @rule(data=st.data())
    def recover(self, data) -> None:
        agent_id = data.draw(st.sampled_from(sorted(self.suspended)))
        self.run(self.pools[1].recover(agent_id))
        self.suspended.discard(agent_id)

    @rule(quarters=st.one_of(st.integers(1, 8), st.integers(1, 280)))
    def time_passes(self, quarters: int) -> None:
        self.world.clock.go(quarters / 4)
        self.end_those_past()

    @rule()
    def time_passes_as_told(self) -> None:
        outlook = self.run(self.pools[0].outlook())
        assert outlook.free == max(0, self.can_go())
        if not outlook.free and outlook.next_at is not None:
            self.world.clock.at = max(outlook.next_at, self.world.clock.at)
            self.end_those_past()

    @rule()
    def expire(self) -> None:
        self.run(self.pools[1].expire())

    @invariant()
    def what_is_out_is_what_is_lent(self) -> None:
        if not hasattr(self, "pools"):
            return
        standings = self.run(self.pools[1].standings())
        lent = {
            each.identity.agent_id
            for each in standings
            if each.leased_until and each.leased_until > self.world.clock.now()
        }
        assert lent == {lease.agent_id for lease in self.out.values()}
        for each in standings:
            inside = sum(at > self.now - 62 for at in self.given[each.identity.agent_id])
            assert inside <= 3
            assert each.remaining == 3 - inside
        assert max((sum(at - 1 < other <= at for other in self.site) for at in self.site), default=0) <= 5

    def teardown(self) -> None:
        self.stack.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_no_order_of_calls_breaks_a_rule_or_finds_one_too_few(engine, redis_server):
    machine = type("Machine", (Rules,), {"engine": engine, "server": redis_server})
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=50))
