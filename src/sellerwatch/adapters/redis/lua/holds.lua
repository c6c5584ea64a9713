-- PURPOSE how many the site lets out now; and why not one more can be lent, and when that may be over.
-- KEYS    available bare leased recovering rate agent
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  the answer is true of the moment at which nothing could be given.
-- COST    O(log n).
local RANKS = { EMPTY = 1, CIRCUIT_OPEN = 2, SUSPENDED = 3, PAUSED = 4, SPENT = 5, SITE_RATE = 6, SITE_BUSY = 7, BUSY = 8 }

local function rate_room()
    return math.max(0, RATE_LIMIT - call('ZCOUNT', RATE, '(' .. number_text(now - RATE_WINDOW), '+inf'))
end

local function room(wanted)
    if LIMIT <= 0 or head_number('pausedUntil') > now then return 0 end
    for _, it in ipairs({ pool, site }) do
        if not admits(it) then return 0 end
        if it.state ~= 'CLOSED' then wanted = math.min(wanted, 1) end
    end
    wanted = math.min(wanted, CONCURRENCY - call('ZCARD', LEASED))
    if wanted <= 0 then return 0 end
    return math.min(wanted, rate_room())
end

local function first_of(key)
    local found = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    return found[1], tonumber(found[2])
end

local function hold(holds, why, till)
    holds[#holds + 1] = { why = why, till = till }
end

-- {due, paused until} of the one that is free first: with equal moments the one that is paused for less.
local function first_free()
    local best
    for _, key in ipairs({ AVAILABLE, BARE }) do
        local id, due = first_of(key)
        if id and (not best or due <= best.due) then
            local paused = tonumber(call('HGET', AGENT .. id, 'pausedUntil')) or 0
            if not best or due < best.due or paused < best.paused then best = { due = due, paused = paused } end
        end
    end
    return best
end

local function hold_by_identities(holds)
    local _, lent = first_of(LEASED)
    if call('ZCARD', LEASED) >= CONCURRENCY then hold(holds, 'SITE_BUSY', lent) end
    local free = first_free()
    if free and free.due <= now then return end
    local _, recovers = first_of(RECOVERING)
    -- Recovering is the sweep's: who is due by now may be back any moment, not at a moment that has passed.
    if recovers then recovers = math.max(recovers, now + 1000000) end
    if head_number('available') == 0 then
        local till = recovers
        for _, other in pairs({ free and free.due or false, lent or false }) do
            if not recovers and other then till = math.min(till or other, other) end
        end
        return hold(holds, 'SUSPENDED', till)
    end
    local till = recovers
    for _, other in pairs({ free and free.due or false, lent or false }) do
        if other then till = math.min(till or other, other) end
    end
    if not free then return hold(holds, 'BUSY', till) end
    hold(holds, free.paused >= free.due and 'PAUSED' or 'SPENT', till)
end

-- The most lasting reason, and when all of them may be over: -1 when only a person can help. No reason: one can be lent.
local function what_holds()
    if LIMIT <= 0 or head_number('available') + head_number('suspended') == 0 then return 'EMPTY', -1 end
    local holds = {}
    for _, it in ipairs({ pool, site }) do
        if not admits(it) then hold(holds, 'CIRCUIT_OPEN', retry_at(it)) end
    end
    if head_number('pausedUntil') > now then hold(holds, 'PAUSED', head_number('pausedUntil')) end
    if rate_room() == 0 then
        local holding = RATE_LIMIT > 0 and call('ZREVRANGE', RATE, RATE_LIMIT - 1, RATE_LIMIT - 1, 'WITHSCORES')[2]
        hold(holds, 'SITE_RATE', holding and holding + RATE_WINDOW or nil)
    end
    hold_by_identities(holds)
    local why, till
    for _, each in ipairs(holds) do
        if not why or RANKS[each.why] < RANKS[why] then why = each.why end
        if not each.till then till = -1 elseif till ~= -1 then till = math.max(till or 0, each.till) end
    end
    return why or '', till or -1
end
