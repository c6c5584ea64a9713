-- PURPOSE refuse, where no ledger is held that was ever told to lead: what was lost is not to be taken for what is so.
-- KEYS    none
-- ARGV    none
-- RETURNS an error AWAY
-- ATOMIC  what follows is of a ledger that is whole, or it does not follow.
-- COST    O(1).
if leads == 0 then return redis.error_reply('AWAY no ledger that leads is held here') end
