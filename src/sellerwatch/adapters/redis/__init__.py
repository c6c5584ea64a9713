"""The identity pool in Redis, and locks beside it: every operation is one script that runs alone.

    pool ── scripts ── lua/*.lua
         ── packing
         ── trips
    locks ── scripts ── lua/locks/*.lua

`pool.RedisPool` is the door. The rules are written in Lua, for they must be applied where the ledger is; they are the
rules of `domain.identities` and `domain.breakers`, and one contract suite holds both engines to them.
"""

from sellerwatch.adapters.redis.pool import RedisPool

__all__ = ["RedisPool"]
