"""The parts of the marketplace's pages that say nothing about a product: groupings, seller cards, banners, tracking.

They make up most of a page's weight, so a sandbox without them would flatter every parser.
"""

from functools import lru_cache

import orjson

from sellerwatch.sandbox import words
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.world import Shop

Json = dict[str, object]
_SATISFACTIONS = ("DELIVERY", "PACKING", "PRICE")
_COLOURS = ("BLACK", "GRAY", "WHITE", "NAVY", "BEIGE", "BROWN", "RED", "PINK", "GREEN", "BLUE", "YELLOW", "ETC")


def group_result(shop: Shop, noise: Chance | None) -> Json:
    """The filters beside a shop's list: some 48 KB, and none of it business."""
    chance = noise or Chance("group result", shop.seller)
    total = max(1, len(shop.order))
    headers = {category.header: None for category in words.CATEGORIES}
    larges = {(category.header, category.large): None for category in words.CATEGORIES}
    mediums = [category for category in words.CATEGORIES if category.small is None]
    smalls = [category for category in words.CATEGORIES if category.small is not None]
    return {
        "headerCategoryGroupResult": [
            _header(header) | {"categoryCount": 1 + chance.below(total)} for header in headers
        ],
        "largeCategoryGroupResult": [
            _header(header) | _level("large", large) | {"categoryCount": 1 + chance.below(total)}
            for header, large in larges
        ],
        "mediumCategoryGroupResult": [
            _medium(category) | {"categoryCount": 1 + chance.below(total)} for category in mediums
        ],
        "smallCategoryGroupResult": [
            _medium(category) | _level("small", category.small or ("", "")) | {"categoryCount": 1 + chance.below(total)}
            for category in smalls
        ],
        "brandGroupResult": [
            {
                "brandCode": brand.code,
                "brandName": brand.name,
                "brandNameKor": brand.name_kr,
                "brandCount": 1 + chance.below(total),
            }
            for brand in words.BRANDS
        ],
        "priceRangeResult": [
            {"startPrice": 10_000 * 4**step, "endPrice": 10_000 * 4 ** (step + 1) - 1} for step in range(6)
        ],
        "colorCodeResult": [{"imgColorCode": colour, "imgColorCodeCount": chance.below(total)} for colour in _COLOURS],
        "recommendKeywordGroupResult": [{"keyword": style, "count": chance.below(total)} for style in words.STYLES],
        "usedStatusGroupResult": [{"usedStatus": "NEW", "count": total}, {"usedStatus": "USED", "count": 0}],
    }


def seller_module(shop: Shop, noise: Chance | None) -> Json | orjson.Fragment:
    """The card of the seller; without noise it is rendered once per shop."""
    return _seller_module(shop.number, noise) if noise else _still_seller_module(shop.seller, shop.number)


@lru_cache(maxsize=256)
def _still_seller_module(seller: str, number: int) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(_seller_module(number, Chance("seller module", seller))))


def _seller_module(number: int, chance: Chance) -> Json:
    info: Json = {
        "sellerNo": number,
        "status": "ACTIVE",
        "idleRegDate": f"20{chance.between(10, 24)}-0{chance.between(1, 9)}-1{chance.below(10)}T00:00:00Z",
        "idleFlag": "ZERO",
        "eventPoint": chance.below(400_000),
        "trustPoint": chance.below(5_000),
        "regularCustomCnt": 0,
        "cntPointBad": chance.below(90),
        "cntPointNormal": chance.below(30_000),
        "cntPointGood": chance.below(12_000),
        **dict.fromkeys(
            ("prodUpdateCnt", "todayUpdateCnt", "prodRenewableCnt", "prodInsertExcept", "naverDiscountExp"), 0
        ),
        "bestSellerExp": "",
        "naverDiscountExpYn": True,
        "appDiscountExp": 0,
        "appDiscountExpYn": True,
        "sellerDiscountExp": 0,
        **dict.fromkeys(("prodBannerYn", "quickYn", "reservDelivYn", "holdSettlementYn", "holdSettlementExYn"), False),
        "stockCheckYn": "NO",
        "reservDelivProdCnt": 1,
        "reservDelivOrdCnt": chance.below(300),
        "holdSettlementDate": None,
        "holdSettlementAdmId": None,
        "couponDiscountYn": True,
        "partnershipMallTargetYn": False,
        "prodRegLimit": 30_000,
    }
    return {
        "type": "SellerModule",
        "data": {
            "title": "판매자정보",
            "sellerInfo": info,
            "sellerTopPercentile": chance.between(1, 30),
            "sellerReviewSummary": {
                "reviewCount": chance.below(20_000),
                "reviewTotalAvg": 4 + chance.below(10_000) / 10_000,
                "satisfactionScore": chance.between(60, 99),
                "sizeReviewCnt": 0,
                "satisfactions": [_satisfaction(name, chance) for name in _SATISFACTIONS],
            },
            "sellerBadgeUrl": "https://static-ux.mustit.co.kr/img/front/icon/seller/badge_gold.svg",
        },
    }


@lru_cache(maxsize=1)
def promotions() -> orjson.Fragment:
    """Banners, the same on every page."""
    pictures = "https://image.mustit.co.kr/lib/upload/event/uploads"
    banners = [
        {
            "imageUrl": f"{pictures}/{Chance('banner', number).draw():016x}.jpeg",
            "landingUrl": f"https://m.mustit.co.kr/m/etc/event_view?number={301 + number}&click=product_detail",
        }
        for number in range(2)
    ]
    return orjson.Fragment(orjson.dumps(banners))


def tag(title: str, noise: Chance | None) -> Json:
    """A label under an item; its colours change with the season."""
    colour = f"#{noise.below(1 << 24):06x}" if noise else "#7a7a7a"
    return {"title": title, "textColor": colour, "bgColor": "#ffffff", "borderColor": "#dcdcdc"}


def badge(chance: Chance) -> Json:
    """What marketing puts on an item today."""
    return {"type": "BADGE", "text": chance.pick(("BEST", "MD추천", "인기급상승")), "rank": chance.between(1, 50)}


def tracking(keyword: str, items: list[int]) -> list[Json]:
    """What the page tells the advertisers."""
    shown = ",".join(map(str, items))
    return [
        {"eventType": "rtb_house", "parameters": f'{{"item_no":"{shown}"}}'},
        {"eventType": "braze", "parameters": f'{{"keyword":"{keyword}"}}'},
    ]


def _satisfaction(name: str, chance: Chance) -> Json:
    rows = [
        {
            "satisfactionName": f"{name}_{grade}",
            "satisfactionScore": chance.below(11_000),
            "satisfactionPercent": chance.below(80),
        }
        for grade in range(3)
    ]
    return {"satisfactionType": name, "satisfactions": rows}


def _header(header: tuple[str, str]) -> Json:
    return {"headerCategoryCode": header[0], "headerCategoryName": header[1]}


def _level(level: str, category: tuple[str, str]) -> Json:
    return {f"{level}CategoryCode": category[0], f"{level}CategoryName": category[1]}


def _medium(category: words.Category) -> Json:
    return _header(category.header) | _level("large", category.large) | _level("medium", category.medium)
