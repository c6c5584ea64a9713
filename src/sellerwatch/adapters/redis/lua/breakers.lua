-- PURPOSE the circuit breakers, as domain/breakers.py draws them: the pool's and the site's in the head, each identity's.
-- KEYS    tally
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  one trial at a time over all processes.
-- COST    O(1).
local function head_breaker(scope, prefix)
    local function field(name)
        local value = head[prefix .. name]
        return value ~= '' and value or nil
    end
    return {
        scope = scope, prefix = prefix, threshold = 20, state = field('State') or 'CLOSED',
        failures = tonumber(field('Failures')) or 0, opened = tonumber(field('OpenedAt')),
        half = tonumber(field('HalfOpenAt')), closed = tonumber(field('ClosedAt')), trial = field('Trial'),
        till = tonumber(field('TrialUntil')),
    }
end

local pool, site = head_breaker('POOL', 'pool'), head_breaker('SITE', 'site')

local function keep_head_breaker(it)
    local prefix = it.prefix
    put(prefix .. 'State', it.state)
    put(prefix .. 'Failures', it.failures)
    put(prefix .. 'OpenedAt', it.opened or '')
    put(prefix .. 'HalfOpenAt', it.half or '')
    put(prefix .. 'ClosedAt', it.closed or '')
    put(prefix .. 'Trial', it.trial or '')
    put(prefix .. 'TrialUntil', it.till or '')
end

-- One lease at a time: while an identity's breaker is half open, every lease of it is its trial.
local function breaker_of(member)
    local fields = member.fields
    local is_half = fields.breakerState == 'HALF_OPEN'
    return {
        scope = 'IDENTITY', member = member, threshold = THRESHOLD, state = fields.breakerState or 'CLOSED',
        failures = number(member, 'failuresInRow'), opened = tonumber(fields.openedAt),
        half = tonumber(fields.halfOpenAt), closed = tonumber(fields.closedAt),
        trial = is_half and fields.leaseId or nil, till = is_half and tonumber(fields.leasedUntil) or nil,
    }
end

local function keep_breaker(it)
    if it.prefix then return keep_head_breaker(it) end
    set(it.member, 'breakerState', it.state ~= 'CLOSED' and it.state or nil)
    set(it.member, 'failuresInRow', it.failures > 0 and it.failures or nil)
    set(it.member, 'openedAt', it.opened)
    set(it.member, 'halfOpenAt', it.half)
    set(it.member, 'closedAt', it.closed)
end

local function retry_at(it)
    if it.state == 'OPEN' and it.opened then return it.opened + OPEN_FOR end
    return it.state == 'HALF_OPEN' and it.trial and it.till or nil
end

local function admits(it)
    local moment = retry_at(it)
    return not moment or moment <= now
end

local function turn(it, state, reason)
    local was = it.state
    it.state = state
    tell('BREAKER', reason, it.member and it.member.id, 'scope', it.scope, 'from', was, 'to', state,
        'failures', it.failures)
    -- What led to its opening is not counted a second time.
    if it.scope == 'SITE' and state == 'CLOSED' then call('DEL', TALLY) end
    keep_breaker(it)
end

local function trip(it, reason)
    if it.state == 'OPEN' then return keep_breaker(it) end
    it.opened, it.trial, it.till = now, nil, nil
    turn(it, 'OPEN', reason)
end

local function close(it, reason)
    if it.state == 'CLOSED' then return end
    it.failures, it.closed, it.trial, it.till = 0, now, nil, nil
    turn(it, 'CLOSED', reason)
end

local function begin_trial(it, lease_id, till)
    if it.state == 'CLOSED' or not admits(it) then return end
    it.trial, it.till = lease_id, till
    if it.state == 'HALF_OPEN' then return keep_breaker(it) end
    it.half = now
    turn(it, 'HALF_OPEN', 'time-out over')
end

local function forget_trial(it, lease_id)
    if it.trial == lease_id then
        it.trial, it.till = nil, nil
        keep_breaker(it)
    end
end

local function forget_trials(lease_id)
    forget_trial(pool, lease_id)
    forget_trial(site, lease_id)
end

local function succeeded(it, lease_id, may_close)
    if it.state == 'CLOSED' then
        it.failures = 0
        return keep_breaker(it)
    end
    if it.trial ~= lease_id then return end
    it.trial, it.till = nil, nil
    keep_breaker(it)
    if may_close then close(it, 'trial succeeded') end
end

local function failed(it, lease_id, reason)
    if it.state == 'CLOSED' then
        it.failures = it.failures + 1
        if it.failures >= it.threshold then return trip(it, reason) end
        return keep_breaker(it)
    end
    if it.trial ~= lease_id then return end
    it.failures = it.failures + 1
    trip(it, reason)
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
        if pool.state == 'CLOSED' or (of == 0 and pool.state == 'HALF_OPEN') then
            local reason = 'the pool is empty'
            if of ~= 0 then
                reason = string.format('%d of %d identities available', head_number('available'), of)
            end
            trip(pool, reason)
            put('isProven', '')
        end
    elseif pool.state == 'HALF_OPEN' and head.isProven == '1' then
        close(pool, 'enough identities are available again')
    end
end

-- Whether what failed was asked while the site was failing everybody.
local function spares(leased_at)
    return site.state ~= 'CLOSED' or (site.closed ~= nil and leased_at < site.closed)
end

-- End the leases that are past their deadline, a thousand at most; what they spent stays spent.
local function take_back()
    local ids = call('ZRANGEBYSCORE', LEASED, '-inf', now, 'LIMIT', 0, 1000)
    for _, id in ipairs(ids) do
        local member = read(id)
        tell('LEASE_EXPIRED', 'lease ' .. member.fields.leaseId .. ' was neither reported nor given back', id)
        forget_trials(member.fields.leaseId)
        over(member, true)
        save(member)
    end
    return #ids
end
