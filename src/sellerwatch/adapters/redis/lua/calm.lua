-- PURPOSE lend while nothing is out of the ordinary: no breaker open, no lease overdue, no pause. That is nearly always,
--         and then the script ends here, before the parts are made that it does not need.
-- KEYS    available bare leased rate agent
-- ARGV
--   [3]  agent       lend this identity only; empty: whoever has been free longest, those with a token first
--   [4]  wanted      how many
--   [5]  ids         from here on the ids of the leases, as many as can be given at most
-- RETURNS {now, why or '', until or -1, {for each lease: identity, face, 1 if it is a trial}}
-- ATOMIC  it is a part of `lease`.
-- COST    O(k log n) for k leases of n identities, fresh or spent.
local only, wanted = ARGV[3], tonumber(ARGV[4])
local deadline = number_text(now + LEASE_FOR)
local given, going, is_done = {}, 0, false
-- So many at most are moved by one command: Lua hands over no more than a few thousand words.
local AT_ONCE = 1000
-- Whether a lease is a trial: `lease.lua` knows. Without it, who needs one is left to it.
local try

local function give(id, from)
    local key, lease_id = AGENT .. id, ARGV[5 + going]
    local its = call('HMGET', key, 'nextFreeAt', 'lastUsedAt', 'breakerState', 'status')
    if its[3] and not try then return false end
    local shown = call('MGET', key .. ':face', key .. ':window')
    local face, window = shown[1], shown[2] or ''
    if not face or not its[4] or is_lost(window, its[2]) then
        -- Without a face or a status it is nobody.
        call('ZREM', from, id)
        if face and its[4] then
            call('ZADD', from, number_text(now + REACH), id)
            call('SET', key .. ':window', all_spent())
            call('HSET', key, 'nextFreeAt', number_text(now + REACH), 'remaining', '0')
        end
        return true
    end
    local is_trial = try and try(id, lease_id)
    local start, kept, count = now, 1, #window / 6
    while kept <= count do
        start = moment_in(window, kept)
        if start > now - REACH then break end
        start, kept = now, kept + 1
    end
    window = window:sub(kept * 6 - 5) .. struct.pack('>I6', now % 281474976710656)
    count = #window / 6
    local oldest, even = nil, 0
    if count >= LIMIT then oldest = count == LIMIT and start or moment_in(window, count - LIMIT + 1) end
    if IS_PACED == 1 then
        even = tonumber(call('HGET', key, 'evenAt') or 0)
        even = PACE + (even == 0 and now or math.max(even, now - REACH))
        call('HSET', key, 'evenAt', number_text(even))
    end
    call('SET', key .. ':window', window)
    -- Until it is over, its revision is in the lease: `standings.lua` looks there.
    revision = revision + 1
    call('HSET', key, 'lease', struct.pack('>I7I7I7I7', now, now + LEASE_FOR, its[1] or 0, revision) .. lease_id,
        'nextFreeAt', number_text(next_free(now, oldest, even)), 'remaining', LIMIT > count and LIMIT - count or '0',
        'windowStart', number_text(start), 'windowEnd', number_text(start + REACH))
    going = going + 1
    given[going * 3 - 2], given[going * 3 - 1], given[going * 3] = id, face, is_trial and 1 or 0
    return true
end

-- Those given after the first `before` are lent now, and count under the site's ceiling.
local function move(from, before)
    while before < going do
        local ids, leased, moments = {}, {}, {}
        for number = 1, math.min(going - before, AT_ONCE) do
            ids[number] = given[(before + number) * 3 - 2]
            leased[number * 2 - 1], leased[number * 2], moments[number] = deadline, ids[number], now_text
        end
        call('ZREM', from, unpack(ids))
        call('ZADD', LEASED, unpack(leased))
        call('RPUSH', RATE, unpack(moments))
        before = before + #ids
    end
end

-- As many as are free, up to `left`; whether all of them were given.
local function give_from(left)
    for _, from in ipairs({ AVAILABLE, BARE }) do
        if left <= 0 then break end
        local ids, before, is_whole = nil, going, true
        if only == '' then
            ids = call('ZRANGEBYSCORE', from, '-inf', now_text, 'LIMIT', '0', left)
        else
            local due = tonumber(call('ZSCORE', from, only) or nil)
            ids = due and due <= now and { only } or {}
        end
        for _, id in ipairs(ids) do
            is_whole = give(id, from)
            if not is_whole then break end
        end
        move(from, before)
        if not is_whole then return false end
        left = left - #ids
    end
    return true
end

if now >= leads then return { now, 'AWAY', now + 1000000, {} } end
if now < quiet and LIMIT > 0 then
    local left = math.min(wanted, CONCURRENCY - call('ZCARD', LEASED))
    if left > 0 then left = math.min(left, rate_room(left)) end
    is_done = give_from(left)
    if going > 0 and now + LEASE_FOR < quiet then quiet = now + LEASE_FOR end
    if is_done and (going == wanted or only ~= '') then
        keep_site()
        return { now, '', -1, given }
    end
end
