"""Meaning: which fields a product has, which document owns each, where it is found and when two values are the same.

Declared once, in `FIELDS`: reading, comparing, the kinds of change, the outgoing event, the counters of drift and the
reference page all follow from it, so that another field is another line. Because each field has exactly one owner, a
product never depends on the order in which its documents come.

Refused: a document in which a required field is missing or any declared field can't be read. It becomes an error that
names the field, never a null, a zero or an empty list. Fields that aren't declared are ignored, and named.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sellerwatch.domain import forms
from sellerwatch.domain.documents import ChangeKind, Document, DocumentKind, Value
from sellerwatch.domain.errors import Unknown, Unreadable
from sellerwatch.domain.forms import Form

UNKNOWN_MAX = 20
PRODUCT_URL = "https://m.web.mustit.co.kr/v2/m/product/product_detail/{itemNo}"


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

VOLATILE: Mapping[str, str] = {
    _INFO: "sellerNo sellerId itemNo isBoutiqueItem userDiscountInfo badgeList discountDetails catalogId"
    " countPriceComparison isPriceComparison isLowestPrice",
    "ProductBannersModule": "timesales",
    "ShippingModule": "title",
    _TEXT: "title itemNo shippingLocation sellerEvaluations warningTextSellerStatus",
    _LIST: "itemNo landingUrl likeStatus likeImageUrl likeCount webSpacingInfo brandCode shippingType badgeList"
    " reviewScore isLastItem isLowestPrice isAd trackingInfo amplitudeInfo ga4Info"
    " catalogNo catalogItemCount catalogMainImageUrl",
    _OPTION: "",
}
"""By module or kind: what is known to be there and known to mean nothing for the product."""

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


def owner_of(name: str) -> DocumentKind:
    return _owned(name).document


def change_kind(name: str) -> ChangeKind:
    return _owned(name).change


def owned_fields(document: Document) -> dict[str, Value]:
    """The product's fields that this document is the owner of."""
    names = _OWNED_BY[document.kind]
    return {name: value for name, value in document.fields.items() if name in names}


def stand_ins(document: Document) -> dict[str, Value]:
    """What it can say about fields that another document owns, for as long as that one isn't known."""
    if document.kind is not DocumentKind.MINI_SHOP:
        return {}
    return {target: document.fields.get(name) for name, target in _STAND_INS}


def product_data(
    fields: Mapping[str, Value], item_no: int, status: str, product_url: str = PRODUCT_URL
) -> dict[str, Value]:
    """`productData` of the outgoing event and of the API; what isn't known yet is null."""
    known = {**fields, "status": status, "url": product_url.replace("{itemNo}", str(item_no))}
    return {
        key: known.get(source) if isinstance(source, str) else {inner: known.get(name) for inner, name in source}
        for key, source in _SHOWN
    }


def read_fields(
    kind: DocumentKind, content: Mapping[str, object]
) -> tuple[dict[str, Value], tuple[str, ...], tuple[str, ...]]:
    """The fields a document says, in normal form; the usual ones it lacks; names it has that nobody declared.

    `content` is a list's entry as it is; of a DETAIL its modules' data by type; of an OPTION `{"options": [...]}`.
    """
    fields: dict[str, Value] = {}
    missing: list[str] = []
    unknown: list[str] = []
    from_search = kind is _LIST and not _SEARCH_MARKS.isdisjoint(content)
    for part in _PARTS[kind]:
        source = _source(part, content)
        for step in part.steps:
            value = source.get(step.key) if step.key else source
            said = None if value is None else step.read(value, step.where)
            if said is not None:
                fields[step.name] = said
                if step.entry_keys:
                    unknown += _undeclared(value, step)
            elif not (from_search and not step.in_search):
                fields[step.name] = step.nothing
                if step.usual and (source or part.always_there):
                    missing.append(step.name)
        if not part.known.issuperset(source):
            unknown += [f"{part.name}.{name}" if part.name else name for name in source.keys() - part.known]
    if missing:
        _refuse_holes(kind, missing)
    return fields, tuple(missing), _named(unknown) if unknown else ()


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    key: str
    read: forms.Read
    where: str
    nothing: Value
    usual: bool
    in_search: bool
    entry_keys: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    steps: tuple[_Step, ...]
    known: frozenset[str]
    always_there: bool


