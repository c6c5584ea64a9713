"""Harmless noise and real changes, by name: what may differ between two answers that mean the same, and what may not.

A noise takes the three documents of an item as JSON values and writes them otherwise, or writes the bytes otherwise; a
real change changes one field, and says which kind of change that is, what was there before and what is there now.
"""

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random  # noqa: TID251  # seeded by the test that asks
from typing import Any

import orjson

from flows.shelf import DETAIL, MINI_SHOP, OPTION, Documents
from pages import a_detail, a_list_item, an_option
from sellerwatch.domain.documents import ChangeKind

Json = dict[str, Any]
BASE = {"originCountry": "", "itemName": "노르드 여성 울 코트(네이비) · é", "brandCode": 153}


@dataclass
class Item:
    """Three documents that are still values."""

    entry: Json
    page: Json
    options: list[Json]
    write: Callable[[object], bytes] = orjson.dumps

    @property
    def info(self) -> Json:
        return self.module("ProductInfoModule")

    @property
    def text(self) -> Json:
        return self.module("ProductDetailInfoModule")

    @property
    def images(self) -> list[str]:
        return self.module("ProductBannersModule")["images"]

    @property
    def shipping(self) -> Json:
        [item] = self.module("ShippingModule")["items"]
        return item["data"]

    def module(self, name: str) -> Json:
        [data] = [module["data"] for module in self.page["moduleList"] if module["type"] == name]
        return data

    def documents(self) -> Documents:
        return {
            MINI_SHOP: self.write(self.entry),
            DETAIL: self.write(self.page),
            OPTION: self.write(self.options),
        }


def an_item(item_no: int) -> Item:
    options = [
        an_option(5000 + n, color=colour, size=f"IT {40 + n}", stock=n, sizeGuide="")
        for n, colour in enumerate(("검정", "네이비", "아이보리"))
    ]
    return Item(a_list_item(item_no), orjson.loads(a_detail(item_no, **BASE)), options)


Noise = Callable[[Item, Random], None]


def _volatile_of_a_list(name: str, *values: object) -> Noise:
    def noise(item: Item, chance: Random) -> None:
        item.entry[name] = chance.choice(values)

    return noise


def _volatile_of(module: str, name: str, *values: object) -> Noise:
    def noise(item: Item, chance: Random) -> None:
        item.module(module)[name] = chance.choice(values)

    return noise


def _of_the_page(part: str, name: str, *values: object) -> Noise:
    def noise(item: Item, chance: Random) -> None:
        (item.page[part] if part else item.page)[name] = chance.choice(values)

    return noise


SPELLINGS: Mapping[str, Callable[[int], object]] = {
    "a number": int,
    "a fraction of nothing": float,
    "digits": str,
    "separators": lambda amount: f"{amount:,}",
    "separators and decimals": lambda amount: f"{amount:,}.00",
    "one decimal": lambda amount: f"{amount}.0",
    "spaces around": lambda amount: f"  {amount:,} ",
}


def _spelled(where: str, name: str, spelling: Callable[[int], object]) -> Noise:
    def noise(item: Item, _: Random) -> None:
        if where == "options":
            for option in item.options:
                option[name] = spelling(_amount(option[name]))
        else:
            holder = getattr(item, where)
            holder[name] = spelling(_amount(holder[name]))

    return noise


def _amount(written: object) -> int:
    return int(float(str(written).replace(",", "")))


def _ordered(where: str, how: str) -> Noise:
    def noise(item: Item, chance: Random) -> None:
        for holder in {"entry": [item.entry], "info": [item.info], "page": [item.page], "options": item.options}[where]:
            names = sorted(holder, reverse=how == "backwards")
            if how == "shuffled":
                chance.shuffle(names)
            values = {name: holder[name] for name in names}
            holder.clear()
            holder.update(values)

    return noise


def _written(write: Callable[[object], bytes]) -> Noise:
    def noise(item: Item, _: Random) -> None:
        item.write = write

    return noise


def _texts(change: Callable[[str], str]) -> Noise:
    """Every text that is compared, written otherwise."""

    def noise(item: Item, _: Random) -> None:
        for holder, names in (
            (item.info, ("itemName", "brandName", "brandNameKr", "headerCategory", "largeCategory", "mediumCategory")),
            (item.text, ("itemStatus",)),
            (item.entry, ("name", "brandName")),
        ):
            for name in names:
                holder[name] = change(holder[name])
        for option in item.options:
            option["color"], option["size"] = change(option["color"]), change(option["size"])
        for tag in item.entry["tagList"]:
            tag["title"] = change(tag["title"])

    return noise


