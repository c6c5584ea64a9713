-- PURPOSE about how many leases can be given within so long from now: by the rate, the concurrency and the budgets.
-- USES    prelude windows ceiling holds head members breakers gates budgets
-- KEYS    available bare
-- ARGV
--   [3]  span        microseconds
-- RETURNS how many
-- ATOMIC  it only reads.
-- COST    O(log n) and at most 250 windows.
if now >= leads or LIMIT <= 0 then return 0 end
local till, begin = now + tonumber(ARGV[3]), math.max(now, head_number('pausedUntil'))
if begin > till then return 0 end
if state_of(pool) ~= 'CLOSED' or state_of(site) ~= 'CLOSED' then
    -- One at a time, until the trial has shown more.
    if what_holds_now() ~= '' or room(1) < 1 then return 0 end
    return math.min(1, call('ZCOUNT', AVAILABLE, '-inf', now_text) + call('ZCOUNT', BARE, '-inf', now_text))
end
local seconds = (till - begin) / 1000000
local rate = math.max(0, math.floor(RATE_A_SECOND * seconds))
-- A request takes a tenth of a second at the least.
local through = math.max(0, math.floor(CONCURRENCY * math.max(1, seconds / 0.1)))
local interval = math.max(1, INTERVAL)
if IS_PACED == 1 then interval = math.max(interval, PACE) end
return math.min(rate, through, budgets(begin, till, interval))
