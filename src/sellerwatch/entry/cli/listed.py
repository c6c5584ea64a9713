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
    Listed(
        "demo", "run", "Show all of it at work against the sandbox, and account for what was found.", is_group=False
    ),
    Listed("up", "run", "Run the whole system in one process.", is_group=False),
    Listed("api", "run", "Run the API alone; any number of processes.", is_group=False),
    Listed("worker", "run", "Run a worker alone; any number of processes.", is_group=False),
    Listed("scheduler", "run", "Run the rest alone; any number of processes.", is_group=False),
    Listed("sandbox", "run", "Run the fake marketplace and product server alone, to develop against.", is_group=False),
    Listed("simulate", "simulate", "Bad days on virtual time, or a forecast for a size.", is_group=False),
    Listed("crawl", "run", "Crawl a seller now, or cancel a crawl.", is_group=False),
    Listed("doctor", "doctor", "Check settings, database, pool, queue, schedule and product server.", is_group=False),
    Listed("status", "status", "Show what runs, what waits and what failed.", is_group=False),
    Listed("explain", "explain", "Explain what holds a seller, a task or an identity up."),
    Listed(
        "drift",
        "drift",
        "Show which fields are not as declared, what is quarantined, and which changes were not told.",
        is_group=False,
    ),
    Listed("seller", "sellers", "Sellers: whose shops are watched, and how often."),
    Listed("product", "products", "Products: what is known of them, and how it came to be so."),
    Listed("agents", "agents", "Identities: whom requests are made as."),
    Listed("outbox", "outbox", "Outboxes: what is still to be sent, what could not be, what is held."),
    Listed("deliver", "deliver", "Deliveries: whether the product server has what it was told."),
    Listed("raw", "raws", "Raws: what the marketplace answered, processed once more."),
    Listed("dlq", "dead_letters", "Dead letters: messages received too often, or not understood."),
    Listed("queue", "queues", "The queues in SQS, where tasks and triggers are carried by it."),
    Listed("schedule", "schedules", "The rules of EventBridge, where they fire the triggers."),
    Listed("db", "db", "The database: its shape, and what in it may be forgotten."),
    Listed("token", "credentials", "Access tokens for the API.", is_group=False),
    Listed("key", "credentials", "Keys for other systems that call /api/internal.", is_group=False),
)
