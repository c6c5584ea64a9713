-- PURPOSE what this ledger is: its time, its epoch, and which server began it.
-- USES    prelude
-- KEYS    leader
-- ARGV    none
-- RETURNS {now, epoch or '' while it is not complete, server}
-- ATOMIC  it only reads.
-- COST    O(1).
local its = call('HMGET', LEADER, 'epoch', 'isComplete', 'server')
return { now, its[2] and its[1] or '', its[3] or '' }
