"""Outboxes and dead letters."""

from typing import Annotated, Any

from pydantic import Field

from sellerwatch.entry.api.asked import VISIBLE_PATTERN
from sellerwatch.entry.api.shapes import TIME, Given, Taken, like
from sellerwatch.ports.reports import Box

LETTERS_MAX = 500


class OutboxResponse(Given):
    outbox_id: str = Field(examples=["019a0000-0000-5000-8000-000000000000"])
    box: Box
    subject: str = Field(description="the item, the seller, or the task", examples=["118005032"])
    event_type: str = Field(examples=["PRODUCT_UPDATED"])
    version: int | None = Field(examples=[7])
    status: str = Field(examples=["FAILED"])
    retry_count: int = Field(examples=[5])
    next_attempt_at: str | None = Field(examples=[TIME])
    error_message: str | None = Field(examples=["answered 500"])
    created_at: str = Field(examples=[TIME])
    sent_at: str | None = Field(examples=[None])
    quarantine_id: str | None = Field(description="HELD only: it foretells what waits there", examples=[None])


class DeadLetterResponse(Given):
    letter_id: str = Field(examples=["17"])
    task_id: str | None = Field(examples=["019a0000-0000-7000-8000-000000000001"])
    group: str = Field(examples=["atelier"])
    receives: int = Field(examples=[3])
    sent_at: str = Field(examples=[TIME])
    error: str | None = Field(examples=["received 3 times"])
    body: Any = Field(description="as it was sent", examples=["{}"])


class Redrive(Taken):
    model_config = like(letterIds=["17"])

    letter_ids: list[Annotated[str, Field(min_length=1, max_length=200, pattern=VISIBLE_PATTERN)]] | None = Field(
        None, alias="letterIds", max_length=LETTERS_MAX, description="none named: all that are there now"
    )


class RedriveResponse(Given):
    redriven: int = Field(description="how many are back in the queue", examples=[1])
