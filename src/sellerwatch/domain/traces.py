"""Trace contexts: to whose story a piece of work belongs, written as W3C's `traceparent`.

    trigger ─▶ relay ─▶ crawl ─▶ absorb ─▶ deliver        one trace per task, each step the child of the one before

A context derives from the task's id and the step's role, so that nothing need be carried where the task's id is known
anyway, doing a step twice is the same span, and a simulation makes the same traces each time. To everybody else a
context is a text without a meaning.
"""

import re
from hashlib import blake2b
from typing import Final

_FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
CRAWL: Final = "crawl"
CARRIED: Final = "traceparent"
"""By this name an outgoing event's payload carries its context; it is taken out before the event is sent."""


def root(task_id: str) -> str:
    """Of the task's coming to be: the trace begins with it."""
    digest = blake2b(task_id.encode(), digest_size=24).hexdigest()
    return f"00-{digest[:32]}-{digest[32:]}-01"


def child(context: str, role: str) -> str:
    """Of a step within the same trace."""
    span = blake2b(f"{context}/{role}".encode(), digest_size=8).hexdigest()
    return f"{context[:35]}-{span}{context[52:]}"


def crawled(task_id: str) -> str:
    """Of the attempt that succeeded: there is one at the most."""
    return child(root(task_id), CRAWL)


def trace_id(context: str) -> str:
    return context[3:35]


def span_id(context: str) -> str:
    return context[36:52]


def checked(context: object) -> str | None:
    """A context that came from outside, or None where it is none."""
    return context if isinstance(context, str) and _FORM.fullmatch(context) else None
