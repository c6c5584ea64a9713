-- PURPOSE lend up to so many identities (or this one), each the right to one request; or say why not and until when.
-- USES    prelude ceiling calm holds spent head members breakers gates
-- KEYS    leased agent
-- ARGV    as calm.lua has it
-- RETURNS {now, why or '', until or -1, {for each lease: identity, face, 1 if it is a trial}}
-- ATOMIC  budget, interval, ceiling, concurrency and breakers are looked at and taken in one step: else two callers
--         would both take the last one.
-- COST    O(k log n) for k leases of n identities, fresh or spent.
-- Here begins what is out of the ordinary; what `calm` gave is given.
try = function(id, lease_id)
    local is_trial = false
    if call('HEXISTS', AGENT .. id, 'breakerState') == 1 then
        local member = read(id)
        begin_trial(breaker_of(member), lease_id, now + LEASE_FOR)
        write_fields(member)
        is_trial = true
    end
    for _, it in ipairs({ pool, site }) do
        if state_of(it) ~= 'CLOSED' then
            begin_trial(it, lease_id, now + LEASE_FOR)
            is_trial = true
        end
    end
    return is_trial
end

take_back()
give_from(room(wanted - going))
local why, till = '', -1
if going < wanted and only == '' then why, till = what_held(what_holds_now()) end
finish()
if state_of(pool) == 'CLOSED' and state_of(site) == 'CLOSED' and head_number('pausedUntil') <= now then
    -- No moment is further away than 2^53.
    quiet = tonumber(call('ZRANGE', LEASED, 0, 0, 'WITHSCORES')[2]) or 9007199254740992
    keep_site()
end
return { now, why, till, given }
