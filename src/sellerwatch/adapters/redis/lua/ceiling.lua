-- PURPOSE what the site's ceiling leaves.
-- KEYS    rate
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  it is taken from in the same step.
-- COST    O(1), or O(log of the ceiling) when it is near.
local function left_window(index)
    local moment = tonumber(call('LINDEX', RATE, index) or nil)
    return moment ~= nil and moment <= now - RATE_WINDOW
end

-- What has left the ceiling's window is dropped when it would be in the way, or too much of it has gathered.
local function rate_room(wanted)
    local many = call('LLEN', RATE)
    if (many + wanted > RATE_LIMIT or many >= 2000) and left_window(0) then
        local low, high = 1, many
        while low < high do
            local middle = math.floor((low + high) / 2)
            if left_window(middle) then low = middle + 1 else high = middle end
        end
        call('LTRIM', RATE, low, -1)
        many = many - low
    end
    return RATE_LIMIT > many and RATE_LIMIT - many or 0
end