def _resized(change: Callable[[str], str]) -> Noise:
    def noise(item: Item, _: Random) -> None:
        item.images[:] = [change(url) for url in item.images]
        item.entry["imageUrlList"] = [change(url) for url in item.entry["imageUrlList"]]

    return noise


def _each_tag(name: str, value: object) -> Noise:
    def noise(item: Item, _: Random) -> None:
        for tag in item.entry["tagList"]:
            tag[name] = value

    return noise


def _each_option(name: str, *values: object) -> Noise:
    def noise(item: Item, chance: Random) -> None:
        for option in item.options:
            option[name] = chance.choice(values)

    return noise


def _module_added(module: Json, place: int) -> Noise:
    def noise(item: Item, _: Random) -> None:
        item.page["moduleList"].insert(place, module)

    return noise


def _without(where: str, name: str) -> Noise:
    def noise(item: Item, _: Random) -> None:
        for holder in item.options if where == "options" else [getattr(item, where)]:
            holder.pop(name)

    return noise


def _set(where: str, name: str, value: object) -> Noise:
    def noise(item: Item, _: Random) -> None:
        for holder in item.options if where == "options" else [getattr(item, where)]:
            holder[name] = value

    return noise


def _modules_backwards(item: Item, _: Random) -> None:
    item.page["moduleList"].reverse()


def _options_shuffled(item: Item, chance: Random) -> None:
    chance.shuffle(item.options)


def _options_backwards(item: Item, _: Random) -> None:
    item.options.reverse()


def _tags_backwards(item: Item, _: Random) -> None:
    item.entry["tagList"].reverse()


def _a_tag_twice(item: Item, _: Random) -> None:
    item.entry["tagList"].append(dict(item.entry["tagList"][0], textColor="#123456"))


def _spaced(indent: int | str | None) -> Callable[[object], bytes]:
    return lambda value: json.dumps(value, indent=indent, ensure_ascii=False).encode()


