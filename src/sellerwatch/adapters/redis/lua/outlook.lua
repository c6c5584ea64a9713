-- PURPOSE how many could be lent now, and else why not and from when; nothing is lent.
-- USES    prelude ceiling holds head members breakers gates
-- KEYS    available bare
-- ARGV    none
-- RETURNS {free, why or '', until or -1}
-- ATOMIC  leases past their deadline are taken back first, and all is looked at in one moment.
-- COST    O(log n).
if take_back() > 0 then finish() end
local why, till = what_holds_now()
if why ~= '' then return { 0, why, till } end
local most = room(CONCURRENCY)
local free = call('ZCOUNT', AVAILABLE, '-inf', now_text) + call('ZCOUNT', BARE, '-inf', now_text)
return { math.min(most, free), '', -1 }
