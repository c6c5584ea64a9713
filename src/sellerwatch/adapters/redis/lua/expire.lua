-- PURPOSE take back the leases past their deadline; spent stays spent.
-- USES    prelude head members breakers
-- KEYS    none of its own
-- ARGV    none
-- RETURNS how many there were, a thousand at most: a full thousand means ask again
-- ATOMIC  a report that comes at the same moment finds the lease or finds it gone.
-- COST    O(k log n) for k leases.
local taken = take_back()
if taken > 0 then finish() end
return taken
