-- PURPOSE make these identities members of a ledger that begins, with all that must not be forgotten of them.
-- USES    prelude head members
-- KEYS    leader agent
-- ARGV
--   [3]  epoch       under which it begins
--   [4]  memories    JSON: {identity, name of its face, sealed token, fields, moments of its leases}, each
-- RETURNS 1; 0 when it is not the ledger of this epoch
-- ATOMIC  pieces are small; nothing is lent before all of them are there.
-- COST    O(k log n) for a piece of k.
if call('HGET', LEADER, 'epoch') ~= ARGV[3] then return 0 end
for _, each in ipairs(cjson.decode(ARGV[4])) do
    local id, name, sealed, known, moments = number_text(each[1]), each[2], each[3], each[4], each[5]
    if call('EXISTS', AGENT .. id) == 0 or call('HEXISTS', AGENT .. id, 'isGone') == 1 then
        for _, tail in ipairs({ '', ':window', ':face' }) do call('DEL', AGENT .. id .. tail) end
        local member = { id = id, fields = {}, moved = {} }
        for field, value in pairs(known) do set(member, field, value) end
        local count = #moments
        if count > 0 then
            local packed = {}
            for index, at in ipairs(moments) do
                -- Its clock was ahead of ours: it was no later than now.
                moments[index] = math.min(at, now)
                packed[index] = struct.pack('>I6', moments[index] % 281474976710656)
            end
            call('SET', AGENT .. id .. ':window', table.concat(packed))
            local oldest = LIMIT >= 1 and count >= LIMIT and moments[count - LIMIT + 1] or nil
            set(member, 'nextFreeAt', next_free(moments[count], oldest, 0))
            set(member, 'remaining', math.max(0, LIMIT - count))
            set(member, 'windowStart', moments[1])
            set(member, 'windowEnd', moments[1] + REACH)
        end
        call('SET', AGENT .. id .. ':face', struct.pack('>H', #name) .. name .. sealed)
        save(member)
    end
end
finish()
return 1
