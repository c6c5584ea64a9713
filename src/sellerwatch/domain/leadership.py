"""Leadership: which engine of the pool lends. Two ledgers would spend every budget twice, so one leads at a time.

               begin                 lead
    (nobody) ─────────▶ BEGINNING ─────────▶ LEADING ─┐ renew (Redis: its lead runs out by itself)
                          ▲    ▲               │  │   │
                          │    └── its lead, and the grace after it, are over ◀┘
                          │                    │ hand_over (the database, whose lead never runs out)
                          └───── drained ── ENDING

Every `begin` is a new epoch; what is done under an older one changes nothing any more. A new leader is told what the
last hour was (see `recollection`) before it lends. `next_step` is what whoever keeps the lead does now.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from sellerwatch.domain.errors import WrongVerb


class Engine(StrEnum):
    SQL = "SQL"
    REDIS = "REDIS"


class Phase(StrEnum):
    BEGINNING = "BEGINNING"
    LEADING = "LEADING"
    ENDING = "ENDING"


@dataclass(frozen=True, slots=True)
class LeadRules:
    """`grace`: so long after a lead nobody lends. It must be longer than a lease by what clocks differ, so that what was
    lent has come back by every clock, and no shorter than the guard of the window."""

    lead: timedelta = timedelta(seconds=15)
    grace: timedelta = timedelta(seconds=30)
    beginning: timedelta = timedelta(seconds=60)
    steady: timedelta = timedelta(seconds=60)
    """So long Redis must have been there before the database hands over to it."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What Redis says of itself."""

    at: datetime
    """Its own time."""
    epoch: int
    """Under which it keeps its ledger; 0: it has none."""
    is_whole: bool
    """It is the server it was when it began, and has thrown nothing away since."""


class Step(StrEnum):
    NOTHING = "NOTHING"
    RENEW = "RENEW"
    GIVE_UP = "GIVE_UP"
    """Redis is there, but its ledger is not: its lead is over."""
    HAND_OVER = "HAND_OVER"
    BEGIN_SQL = "BEGIN_SQL"
    BEGIN_REDIS = "BEGIN_REDIS"


LEAD_STEPS = frozenset(Step) - {Step.NOTHING, Step.RENEW}
"""By which the lead passes on."""
BEGINS: Mapping[Step, Engine] = MappingProxyType({Step.BEGIN_SQL: Engine.SQL, Step.BEGIN_REDIS: Engine.REDIS})


@dataclass(slots=True)
class Leadership:
    epoch: int = 0
    engine: Engine | None = None
    phase: Phase | None = None
    until: datetime | None = None
    """BEGINNING: nobody else begins before. LEADING: Redis lends nothing after. ENDING: by then everything is back."""
    past: Engine | None = None
    """Whose ledger knows the last hour: the engine that led last."""
    ended_at: datetime | None = None
    """When that one surely lent nothing any more, where it was Redis."""
    books_at: datetime | None = None
    """Up to here the record knows what the leader did."""

    @classmethod
    def of_the_database(cls) -> "Leadership":
        """Where nothing was ever said about it, the database leads."""
        return cls(0, Engine.SQL, Phase.LEADING, past=Engine.SQL)

    def leads(self, engine: Engine) -> bool:
        return self.phase is Phase.LEADING and self.engine is engine

    def may_begin(self, at: datetime, rules: LeadRules) -> bool:
        if self.phase is None:
            return True
        if self.until is None:
            return False
        if self.phase is Phase.LEADING:
            return at >= self.until + rules.grace
        return self.phase is Phase.ENDING or at >= self.until

    def begin(self, engine: Engine, at: datetime, rules: LeadRules) -> None:
        """A new epoch. The engine that led is over: its lead has run out, or all it lent has come back."""
        if not self.may_begin(at, rules):
            raise self._refusal("begin")
        if self.leads(Engine.REDIS):
            self.ended_at = self.until
        self.epoch += 1
        self.engine, self.phase, self.until = engine, Phase.BEGINNING, at + rules.beginning

    def go_on(self, at: datetime, rules: LeadRules) -> None:
        """Beginning takes longer."""
        if self.phase is not Phase.BEGINNING:
            raise self._refusal("go on beginning")
        self.until = at + rules.beginning

    def lead(self, at: datetime, rules: LeadRules) -> None:
        """It knows the last hour and may lend."""
        if self.phase is not Phase.BEGINNING:
            raise self._refusal("lead")
        if self.past is None:
            # Nobody led before it: there is nothing that the record could have missed.
            self.books_at = at
        self.phase, self.past, self.ended_at = Phase.LEADING, self.engine, None
        self.until = at + rules.lead if self.engine is Engine.REDIS else None

    def renew(self, at: datetime, rules: LeadRules) -> None:
        if not self.leads(Engine.REDIS):
            raise self._refusal("renew")
        self.until = at + rules.lead

    def give_up(self, at: datetime) -> None:
        """It is known to lend nothing any more, before its lead runs out."""
        if not self.leads(Engine.REDIS) or self.until is None:
            raise self._refusal("give up")
        self.until = min(self.until, at)

    def hand_over(self, at: datetime, lease_seconds: float) -> None:
        """The database lends nothing from now on, so that Redis can begin."""
        if not self.leads(Engine.SQL):
            raise self._refusal("hand over")
        self.phase, self.until = Phase.ENDING, at + timedelta(seconds=lease_seconds)

    def _refusal(self, verb: str) -> WrongVerb:
        state = f"{self.phase} ({self.engine})" if self.phase else "nobody's"
        return WrongVerb("leadership of the pool", str(self.epoch), state, verb)


def next_step(
    known: Leadership, at: datetime, rules: LeadRules, pulse: Pulse | None, *, is_steady: bool, is_drained: bool
) -> Step:
    """`pulse`: None when Redis can't be reached, or is not wanted. `is_steady`: it has been there for long enough.
    `is_drained`: nothing that the database lent is out."""
    begin = Step.BEGIN_SQL if pulse is None else Step.BEGIN_REDIS
    if known.phase is Phase.LEADING and known.engine is Engine.SQL:
        return Step.HAND_OVER if pulse is not None and is_steady else Step.NOTHING
    if known.phase is Phase.LEADING and pulse is not None:
        if pulse.epoch == known.epoch and pulse.is_whole:
            return Step.RENEW
        if known.until is not None and at < known.until:
            return Step.GIVE_UP
    if known.phase is Phase.ENDING and pulse is not None and not is_drained and known.until and at < known.until:
        return Step.NOTHING
    return begin if known.may_begin(at, rules) else Step.NOTHING
