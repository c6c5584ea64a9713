"""What goes in and what comes out, field by field, as the OpenAPI document tells it.

What goes in is read with these: unknown fields and values of another type are refused. What comes out is described by
them; tests hold every answer against its description.
"""

from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

T = TypeVar("T")
TIME = "2026-11-18T12:00:00.000Z"


class Taken(BaseModel):
    """A body as it is taken: nothing is guessed and nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class Page(Given, Generic[T]):
    """A part of a list."""

    content: list[T]
    page: int = Field(ge=0, description="from 0", examples=[0])
    size: int = Field(ge=1, le=100, examples=[20])
    total_elements: int = Field(ge=0, examples=[1])
    total_pages: int = Field(ge=0, examples=[1])


class CursorPage(Page[T], Generic[T]):
    """A part of a list that can be read to its end."""

    next_cursor: str | None = Field(description="for `cursor`; null: that was all", examples=["20-1-1"])


def like(**example: Any) -> ConfigDict:
    """The base's configuration, with an example for the reference."""
    return ConfigDict(json_schema_extra={"examples": [example]})
