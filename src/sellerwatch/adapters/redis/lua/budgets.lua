-- PURPOSE what the identities that are free before some moment can still do, sampled: it costs the same for any pool.
-- USES    prelude
-- KEYS    available bare leased
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  it only reads.
-- COST    O(log n) and at most 250 windows.
local SAMPLE = 250

-- Without an interval: what each may do now.
local function budgets(begin, till, interval)
    local since = (interval and till or now) - REACH
    local sum, seen = 0, 0
    for _, key in ipairs({ AVAILABLE, BARE, LEASED }) do
        local rows = call('ZRANGEBYSCORE', key, '-inf', till or '+inf', 'WITHSCORES', 'LIMIT', 0, SAMPLE - seen)
        for i = 1, #rows, 2 do
            local left = math.max(0, LIMIT - counted(window_of(rows[i]), since))
            if interval then
                local due = tonumber(rows[i + 1])
                left = math.min(left, 1 + math.floor(math.max(0, till - math.max(begin, due)) / interval))
            end
            sum = sum + left
            seen = seen + 1
        end
    end
    local available = head_number('available')
    if seen == SAMPLE and available > SAMPLE then return math.floor(sum * available / SAMPLE) end
    return sum
end
