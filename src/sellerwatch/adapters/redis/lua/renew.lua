-- PURPOSE lead until some moment; or lend nothing from now on, until a ledger has begun anew.
-- USES    prelude
-- KEYS    leader
-- ARGV
--   [3]  epoch       whose complete ledger this must be; empty: lead no more
--   [4]  until       microseconds since 1970, by this server's time
-- RETURNS 1; 0 when it does not hold that ledger
-- ATOMIC  what is late for an older epoch changes nothing.
-- COST    O(1).
if ARGV[3] == '' then
    call('DEL', LEADER)
    leads, quiet = 0, 0
    keep_site()
    return 1
end
local its = call('HMGET', LEADER, 'epoch', 'isComplete')
if its[1] ~= ARGV[3] or not its[2] then return 0 end
leads = tonumber(ARGV[4])
keep_site()
return 1
