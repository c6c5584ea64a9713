"""The queue's statements: what each may see and change of `queue_messages`, prepared for the driver.

Names of parameters are those of the rows that come. A state stands in its statement as a literal, so that nothing is
bound for it and the order of the claim's index (queue, state, visible_at, message_id) is plain to every planner.
"""

from typing import Any

from sqlalchemy import Integer, bindparam, delete, func, literal_column, select, update

from sellerwatch.adapters.sql.dialect import skip_locked
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.tables import queue_messages as m

BATCH = 1000
"""How many are forgotten in one transaction."""


def _of(state: str) -> Any:
    """Rows of this queue in that state; the state stands in the statement, so that nothing is bound for it."""
    return (m.c.queue == bindparam("name")) & (m.c.state == literal_column(f"'{state}'"))


_earlier = m.alias("earlier")
# Not "no earlier one is there": MySQL would read the whole group to see that.
_is_first = m.c.message_id == (
    select(_earlier.c.message_id)
    .where(
        _earlier.c.queue == m.c.queue,
        _earlier.c.state == literal_column("'READY'"),
        _earlier.c.message_group == m.c.message_group,
    )
    .order_by(_earlier.c.message_id)
    .limit(literal_column("1"))
    .correlate(m)
    .scalar_subquery()
)
_free = (
    select(m.c.message_id, m.c.message_group, m.c.body, m.c.attributes, m.c.receives)
    .where(_of("READY"), m.c.visible_at <= bindparam("now"), _is_first)
    .order_by(m.c.visible_at, m.c.message_id)
    .limit(bindparam("count", type_=Integer()))
)
FREE = Prepared(_free, ("name", "now", "count"))
TAKE = Prepared(skip_locked(_free), ("name", "now", "count"))
"""Those of FREE that nobody else is about to take."""
NEXT_VISIBLE = Prepared(
    select(func.min(m.c.visible_at)).where(_of("READY"), m.c.visible_at > bindparam("now")), ("name", "now")
)
CLAIM = PreparedIn(
    lambda ids: (
        update(m)
        .where(m.c.message_id.in_(ids), m.c.state == literal_column("'READY'"), m.c.visible_at <= bindparam("now"))
        .values(receipt=bindparam("claim"), visible_at=bindparam("until"), receives=m.c.receives + literal_column("1"))
    ),
    ("now", "claim", "until"),
)
CLAIMED = PreparedIn(
    lambda ids: select(m.c.message_id).where(m.c.message_id.in_(ids), m.c.receipt == bindparam("claim")), ("claim",)
)
KNOWN = PreparedIn(
    lambda ids: select(m.c.dedup_id, m.c.message_id, m.c.state, m.c.sent_at).where(
        m.c.queue == bindparam("name"), m.c.dedup_id.in_(ids)
    ),
    ("name",),
)
DROP = PreparedIn(lambda ids: delete(m).where(m.c.message_id.in_(ids)))
RENAME = Prepared(
    update(m).where(m.c.message_id == bindparam("id")).values(dedup_id=bindparam("dedup")), ("dedup", "id")
)
INSERTED = (
    "queue",
    "message_group",
    "dedup_id",
    "body",
    "attributes",
    "state",
    "receives",
    "visible_at",
    "sent_at",
)

# What the holder of a receipt may do; `now` is compared with the end of the claim, or written.
_held = (
    (m.c.message_id == bindparam("id"))
    & (m.c.receipt == bindparam("claim"))
    & (m.c.state == literal_column("'READY'"))
    & (m.c.visible_at > bindparam("now"))
)
_ended: dict[str, Any] = {"done_at": bindparam("now"), "visible_at": bindparam("now")}
ACK = Prepared(update(m).where(_held).values(state=literal_column("'DONE'"), **_ended), ("now", "id", "claim"))
LATER = Prepared(
    update(m).where(_held).values(receipt=literal_column("NULL"), visible_at=bindparam("at")),
    ("now", "at", "id", "claim"),
)
EXTEND = Prepared(update(m).where(_held).values(visible_at=bindparam("until")), ("now", "until", "id", "claim"))
GIVE_BACK = Prepared(
    update(m)
    .where(_held)
    .values(
        # As if it had never been received: it gets its place in the order back, too.
        receipt=literal_column("NULL"),
        visible_at=m.c.sent_at,
        receives=m.c.receives - literal_column("1"),
    ),
    ("now", "id", "claim"),
)
BURY_HELD = Prepared(
    update(m).where(_held).values(state=literal_column("'DEAD'"), error=bindparam("why"), **_ended),
    ("now", "why", "id", "claim"),
)
BURY_FREE = Prepared(
    update(m)
    .where(
        m.c.message_id == bindparam("id"),
        m.c.state == literal_column("'READY'"),
        m.c.visible_at <= bindparam("now"),
    )
    .values(state=literal_column("'DEAD'"), error=bindparam("why"), **_ended),
    ("now", "why", "id"),
)
# A task's messages are known by their deduplication ids, `outbox-{taskId}-{n}`: '.' follows '-'.
WAITS = Prepared(
    select(m.c.message_id)
    .where(_of("READY"), m.c.dedup_id >= bindparam("first"), m.c.dedup_id < bindparam("last"))
    .limit(literal_column("1")),
    ("name", "first", "last"),
)
FORGOTTEN = Prepared(
    select(m.c.message_id)
    .where(_of("DONE"), m.c.visible_at < bindparam("before"))
    .order_by(m.c.visible_at)
    .limit(literal_column(str(BATCH))),
    ("name", "before"),
)
COUNT = Prepared(select(func.count()).select_from(m).where(_of("READY")), ("name",))
COUNT_DEAD = Prepared(select(func.count()).select_from(m).where(_of("DEAD")), ("name",))
COUNT_OUT = Prepared(
    select(func.count())
    .select_from(m)
    .where(_of("READY"), m.c.visible_at > bindparam("now"), m.c.receipt.is_not(None)),
    ("name", "now"),
)
OLDEST = Prepared(
    select(m.c.sent_at).where(_of("READY")).order_by(m.c.visible_at, m.c.message_id).limit(literal_column("1")),
    ("name",),
)
LETTERS = Prepared(
    select(m.c.message_id, m.c.body, m.c.message_group, m.c.receives, m.c.sent_at, m.c.error)
    .where(_of("DEAD"))
    .order_by(m.c.visible_at, m.c.message_id)
    .limit(bindparam("count", type_=Integer())),
    ("name", "count"),
)
DEAD = PreparedIn(
    lambda ids: (
        select(m.c.message_id, m.c.message_group, m.c.dedup_id, m.c.body, m.c.attributes)
        .where(_of("DEAD"), m.c.message_id.in_(ids))
        .order_by(m.c.message_id)
    ),
    ("name",),
)
