"""What an error looks like."""

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from sellerwatch.entry.api.shapes import TIME, Given


class FieldProblem(Given):
    field: str = Field(examples=["crawlingIntervalDays"])
    message: str = Field(examples=["is greater than 30"])


class Problem(Given):
    """RFC 9457, with the fields that operators asked for."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)

    type: str = Field(examples=["urn:sellerwatch:problem:invalid-input"])
    title: str = Field(examples=["Invalid input"])
    status: int = Field(ge=400, le=599, examples=[400])
    detail: str = Field(examples=["not accepted: crawlingIntervalDays"])
    error_code: str = Field(examples=["INVALID_INPUT"])
    message: str = Field(
        description="in Korean or English, after Accept-Language", examples=["The request has invalid values."]
    )
    timestamp: str = Field(examples=[TIME])
    path: str = Field(examples=["/api/v1/sellers"])
    errors: list[FieldProblem] | None = Field(None, description="what is wrong with which field")
