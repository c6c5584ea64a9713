"""What the marketplace truly holds, in the names of the outgoing event's `productData`, for checks to compare with.

`price` always equals `sellingPrice`, so differences name only the latter.
"""

from collections.abc import Mapping
from typing import TypedDict

from sellerwatch.sandbox.world import Product

Truth = dict[str, object]
ALIASES = frozenset({"price"})


class Difference(TypedDict):
    """One field of one item that is no longer what it was."""

    itemNo: int
    field: str
    old: object
    new: object


def truth_of(product: Product, *, listed: bool) -> Truth:
    """The product as a perfect crawl would know it."""
    return {
        "name": product.name,
        "brand": {"code": product.brand.code, "name": product.brand.name, "nameKr": product.brand.name_kr},
        "price": product.selling_price,
        "normalPrice": product.normal_price,
        "originalPrice": product.original_price,
        "sellingPrice": product.selling_price,
        "discountPrice": product.discount_price,
        "discountRate": product.discount_rate,
        "appPrice": product.app_price,
        "appDiscountRate": product.app_discount_rate,
        "stock": product.stock,
        "soldOut": product.sold_out,
        "status": "ACTIVE" if listed else "DELISTED",
        "category": _category(product),
        "images": list(product.images),
        "shipping": {"type": product.shipping_type, "fee": product.shipping_fee, "feeType": fee_type(product)},
        "options": [
            {"optionNo": option.option_no, "color": option.color, "size": option.size, "stock": option.stock}
            for option in sorted(product.options, key=lambda option: option.option_no)
        ],
        "tags": sorted(product.tags),
        "originCountry": product.origin_country,
        "itemStatus": product.item_status,
        "description": product.description,
        "url": product_url(product.item_no),
    }


def differences(item_no: int, old: Truth, new: Truth) -> list[Difference]:
    """Field by field, in the order of the truth; a reordered list is a difference."""
    return [
        {"itemNo": item_no, "field": field, "old": value, "new": new[field]}
        for field, value in old.items()
        if field not in ALIASES and value != new[field]
    ]


def agrees(truth: object, told: object) -> bool:
    """Does the other side say the same? It may say more: objects may have further keys, lists may not be longer."""
    if isinstance(truth, dict):
        return isinstance(told, dict) and all(key in told and agrees(value, told[key]) for key, value in truth.items())
    if isinstance(truth, list):
        if not isinstance(told, list | tuple) or len(told) != len(truth):
            return False
        return all(agrees(one, other) for one, other in zip(truth, told, strict=True))
    return truth == told and isinstance(truth, bool) is isinstance(told, bool)


def disagreements(truth: Truth, data: Mapping[str, object]) -> list[str]:
    """The fields of which `data` (a `productData`) does not say what is true, by name."""
    return [field for field, value in truth.items() if field not in data or not agrees(value, data[field])]


def fee_type(product: Product) -> str:
    return "PAID" if product.shipping_fee else "FREE"


def product_url(item_no: int) -> str:
    return f"https://m.web.mustit.co.kr/v2/m/product/product_detail/{item_no}"


def _category(product: Product) -> list[dict[str, str]]:
    header, large, medium, small = product.category
    levels = [("header", header), ("large", large), ("medium", medium)]
    if small is not None:
        levels.append(("small", small))
    return [{"level": level, "code": code, "name": name} for level, (code, name) in levels]
