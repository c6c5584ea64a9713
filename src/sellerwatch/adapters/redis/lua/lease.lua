-- PURPOSE lend up to so many identities (or this one), each the right to one request; or say why not and until when.
-- USES    prelude members breakers holds
-- KEYS    available bare leased breaker rate changed agent
-- ARGV
--   [3]  agent       lend this identity only; empty: whoever has been free longest, those with a token first
--   [4]  wanted      how many
--   [5]  ids         from here on the ids of the leases, as many as can be given at most
-- RETURNS {now, why or '', until or -1, then for each lease: identity, face, 1 if it is a trial}
-- ATOMIC  budget, interval, ceiling, concurrency and breakers are looked at and taken in one step: else two callers
--         would both take the last one.
-- COST    O(k log n) for k leases of n identities, fresh or spent.
local only, wanted = ARGV[3], tonumber(ARGV[4])
local deadline = now + LEASE_FOR
local given, going = {}, {}

local function spend(id, even)
    local window = window_of(id)
    local first = 1
    while first <= #window / 6 and moment_in(window, first) <= now - REACH do first = first + 1 end
    window = window:sub(first * 6 - 5) .. struct.pack('>I6', now % 281474976710656)
    call('SET', AGENT .. id .. ':window', window)
    if IS_PACED == 1 then
        even = even == 0 and now or math.max(even, now - REACH)
        even = even + PACE
    end
    return window, even
end

local function try(id, lease_id)
    local is_trial = false
    local state = call('HGET', AGENT .. id, 'breakerState')
    if state and state ~= 'CLOSED' then
        local member = read(id)
        begin_trial(breaker_of(member), lease_id, deadline)
        write_fields(member)
        is_trial = true
    end
    for _, it in ipairs({ pool, site }) do
        if it.state ~= 'CLOSED' then
            begin_trial(it, lease_id, deadline)
            is_trial = true
        end
    end
    return is_trial
end

local function give(id, from)
    local lease_id, key = ARGV[5 + #going / 2], AGENT .. id
    local known = call('HMGET', key, 'nextFreeAt', 'evenAt')
    local window, even = spend(id, tonumber(known[2]) or 0)
    local start = moment_in(window, 1)
    call('HSET', key, 'leaseId', lease_id, 'leasedAt', now, 'leasedUntil', deadline, 'freeBefore', known[1] or '0',
        'nextFreeAt', next_free(window, even), 'remaining', math.max(0, LIMIT - #window / 6), 'windowStart', start,
        'windowEnd', start + REACH)
    if IS_PACED == 1 then call('HSET', key, 'evenAt', even) end
    local is_trial = try(id, lease_id)
    call('ZREM', from, id)
    call('ZADD', LEASED, deadline, id)
    put('revision', head_number('revision') + 1)
    call('ZADD', CHANGED, head.revision, id)
    going[#going + 1] = now
    going[#going + 1] = lease_id
    given[#given + 1] = id
    given[#given + 1] = call('GET', key .. ':face')
    given[#given + 1] = is_trial and 1 or 0
end

take_back()
local left = room(wanted)
for _, from in ipairs({ AVAILABLE, BARE }) do
    if left > 0 then
        local ids
        if only == '' then
            ids = call('ZRANGEBYSCORE', from, '-inf', now, 'LIMIT', 0, left)
        else
            local due = tonumber(call('ZSCORE', from, only) or nil)
            ids = due and due <= now and { only } or {}
        end
        for _, id in ipairs(ids) do give(id, from) end
        left = left - #ids
    end
end
if #going > 0 then
    call('ZREMRANGEBYSCORE', RATE, '-inf', now - RATE_WINDOW)
    call('ZADD', RATE, unpack(going))
end
put('lastAt', now)
local why, till = '', -1
if #going / 2 < wanted and only == '' then why, till = what_holds() end
finish()
return { now, why, till, unpack(given) }
