-- PURPOSE what stands above the identities: how many the site lets out now, and what holds them up there.
-- KEYS    leased
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  it only reads.
-- COST    O(1).
local function room(wanted)
    if now >= leads or LIMIT <= 0 or head_number('pausedUntil') > now then return 0 end
    for _, it in ipairs({ pool, site }) do
        if not admits(it) then return 0 end
        if state_of(it) ~= 'CLOSED' then wanted = math.min(wanted, 1) end
    end
    wanted = math.min(wanted, CONCURRENCY - call('ZCARD', LEASED))
    if wanted <= 0 then return 0 end
    return math.min(wanted, rate_room(wanted))
end

local function what_holds_now()
    local holds = {}
    for _, it in ipairs({ pool, site }) do
        if not admits(it) then holds[#holds + 1] = { 'CIRCUIT_OPEN', retry_at(it) } end
    end
    local paused = head_number('pausedUntil')
    if paused > now then holds[#holds + 1] = { 'PAUSED', paused } end
    return what_holds(head_number('available'), head_number('suspended'), holds)
end
