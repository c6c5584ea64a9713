-- PURPOSE identities as the rules see them: read, changed, put where they are to be found, counted; and what is told.
-- KEYS    available bare leased suspended recovering health changed expiring events agent
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  an identity, its place and the counts over all change together.
-- COST    O(log n) per identity.
local HOUR, MINUTE, DAY = 3600000000, 60000000, 86400000000
local IS_VIRTUAL = ARGV[1] ~= ''
local COUNTS = { AVAILABLE = 'available', SUSPENDED = 'suspended', BLOCKED = 'blocked' }
local PLACES = { available = AVAILABLE, bare = BARE, leased = LEASED, suspended = SUSPENDED }

local function place_of(fields)
    if fields.lease then return 'leased' end
    if fields.isGone then return nil end
    if fields.status == 'AVAILABLE' then return fields.token and 'available' or 'bare' end
    return fields.status == 'SUSPENDED' and 'suspended' or nil
end

local function is_expiring(fields)
    return fields.token and fields.status == 'AVAILABLE' and not fields.isGone
end

local function is_counted(member)
    return not member.fields.isLeaving and not member.fields.isGone
end

-- What the counts over all see of it, `step` times.
local function count(member, fields, step)
    local name = COUNTS[fields.status]
    put(name, head_number(name) + step)
    if fields.isBlockedByHand then put('byHand', head_number('byHand') + step) end
    local left = call('HINCRBY', HEALTH, fields.healthScore, step)
    if left == 0 then call('HDEL', HEALTH, fields.healthScore) end
end

local function member_of(id, fields)
    local member = { id = id, fields = fields, moved = {}, place = place_of(fields), was_expiring = is_expiring(fields) }
    if is_counted(member) then
        member.was = {
            status = fields.status, isBlockedByHand = fields.isBlockedByHand, healthScore = fields.healthScore,
        }
    end
    return member
end

local function read(id)
    local flat = call('HGETALL', AGENT .. id)
    if #flat == 0 then return nil end
    local fields = {}
    for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
    return member_of(id, fields)
end

local function number(member, field)
    return tonumber(member.fields[field]) or 0
end

-- Numbers become texts as Redis would write them; nil takes the field out.
local function set(member, field, value)
    if type(value) == 'number' then value = number_text(value) end
    if member.fields[field] ~= value then
        member.fields[field] = value
        member.moved[field] = true
    end
end

local function free_from(member)
    local free = math.max(number(member, 'nextFreeAt'), number(member, 'pausedUntil'))
    if member.fields.breakerState == 'OPEN' then
        free = math.max(free, number(member, 'breakerOpenedAt') + OPEN_FOR)
    end
    return free
end

local function recovers_at(member)
    if number(member, 'healthScore') >= 30 then return number(member, 'suspendedAt') + HOUR end
    return PROBATION > 0 and number(member, 'suspendedAt') + PROBATION or nil
end

-- Put it where it is to be found now. One that left keeps its window: it may come back within the hour.
local function settle_place(member)
    local id, fields = member.id, member.fields
    if fields.isLeaving and not fields.lease then
        set(member, 'isLeaving', nil)
        set(member, 'isGone', '1')
    end
    local place = place_of(fields)
    if member.place and member.place ~= place then
        call('ZREM', PLACES[member.place], id)
        if member.place == 'suspended' then call('ZREM', RECOVERING, id) end
    end
    if place == 'available' or place == 'bare' then
        call('ZADD', PLACES[place], free_from(member), id)
    elseif place == 'suspended' then
        call('ZADD', SUSPENDED, number(member, 'suspendedAt'), id)
        local at = recovers_at(member)
        if at then call('ZADD', RECOVERING, at, id) else call('ZREM', RECOVERING, id) end
    end
    if is_expiring(fields) then
        if not member.was_expiring or member.moved.tokenExpiresAt then
            call('ZADD', EXPIRING, fields.tokenExpiresAt, id)
        end
    elseif member.was_expiring then
        call('ZREM', EXPIRING, id)
    end
end

local function settle_count(member)
    local was, fields = member.was, member.fields
    local is_in = is_counted(member)
    if was and is_in and was.status == fields.status and was.isBlockedByHand == fields.isBlockedByHand
        and was.healthScore == fields.healthScore then
        return
    end
    if was then count(member, was, -1) end
    if is_in then count(member, fields, 1) end
end

local function write_fields(member)
    local kept, gone = {}, {}
    for field in pairs(member.moved) do
        local value = member.fields[field]
        if value == nil then
            gone[#gone + 1] = field
        else
            kept[#kept + 1] = field
            kept[#kept + 1] = value
        end
    end
    local key = AGENT .. member.id
    if #kept > 0 then call('HSET', key, unpack(kept)) end
    if #gone > 0 then call('HDEL', key, unpack(gone)) end
end

local function settle_life(member)
    local id = member.id
    if member.fields.isGone then
        call('ZREM', CHANGED, id)
        if not IS_VIRTUAL then
            for _, tail in ipairs({ '', ':window', ':face' }) do
                call('PEXPIRE', AGENT .. id .. tail, number_text((REACH + DAY) / 1000))
            end
        end
        return
    end
    revision = revision + 1
    call('ZADD', CHANGED, number_text(revision), id)
end

local function save(member)
    settle_place(member)
    settle_count(member)
    write_fields(member)
    settle_life(member)
end

-- The face: two bytes of length, who it says it is, and its sealed token; packed and read by the callers only.
local function keep_token(member, fingerprint, expires_at, sealed)
    local key = AGENT .. member.id .. ':face'
    local face = call('GET', key)
    call('SET', key, face:sub(1, 2 + struct.unpack('>H', face)) .. sealed)
    set(member, 'token', fingerprint)
    set(member, 'tokenExpiresAt', expires_at)
end

local function discard_token(member)
    if member.fields.token then keep_token(member, nil, nil, '') end
end

-- The lease that is out: its id, when it was given, its deadline, and from when on the identity was free before it.
local function lease_of(member)
    local packed = member.fields.lease
    if not packed then return nil end
    local at, till, free = struct.unpack('>I7I7I7I7', packed)
    return { id = packed:sub(29), at = at, till = till, free = free }
end

-- The lease is over; the caller has what it needs of it.
local function over(member, lease)
    if lease then
        local is_same_day = math.floor(number(member, 'lastUsedAt') / DAY) == math.floor(lease.at / DAY)
        set(member, 'today', (is_same_day and number(member, 'today') or 0) + 1)
        set(member, 'usageCount', number(member, 'usageCount') + 1)
        set(member, 'lastUsedAt', lease.at)
    end
    set(member, 'lease', nil)
end

-- It is over by an answer, and the request had arrived by then: the next one arrives an interval later at the least,
-- however long this one was held up on its way.
local function answered(member, lease)
    set(member, 'nextFreeAt', math.max(number(member, 'nextFreeAt'), now + INTERVAL))
    over(member, lease)
end

local function suspend(member)
    if member.fields.status == 'AVAILABLE' then
        set(member, 'status', 'SUSPENDED')
        set(member, 'suspendedAt', now_text)
    end
end

-- A fresh token is asked for at its next lease: the old one may be why it was suspended.
local function come_back(member)
    set(member, 'status', 'AVAILABLE')
    set(member, 'suspendedAt', nil)
    set(member, 'healthScore', 70)
    discard_token(member)
end

local function tell(kind, reason, id, ...)
    put('event', head_number('event') + 1)
    call('XADD', EVENTS, number_text(head.event) .. '-0', 'kind', kind, 'at', now_text, 'agent', id or '',
        'reason', reason:sub(1, 200), ...)
end
