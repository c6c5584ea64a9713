"""What holds something up."""

from pydantic import Field

from sellerwatch.domain.verdicts import Culprit, Stage
from sellerwatch.entry.api.shapes import TIME, Given


class Walked(Given):
    stage: Stage
    is_clear: bool = Field(examples=[True])
    text: str = Field(examples=["its schedule is ACTIVE"])


class ExplainResponse(Given):
    subject: str = Field(examples=["seller"])
    id: str = Field(examples=["atelier"])
    at: str = Field(examples=[TIME])
    culprit: Culprit
    stage: Stage
    text: str = Field(description="the first thing that is in the way", examples=["seller atelier is INACTIVE"])
    since: str | None = Field(examples=[TIME])
    clears_at: str | None = Field(examples=[None])
    needs_a_person: bool = Field(examples=[True])
    advice: str | None = Field(examples=["activate it"])
    walked: list[Walked] = Field(description="what was looked at, in order")
