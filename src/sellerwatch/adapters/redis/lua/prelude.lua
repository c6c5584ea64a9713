-- PURPOSE what every script begins with: the names of the keys, the limits, the moment.
-- KEYS    all sixteen, always in this order; the last is a prefix: the script chooses the identity, its keys are formed
--         here (agent:17, agent:17:window, agent:17:face), in the same slot by the pool's hash tag.
--   [1]  available   zset  who can be lent with a token: id by the moment from which on
--   [2]  bare        zset  the same for those without a token
--   [3]  leased      zset  who is lent: id by deadline
--   [4]  suspended   zset  who rests: id by the moment of suspension
--   [5]  recovering  zset  those of them that come back by themselves: id by when
--   [6]  breaker     hash  what stands above the identities: counts, the site's pause, both breakers
--   [7]  site        text  packed: the last moment seen, the last revision, until when all is quiet, and until when
--                          this engine leads (0: it holds no ledger that was ever told to)
--   [8]  rate        list  the moments of the leases of the last second, over all identities, rising
--   [9]  tally       hash  requests (r), failures (f) and 429s (l) of the last minute in buckets of 5 s
--   [10] patience    text  who was lately asked for patience: packed {id, when, until}
--   [11] health      hash  how many identities have which health
--   [12] changed     zset  every member: id by revision
--   [13] expiring    zset  available identities: id by when its token ends
--   [14] events      stream
--   [15] leader      hash  the epoch of this ledger, which server began it, and `isComplete` once it may lead
--   [16] agent       the prefix `agent:`
-- ARGV
--   [1]  now         microseconds since 1970, or empty: the server's own TIME
--   [2]  limits      fifteen doubles, see `limits_of` in pool.py
-- RETURNS nothing; it is a beginning.
-- ATOMIC  it is part of each script.
-- COST    O(1).
local AVAILABLE, BARE, LEASED, SUSPENDED, RECOVERING = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local BREAKER, SITE, RATE, TALLY, PATIENCE = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local HEALTH, CHANGED, EXPIRING, EVENTS, LEADER, AGENT = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local LIMIT, REACH, INTERVAL, LEASE_FOR, CONCURRENCY, RATE_LIMIT, RATE_WINDOW, IS_PACED, PACE, MIN_PERCENT,
    OPEN_FOR, FAILURE_PERCENT, THRESHOLD, PROBATION, RATE_A_SECOND = struct.unpack('>ddddddddddddddd', ARGV[2])
local call = redis.call

local function number_text(number)
    return string.format('%d', number)
end

-- The time never goes back. Before `quiet`, no breaker is open, the site is not paused and no lease is overdue. From
-- `leads` on nothing is lent: another engine may lead, or this ledger is not what it was.
local last, revision, quiet, leads = 0, 0, 0, 0
local known = call('GET', SITE)
if known then last, revision, quiet, leads = struct.unpack('>dddd', known) end
local now = tonumber(ARGV[1])
if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
end
if now < last then now = last end
local now_text = number_text(now)

local function keep_site()
    call('SET', SITE, struct.pack('>dddd', now, revision, quiet, leads))
end

-- A window: the moments of the leases that still count, rising, six bytes each (modulo 2^48 microseconds, nine years).
local function moment_in(window, index)
    local low = struct.unpack('>I6', window, index * 6 - 5)
    return now - (now - low) % 281474976710656
end

-- Whether the window of one who was last used then was lost. What can't be known counts as spent, and as late as can be.
local function is_lost(window, last_used)
    return window == '' and last_used and last_used + REACH > now
end

local function all_spent()
    return string.rep(struct.pack('>I6', now % 281474976710656), LIMIT)
end

-- When an identity may be lent again that was lent last at `last`, `oldest` being the moment in its way.
local function next_free(last, oldest, even)
    local free = last + INTERVAL
    if oldest and oldest + REACH > free then free = oldest + REACH end
    if IS_PACED == 1 then
        -- Behind its even pace it goes at twice that pace until it has caught up: no burst, nothing lost for good.
        free = math.max(free, even, last + math.floor(PACE / 2))
    end
    return free
end
