"""An item's own pages: DETAIL and OPTION."""

from collections.abc import Iterable
from typing import Any

import orjson

from pages.items import LEFT_OUT, Json, changed

_SHIPPING_NAMES = {"shippingType", "shippingFee", "shippingFeeType", "averageDeliveryDay"}
_TEXT_NAMES = {"itemStatus", "originCountry", "descriptionMarkUp", "shippingLocation"}


def a_detail(item_no: int = 1000, **changes: object) -> bytes:
    """An item's page. Changes find their module by the marketplace's names (`sellingPrice`, `images`, `shippingFee`,
    `originCountry`); what no module knows goes to ProductInfoModule."""
    return page_of(modules_of(item_no, **changes))


def modules_of(item_no: int = 1000, **changes: object) -> list[Json]:
    """The modules of an item's page, to be rearranged before `page_of` makes bytes of them."""
    banners = {key: value for key, value in changes.items() if key == "images"}
    shipping = {key: value for key, value in changes.items() if key in _SHIPPING_NAMES}
    text = {key: value for key, value in changes.items() if key in _TEXT_NAMES}
    info = {key: value for key, value in changes.items() if key not in {*banners, *shipping, *text}}
    margin = {"type": "VerticalMargin", "data": {"lineHeight": 10, "backgroundColor": "#FAFAFA"}}
    return [
        {"type": "ProductBannersModule", "data": changed(_banners(item_no), banners)},
        {"type": "ProductInfoModule", "data": changed(_info(item_no), info)},
        {"type": "NonMemberBannerModule", "data": {"landingUrl": "https://m.web.mustit.co.kr/m/member/login"}},
        margin,
        {"type": "PurchaseBenefitModule", "data": {"items": [{"type": "REWARD", "data": {"point": 3000}}]}},
        {"type": "ShippingModule", "data": {"title": "배송정보", "items": [_shipping(shipping)]}},
        _seller(),
        _catalog(item_no),
        {"type": "PromotionBannerModule", "data": [{"imageUrl": "https://image.mustit.co.kr/banner.jpeg"}]},
        {"type": "TabListModule", "data": [{"type": "DETAIL", "title": "상세정보"}, {"type": "REVIEW", "count": 0}]},
        {"type": "ProductDetailInfoModule", "data": changed(_text(item_no), text)},
        margin,
    ]


def page_of(modules: Iterable[Any], **changes: object) -> bytes:
    page = {
        "moduleList": list(modules),
        "bottom": {"freeGift": "", "likeCount": 0, "isLike": False, "hasLowestOtherProduct": False},
        "nextApiUrl": "/v1/item/1000/detail/bottom?sellerId=nord",
    }
    return orjson.dumps(changed(page, changes))


def options_of(*options: Json, count: int = 2) -> bytes:
    """These options, or so many ordinary ones."""
    return orjson.dumps(list(options) or [an_option(5000 + n) for n in range(count)])


def an_option(option_no: int = 5000, **changes: object) -> Json:
    return changed(
        {
            "optionNo": option_no,
            "itemNo": 999,
            "color": "",
            "size": f"IT {option_no % 100}",
            "shippingType": "NONE",
            "stock": 1,
            "sizeGuide": "",
        },
        changes,
    )


def _banners(item_no: int) -> Json:
    urls = [f"https://image.mustit.co.kr/lib/upload/product/nord/2026/{item_no}-{place}.jpeg" for place in range(2)]
    return {"images": [f"{url}/_dims_/resize/500x500/extent/500x500" for url in urls], "timesales": []}


def _info(item_no: int) -> Json:
    return {
        "sellerNo": 77,
        "sellerId": "nord",
        "itemNo": item_no,
        "itemName": f"노르드 여성 울 코트(네이비) AN{item_no}",
        "brandName": "ATELIER NORD",
        "brandNameKr": "아틀리에노르드",
        "brandCode": 4711,
        "headerCategoryCode": "W",
        "headerCategory": "여성",
        "largeCategoryCode": "15",
        "largeCategory": "의류",
        "mediumCategoryCode": "15r01",
        "mediumCategory": "코트/자켓",
        "normalPrice": 1075000,
        "discountRate": 49,
        "sellingPrice": 599000,
        "discountPrice": 545600,
        "isBoutiqueItem": False,
        "isSoldOut": False,
        "stock": 3,
        "userDiscountInfo": {"dpsDiscount": False, "purchasePrice": 545600, "isLike": False},
        "badgeList": [],
        "discountDetails": {"prices": [{"type": "NORMAL", "name": "정상가", "price": 1075000}], "discounts": []},
        "catalogId": 90_000 + item_no,
        "countPriceComparison": 2,
        "isPriceComparison": True,
        "isLowestPrice": True,
    }


def _shipping(changes: dict[str, object]) -> Json:
    data = {
        "shippingType": "DOMESTIC",
        "shippingFee": 0,
        "shippingFeeType": "FREE",
        "isEachShippingFee": False,
        "isDirectShipping": False,
        "isCustomsDuty": False,
        "averageDeliveryDay": {"text": "평균 배송 2일 소요", "focusText": "2일 소요"},
    }
    return {"type": "SHIPPING", "data": changed(data, changes)}


def _seller() -> Json:
    info = {"sellerNo": 77, "status": "ACTIVE", "trustPoint": 3403, "holdSettlementDate": None}
    reviews = [{"satisfactionName": f"DELIVERY_{n}", "satisfactionScore": 50 * n} for n in range(40)]
    summary = {"reviewCount": 120, "reviewTotalAvg": 4.8303, "satisfactions": reviews}
    return {"type": "SellerModule", "data": {"sellerInfo": info, "sellerReviewSummary": summary}}


def _catalog(item_no: int) -> Json:
    offers = [
        {"itemNo": item_no + n, "sellerId": f"shop{n}", "sellPrice": str(545600 + n), "shippingType": "국내배송"}
        for n in range(8)
    ]
    return {"type": "CatalogModule", "data": {"NEW": {"title": "가격비교", "count": 8, "items": offers}}}


def _text(item_no: int) -> Json:
    pictures = [f"https://files.example.com/nord/{item_no}/{n:02}.jpg" for n in range(1, 9)]
    return {
        "title": "상세정보",
        "itemNo": item_no,
        "itemStatus": "새상품",
        "originCountry": "이탈리아",
        "shippingLocation": "서울 성동구",
        "sellerEvaluations": [],
        "warningTextSellerStatus": [],
        "descriptionMarkUp": "\n".join(f'<p align="center"><img src="{url}"></p>' for url in pictures),
    }


__all__ = ["LEFT_OUT", "a_detail", "an_option", "modules_of", "options_of", "page_of"]
