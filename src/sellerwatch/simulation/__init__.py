"""A simulated world: whole houses on virtual time, their ends and their bad luck drawn from one seed.

    loop      virtual time: which callback is next is the seed's choice
    lives     processes that die, stand still and come back
    ends      the marketplace and the product server, without sockets
    faults    what can go wrong, by name, and how often in this seed
    seams     where it goes wrong: every call of a port
    place     what a story comes from, what came of it, and what is seen of a town
    bells     what saves the looking in vain
    person    what only a person may do
    town      houses on one database, lived through from a seed
    watching  what must be true whatever happened: the invariants, seen from outside
    story     a seed told, and made smaller

And of operations as they are, or may become:

    scale      an operation in small
    weather    what it has to reckon with outside
    miniature  it, lived and measured
    forecast   how the whole would fare

The houses are the real ones; simulated are only the ends of the world. The same seed tells the same story, byte for byte.
"""
