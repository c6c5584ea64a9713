"""What is kept from the products."""

from pydantic import Field

from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.entry.api.shapes import TIME, Given


class QuarantineResponse(Given):
    quarantine_id: str = Field(examples=["019a0000-0000-5000-8000-000000000000"])
    seller_id: str = Field(examples=["atelier"])
    execution_id: str = Field(examples=["019a0000-0000-7000-8000-000000000000"])
    status: QuarantineStatus
    measure: str = Field(description="what was too much", examples=["JUMPED"])
    field: str = Field(examples=["sellingPrice"])
    reason: str = Field(
        description="in words, with an example",
        examples=["sellingPrice is 5 times as high or as low as before in 90 of 90; 118005032: 599000 → 5990"],
    )
    documents: int = Field(ge=0, description="held so far", examples=[90])
    events: int = Field(ge=0, description="what would be told", examples=[90])
    opened_at: str = Field(examples=[TIME])
    ended_at: str | None = Field(examples=[None])
