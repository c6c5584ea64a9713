-- PURPOSE available identities that are not lent and whose token ends before some moment, the first to end first.
-- USES    prelude held
-- KEYS    available expiring
-- ARGV
--   [3]  before      microseconds since 1970
--   [4]  wanted      how many
-- RETURNS their ids
-- ATOMIC  it only reads.
-- COST    O(log n + k + what is lent): what is listed but not there is lent.
local found, wanted, offset = {}, tonumber(ARGV[4]), 0
while #found < wanted do
    local ids = call('ZRANGEBYSCORE', EXPIRING, '-inf', '(' .. ARGV[3], 'LIMIT', offset, 100)
    for _, id in ipairs(ids) do
        if #found < wanted and call('ZSCORE', AVAILABLE, id) then found[#found + 1] = id end
    end
    if #ids < 100 then break end
    offset = offset + 100
end
return found
