"""Lists: MINI_SHOP pages and SEARCH pages, and the entries they are made of."""

from collections.abc import Iterable
from typing import Any

import orjson

LEFT_OUT = object()
"""As the value of a change: the key is not there at all."""

Json = dict[str, Any]


def a_mini_shop_page(items: Iterable[Json] | int = 3, count: object = None, **changes: object) -> bytes:
    """A page of so many items, or of these. `count` is the shop's total: as many as are on the page unless given."""
    entries = [a_list_item(1000 + n) for n in range(items)] if isinstance(items, int) else list(items)
    page = {
        "count": len(entries) if count is None else count,
        "indexName": "item-idx-a",
        "groupResult": _group_result(),
        "items": entries,
    }
    return orjson.dumps(changed(page, changes))


def a_list_item(item_no: int = 1000, **changes: object) -> Json:
    return changed(
        {
            "itemNo": item_no,
            "imageUrlList": [_image(item_no, place) for place in range(3)],
            "brandName": "ATELIER NORD",
            "landingUrl": f"https://m.web.mustit.co.kr/v2/m/product/product_detail/{item_no}",
            "name": f"노르드 여성 울 코트(네이비) AN{item_no}",
            "price": "545,600",
            "tagList": [a_tag("무료배송"), a_tag("당일출고")],
            "originalPrice": "1,075,000",
            "normalPrice": "1,075,000",
            "discountRate": "49",
            "likeStatus": False,
            "appDiscountRate": "50",
            "appPrice": "537,500",
            "likeImageUrl": "https://static-ux.mustit.co.kr/img/m/m_icon/heart_on.png",
            "webSpacingInfo": "odd",
        },
        changes,
    )


def a_search_page(items: Iterable[Json] | int = 3, next_url: object = "", **changes: object) -> bytes:
    """A page of the endless scroll, with an advertisement between its items."""
    entries = [a_search_item(1000 + n) for n in range(items)] if isinstance(items, int) else list(items)
    modules: list[Json] = [{"type": "SearchItemV2", "data": entry} for entry in entries]
    modules.insert(1, {"type": "SearchAdBanner", "data": {"banners": [{"itemNo": 1, "imageUrl": _image(1, 0)}]}})
    page = {
        "moduleList": modules,
        "nextApiUrl": next_url or None,
        "trackingInfos": [{"eventType": "braze", "parameters": '{"keyword":"nord"}'}],
    }
    return orjson.dumps(changed(page, changes))


def a_search_item(item_no: int = 1000, **changes: object) -> Json:
    return changed(
        {
            "itemNo": item_no,
            "imageUrlList": [_image(item_no, place) for place in range(2)],
            "brandName": "ATELIER NORD",
            "brandCode": 4711,
            "shippingType": "DOMESTIC",
            "name": f"노르드 여성 울 코트(네이비) AN{item_no}",
            "price": "545,600",
            "originalPrice": "1,075,000",
            "discountRate": "49",
            "tagList": [a_tag("무료배송")],
            "badgeList": [],
            "landingUrl": f"https://m.web.mustit.co.kr/v2/m/product/product_detail/{item_no}?from_keyword=nord",
            "likeCount": "1",
            "likeStatus": False,
            "reviewScore": "0",
            "isLastItem": False,
            "isLowestPrice": True,
            "catalogItemCount": 25,
            "trackingInfo": {"eventType": "select_content", "parameters": '{"item_id":"item_List"}'},
            "catalogNo": 90_000 + item_no,
            "catalogMainImageUrl": _image(item_no, 0),
            "amplitudeInfo": {"eventType": "click", "parameters": {"product_id": item_no, "selling_price": 599000}},
            "ga4Info": {"SRP": {"item_id": item_no, "AD_product": "N"}},
            "isAd": False,
        },
        changes,
    )


def a_tag(title: str, colour: str = "#888888") -> Json:
    return {"title": title, "textColor": colour, "bgColor": "#ffffff", "borderColor": "#dddddd"}


def changed(document: Json, changes: dict[str, object]) -> Json:
    merged = {**document, **changes}
    return {key: value for key, value in merged.items() if value is not LEFT_OUT}


def _image(item_no: int, place: int) -> str:
    return f"https://image.mustit.co.kr/lib/upload/product/nord/2026/{item_no}-{place}.jpeg/_dims_/resize/300x300"


def _group_result() -> Json:
    groups = [
        {"headerCategoryCode": code, "headerCategoryName": name, "categoryCount": 10}
        for code, name in (("M", "남성"), ("W", "여성"))
    ]
    return {"headerCategoryGroupResult": groups, "largeCategoryGroupResult": [], "mediumCategoryGroupResult": []}