def _owned(name: str) -> Field:
    try:
        return _OWNED[name]
    except KeyError:
        raise Unknown("field", name) from None


def _source(part: _Part, content: Mapping[str, object]) -> Mapping[str, object]:
    source = content.get(part.name, _NOTHING) if part.name else content
    if not isinstance(source, dict):
        raise Unreadable(part.name, f"{forms.shown(source)} is not an object")
    return source


def _undeclared(entries: object, step: _Step) -> list[str]:
    assert isinstance(entries, list)
    assert step.entry_keys is not None
    strange = [entry.keys() - step.entry_keys for entry in entries if not step.entry_keys.issuperset(entry)]
    return [f"{step.name}.{name}" for names in strange for name in names]


def _refuse_holes(kind: DocumentKind, missing: list[str]) -> None:
    required, expected = _EXPECTED[kind]
    if len(missing) * 2 > expected:
        raise Unreadable(kind.value, f"most of its fields are missing: {', '.join(missing)}")
    for name in missing:
        if name in required:
            raise Unreadable(f"{kind.value}.{name}", "missing")


def _named(names: list[str]) -> tuple[str, ...]:
    """Names out of an answer are hostile too: few, short, printable."""
    return tuple(sorted({ascii(name)[1:-1][:80] for name in names})[:UNKNOWN_MAX])


def _parts(kind: DocumentKind) -> tuple[_Part, ...]:
    steps: dict[str, list[_Step]] = {}
    for field in FIELDS:
        if field.document is kind:
            module, dot, key = field.path.rpartition(".")
            where = f"{kind.value}.{field.name}"
            step = _Step(
                name=field.name,
                key=key,
                read=field.form.read,
                where=where,
                nothing=field.form.nothing,
                usual=field.usual or field.required,
                in_search=field.in_search,
                entry_keys=field.form.keys if field.form.keys_are_all else None,
            )
            steps.setdefault(module if dot else "", []).append(step)
    return tuple(_part(kind, name, tuple(found)) for name, found in steps.items())


def _part(kind: DocumentKind, name: str, steps: tuple[_Step, ...]) -> _Part:
    known = KEYS[kind][name] | set(VOLATILE[name or kind].split())
    return _Part(name, steps, frozenset(known), name not in MODULES_NOT_ALWAYS_THERE)


def _keys(kind: DocumentKind) -> dict[str, frozenset[str]]:
    keys: dict[str, frozenset[str]] = {}
    for field in FIELDS:
        if field.document is kind:
            module, _, key = field.path.rpartition(".")
            keys[module] = keys.get(module, frozenset()) | field.form.keys | ({key} if key else set())
    return keys


def _shown() -> tuple[tuple[str, str | tuple[tuple[str, str], ...]], ...]:
    places: dict[str, str | tuple[tuple[str, str], ...]] = {"status": "status", "url": "url", "price": "sellingPrice"}
    for field in _OWNED.values():
        key, dot, inner = (field.shown or field.name).partition(".")
        if dot:
            known = places.get(key, ())
            assert isinstance(known, tuple)
            places[key] = (*known, (inner, field.name))
        else:
            places[key] = field.name
    return tuple((key, places[key]) for key in dict.fromkeys((*DATA_ORDER, *places)))


_NOTHING: Mapping[str, object] = {}
_SEARCH_MARKS = frozenset({"brandCode", "shippingType"})
_OWNED = {field.name: field for field in FIELDS if not field.stands_for}
_OWNED_BY = {kind: frozenset(name for name, field in _OWNED.items() if field.document is kind) for kind in DocumentKind}
_STAND_INS = tuple((field.name, field.stands_for) for field in FIELDS if field.stands_for)
_SHOWN = _shown()
KEYS: Mapping[DocumentKind, Mapping[str, frozenset[str]]] = {kind: _keys(kind) for kind in DocumentKind}
"""By module ("" is the document itself): the names that are read."""
_PARTS = {kind: _parts(kind) for kind in DocumentKind}
_EXPECTED = {
    kind: (
        frozenset(field.name for field in FIELDS if field.document is kind and field.required),
        sum(field.usual or field.required for field in FIELDS if field.document is kind),
    )
    for kind in DocumentKind
}
