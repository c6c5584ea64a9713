-- PURPOSE store the same token under another key; ignored when the identity has another one by now, or is unknown.
-- USES    prelude held head members
-- KEYS    none of its own
-- ARGV
--   [3]  agent       the identity
--   [4]  fingerprint the token it is thought to have
--   [5]  token's end microseconds since 1970
--   [6]  sealed      the token, sealed anew
-- RETURNS 1 when it was stored
-- ATOMIC  a token issued meanwhile is not overwritten by an older one.
-- COST    O(log n).
local member = read(ARGV[3])
if not member or member.fields.token ~= ARGV[4] then return 0 end
keep_token(member, ARGV[4], ARGV[5], ARGV[6])
save(member)
finish()
return 1
