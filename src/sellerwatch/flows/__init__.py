"""What we do: one story per file, told top to bottom. A flow never calls a flow; the database connects them.

1 trigger     a seller's turn has come: an execution, the count, its first tasks
2 relay       task outbox → queue
3 crawl       queue → marketplace → documents and follow-ups
4 absorb      documents → products, changes, product outbox
5 deliver     product outbox → product server
any time      heal, forget, delist, identities, sellers, announce, watch
"""
