-- PURPOSE forget the whole ledger, a piece at a time, and lend nothing: another one begins under this epoch.
-- USES    prelude head
-- KEYS    available bare leased suspended recovering breaker rate tally patience health changed expiring events leader agent
-- ARGV
--   [3]  epoch       under which it begins anew
-- RETURNS how many were forgotten, five hundred at most: a full five hundred means ask again; -1 when a later epoch began
-- ATOMIC  from the first piece on nothing is lent, and what is late for an older epoch changes nothing.
-- COST    O(k log n) for a piece of k.
local epoch = tonumber(ARGV[3])
if (tonumber(call('HGET', LEADER, 'epoch') or nil) or 0) > epoch then return -1 end
call('DEL', LEADER)
call('HSET', LEADER, 'epoch', number_text(epoch))
leads = 0
local ids = call('ZRANGE', CHANGED, 0, 499)
for _, id in ipairs(ids) do
    for _, tail in ipairs({ '', ':window', ':face' }) do call('DEL', AGENT .. id .. tail) end
    call('ZREM', CHANGED, id)
end
if #ids < 500 then
    local events = head_number('event')
    for _, key in ipairs({ AVAILABLE, BARE, LEASED, SUSPENDED, RECOVERING, BREAKER, RATE, TALLY, PATIENCE, HEALTH,
        CHANGED, EXPIRING, EVENTS }) do
        call('DEL', key)
    end
    head = {}
    -- Above all that went before, in any engine.
    revision = math.max(revision, epoch * 4294967296)
    put('event', math.max(events, epoch * 4294967296))
end
finish()
return #ids
