-- PURPOSE make these identities members: new ones as they are, known ones keep what the pool knows of them; some leave.
-- USES    prelude held windows head members breakers
-- KEYS    recovering agent
-- ARGV
--   [3]  joining     JSON: {identity, name of its face, sealed token, fields}, each
--   [4]  leaving     JSON: identities
--   [5]  phase       'first', 'more': further pieces follow; 'last 0', 'last 1': it is judged, 1 if it began empty;
--                    'whole': both at once
-- RETURNS 1 if the pool was empty before
-- ATOMIC  of an identity that joins, what it shows, its place and the counts appear together. Pieces are small, so that
--         no script grows with the pool; between two pieces the pool is one that some have joined already.
-- COST    O(k log n) for a piece of k.
local function new_face(name, sealed)
    return struct.pack('>H', #name) .. name .. sealed
end

local function join(id, name, sealed, known)
    local fields = {}
    local member = { id = id, fields = fields, moved = {} }
    for field, value in pairs(known) do set(member, field, value) end
    -- What it asked for within the hour nobody here knows: it counts as spent.
    if fields.lastUsedAt then set(member, 'nextFreeAt', fields.lastUsedAt + REACH) end
    call('SET', AGENT .. id .. ':face', new_face(name, sealed))
    save(member)
end

-- As it is in the record now; but what it asked for within the hour it asked for.
local function return_to(member, sealed, known)
    local id = member.id
    for _, tail in ipairs({ '', ':window', ':face' }) do call('PERSIST', AGENT .. id .. tail) end
    set(member, 'isGone', nil)
    for _, field in ipairs({ 'status', 'healthScore', 'isBlockedByHand', 'suspendedAt', 'tokenFailures', 'token',
        'tokenExpiresAt', 'successCount', 'failureCount' }) do
        set(member, field, known[field])
    end
    local key = AGENT .. id .. ':face'
    local face = call('GET', key)
    call('SET', key, face:sub(1, 2 + struct.unpack('>H', face)) .. sealed)
end

-- Other limits than those it was last lent by move the moment it is free.
local function follow_limits(member)
    local window = window_of(member.id)
    if window == '' then return end
    local count, oldest = #window / 6, nil
    if LIMIT >= 1 and count >= LIMIT then oldest = moment_in(window, count - LIMIT + 1) end
    local free = next_free(moment_in(window, count), oldest, number(member, 'evenAt'))
    local known = number(member, 'nextFreeAt')
    -- What was answered a moment ago is still known by that moment only.
    if known <= now + INTERVAL then free = math.max(free, known) end
    if math.max(free, known) > now then set(member, 'nextFreeAt', free) end
end

local function is_elsewhere(member)
    local place, id = member.place, member.id
    if place == 'available' or place == 'bare' then
        return tonumber(call('ZSCORE', PLACES[place], id)) ~= free_from(member)
    end
    return place == 'suspended' and tonumber(call('ZSCORE', RECOVERING, id) or nil) ~= recovers_at(member)
end

local function follow(member, name, sealed, known)
    local key = AGENT .. member.id .. ':face'
    local face = call('GET', key)
    local length = struct.unpack('>H', face)
    local is_moved = face:sub(3, 2 + length) ~= name
    if is_moved then call('SET', key, new_face(name, face:sub(3 + length))) end
    if member.fields.isGone then
        return_to(member, sealed, known)
        is_moved = true
    elseif member.fields.isLeaving then
        set(member, 'isLeaving', nil)
        is_moved = true
    end
    follow_limits(member)
    if is_moved or next(member.moved) or is_elsewhere(member) then save(member) end
end

local was_empty = judged() == 0
for _, each in ipairs(cjson.decode(ARGV[3])) do
    local id, name, sealed, known = number_text(each[1]), each[2], each[3], each[4]
    local member = read(id)
    if member then follow(member, name, sealed, known) else join(id, name, sealed, known) end
end
for _, number_of in ipairs(cjson.decode(ARGV[4])) do
    local member = read(number_text(number_of))
    if member and is_counted(member) then
        set(member, 'isLeaving', '1')
        save(member)
    end
end
local phase = ARGV[5]
if phase == 'last 1' or (phase == 'whole' and was_empty) then
    if is_above_minimum() then close(pool, 'the pool is no longer empty') end
end
if phase:sub(1, 4) == 'last' or phase == 'whole' then look_at_rate() end
finish()
return was_empty and 1 or 0
