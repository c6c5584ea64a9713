-- PURPOSE the circuit breakers, as domain/breakers.py draws them: the pool's and the site's in the head, each identity's.
-- KEYS    leased tally
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  one trial at a time over all processes.
-- COST    O(1).
local pool = { scope = 'POOL', prefix = 'pool', threshold = 20 }
local site = { scope = 'SITE', prefix = 'site', threshold = 20 }

local function breaker_of(member)
    return { scope = 'IDENTITY', prefix = 'breaker', threshold = THRESHOLD, member = member }
end

-- What is not there was never so: CLOSED, no failures, no moment.
local function known_of(it, name)
    local value = (it.member and it.member.fields or head)[it.prefix .. name]
    return value ~= '' and value or nil
end

local function keep(it, name, value)
    if it.member then return set(it.member, it.prefix .. name, value) end
    if (known_of(it, name) or '') ~= (value or '') then put(it.prefix .. name, value or '') end
end

local function state_of(it)
    return known_of(it, 'State') or 'CLOSED'
end

local function failures_of(it)
    return tonumber(known_of(it, 'Failures')) or 0
end

-- One lease at a time: while an identity's breaker is half open, every lease of it is its trial.
local function trial_of(it)
    if it.member then return state_of(it) == 'HALF_OPEN' and it.member.fields.lease and lease_of(it.member).id or nil end
    return known_of(it, 'Trial')
end

local function retry_at(it)
    local state = state_of(it)
    if state == 'OPEN' then return known_of(it, 'OpenedAt') + OPEN_FOR end
    if state ~= 'HALF_OPEN' or not trial_of(it) then return nil end
    return it.member and lease_of(it.member).till or tonumber(known_of(it, 'TrialUntil'))
end

local function admits(it)
    local moment = retry_at(it)
    return not moment or moment <= now
end

local function keep_trial(it, lease_id, till)
    if it.member then return end
    keep(it, 'Trial', lease_id)
    keep(it, 'TrialUntil', till)
end

local function count_failures(it, failures)
    keep(it, 'Failures', failures > 0 and failures or nil)
end

local function turn(it, state, reason)
    local was = state_of(it)
    tell('BREAKER', reason, it.member and it.member.id, 'scope', it.scope, 'from', was, 'to', state,
        'failures', failures_of(it))
    keep(it, 'State', state ~= 'CLOSED' and state or nil)
end

local function trip(it, reason)
    if state_of(it) == 'OPEN' then return end
    keep(it, 'OpenedAt', now)
    keep_trial(it, nil, nil)
    turn(it, 'OPEN', reason)
end

local function close(it, reason)
    if state_of(it) == 'CLOSED' then return end
    count_failures(it, 0)
    keep(it, 'ClosedAt', now)
    keep_trial(it, nil, nil)
    turn(it, 'CLOSED', reason)
    -- What led to its opening is not counted a second time.
    if it == site then call('DEL', TALLY) end
end

local function begin_trial(it, lease_id, till)
    if state_of(it) == 'CLOSED' or not admits(it) then return end
    keep_trial(it, lease_id, till)
    if state_of(it) == 'HALF_OPEN' then return end
    keep(it, 'HalfOpenAt', now)
    turn(it, 'HALF_OPEN', 'time-out over')
end

local function forget_trials(lease_id)
    for _, it in ipairs({ pool, site }) do
        if trial_of(it) == lease_id then keep_trial(it, nil, nil) end
    end
end

local function succeeded(it, lease_id, may_close)
    if state_of(it) == 'CLOSED' then return count_failures(it, 0) end
    if trial_of(it) == lease_id and may_close then close(it, 'trial succeeded') end
end

local function failed(it, lease_id, reason)
    local is_closed = state_of(it) == 'CLOSED'
    if not is_closed and trial_of(it) ~= lease_id then return end
    count_failures(it, failures_of(it) + 1)
    if not is_closed or failures_of(it) >= it.threshold then trip(it, reason) end
end

-- Of all that no person blocked, enough are available.
local function judged()
    return head_number('available') + head_number('suspended') + head_number('blocked') - head_number('byHand')
end

local function is_above_minimum()
    return judged() > 0 and head_number('available') * 100 >= judged() * MIN_PERCENT
end

-- Open the pool's breaker when too few are available, and close it where nothing but that kept it open.
local function look_at_rate()
    if not is_above_minimum() then
        local of = judged()
        if state_of(pool) == 'CLOSED' or (of == 0 and state_of(pool) == 'HALF_OPEN') then
            local reason = 'the pool is empty'
            if of ~= 0 then
                reason = string.format('%d of %d identities available', head_number('available'), of)
            end
            trip(pool, reason)
            put('isProven', '')
        end
    elseif state_of(pool) == 'HALF_OPEN' and head.isProven == '1' then
        close(pool, 'enough identities are available again')
    end
end

-- Whether what failed was asked while the site was failing everybody.
local function spares(leased_at)
    return state_of(site) ~= 'CLOSED' or leased_at < (tonumber(known_of(site, 'ClosedAt')) or 0)
end

-- End the leases that are past their deadline, a thousand at most; what they spent stays spent.
local function take_back()
    local ids = call('ZRANGEBYSCORE', LEASED, '-inf', now_text, 'LIMIT', 0, 1000)
    for _, id in ipairs(ids) do
        local member = read(id)
        local lease = lease_of(member)
        tell('LEASE_EXPIRED', 'lease ' .. lease.id .. ' was neither reported nor given back', id)
        forget_trials(lease.id)
        over(member, lease)
        save(member)
    end
    return #ids
end
