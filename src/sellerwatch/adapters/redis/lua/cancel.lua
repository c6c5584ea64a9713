-- PURPOSE leases whose request did not go out: ended, and what they took given back, also under the site's ceiling.
-- USES    prelude windows head members breakers
-- KEYS    rate agent
-- ARGV
--   [3]  leases      JSON: {lease id, identity}, each
-- RETURNS how many there were; late and unknown ones change nothing
-- ATOMIC  what is given back was spent by this lease and no other.
-- COST    O(k log n) for k leases, and the length of the ceiling's list.
local done = 0
for _, each in ipairs(cjson.decode(ARGV[3])) do
    local lease_id, id = each[1], number_text(each[2])
    local member = read(id)
    local lease = member and lease_of(member)
    if lease and lease.id == lease_id and lease.till > now then
        done = done + 1
        local window, free = window_of(id), now + REACH
        -- One lease at a time: its entry is the last, or the window was lost.
        if window ~= '' and moment_in(window, #window / 6) == lease.at then
            window, free = window:sub(1, -7), lease.free
        end
        call('SET', AGENT .. id .. ':window', window)
        set(member, 'nextFreeAt', free)
        set(member, 'remaining', math.max(0, LIMIT - #window / 6))
        set(member, 'windowStart', window ~= '' and moment_in(window, 1) or nil)
        set(member, 'windowEnd', window ~= '' and moment_in(window, 1) + REACH or nil)
        if IS_PACED == 1 then set(member, 'evenAt', math.max(0, number(member, 'evenAt') - PACE)) end
        forget_trials(lease_id)
        over(member, nil)
        save(member)
        call('LREM', RATE, 1, number_text(lease.at))
    end
end
if done > 0 then finish() end
return done
