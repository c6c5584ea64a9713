"""What stands above the identities: one row that every step reads first, locks and writes last.

It holds the pool's clock (which never goes back), what is out, how many identities are in which state, and the two
breakers; so what is decided over all identities costs the same however many there are.
"""

import json
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from sellerwatch.adapters.sql.dialect import upsert
from sellerwatch.adapters.sql.pool.moments import SECOND, moment, us
from sellerwatch.adapters.sql.prepared import Prepared, Row
from sellerwatch.adapters.sql.session import PerDialect
from sellerwatch.adapters.sql.tables.pool import pool_leader, pool_site, pool_tally
from sellerwatch.adapters.sql.trouble import Overtaken, says_twice
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState
from sellerwatch.domain.leadership import Engine, Phase
from sellerwatch.ports.pool import Limits

MINUTE = 60 * SECOND
BUCKET = 5 * SECOND
REQUESTS_MIN = 20
PATIENT_IDENTITIES = 3
PATIENCE_KEPT = 16

COLUMNS = tuple(column.name for column in pool_site.columns)
_named = pool_site.c.name == bindparam("key")
_WIDTH = len(COLUMNS) - 1
_known = (
    select(*pool_site.c[1:], pool_leader.c.engine, pool_leader.c.phase)
    .select_from(pool_site.outerjoin(pool_leader, pool_leader.c.name == pool_site.c.name))
    .where(_named)
)
_READ = Prepared(_known, ("key",))
_LOCK = Prepared(_known.with_for_update(), ("key",))
_SAVE = Prepared(
    update(pool_site).where(_named).values({name: bindparam(name) for name in COLUMNS[1:]}), (*COLUMNS[1:], "key")
)
_INSERT = Prepared(insert(pool_site), (*COLUMNS[1:], "name"))
_TALLIES = Prepared(
    select(pool_tally.c.requests, pool_tally.c.failures, pool_tally.c.limited)
    .where(pool_tally.c.bucket_us > bindparam("since"))
    .order_by(pool_tally.c.bucket_us.desc()),
    ("since",),
)
_COUNT = PerDialect(
    lambda dialect: upsert(dialect, pool_tally, ["bucket_us"], add=["requests", "failures", "limited"]),
    ("bucket_us", "requests", "failures", "limited"),
)
_FORGET = Prepared(delete(pool_tally).where(pool_tally.c.bucket_us <= bindparam("upto")), ("upto",))


