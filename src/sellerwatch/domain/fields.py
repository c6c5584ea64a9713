"""Fields: everything a document says, declared once.

`FIELDS` is the table: which field, in which document and where, how it is written, when two values are the same, which
kind of change a difference is, and whether a document without it is one. `VOLATILE` is its other half: what is known to
be there and to mean nothing. Reading, the canonical form, the digest, the difference, the counters of drift, the
outgoing event and docs/fields.md all follow from it (domain/meaning.py): another field is another line, here.
"""

from dataclasses import dataclass

from sellerwatch.domain import forms
from sellerwatch.domain.documents import ChangeKind, DocumentKind
from sellerwatch.domain.forms import Form


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    document: DocumentKind
    path: str
    """Where the document has it: `module.key`, a whole `module.`, or `key`."""
    form: Form
    change: ChangeKind
    required: bool = False
    """A document without it is no document: better none than one that empties the field."""
    usual: bool = True
    """Nearly always there: its absence is counted as drift. (All required fields are.)"""
    in_search: bool = True
    """SEARCH's list entries have it too; a document read from one doesn't speak of the others."""
    shown: str = ""
    """Its place in productData, where that isn't its own name."""
    stands_for: str = ""
    """It is not the product's: it stands in for this field until the owner's document is known."""
    tolerance: int = 0
    """Numbers no further apart are the same: the product keeps the one it has, so that small steps add up."""


@dataclass(frozen=True, slots=True)
class Volatile:
    """Names of one document, or of one of its modules, that are known and mean nothing for the product."""

    document: DocumentKind
    module: str
    names: str


_DETAIL, _LIST, _OPTION = DocumentKind.DETAIL, DocumentKind.MINI_SHOP, DocumentKind.OPTION
_INFO, _TEXT = "ProductInfoModule", "ProductDetailInfoModule"

FIELDS: tuple[Field, ...] = (
    Field("name", _DETAIL, f"{_INFO}.itemName", forms.TEXT, ChangeKind.INFO, required=True),
    Field("brandCode", _DETAIL, f"{_INFO}.brandCode", forms.NUMBER, ChangeKind.INFO, shown="brand.code"),
    Field("brandName", _DETAIL, f"{_INFO}.brandName", forms.TEXT, ChangeKind.INFO, shown="brand.name"),
    Field("brandNameKr", _DETAIL, f"{_INFO}.brandNameKr", forms.TEXT, ChangeKind.INFO, shown="brand.nameKr"),
    Field("normalPrice", _DETAIL, f"{_INFO}.normalPrice", forms.WON, ChangeKind.PRICE, required=True),
    Field("sellingPrice", _DETAIL, f"{_INFO}.sellingPrice", forms.WON, ChangeKind.PRICE, required=True),
    Field("discountPrice", _DETAIL, f"{_INFO}.discountPrice", forms.WON, ChangeKind.PRICE, required=True),
    Field("discountRate", _DETAIL, f"{_INFO}.discountRate", forms.PERCENT, ChangeKind.PRICE, required=True),
    Field("stock", _DETAIL, f"{_INFO}.stock", forms.PIECES, ChangeKind.STOCK, required=True),
    Field("soldOut", _DETAIL, f"{_INFO}.isSoldOut", forms.FLAG, ChangeKind.SOLD_OUT, required=True),
    Field("category", _DETAIL, f"{_INFO}.", forms.CATEGORY, ChangeKind.CATEGORY, required=True),
    Field("images", _DETAIL, "ProductBannersModule.images", forms.IMAGES, ChangeKind.IMAGES, required=True),
    Field("shipping", _DETAIL, "ShippingModule.items", forms.SHIPPING, ChangeKind.SHIPPING, required=True),
    Field("options", _OPTION, "options", forms.OPTIONS, ChangeKind.OPTIONS, required=True),
    Field("appPrice", _LIST, "appPrice", forms.WON, ChangeKind.PRICE, required=True, in_search=False),
    Field("appDiscountRate", _LIST, "appDiscountRate", forms.PERCENT, ChangeKind.PRICE, required=True, in_search=False),
    Field("originalPrice", _LIST, "originalPrice", forms.WON, ChangeKind.PRICE, required=True),
    Field("tags", _LIST, "tagList", forms.TAGS, ChangeKind.INFO),
    Field("originCountry", _DETAIL, f"{_TEXT}.originCountry", forms.TEXT, ChangeKind.INFO),
    Field("itemStatus", _DETAIL, f"{_TEXT}.itemStatus", forms.TEXT, ChangeKind.INFO),
    Field("description", _DETAIL, f"{_TEXT}.descriptionMarkUp", forms.MARKUP, ChangeKind.INFO),
    Field("descriptionImages", _DETAIL, f"{_TEXT}.descriptionMarkUp", forms.IMAGES_IN_MARKUP, ChangeKind.IMAGES),
    # What a list entry says besides serves the delta crawl. Its price is the one after all discounts.
    Field("name", _LIST, "name", forms.TEXT, ChangeKind.INFO, required=True, stands_for="name"),
    Field("brandName", _LIST, "brandName", forms.TEXT, ChangeKind.INFO, stands_for="brandName"),
    Field("images", _LIST, "imageUrlList", forms.IMAGES, ChangeKind.IMAGES, stands_for="images"),
    Field("price", _LIST, "price", forms.WON, ChangeKind.PRICE, required=True, stands_for="discountPrice"),
    Field("normalPrice", _LIST, "normalPrice", forms.WON, ChangeKind.PRICE, in_search=False, stands_for="normalPrice"),
    Field("discountRate", _LIST, "discountRate", forms.PERCENT, ChangeKind.PRICE, stands_for="discountRate"),
)


MODULES_NOT_ALWAYS_THERE = frozenset({_TEXT})
"""Whose absence is no drift. All modules that hold no field are ignored."""

VOLATILE: tuple[Volatile, ...] = (
    Volatile(
        _DETAIL,
        _INFO,
        "sellerNo sellerId itemNo isBoutiqueItem userDiscountInfo badgeList discountDetails catalogId"
        " countPriceComparison isPriceComparison isLowestPrice",
    ),
    Volatile(_DETAIL, "ProductBannersModule", "timesales"),
    Volatile(_DETAIL, "ShippingModule", "title"),
    Volatile(_DETAIL, _TEXT, "title itemNo shippingLocation sellerEvaluations warningTextSellerStatus"),
    Volatile(
        _LIST,
        "",
        "itemNo landingUrl likeStatus likeImageUrl likeCount webSpacingInfo brandCode shippingType badgeList"
        " reviewScore isLastItem isLowestPrice isAd trackingInfo amplitudeInfo ga4Info"
        " catalogNo catalogItemCount catalogMainImageUrl",
    ),
)

DATA_ORDER = (
    "name",
    "price",
    "brand",
    "normalPrice",
    "sellingPrice",
    "discountPrice",
    "discountRate",
    "stock",
    "soldOut",
    "status",
    "category",
    "images",
    "shipping",
    "options",
    "url",
)
"""The keys of productData as they are promised; fields declared beyond these follow in the table's order."""
