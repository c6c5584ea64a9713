-- PURPOSE say why nobody is left, while all is quiet.
-- KEYS    breaker
-- ARGV    none
-- RETURNS as lease.lua
-- ATOMIC  it is a part of `lease`.
-- COST    O(log n).
if is_done then
    keep_site()
    local counts = call('HMGET', BREAKER, 'available', 'suspended')
    local why, till = what_held(what_holds(tonumber(counts[1] or 0), tonumber(counts[2] or 0), {}))
    return { now, why, till, given }
end
