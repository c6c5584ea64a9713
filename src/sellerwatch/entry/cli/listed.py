"""Which commands there are, the one place where they are registered; `sellerwatch --help` shows them in this order.

A module is loaded when its command is used, so that help appears at once. What a group's own help says begins with
the words that stand here; a test compares them.
"""

from typing import NamedTuple


class Listed(NamedTuple):
    name: str
    module: str
    """In this room. Its `app` holds the command of that name, or is the group."""
    about: str
    is_group: bool = True


LISTED = (
    Listed("status", "status", "Show what runs, what waits and what failed.", is_group=False),
    Listed("seller", "sellers", "Sellers: whose shops are watched, and how often."),
    Listed("product", "products", "Products: what is known of them, and how it came to be so."),
    Listed("agents", "agents", "Identities: whom requests are made as."),
    Listed("outbox", "outbox", "Outboxes: what is still to be sent, what could not be, what is held."),
    Listed("raw", "raws", "Raws: what the marketplace answered, processed once more."),
    Listed("dlq", "dead_letters", "Dead letters: messages received too often, or not understood."),
    Listed("db", "db", "The database: its shape, and what in it may be forgotten."),
)
