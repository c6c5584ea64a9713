-- PURPOSE the head: what stands above the identities, read whole, written back as far as it changed.
-- KEYS    breaker
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  counts and breakers follow from what the script does to identities, in the same step.
-- COST    O(1).
local head, head_moved = {}, {}
do
    local flat = call('HGETALL', BREAKER)
    for i = 1, #flat, 2 do head[flat[i]] = flat[i + 1] end
end

local function head_number(field)
    return tonumber(head[field]) or 0
end

local function put(field, value)
    head[field] = value
    head_moved[field] = true
end

local function finish()
    local flat = {}
    for field in pairs(head_moved) do
        flat[#flat + 1] = field
        flat[#flat + 1] = head[field]
    end
    if #flat > 0 then
        call('HSET', BREAKER, unpack(flat))
        -- It may no longer be quiet; the next lease looks.
        quiet = 0
    end
    keep_site()
end
