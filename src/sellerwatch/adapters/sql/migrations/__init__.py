"""The way from one shape of the database to the next. Run by `schema`; revisions lie in `versions`.

Two lines that know nothing of each other: the house (`house@head`) and the identities (`identities@head`), so that
the seven identity tables and their seed go back alone (`identities@base`) however far the house has come.

    0001_sellers_tasks_products ─▶ 0004_pool        0002_identities ─▶ 0003_seed_identities

A revision is made of what lies in its own file and in `frozen`: the live tables move on, a revision stays what it was.
"""
