-- PURPOSE end the beginning: what stands above the identities, and which server holds this ledger.
-- USES    prelude head members breakers
-- KEYS    leader
-- ARGV
--   [3]  epoch       under which it begins
--   [4]  above       JSON: fields of the head: both breakers, the site's pause
--   [5]  server      which one it is, and what it has thrown away so far
-- RETURNS 1; 0 when it is not the ledger of this epoch
-- ATOMIC  the pool is judged with what was remembered of it.
-- COST    O(1).
if call('HGET', LEADER, 'epoch') ~= ARGV[3] then return 0 end
for field, value in pairs(cjson.decode(ARGV[4])) do put(field, value) end
-- One without members is judged when they come.
if judged() > 0 then look_at_rate() end
call('HSET', LEADER, 'isComplete', '1', 'server', ARGV[5])
finish()
return 1
