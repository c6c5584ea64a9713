"""The marketplace's robots.txt as it was told last, shared by every process."""

from sqlalchemy import bindparam, select

from sellerwatch.adapters.sql.dialect import upsert
from sellerwatch.adapters.sql.prepared import Prepared
from sellerwatch.adapters.sql.session import PerDialect, Session, cut
from sellerwatch.adapters.sql.tables import robots
from sellerwatch.domain.robots import RobotsFile

_COLUMNS = ("next_at", "text", "told_at", "failures", "problem", "claimed_by", "claimed_until")
_row = select(*(robots.c[name] for name in _COLUMNS)).where(robots.c.origin == bindparam("of"))
_GET = Prepared(_row, ("of",))
_LOCK = Prepared(_row.with_for_update(), ("of",))
_SAVE = PerDialect(lambda dialect: upsert(dialect, robots, ["origin"], _COLUMNS), ("origin", *_COLUMNS))


class RobotsKept:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, origin: str) -> RobotsFile | None:
        return self._found(_GET, origin)

    def lock(self, origin: str) -> RobotsFile | None:
        return self._found(_LOCK, origin)

    def save(self, file: RobotsFile) -> None:
        to_db, columns = self._session.to_db, robots.c
        known = (to_db(file.next_at), file.text, to_db(file.told_at), file.failures, cut(file.problem, columns.problem))
        claim = (cut(file.claimed_by, columns.claimed_by), to_db(file.claimed_until))
        self._session.run(_SAVE, (file.origin, *known, *claim))

    def _found(self, statement: Prepared, origin: str) -> RobotsFile | None:
        row = self._session.first(statement, (origin,))
        if row is None:
            return None
        next_at, text, told_at, failures, problem, claimed_by, claimed_until = row
        moment = self._session.from_db_or_none
        return RobotsFile(
            origin,
            self._session.from_db(next_at),
            text,
            moment(told_at),
            failures,
            problem,
            claimed_by,
            moment(claimed_until),
        )
