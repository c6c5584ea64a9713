-- PURPOSE the identities that changed after a revision, in its order.
-- USES    prelude
-- KEYS    changed agent
-- ARGV
--   [3]  after       that revision
--   [4]  wanted      how many
-- RETURNS {now, then for each: identity, revision, how many of its leases count, face, its fields flat}
-- ATOMIC  it only reads; each is of one moment.
-- COST    O(log n + k).
local rows = call('ZRANGEBYSCORE', CHANGED, '(' .. ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[4]))
local answer = { now }
for i = 1, #rows, 2 do
    local id = rows[i]
    answer[#answer + 1] = id
    answer[#answer + 1] = rows[i + 1]
    answer[#answer + 1] = counted(window_of(id), now - REACH)
    answer[#answer + 1] = call('GET', AGENT .. id .. ':face')
    answer[#answer + 1] = call('HGETALL', AGENT .. id)
end
return answer
