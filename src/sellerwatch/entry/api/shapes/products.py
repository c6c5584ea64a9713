"""Products and their changes. What is not known yet is null."""

from typing import Any

from pydantic import Field

from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.products import ProductStatus
from sellerwatch.entry.api.shapes import TIME, Given


class Brand(Given):
    code: int | None = Field(examples=[153])
    name: str | None = Field(examples=["Maison"])
    name_kr: str | None = Field(examples=["메종"])


class Category(Given):
    level: str = Field(examples=["header"])
    code: str = Field(examples=["W"])
    name: str = Field(examples=["Women"])


class Shipping(Given):
    type: str = Field(examples=["DOMESTIC"])
    fee: int = Field(examples=[0])
    fee_type: str = Field(examples=["FREE"])
    delivery: str | None = Field(None, examples=[None])


class Option(Given):
    option_no: int = Field(examples=[4134224619])
    color: str = Field(examples=[""])
    size: str = Field(examples=["US 4"])
    stock: int = Field(examples=[1])
    shipping_type: str = Field("", examples=["DOMESTIC"])
    size_guide: str = Field("", examples=[""])


class ProductResponse(Given):
    """A product; its fields as the marketplace's documents tell them."""

    item_no: int = Field(examples=[118005032])
    seller_id: str = Field(examples=["atelier"])
    status: ProductStatus
    version: int = Field(description="0 until it is complete", examples=[7])
    complete: bool = Field(description="whether all of its documents were seen", examples=[True])
    first_seen_at: str = Field(examples=[TIME])
    last_seen_at: str | None = Field(description="null: of a past moment it is not kept", examples=[TIME])
    last_changed_at: str | None = Field(examples=[TIME])
    name: str | None = Field(examples=["Silk scarf"])
    price: int | None = Field(examples=[599000])
    brand: Brand
    normal_price: int | None = Field(examples=[1083000])
    selling_price: int | None = Field(examples=[599000])
    discount_price: int | None = Field(examples=[545100])
    discount_rate: int | None = Field(examples=[45])
    stock: int | None = Field(examples=[3])
    sold_out: bool | None = Field(examples=[False])
    category: list[Category] | None
    images: list[str] | None = Field(examples=[["https://images.example/1.jpg"]])
    shipping: Shipping | None
    options: list[Option] | None
    url: str = Field(examples=["https://market.example/product/118005032"])
    app_price: int | None = Field(examples=[545100])
    app_discount_rate: int | None = Field(examples=[50])
    original_price: int | None = Field(examples=[1083000])
    tags: list[str] | None = Field(examples=[["NEW"]])
    origin_country: str | None = Field(examples=["Italy"])
    item_status: str | None = Field(examples=["NEW"])
    description: str | None = Field(
        description="HTML of the seller: never to be shown unescaped", examples=["<p>…</p>"]
    )
    description_images: list[str] | None = Field(examples=[[]])


class FieldChange(Given):
    field: str = Field(examples=["sellingPrice"])
    old: Any = Field(examples=[621000])
    new: Any = Field(examples=[599000])


class ChangeResponse(Given):
    version: int = Field(examples=[7])
    changed_at: str = Field(examples=[TIME])
    kinds: list[ChangeKind]
    fields: list[FieldChange]
