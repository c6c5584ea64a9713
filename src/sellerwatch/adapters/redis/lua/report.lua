-- PURPOSE what became of the requests of leases: judged first for the site, then, knowing that, for each identity.
-- USES    prelude members breakers
-- KEYS    tally patience
-- ARGV
--   [3]  reports     packed: {lease id, identity, verdict, retry after in microseconds, is refused, is an issue,
--                    fingerprint, token's end, sealed token}, each
-- RETURNS for each report 1 when it was accepted: the lease was out, and its id is right; else 0, and it changed nothing
-- ATOMIC  only the holder of a lease ends it, once; one incident in many reports opens the site's breaker once.
-- COST    O(k log n) for k reports.
local NOT_AN_ANSWER = { SITE_FAILURE = true, RATE_LIMITED = true }
local FAILURES = { SITE_FAILURE = true, RATE_LIMITED = true, REJECTED = true }
local LOSSES = { RATE_LIMITED = 20, SITE_FAILURE = 10, REJECTED = 5 }

local function understood(packed)
    return {
        lease_id = packed[1], id = number_text(packed[2]), verdict = packed[3], patience = packed[4],
        is_refused = packed[5], is_issue = packed[6], fingerprint = packed[7], expires_at = packed[8],
        sealed = packed[9],
    }
end

-- At its deadline a lease is over, whether or not it was taken back yet.
local function is_held(member, lease_id)
    return member and member.fields.leaseId == lease_id and number(member, 'leasedUntil') > now
end

local function try_breaker(it, report, may_close)
    if it.state == 'CLOSED' or it.trial ~= report.lease_id then return end
    if report.verdict == 'SUCCESS' then
        succeeded(it, report.lease_id, may_close)
    elseif FAILURES[report.verdict] then
        failed(it, report.lease_id, 'the trial: ' .. report.verdict)
    end
end

local function forget_requests(upto)
    local flat = call('HKEYS', TALLY)
    for _, field in ipairs(flat) do
        if tonumber(field:sub(2)) <= upto then call('HDEL', TALLY, field) end
    end
end

local function count_requests(requests, failures, limited)
    local bucket = number_text(now - now % 5000000)
    if call('HINCRBY', TALLY, 'r' .. bucket, requests) == requests then forget_requests(now - MINUTE - 5000000) end
    if failures > 0 then call('HINCRBY', TALLY, 'f' .. bucket, failures) end
    if limited > 0 then call('HINCRBY', TALLY, 'l' .. bucket, limited) end
end

-- How many of the last minute's requests failed, and how: when that is too large a share of enough requests.
local function trouble()
    local sums = { r = 0, f = 0, l = 0 }
    local flat = call('HGETALL', TALLY)
    for i = 1, #flat, 2 do
        if tonumber(flat[i]:sub(2)) > now - MINUTE then
            local kind = flat[i]:sub(1, 1)
            sums[kind] = sums[kind] + flat[i + 1]
        end
    end
    if sums.r < 20 then return nil end
    for _, each in ipairs({ { sums.f, 'failed' }, { sums.l, 'answered 429' } }) do
        if each[1] * 100 > sums.r * FAILURE_PERCENT then
            return each[1], string.format('%d of %d requests of the last minute %s', each[1], sums.r, each[2])
        end
    end
    return nil
end

local function judge_site(ours)
    local requests, failures, limited = 0, 0, 0
    for _, each in ipairs(ours) do
        if not spares(number(each.member, 'leasedAt')) then
            requests = requests + 1
            if each.verdict == 'SITE_FAILURE' then failures = failures + 1 end
            if each.verdict == 'RATE_LIMITED' then limited = limited + 1 end
        end
    end
    if requests > 0 then count_requests(requests, failures, limited) end
    if failures > 0 or limited > 0 then
        local many, reason = trouble()
        if many then
            site.failures = many
            return trip(site, reason)
        end
    end
    for _, each in ipairs(ours) do
        -- A refusal is an answer: the site works, and whether the identity does is the pool's affair.
        if each.verdict ~= 'REJECTED' then try_breaker(site, each, true) end
    end
end

local function take_token(report, is_spared)
    local member = report.member
    if report.sealed ~= '' then
        set(member, 'tokenFailures', nil)
        keep_token(member, report.fingerprint, report.expires_at, report.sealed)
    elseif report.is_refused and not report.is_issue then
        discard_token(member)
    elseif report.is_refused and not is_spared and not NOT_AN_ANSWER[report.verdict] then
        set(member, 'tokenFailures', number(member, 'tokenFailures') + 1)
        if number(member, 'tokenFailures') >= 3 and member.fields.status ~= 'BLOCKED' then
            set(member, 'status', 'BLOCKED')
            set(member, 'suspendedAt', nil)
        end
    end
end

local function charge_health(report, is_spared)
    local member = report.member
    if report.verdict == 'SITE_FAILURE' and is_spared then return end
    set(member, 'healthScore', math.max(0, number(member, 'healthScore') - LOSSES[report.verdict]))
    if report.verdict == 'RATE_LIMITED' then discard_token(member) end
    if report.verdict == 'RATE_LIMITED' or number(member, 'healthScore') < 30 then suspend(member) end
    local reason = string.format('%s, %d in a row', report.verdict, number(member, 'failuresInRow') + 1)
    failed(breaker_of(member), report.lease_id, reason)
end

-- Blame follows cause.
local function charge(report, is_spared)
    local member = report.member
    if report.verdict == 'SUCCESS' then
        set(member, 'successCount', number(member, 'successCount') + 1)
        set(member, 'healthScore', math.min(100, number(member, 'healthScore') + 5))
        -- A closed one that counts no failures learns nothing from one more success.
        if member.fields.breakerState or member.fields.failuresInRow then
            succeeded(breaker_of(member), report.lease_id, true)
        end
        return
    end
    if report.verdict == 'NEUTRAL' then return end
    set(member, 'failureCount', number(member, 'failureCount') + 1)
    if not (report.is_issue and (is_spared or NOT_AN_ANSWER[report.verdict])) then
        return charge_health(report, is_spared)
    end
    -- Asked for a token: charged to nobody, but who was told to wait does.
    if report.verdict == 'RATE_LIMITED' and member.fields.status == 'AVAILABLE' then
        suspend(member)
        discard_token(member)
    end
end

-- One identity was asked for patience; three within a minute speak for the site.
local function pause(report)
    if report.patience <= 0 then return end
    local till = now + report.patience
    set(report.member, 'pausedUntil', math.max(number(report.member, 'pausedUntil'), till))
    local recent = {}
    for _, each in ipairs(cmsgpack.unpack(call('GET', PATIENCE) or cmsgpack.pack({}))) do
        if each[2] > now - MINUTE and each[1] ~= report.id then recent[#recent + 1] = each end
    end
    recent[#recent + 1] = { report.id, now, till }
    if #recent > 16 then table.remove(recent, 1) end
    call('SET', PATIENCE, cmsgpack.pack(recent))
    if #recent < 3 then return end
    for _, each in ipairs(recent) do put('pausedUntil', math.max(head_number('pausedUntil'), each[3])) end
end

local function tell_status(report)
    local fields = report.member.fields
    if fields.status == 'BLOCKED' then
        tell('BLOCKED', 'the marketplace gave no token, three times in a row', report.id)
    elseif report.verdict == 'RATE_LIMITED' then
        tell('SUSPENDED', 'answered 429', report.id)
    else
        tell('SUSPENDED', 'health fell to ' .. fields.healthScore, report.id)
    end
end

local function judge(report)
    local member = report.member
    local was = member.fields.status
    local is_spared = spares(number(member, 'leasedAt'))
    take_token(report, is_spared)
    charge(report, is_spared)
    pause(report)
    if member.fields.status ~= was then tell_status(report) end
end

local function judge_pool(ours)
    local is_enough = is_above_minimum()
    for _, each in ipairs(ours) do
        if pool.trial == each.lease_id then put('isProven', each.verdict == 'SUCCESS' and '1' or '') end
        try_breaker(pool, each, is_enough)
    end
    look_at_rate()
end

local answers, ours, members = {}, {}, {}
for index, packed in ipairs(cmsgpack.unpack(ARGV[3])) do
    local report = understood(packed)
    local member = members[report.id] or read(report.id)
    answers[index] = 0
    if is_held(member, report.lease_id) and not members[report.id] then
        members[report.id] = member
        report.member = member
        ours[#ours + 1] = report
        answers[index] = 1
    end
end
if #ours > 0 then
    judge_site(ours)
    for _, report in ipairs(ours) do
        judge(report)
        over(report.member, true)
        save(report.member)
    end
    judge_pool(ours)
    for _, report in ipairs(ours) do forget_trials(report.lease_id) end
    put('lastAt', now)
    finish()
end
return answers
