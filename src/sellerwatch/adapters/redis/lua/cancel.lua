-- PURPOSE leases whose request did not go out: ended, and what they took given back, also under the site's ceiling.
-- USES    prelude members breakers
-- KEYS    rate agent
-- ARGV
--   [3]  leases      packed: {lease id, identity}, each
-- RETURNS how many there were; late and unknown ones change nothing
-- ATOMIC  what is given back was spent by this lease and no other.
-- COST    O(k log n) for k leases.
local done = 0
for _, each in ipairs(cmsgpack.unpack(ARGV[3])) do
    local lease_id, id = each[1], number_text(each[2])
    local member = read(id)
    if member and member.fields.leaseId == lease_id and number(member, 'leasedUntil') > now then
        done = done + 1
        -- One lease at a time: its entry is the last.
        local window = window_of(id):sub(1, -7)
        call('SET', AGENT .. id .. ':window', window)
        set(member, 'nextFreeAt', number(member, 'freeBefore'))
        set(member, 'remaining', math.max(0, LIMIT - #window / 6))
        set(member, 'windowStart', window ~= '' and moment_in(window, 1) or nil)
        set(member, 'windowEnd', window ~= '' and moment_in(window, 1) + REACH or nil)
        if IS_PACED == 1 then set(member, 'evenAt', math.max(0, number(member, 'evenAt') - PACE)) end
        forget_trials(lease_id)
        over(member, false)
        save(member)
        call('ZREM', RATE, lease_id)
    end
end
if done > 0 then
    put('lastAt', now)
    finish()
end
return done
