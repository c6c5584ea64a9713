-- PURPOSE an operator's word about one identity: suspend, recover, block, unblock, discard_token.
-- USES    prelude held head members breakers
-- KEYS    none of its own
-- ARGV
--   [3]  agent       the identity
--   [4]  verb        one of the five
--   [5]  patience    microseconds for which it is paused, suspended
-- RETURNS '' when it is done; UNKNOWN; or the status in which it can't be
-- ATOMIC  what it is allowed to become depends on what it is.
-- COST    O(log n).
local KINDS = { suspend = 'SUSPENDED', recover = 'RECOVERED', block = 'BLOCKED', unblock = 'UNBLOCKED' }
local verb = ARGV[4]
local member = read(ARGV[3])
if not member or not is_counted(member) then return 'UNKNOWN' end
local fields = member.fields
local status, by_hand = fields.status, fields.isBlockedByHand
if (verb == 'suspend' and status == 'BLOCKED') or (verb == 'recover' and status ~= 'SUSPENDED')
    or (verb == 'unblock' and status ~= 'BLOCKED') then
    return status
end
if verb == 'suspend' then
    suspend(member)
    local till = now + ARGV[5]
    if till > now then set(member, 'pausedUntil', math.max(number(member, 'pausedUntil'), till)) end
elseif verb == 'block' then
    set(member, 'status', 'BLOCKED')
    set(member, 'isBlockedByHand', '1')
    set(member, 'suspendedAt', nil)
elseif verb == 'discard_token' then
    discard_token(member)
else
    if verb == 'unblock' then
        set(member, 'isBlockedByHand', nil)
        set(member, 'tokenFailures', nil)
    end
    come_back(member)
end
if KINDS[verb] and (status ~= fields.status or by_hand ~= fields.isBlockedByHand) then
    tell(KINDS[verb], 'by hand', member.id)
end
save(member)
look_at_rate()
finish()
return ''
