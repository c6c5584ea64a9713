"""What can go wrong in a simulated world: by name, where it strikes, and how often at most.

Each seed draws a rate of its own for every fault, half of them zero, from a stream of the fault's own: leaving one out
changes no other's rate. A rate is percent of the calls it can strike (or of the requests), or incidents a day.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sellerwatch.domain.errors import Invalid
from sellerwatch.sandbox.chance import Chance

ZERO_PERCENT = 50.0
_YOUNG_HOURS, _BUSY_HOURS = 0.5, 6.0


class Where(StrEnum):
    PROCESS = "a process"
    CLOCK = "a clock"
    DATABASE = "the database"
    QUEUE = "the queue"
    POOL = "the pool"
    MARKETPLACE = "the marketplace"
    SERVER = "the product server"
    ALERTS = "the alert hook"
    SCHEDULES = "the schedules"


class Unit(StrEnum):
    CALL = "% of calls"
    REQUEST = "% of requests"
    DAY = "a busy day"


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    where: Where
    about: str
    most: float
    unit: Unit = Unit.CALL


def _of(where: Where, unit: Unit, *rows: tuple[str, float, str]) -> tuple[Kind, ...]:
    return tuple(Kind(name, where, about, most, unit) for name, most, about in rows)


KINDS: Final[tuple[Kind, ...]] = (
    *_of(
        Where.PROCESS,
        Unit.CALL,
        ("die_before", 0.05, "kill -9 just before a call of a port"),
        ("die_after", 0.05, "kill -9 just after a call of a port took effect"),
        ("stand_still", 0.02, "nothing runs for 20 to 400 s, then it acts on what it knew"),
    ),
    *_of(Where.PROCESS, Unit.DAY, ("stop", 4, "SIGTERM, and a new process after it")),
    *_of(
        Where.CLOCK,
        Unit.DAY,
        ("skew", 1, "the processes' clocks are up to 4 s apart"),
        ("jump", 3, "a process' clock is set 10 s ahead for some minutes, and back"),
    ),
    *_of(
        Where.DATABASE,
        Unit.CALL,
        ("commit_fails", 1, "the commit fails: nothing has happened"),
        ("answer_lost", 1, "the commit succeeds and its answer is lost"),
        ("locked", 1, "another writer holds the lock for a moment"),
        ("read_fails", 0.5, "a read breaks off"),
    ),
    *_of(
        Where.DATABASE,
        Unit.DAY,
        ("database_away", 3, "can't be opened for minutes"),
        ("database_full", 2, "no room left for minutes"),
        ("database_readonly", 2, "writes are refused for minutes"),
    ),
    *_of(
        Where.QUEUE,
        Unit.CALL,
        ("queue_away", 2, "can't be reached"),
        ("send_refused", 10, "some of the messages sent are refused"),
        ("send_answer_lost", 3, "the messages are in, the answer is lost"),
        ("receive_lost", 2, "the messages are out, whoever asked never hears of them"),
        ("ack_lost", 5, "a message that is done comes again"),
        ("give_back_lost", 10, "a message given back stays out"),
        ("extend_lost", 10, "the visibility runs out while the task is worked on"),
        ("twice", 5, "a message is delivered once more"),
        ("late", 2, "what was received arrives half a minute later"),
        ("disorder", 10, "messages arrive in another order"),
    ),
    *_of(Where.QUEUE, Unit.DAY, ("poison", 6, "a message that can't be understood")),
    *_of(
        Where.POOL,
        Unit.CALL,
        ("pool_away", 1, "can't be reached"),
        ("pool_slow", 1, "answers after 1 to 20 s"),
        ("lease_lost", 1, "leases are given, whoever asked never hears of them"),
        ("report_lost", 2, "what became of a request is not heard"),
        ("report_answer_lost", 2, "a report is heard, its answer is lost"),
        ("cancel_lost", 10, "leases given back stay out"),
    ),
    *_of(
        Where.MARKETPLACE,
        Unit.REQUEST,
        ("error", 5, "500, 502, 503 or 504"),
        ("throttle", 1, "429 although the limit was kept"),
        ("unauthorized", 2, "401: the token is no longer good"),
        ("drop", 3, "the connection ends without an answer"),
        ("cut", 2, "the connection ends in the middle of the body"),
        ("lost", 2, "the request counts, its answer is lost"),
        ("slow", 2, "the answer comes late"),
        ("html", 3, "200 with an HTML page"),
        ("truncate", 3, "JSON that ends in the middle"),
        ("empty", 2, "200 with nothing"),
        ("redirect", 3, "302 within the host"),
        ("gone", 0.5, "404 or 410"),
        ("wrong_item", 2, "another item's detail"),
        ("bad_item", 1, "a list in which one item is broken"),
        ("bad_price", 1, "a price that is no number"),
        ("hollow", 1, "a document nearly without fields"),
        ("short_page", 2, "a list page with too few items"),
        ("shuffle", 3, "items move to the head of the list while it is read"),
    ),
    *_of(
        Where.MARKETPLACE,
        Unit.DAY,
        ("market_down", 3, "503 for everybody for up to an hour"),
        ("market_dark", 2, "no connection for everybody for up to an hour"),
        ("storm", 2, "429 for everybody for some minutes"),
        ("retry_after", 2, "some are told to come back in hours"),
        ("revoked", 4, "all tokens are refused from now on"),
        ("robots_away", 2, "robots.txt answers 503 for a while"),
        ("robots_close", 1, "robots.txt forbids everything for a while"),
        ("shrink", 4, "products leave a shop"),
        ("grow", 4, "products come to a shop"),
        ("count_lies", 3, "a list page says another total than it has"),
    ),
    *_of(
        Where.SERVER,
        Unit.REQUEST,
        ("server_error", 10, "503"),
        ("server_throttle", 5, "429, perhaps with Retry-After"),
        ("server_drop", 5, "takes nothing and answers nothing"),
        ("server_lost", 5, "takes it, and the answer is lost"),
        ("server_slow", 5, "answers after its time is over"),
        ("server_twice", 5, "the network delivers it once more"),
        ("server_gone", 0.3, "410: a final refusal, for a person"),
    ),
    *_of(Where.SERVER, Unit.DAY, ("server_down", 3, "nothing answers for up to an hour")),
    *_of(Where.ALERTS, Unit.CALL, ("hook_down", 30, "nobody is told")),
    *_of(Where.SCHEDULES, Unit.CALL, ("schedules_away", 20, "a schedule can't be announced")),
)
NAMES: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}
LIGHT: Final = ("error", "drop", "slow", "throttle", "market_down")
"""What an ordinary month brings."""


def drawn(seed: int, among: Collection[str] | None = None) -> dict[str, float]:
    """The rates of this seed; zero for what is not `among` them."""
    unknown = sorted(set(among or ()) - NAMES.keys())
    if unknown:
        raise Invalid("fault", unknown[0], "one of " + ", ".join(NAMES))
    rates = {}
    for kind in KINDS:
        chance = Chance(seed, "rate", kind.name)
        is_there = not chance.happens(ZERO_PERCENT)
        share = chance.share()
        if is_there and (among is None or kind.name in among):
            rates[kind.name] = round(kind.most * share, 4)
    return rates


class Luck:
    """Whether a fault strikes now. Every fault draws from a stream of its own; `calm`: none does any more."""

    def __init__(self, seed: int, rates: Mapping[str, float]) -> None:
        self.rates = dict(rates)
        self.is_calm = False
        self.happened: Counter[str] = Counter()
        self._streams = {name: Chance(seed, "luck", name) for name in rates}
        self.shape = Chance(seed, "shape")
        """How long, how many: what a fault that strikes is like."""

    def strikes(self, name: str) -> bool:
        rate = self.rates.get(name)
        if not rate or self.is_calm or not self._streams[name].happens(rate):
            return False
        self.happened[name] += 1
        return True

    def moments(self, name: str, hours: float, crawl_hours: float) -> list[float]:
        """When, in seconds from the beginning, an incident of this kind begins: within the `_BUSY_HOURS` after the
        beginning of a crawl, half of them soon after it. At other times it would befall nobody.
        """
        rate = self.rates.get(name, 0.0)
        stream, at, found = self._streams.get(name), 0.0, []
        busy = min(crawl_hours, _BUSY_HOURS)
        while stream is not None and rate and (at := at + _gap(stream, 24 / rate)) < hours / crawl_hours * busy:
            crawl, since = divmod(at, busy)
            if stream.below(2):
                since = min(since, stream.share() * _YOUNG_HOURS)
            found.append((crawl * crawl_hours + since) * 3600)
        return found


def _gap(stream: Chance, average: float) -> float:
    """Between two incidents: anything from nothing to twice the average."""
    return 2 * average * stream.share()
