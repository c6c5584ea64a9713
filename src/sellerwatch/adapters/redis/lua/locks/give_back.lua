-- PURPOSE what is whoever asks' own is nobody's from now on.
-- KEYS    the locks
-- ARGV
--   [1]  who asks
-- RETURNS how many were theirs.
-- ATOMIC  between looking and giving back its time might run out, and another take it.
-- COST    O(1) for each lock.
local given = 0
for _, lock in ipairs(KEYS) do
    if redis.call('GET', lock) == ARGV[1] then given = given + redis.call('DEL', lock) end
end
return given
