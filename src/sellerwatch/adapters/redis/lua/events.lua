-- PURPOSE what happened after the event of some number; or forget it up to there.
-- USES    prelude held
-- KEYS    events
-- ARGV
--   [3]  number      after this one; or up to it
--   [4]  wanted      how many; 0: forget
-- RETURNS the stream's entries; nothing when it forgets
-- ATOMIC  one command.
-- COST    O(log m + k) for k of m events.
if ARGV[4] == '0' then
    call('XTRIM', EVENTS, 'MINID', '=', number_text(tonumber(ARGV[3]) + 1) .. '-0')
    return {}
end
return call('XRANGE', EVENTS, '(' .. number_text(tonumber(ARGV[3])) .. '-0', '+', 'COUNT', ARGV[4])
