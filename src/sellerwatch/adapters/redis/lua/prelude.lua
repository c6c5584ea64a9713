-- PURPOSE what every script begins with: the names of the keys, the limits, the moment, the head, windows.
-- KEYS    all fourteen, always in this order; the last is a prefix: the script chooses the identity, its keys are formed
--         here (agent:17, agent:17:window, agent:17:face), in the same slot by the pool's hash tag.
--   [1]  available   zset  who can be lent with a token: id by the moment from which on
--   [2]  bare        zset  the same for those without a token
--   [3]  leased      zset  who is lent: id by deadline
--   [4]  suspended   zset  who rests: id by the moment of suspension
--   [5]  recovering  zset  those of them that come back by themselves: id by when
--   [6]  breaker     hash  the head: the pool's clock, counts, both breakers
--   [7]  rate        zset  what went out lately: lease id by moment
--   [8]  tally       hash  requests (r), failures (f) and 429s (l) of the last minute in buckets of 5 s
--   [9]  patience    text  who was lately asked for patience: packed {id, when, until}
--   [10] health      hash  how many identities have which health
--   [11] changed     zset  every member: id by revision
--   [12] expiring    zset  available identities: id by when its token ends
--   [13] events      stream
--   [14] agent       the prefix `agent:`
-- ARGV
--   [1]  now         microseconds since 1970, or empty: the server's own TIME
--   [2]  limits      fourteen doubles, see `limits_of` in pool.py
-- RETURNS nothing; it is a beginning.
-- ATOMIC  it is part of each script.
-- COST    O(1).
local AVAILABLE, BARE, LEASED, SUSPENDED, RECOVERING = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local BREAKER, RATE, TALLY, PATIENCE, HEALTH = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local CHANGED, EXPIRING, EVENTS, AGENT = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local LIMIT, REACH, INTERVAL, LEASE_FOR, CONCURRENCY, RATE_LIMIT, RATE_WINDOW, IS_PACED, PACE, MIN_PERCENT,
    OPEN_FOR, FAILURE_PERCENT, THRESHOLD, PROBATION = struct.unpack('>dddddddddddddd', ARGV[2])
local call = redis.call

-- The head: read whole, written back by `finish` as far as it changed.
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
    head_moved[#head_moved + 1] = field
end

local function finish()
    if #head_moved == 0 then return end
    local flat = {}
    for _, field in ipairs(head_moved) do
        flat[#flat + 1] = field
        flat[#flat + 1] = head[field]
    end
    call('HSET', BREAKER, unpack(flat))
end

-- The time never goes back.
local now = tonumber(ARGV[1])
if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
end
if now < head_number('lastAt') then
    now = head_number('lastAt')
end

local function number_text(number)
    return string.format('%.0f', number)
end

-- A window: the moments of the leases that still count, rising, six bytes each (modulo 2^48 microseconds, nine years).
local function moment_in(window, index)
    local low = struct.unpack('>I6', window, index * 6 - 5)
    return now - (now - low) % 281474976710656
end

local function window_of(id)
    return call('GET', AGENT .. id .. ':window') or ''
end

-- How many of its entries are not older than `since`.
local function counted(window, since)
    local low, high = 1, #window / 6 + 1
    while low < high do
        local middle = math.floor((low + high) / 2)
        if moment_in(window, middle) > since then high = middle else low = middle + 1 end
    end
    return #window / 6 - low + 1
end

-- When an identity with this window may be lent again, as far as its budget and its pace are concerned.
local function next_free(window, even)
    local count = #window / 6
    local last = moment_in(window, count)
    local free = last + INTERVAL
    if LIMIT >= 1 and count >= LIMIT then
        free = math.max(free, moment_in(window, count - LIMIT + 1) + REACH)
    end
    if IS_PACED == 1 then
        -- Behind its even pace it goes at twice that pace until it has caught up: no burst, nothing lost for good.
        free = math.max(free, even, last + math.floor(PACE / 2))
    end
    return free
end
