-- PURPOSE why not one more can be lent, and when that may be over.
-- KEYS    available bare leased recovering rate agent
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  the answer is true of the moment at which nothing could be given.
-- COST    O(log n).
local RANKS = { EMPTY = 1, CIRCUIT_OPEN = 2, SUSPENDED = 3, PAUSED = 4, SPENT = 5, SITE_RATE = 6, SITE_BUSY = 7, BUSY = 8 }

local function first_of(key)
    local found = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    return found[1], tonumber(found[2])
end

local function earlier(one, other)
    return one and other and math.min(one, other) or one or other
end

-- When the one that is free first is so, and until when that one is paused; of two alike, the one paused for less.
local function first_free()
    local due, paused
    for _, key in ipairs({ AVAILABLE, BARE }) do
        local id, at = first_of(key)
        if id and (not due or at <= due) then
            local till = tonumber(call('HGET', AGENT .. id, 'pausedUntil') or nil) or 0
            if not due or at < due or till < paused then due, paused = at, till end
        end
    end
    return due, paused
end

-- The most lasting reason, and when all of them may be over: -1 when only a person can help. No reason: one can be lent.
-- `holds` are {why, until} of what stands above: breakers and the pause of the site.
local function what_holds(available, suspended, holds)
    if now >= leads then return 'AWAY', now + 1000000 end
    if LIMIT <= 0 or available + suspended == 0 then return 'EMPTY', -1 end
    if rate_room(1) == 0 then
        local holding = RATE_LIMIT > 0 and call('LINDEX', RATE, -RATE_LIMIT)
        holds[#holds + 1] = { 'SITE_RATE', holding and holding + RATE_WINDOW }
    end
    local _, lent = first_of(LEASED)
    if call('ZCARD', LEASED) >= CONCURRENCY then holds[#holds + 1] = { 'SITE_BUSY', lent } end
    local due, paused = first_free()
    if not due or due > now then
        local _, recovers = first_of(RECOVERING)
        -- Recovering is the sweep's: who is due by now may be back any moment, not at a moment that has passed.
        if recovers then recovers = math.max(recovers, now + 1000000) end
        local why, till = 'BUSY', earlier(recovers, earlier(due, lent))
        if available == 0 then
            why, till = 'SUSPENDED', recovers or till
        elseif due then
            why = paused >= due and 'PAUSED' or 'SPENT'
        end
        holds[#holds + 1] = { why, till }
    end
    local why, last = '', 0
    for _, each in ipairs(holds) do
        if why == '' or RANKS[each[1]] < RANKS[why] then why = each[1] end
        if last then last = each[2] and math.max(last, each[2]) end
    end
    return why, why ~= '' and last or -1
end

-- The same for whoever was given fewer than he asked for: nothing holds, but those in front had lost what is known of
-- them and are put back; the next ones are looked at when he asks again.
local function what_held(why, till)
    if why == '' then return 'SPENT', now + 1000 end
    return why, till
end
