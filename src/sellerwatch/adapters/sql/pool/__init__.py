"""The identity pool in the database: one small ledger, one short transaction per call.

    engine ── lend · settle · members · views · ledger ── turn ── site · identities · window

`engine.SqlPool` is the door. A call is a `turn`: the site's row is read and locked, identities are found by an index
on (standing, due), moved by the verbs of the domain, and written back together with what the record must be told.
"""

from sellerwatch.adapters.sql.pool.engine import SqlPool

__all__ = ["SqlPool"]
