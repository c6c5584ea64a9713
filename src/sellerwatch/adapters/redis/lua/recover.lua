-- PURPOSE bring back those whose rest is over.
-- USES    prelude held head members breakers
-- KEYS    recovering
-- ARGV    none
-- RETURNS their ids, five hundred at most: a full five hundred means ask again
-- ATOMIC  they come back and are counted in one step, and the pool's breaker is looked at once.
-- COST    O(k log n) for k identities.
local ids = call('ZRANGEBYSCORE', RECOVERING, '-inf', now_text, 'LIMIT', 0, 500)
for _, id in ipairs(ids) do
    local member = read(id)
    come_back(member)
    save(member)
    tell('RECOVERED', 'its rest is over', id)
end
if #ids > 0 then
    look_at_rate()
    finish()
end
return ids
