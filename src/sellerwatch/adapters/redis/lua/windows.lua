-- PURPOSE look into the windows of identities.
-- KEYS    agent
-- ARGV    none
-- RETURNS nothing; it is a part of other scripts.
-- ATOMIC  it only reads.
-- COST    O(log of the hourly limit).
local function window_of(id)
    local window = call('GET', AGENT .. id .. ':window') or ''
    if window == '' and is_lost(window, call('HGET', AGENT .. id, 'lastUsedAt')) then return all_spent() end
    return window
end

-- How many of its entries are younger than `since`.
local function counted(window, since)
    local low, high = 1, #window / 6 + 1
    while low < high do
        local middle = math.floor((low + high) / 2)
        if moment_in(window, middle) > since then high = middle else low = middle + 1 end
    end
    return #window / 6 - low + 1
end