_DIMS = "/_dims_/"
NOISES: dict[str, Noise] = {
    **{
        f"list {name}": _volatile_of_a_list(name, *values)
        for name, values in {
            "likeStatus": (True, False, None),
            "likeImageUrl": ("https://x.test/heart_off.png", ""),
            "likeCount": ("0", "1,204", 3),
            "landingUrl": ("https://m.test/v2/m/product/product_detail/1?from=ranking", "https://m.test/?a=b"),
            "webSpacingInfo": ("odd", "even", None),
            "badgeList": ([], [{"name": "BEST"}]),
            "reviewScore": ("0", "4.9"),
            "isLastItem": (True, False),
            "isLowestPrice": (True, False),
            "isAd": (True, False),
            "trackingInfo": ({"eventType": "x", "parameters": "{}"}, None),
            "amplitudeInfo": ({"eventType": "y"}, []),
            "ga4Info": ({"SRP": {"item_id": 7}}, {}),
            "catalogNo": (0, 7, "x"),
            "catalogItemCount": (0, 99),
            "catalogMainImageUrl": ("https://x.test/c.jpeg", None),
        }.items()
    },
    **{
        f"info {name}": _volatile_of("ProductInfoModule", name, *values)
        for name, values in {
            "sellerNo": (1, 2),
            "isBoutiqueItem": (True, False),
            "userDiscountInfo": ({"dpsDiscount": True, "purchasePrice": 1}, None),
            "badgeList": ([{"type": "NEW"}], []),
            "discountDetails": ({"prices": [], "discounts": [{"name": "coupon"}]}, None),
            "catalogId": (1, None),
            "countPriceComparison": (0, 30),
            "isPriceComparison": (False, True),
            "isLowestPrice": (False, True),
        }.items()
    },
    "banner timesales": _volatile_of("ProductBannersModule", "timesales", [], [{"until": "2026-11-18"}]),
    "shipping title": _volatile_of("ShippingModule", "title", "배송", ""),
    **{
        f"text {name}": _volatile_of("ProductDetailInfoModule", name, *values)
        for name, values in {
            "title": ("상세", ""),
            "itemNo": (1, 2),
            "shippingLocation": ("서울", "부산"),
            "sellerEvaluations": ([], [{"score": 5}]),
            "warningTextSellerStatus": ([], ["..."]),
        }.items()
    },
    **{
        f"bottom {name}": _of_the_page("bottom", name, *values)
        for name, values in {
            "likeCount": (0, 512),
            "isLike": (True, False),
            "hasLowestOtherProduct": (True, False),
            "freeGift": ("", "파우치"),
        }.items()
    },
    "page nextApiUrl": _of_the_page("", "nextApiUrl", None, "/v1/item/1/detail/bottom?x=1"),
    "page trackingInfos": _of_the_page("", "trackingInfos", [], [{"eventType": "braze"}]),
    **{
        f"list {name} as {how}": _spelled("entry", name, SPELLINGS[how])
        for name in ("price", "originalPrice", "normalPrice", "appPrice")
        for how in SPELLINGS
        if how != "separators"
    },
    **{
        f"list {name} as {how}": _spelled("entry", name, SPELLINGS[how])
        for name in ("discountRate", "appDiscountRate")
        for how in ("a number", "a fraction of nothing", "one decimal", "spaces around")
    },
    **{
        f"info {name} as {how}": _spelled("info", name, SPELLINGS[how])
        for name in ("normalPrice", "sellingPrice", "discountPrice")
        for how in SPELLINGS
        if how != "a number"
    },
    **{
        f"info {name} as {how}": _spelled("info", name, SPELLINGS[how])
        for name in ("stock", "discountRate", "brandCode")
        for how in ("digits", "a fraction of nothing", "one decimal")
    },
    **{
        f"shipping fee as {how}": _spelled("shipping", "shippingFee", SPELLINGS[how])
        for how in ("digits", "a fraction of nothing", "one decimal")
    },
    **{
        f"option stock as {how}": _spelled("options", "stock", SPELLINGS[how])
        for how in ("digits", "a fraction of nothing", "spaces around")
    },
    **{
        f"keys of {where} {how}": _ordered(where, how)
        for where in ("entry", "info", "page", "options")
        for how in ("sorted", "backwards", "shuffled")
    },
    "modules backwards": _modules_backwards,
    "options shuffled": _options_shuffled,
    "options backwards": _options_backwards,
    "options copied from elsewhere": _each_option("itemNo", 1, 999, 10**9),
    "option sizeGuide null": _set("options", "sizeGuide", None),
    "option sizeGuide left out": _without("options", "sizeGuide"),
    "tags backwards": _tags_backwards,
    "a tag twice": _a_tag_twice,
    "tag textColor": _each_tag("textColor", "#ff0000"),
    "tag bgColor": _each_tag("bgColor", "#00ff00"),
    "tag borderColor": _each_tag("borderColor", None),
    "tag icon": _each_tag("iconUrl", "https://x.test/i.png"),
    "indented by two": _written(_spaced(2)),
    "indented by four": _written(_spaced(4)),
    "indented by tabs": _written(_spaced("\t")),
    "spaced on one line": _written(_spaced(None)),
    "ascii escapes": _written(lambda value: json.dumps(value).encode()),
    "escaped slashes": _written(lambda value: orjson.dumps(value).replace(b"/", b"\\/")),
    "carriage returns": _written(lambda value: json.dumps(value, indent=1).replace("\n", "\r\n").encode()),
    "blank lines around": _written(lambda value: b"\n\n" + orjson.dumps(value) + b"\n"),
    "decomposed unicode": _texts(lambda text: unicodedata.normalize("NFD", text)),
    "spaces behind": _texts(lambda text: f"{text}  "),
    "spaces before": _texts(lambda text: f" {text}"),
    "tabs around": _texts(lambda text: f"\t{text}\t"),
    "line ends around": _texts(lambda text: f"{text}\r\n"),
    "no-break spaces around": _texts(lambda text: f"\u00a0{text}\u00a0"),
    "ideographic spaces around": _texts(lambda text: f"\u3000{text}"),
    "images at another size": _resized(lambda url: url.split(_DIMS)[0] + "/_dims_/resize/640x640/extent/640x640"),
    "images at a small size": _resized(lambda url: url.split(_DIMS)[0] + "/_dims_/resize/80x"),
    "images as webp": _resized(lambda url: url.split(_DIMS)[0] + "/_dims_/format/webp/quality/70"),
    "images as they are": _resized(lambda url: url.split(_DIMS)[0]),
    "images with spaces": _resized(lambda url: f" {url} "),
    "an unknown module": _module_added({"type": "TimeDealModule", "data": {"remainingSeconds": 77}}, 0),
    "an advertisement": _module_added({"type": "AdBannerModule", "data": [{"imageUrl": "https://x.test/a"}]}, 3),
    "one more margin": _module_added({"type": "VerticalMargin", "data": {"lineHeight": 1}}, 1),
    "a module without data": _module_added({"type": "EmptyModule", "data": None}, 2),
    "an unknown field of the detail": _set("info", "newField", {"a": [1]}),
    "an unknown field of the list": _set("entry", "newField", "x"),
    "an unknown field of options": _set("options", "newField", 0),
    "origin null": _set("text", "originCountry", None),
    "origin left out": _without("text", "originCountry"),
    "origin of spaces": _set("text", "originCountry", "   "),
}


