"""The sandbox: a fake marketplace and product server to develop, test and simulate against.

    conditions   what a user may choose             gate       tokens, the sliding limit, who asked how often
    world        shops and products, from a seed    faults     what goes wrong, by rate or staged
    mutate       changes, with an exact account     market     the marketplace's paths
    truth        what a perfect crawl would know    receiver   the product server
    pages        the documents (and furniture)      sandbox    both servers, without a transport
    words        what names are made of             server     both servers, on a socket

It promises: the same conditions and the same requests at the same moments give the same bytes, in any process. It knows no
clock, no randomness and no environment of its own, and copies nothing of the real marketplace.
"""
