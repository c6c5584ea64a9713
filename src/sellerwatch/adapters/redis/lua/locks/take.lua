-- PURPOSE a name is its holder's until its time has run out.
-- KEYS    the lock
-- ARGV
--   [1]  who asks
--   [2]  for how many milliseconds
-- RETURNS 1: it is theirs from now on; 0: it is another's.
-- ATOMIC  between looking and taking another might take it.
-- COST    O(1).
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
