-- PURPOSE the identities that changed after a revision, in its order.
-- USES    prelude held windows
-- KEYS    leased changed agent
-- ARGV
--   [3]  after       that revision
--   [4]  wanted      how many
-- RETURNS {now, after which revision to go on or '' when these were all, then for each: identity, revision, how many
--         of its leases count, face, its fields flat}
-- ATOMIC  it only reads; all are of one moment.
-- COST    O(log n + k + what is lent).
local after, wanted = tonumber(ARGV[3]), tonumber(ARGV[4])
local rows, lent = {}, {}
-- What is lent changed when it was lent, or since.
for _, id in ipairs(call('ZRANGE', LEASED, 0, -1)) do
    local packed = call('HGET', AGENT .. id, 'lease')
    if packed then lent[id] = select(4, struct.unpack('>I7I7I7I7', packed)) end
end
local flat = call('ZRANGEBYSCORE', CHANGED, '(' .. ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', 0, wanted)
for i = 1, #flat, 2 do
    local id, changed = flat[i], tonumber(flat[i + 1])
    if not lent[id] or changed > lent[id] then
        rows[#rows + 1] = { id, changed }
        lent[id] = nil
    end
end
local reached = #flat == wanted * 2 and tonumber(flat[#flat])
for id, changed in pairs(lent) do
    if changed > after and changed > tonumber(call('ZSCORE', CHANGED, id)) and not (reached and changed > reached) then
        rows[#rows + 1] = { id, changed }
    end
end
table.sort(rows, function(one, other) return one[2] < other[2] end)
if #rows > wanted then reached = rows[wanted][2] end
local answer = { now, reached and number_text(reached) or '' }
for index = 1, math.min(#rows, wanted) do
    local id = rows[index][1]
    answer[#answer + 1] = id
    answer[#answer + 1] = number_text(rows[index][2])
    answer[#answer + 1] = counted(window_of(id), now - REACH)
    answer[#answer + 1] = call('GET', AGENT .. id .. ':face')
    answer[#answer + 1] = call('HGETALL', AGENT .. id)
end
return answer