@dataclass(slots=True)
class Site:
    pool: Breaker
    site: Breaker
    last_us: int = 0
    in_flight: int = 0
    uses: int = 0
    paused_until_us: int = 0
    patience: list[tuple[int, int, int]] = field(default_factory=list)
    """(agent, when, until when) of those lately asked for patience, each once, the latest last."""
    available: int = 0
    suspended: int = 0
    blocked: int = 0
    by_hand: int = 0
    revision: int = 0
    event: int = 0
    is_proven: bool = False
    leads: bool = True
    """Nobody said that another engine does."""

    @classmethod
    def empty(cls, limits: Limits) -> "Site":
        return cls(_breaker(BreakerScope.POOL, limits), _breaker(BreakerScope.SITE, limits))

    @classmethod
    def read(cls, connection: Connection, name: str, limits: Limits, *, locks: bool) -> "Site | None":
        """None: nobody ever loaded this pool."""
        rows = (_LOCK if locks else _READ).rows(connection, (name,))
        if not rows:
            return None
        row = rows[0]
        site = cls(_breaker(BreakerScope.POOL, limits, row[12:19]), _breaker(BreakerScope.SITE, limits, row[19:26]))
        site.last_us, site.in_flight, site.uses, site.paused_until_us = row[:4]
        site.patience = [(agent_id, at_us, until_us) for agent_id, at_us, until_us in json.loads(row[4])]
        site.available, site.suspended, site.blocked, site.by_hand, site.revision, site.event = row[5:11]
        site.is_proven = bool(row[11])
        engine, phase = row[_WIDTH:]
        site.leads = engine is None or (engine == Engine.SQL and phase == Phase.LEADING)
        return site

    def appear(self, connection: Connection, name: str) -> None:
        try:
            _INSERT.run(connection, (*self._row(), name))
        except Exception as error:
            if says_twice(error):
                raise Overtaken(f"others began the pool {name!r} while we looked") from error
            raise

    def save(self, connection: Connection, name: str) -> None:
        _SAVE.run(connection, (*self._row(), name))

    def _row(self) -> Row:
        row = (self.last_us, self.in_flight, self.uses, self.paused_until_us, json.dumps(self.patience))
        counts = (self.available, self.suspended, self.blocked, self.by_hand, self.revision, self.event)
        breakers = (*_columns(self.pool), *_columns(self.site))
        return (*row, *counts, self.is_proven, *breakers)

    @property
    def breakers(self) -> tuple[Breaker, Breaker]:
        return self.pool, self.site

    def is_above_minimum(self, limits: Limits) -> bool:
        """Whether enough identities are available, of all that no person blocked."""
        counted = self.available + self.suspended + self.blocked - self.by_hand
        return counted > 0 and self.available * 100 >= counted * limits.min_available_percent

    def spares(self, leased_us: int) -> bool:
        """Whether what failed was asked while the site was failing everybody."""
        closed_us = us(self.site.closed_at)
        return self.site.state is not BreakerState.CLOSED or (closed_us is not None and leased_us < closed_us)

    def pause(self, agent_id: int, now_us: int, until_us: int) -> None:
        """One identity was asked for patience; several within a minute speak for the site."""
        recent = [each for each in self.patience if each[1] > now_us - MINUTE and each[0] != agent_id]
        self.patience = [*recent, (agent_id, now_us, until_us)][-PATIENCE_KEPT:]
        if len(self.patience) >= PATIENT_IDENTITIES:
            self.paused_until_us = max(self.paused_until_us, *(until for _, _, until in self.patience))


def count_requests(connection: Connection, now_us: int, requests: int, failures: int, limited: int) -> None:
    _FORGET.run(connection, (now_us - MINUTE - BUCKET,))
    _COUNT.on(connection.dialect.name).run(connection, (now_us - now_us % BUCKET, requests, failures, limited))


def forget_requests(connection: Connection, now_us: int) -> None:
    """The breaker closed: what led to its opening is not counted a second time."""
    _FORGET.run(connection, (now_us,))


def trouble(connection: Connection, now_us: int, limits: Limits) -> tuple[int, str] | None:
    """How many of the last minute's requests failed, and how: when that is too large a share of enough requests, be it of
    the latest ones only. A site that fails all of a sudden is not the better for having been well before."""
    tallies = _TALLIES.rows(connection, (now_us - MINUTE,))
    requests = failures = limited = 0
    for number, each in enumerate(tallies, 1):
        requests, failures, limited = requests + each[0], failures + each[1], limited + each[2]
        if requests < REQUESTS_MIN:
            continue
        for count, what in ((failures, "failed"), (limited, "answered 429")):
            if count * 100 > requests * limits.site_failure_percent:
                of = (
                    f"{requests} requests of the last minute"
                    if number == len(tallies)
                    else f"the last {requests} requests"
                )
                return count, f"{count} of {of} {what}"
    return None


def _breaker(scope: BreakerScope, limits: Limits, row: Row = ("CLOSED", 0, None, None, None, None, None)) -> Breaker:
    state, failures, opened_us, half_open_us, closed_us, trial_id, trial_until_us = row
    return Breaker(
        scope,
        # These two are tripped by a share, not by failures in a row.
        REQUESTS_MIN,
        timedelta(seconds=limits.breaker_open_seconds),
        None,
        BreakerState(state),
        failures,
        moment(opened_us),
        moment(half_open_us),
        moment(closed_us),
        trial_id,
        moment(trial_until_us),
    )


def _columns(breaker: Breaker) -> Row:
    return (
        breaker.state.value,
        breaker.failure_count,
        us(breaker.opened_at),
        us(breaker.half_open_at),
        us(breaker.closed_at),
        breaker.trial_id,
        us(breaker.trial_until),
    )