@dataclass(frozen=True)
class Real:
    """One field that changes."""

    field: str
    kind: ChangeKind
    change: Callable[[Item], object]
    old: object
    new: object


def _put(where: str, name: str, value: object) -> Callable[[Item], object]:
    def change(item: Item) -> None:
        getattr(item, where)[name] = value

    return change


def _rotated(item: Item) -> None:
    item.images[:] = item.images[1:] + item.images[:1]


def _option(place: int, **values: object) -> Callable[[Item], object]:
    return lambda item: item.options[place].update(values)


def _as_options(*rows: tuple[int, str, str, int], guide: str = "", shipping: str = "NONE") -> tuple[Json, ...]:
    return tuple(
        {"optionNo": no, "color": colour, "size": size, "stock": stock, "shippingType": shipping, "sizeGuide": guide}
        for no, colour, size, stock in rows
    )


_BEFORE = ((5000, "검정", "IT 40", 0), (5001, "네이비", "IT 41", 1), (5002, "아이보리", "IT 42", 2))
_URL = "https://image.mustit.co.kr/lib/upload/product/nord/2026/{}-{}.jpeg"
IMAGES = (_URL.format("{item}", 0), _URL.format("{item}", 1))
_SHIPPING = {"type": "DOMESTIC", "fee": 0, "feeType": "FREE", "delivery": "평균 배송 2일 소요"}
_CATEGORY = (
    {"level": "header", "code": "W", "name": "여성"},
    {"level": "large", "code": "15", "name": "의류"},
    {"level": "medium", "code": "15r01", "name": "코트/자켓"},
)
_PICTURES = tuple(f"https://files.example.com/nord/{{item}}/{n:02}.jpg" for n in range(1, 9))
_MARKUP = "\n".join(f'<p align="center"><img src="{url}"></p>' for url in _PICTURES)
K = ChangeKind
REAL: tuple[Real, ...] = (
    Real("name", K.INFO, _put("info", "itemName", "코트"), BASE["itemName"], "코트"),
    Real("name", K.INFO, _put("info", "itemName", BASE["itemName"] + "!"), BASE["itemName"], BASE["itemName"] + "!"),
    Real("brandCode", K.INFO, _put("info", "brandCode", 154), 153, 154),
    Real("brandName", K.INFO, _put("info", "brandName", "ATELIER SUD"), "ATELIER NORD", "ATELIER SUD"),
    Real("brandNameKr", K.INFO, _put("info", "brandNameKr", "쉬드"), "아틀리에노르드", "쉬드"),
    Real("normalPrice", K.PRICE, _put("info", "normalPrice", 1_075_001), 1_075_000, 1_075_001),
    Real("sellingPrice", K.PRICE, _put("info", "sellingPrice", "599,001"), 599_000, 599_001),
    Real("sellingPrice", K.PRICE, _put("info", "sellingPrice", 590_900), 599_000, 590_900),
    Real("discountPrice", K.PRICE, _put("info", "discountPrice", 545_601), 545_600, 545_601),
    Real("discountRate", K.PRICE, _put("info", "discountRate", "48"), 49, 48),
    Real("stock", K.STOCK, _put("info", "stock", 0), 3, 0),
    Real("stock", K.STOCK, _put("info", "stock", 4), 3, 4),
    Real("soldOut", K.SOLD_OUT, _put("info", "isSoldOut", True), False, True),
    Real(
        "category",
        K.CATEGORY,
        _put("info", "mediumCategory", "코트"),
        _CATEGORY,
        (*_CATEGORY[:2], {"level": "medium", "code": "15r01", "name": "코트"}),
    ),
    Real(
        "category",
        K.CATEGORY,
        _put("info", "mediumCategoryCode", "15r02"),
        _CATEGORY,
        (*_CATEGORY[:2], {"level": "medium", "code": "15r02", "name": "코트/자켓"}),
    ),
    Real("images", K.IMAGES, _rotated, IMAGES, IMAGES[::-1]),
    Real("images", K.IMAGES, lambda item: item.images.pop(), IMAGES, IMAGES[:1]),
    Real(
        "images",
        K.IMAGES,
        lambda item: item.images.append("https://x.test/new.jpeg/_dims_/resize/5x5"),
        IMAGES,
        (*IMAGES, "https://x.test/new.jpeg"),
    ),
    Real("shipping", K.SHIPPING, _put("shipping", "shippingFee", 2500), _SHIPPING, {**_SHIPPING, "fee": 2500}),
    Real(
        "shipping", K.SHIPPING, _put("shipping", "shippingType", "OVERSEA"), _SHIPPING, {**_SHIPPING, "type": "OVERSEA"}
    ),
    Real(
        "shipping", K.SHIPPING, _put("shipping", "shippingFeeType", "PAID"), _SHIPPING, {**_SHIPPING, "feeType": "PAID"}
    ),
    Real(
        "shipping",
        K.SHIPPING,
        _put("shipping", "averageDeliveryDay", {"text": "평균 배송 3일 소요"}),
        _SHIPPING,
        {**_SHIPPING, "delivery": "평균 배송 3일 소요"},
    ),
    Real(
        "options",
        K.OPTIONS,
        _option(0, stock=7),
        _as_options(*_BEFORE),
        _as_options((5000, "검정", "IT 40", 7), *_BEFORE[1:]),
    ),
    Real(
        "options",
        K.OPTIONS,
        _option(1, color="남색"),
        _as_options(*_BEFORE),
        _as_options(_BEFORE[0], (5001, "남색", "IT 41", 1), _BEFORE[2]),
    ),
    Real(
        "options",
        K.OPTIONS,
        _option(2, size="IT 43"),
        _as_options(*_BEFORE),
        _as_options(*_BEFORE[:2], (5002, "아이보리", "IT 43", 2)),
    ),
    Real(
        "options",
        K.OPTIONS,
        lambda item: item.options.pop(1),
        _as_options(*_BEFORE),
        _as_options(_BEFORE[0], _BEFORE[2]),
    ),
    Real(
        "options",
        K.OPTIONS,
        lambda item: item.options.append(an_option(4999, color="빨강", size="IT 44", stock=9)),
        _as_options(*_BEFORE),
        _as_options((4999, "빨강", "IT 44", 9), *_BEFORE),
    ),
    Real("options", K.OPTIONS, lambda item: item.options.clear(), _as_options(*_BEFORE), ()),
    Real(
        "options",
        K.OPTIONS,
        lambda item: [option.update(sizeGuide="A형") for option in item.options],
        _as_options(*_BEFORE),
        _as_options(*_BEFORE, guide="A형"),
    ),
    Real(
        "options",
        K.OPTIONS,
        lambda item: [option.update(shippingType="QUICK") for option in item.options],
        _as_options(*_BEFORE),
        _as_options(*_BEFORE, shipping="QUICK"),
    ),
    Real("appPrice", K.PRICE, _put("entry", "appPrice", "537,400"), 537_500, 537_400),
    Real("appDiscountRate", K.PRICE, _put("entry", "appDiscountRate", "51"), 50, 51),
    Real("originalPrice", K.PRICE, _put("entry", "originalPrice", "1,075,100"), 1_075_000, 1_075_100),
    Real("tags", K.INFO, lambda item: item.entry["tagList"].pop(), ("당일출고", "무료배송"), ("무료배송",)),
    Real(
        "tags",
        K.INFO,
        lambda item: item.entry["tagList"].append({"title": "신상"}),
        ("당일출고", "무료배송"),
        ("당일출고", "무료배송", "신상"),
    ),
    Real("originCountry", K.INFO, _put("text", "originCountry", "프랑스"), None, "프랑스"),
    Real("itemStatus", K.INFO, _put("text", "itemStatus", "중고"), "새상품", "중고"),
    Real(
        "description",
        K.INFO,
        lambda item: item.text.update(descriptionMarkUp=item.text["descriptionMarkUp"] + "<p>new</p>"),
        _MARKUP,
        _MARKUP + "<p>new</p>",
    ),
)
