"""Health."""

from typing import Literal

from pydantic import Field

from sellerwatch.entry.api.shapes import Given


class ComponentHealth(Given):
    status: Literal["UP", "DOWN"]
    detail: str | None = Field(None, examples=["away"])


class Health(Given):
    status: Literal["UP", "DOWN"]
    components: dict[str, ComponentHealth] = Field(examples=[{"database": {"status": "UP"}}])


class Alive(Given):
    status: Literal["UP"]
