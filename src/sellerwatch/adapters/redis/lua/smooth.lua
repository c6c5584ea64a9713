-- PURPOSE settle reports while nothing is out of the ordinary: no breaker open, and nothing but successes of identities
--         that count no failures. That is nearly always, and then the script ends here.
-- KEYS    tally
-- ARGV
--   [3]  reports     JSON: {lease id, identity, verdict, retry after in microseconds, is refused, is an issue,
--                    fingerprint, token's end, sealed token}, each
-- RETURNS as report.lua
-- ATOMIC  it is a part of `report`.
-- COST    O(k log n) for k reports.
local reports = cjson.decode(ARGV[3])

local function forget_requests(upto)
    for _, field in ipairs(call('HKEYS', TALLY)) do
        if tonumber(field:sub(2)) <= upto then call('HDEL', TALLY, field) end
    end
end

local function count_requests(requests)
    local bucket = number_text(now - now % 5000000)
    if call('HINCRBY', TALLY, 'r' .. bucket, requests) == requests then forget_requests(now - MINUTE - 5000000) end
    return bucket
end

local function record_success(member)
    set(member, 'successCount', number(member, 'successCount') + 1)
    set(member, 'healthScore', math.min(100, number(member, 'healthScore') + 5))
end

-- The member and its lease, if this report says nothing but success of somebody about whom there was nothing to say.
local function plain(report)
    if report[3] ~= 'SUCCESS' or report[4] > 0 or report[5] or report[9] ~= '' then return nil end
    local member = read(number_text(report[2]))
    local lease = member and lease_of(member)
    if not lease or lease.id ~= report[1] or lease.till <= now then return nil end
    if lease.at < (tonumber(head.siteClosedAt) or 0) then return nil end
    if member.fields.breakerState or member.fields.breakerFailures then return nil end
    return { member, lease }
end

if now < quiet then
    local found, seen, answers = {}, {}, {}
    for index, report in ipairs(reports) do
        local each = not seen[report[2]] and plain(report)
        if not each then break end
        found[index], seen[report[2]], answers[index] = each, true, 1
    end
    if #found == #reports then
        count_requests(#found)
        for _, each in ipairs(found) do
            record_success(each[1])
            answered(each[1], each[2])
            save(each[1])
        end
        finish()
        return answers
    end
end
