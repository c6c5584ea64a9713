-- PURPOSE what an operator sees of the pool.
-- USES    prelude windows ceiling holds head members breakers gates budgets
-- KEYS    leased breaker health
-- ARGV    none
-- RETURNS {now, leased, what remains of the budgets, why or '', until or -1, the head flat, health flat}
-- ATOMIC  it only reads, all of one moment.
-- COST    O(log n), at most 250 windows and 101 numbers: the same for any pool.
local why, till = what_holds_now()
return {
    now, call('ZCARD', LEASED), budgets(nil, nil, nil), why, till, call('HGETALL', BREAKER), call('HGETALL', HEALTH),
}
