-- PURPOSE what became of the requests of leases: judged first for the site, then, knowing that, for each identity.
-- USES    prelude head members smooth breakers
-- KEYS    tally patience
-- ARGV    as smooth.lua has it
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

local function try_breaker(it, report, may_close)
    if state_of(it) == 'CLOSED' or trial_of(it) ~= report.lease_id then return end
    if report.verdict == 'SUCCESS' then
        succeeded(it, report.lease_id, may_close)
    elseif FAILURES[report.verdict] then
        failed(it, report.lease_id, 'the trial: ' .. report.verdict)
    end
end

-- What was counted within the last minute, the latest first: {bucket, requests (r), failures (f), 429s (l)}.
local function tallies()
    local found, known = {}, {}
    local flat = call('HGETALL', TALLY)
    for i = 1, #flat, 2 do
        local kind, bucket = flat[i]:sub(1, 1), tonumber(flat[i]:sub(2))
        if bucket > now - MINUTE then
            if not known[bucket] then
                known[bucket] = { bucket = bucket, r = 0, f = 0, l = 0 }
                found[#found + 1] = known[bucket]
            end
            known[bucket][kind] = tonumber(flat[i + 1])
        end
    end
    table.sort(found, function(one, other) return one.bucket > other.bucket end)
    return found
end

-- How many of the last minute's requests failed, and how: when that is too large a share of enough requests, be it of the
-- latest ones only. A site that fails all of a sudden is not the better for having been well before.
local function trouble()
    local r, f, l = 0, 0, 0
    local found = tallies()
    for index, tally in ipairs(found) do
        r, f, l = r + tally.r, f + tally.f, l + tally.l
        for _, each in ipairs({ { f, 'failed' }, { l, 'answered 429' } }) do
            if r >= 20 and each[1] * 100 > r * FAILURE_PERCENT then
                local of = index == #found and '%d of %d requests of the last minute %s' or '%d of the last %d requests %s'
                return each[1], string.format(of, each[1], r, each[2])
            end
        end
    end
    return nil
end

local function judge_site(ours)
    local requests, failures, limited = 0, 0, 0
    for _, each in ipairs(ours) do
        if not spares(each.lease.at) then
            requests = requests + 1
            if each.verdict == 'SITE_FAILURE' then failures = failures + 1 end
            if each.verdict == 'RATE_LIMITED' then limited = limited + 1 end
        end
    end
    if requests > 0 then
        local bucket = count_requests(requests)
        if failures > 0 then call('HINCRBY', TALLY, 'f' .. bucket, failures) end
        if limited > 0 then call('HINCRBY', TALLY, 'l' .. bucket, limited) end
    end
    if failures > 0 or limited > 0 then
        local many, reason = trouble()
        if many then
            count_failures(site, many)
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
        if number(member, 'tokenFailures') >= 3 then
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
    local reason = string.format('%s, %d in a row', report.verdict, number(member, 'breakerFailures') + 1)
    failed(breaker_of(member), report.lease_id, reason)
end

-- Blame follows cause.
local function charge(report, is_spared)
    local member = report.member
    if report.verdict == 'SUCCESS' then
        record_success(member)
        -- A closed one that counts no failures learns nothing from one more success.
        if member.fields.breakerState or member.fields.breakerFailures then
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
    local is_spared = spares(report.lease.at)
    take_token(report, is_spared)
    charge(report, is_spared)
    pause(report)
    if member.fields.status ~= was then tell_status(report) end
end

local function judge_pool(ours)
    local is_enough = is_above_minimum()
    for _, each in ipairs(ours) do
        if trial_of(pool) == each.lease_id then put('isProven', each.verdict == 'SUCCESS' and '1' or '') end
        try_breaker(pool, each, is_enough)
    end
    look_at_rate()
end

local answers, ours, members = {}, {}, {}
for index, packed in ipairs(reports) do
    local report = understood(packed)
    local member = members[report.id] or read(report.id)
    answers[index] = 0
    -- What is told to a ledger that is to be forgotten would be forgotten with it.
    local lease = leads ~= 0 and member and lease_of(member)
    -- At its deadline a lease is over, whether or not it was taken back yet.
    if lease and lease.id == report.lease_id and lease.till > now and not members[report.id] then
        members[report.id] = member
        report.member, report.lease = member, lease
        ours[#ours + 1] = report
        answers[index] = 1
    end
end
if #ours > 0 then
    judge_site(ours)
    for _, report in ipairs(ours) do
        judge(report)
        answered(report.member, report.lease)
        save(report.member)
    end
    judge_pool(ours)
    for _, report in ipairs(ours) do forget_trials(report.lease_id) end
    finish()
end
return answers
