"""The documents of the marketplace, in its shapes and sizes: list page, search page, detail, options.

What is business comes from the product; all else is the furniture that real pages carry. With noise handed in, the furniture,
the order of keys, the number formats and the resizing suffixes vary, and nothing that is business does.
"""

import unicodedata
from collections.abc import Sequence
from urllib.parse import quote

import orjson

from sellerwatch.sandbox import words
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.furniture import badge, group_result, promotions, seller_module, tag, tracking
from sellerwatch.sandbox.truth import fee_type, product_url
from sellerwatch.sandbox.world import Product, Shop

Json = dict[str, object]


def dump(document: object, noise: Chance | None) -> bytes:
    """The bytes on the wire: compact; with noise, sometimes spaced out."""
    spaced = noise is not None and noise.below(4) == 0
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 if spaced else 0)


def mini_shop(shop: Shop, products: Sequence[Product], noise: Chance | None) -> Json:
    """One page of a shop's list."""
    return {
        "count": len(shop.order),
        "indexName": "item-idx-b" if noise and noise.below(2) else "item-idx-a",
        "groupResult": group_result(shop, noise),
        "items": [_list_item(product, place, noise) for place, product in enumerate(products)],
    }


def search(
    keyword: str, found: Sequence[Product], *, page_no: int, next_url: str | None, total: int, noise: Chance | None
) -> Json:
    """One page of the endless scroll; modules that are not items stand between those that are."""
    modules: list[Json] = []
    for place, product in enumerate(found):
        if place % 20 == 8:
            modules.append({"type": "SearchAdBanner", "data": {"banners": promotions(), "place": place}})
        last = place == len(found) - 1
        modules.append({"type": "SearchItemV2", "data": _search_item(keyword, product, total, last=last, noise=noise)})
    modules.append({"type": "VerticalMargin", "data": {"lineHeight": 10, "backgroundColor": "#FAFAFA"}})
    if noise and noise.below(3) == 0:
        modules.insert(0, {"type": "KeywordRankingModule", "data": {"keywords": noise.sample(words.STYLES, 4)}})
    document: Json = {
        "moduleList": modules,
        "trackingInfos": tracking(keyword, [product.item_no for product in found[:5]]),
    }
    if next_url is not None or page_no % 2:
        document["nextApiUrl"] = next_url
    return document


def detail(product: Product, shop: Shop, noise: Chance | None) -> Json:
    """The upper part of an item's page."""
    margin: Json = {"type": "VerticalMargin", "data": {"lineHeight": 10, "backgroundColor": "#FAFAFA"}}
    suffix = "500x500" if noise is None or noise.below(2) else "640x640"
    images = [f"{url}/_dims_/resize/{suffix}/extent/{suffix}" for url in product.images]
    modules: list[Json | orjson.Fragment] = [
        {"type": "ProductBannersModule", "data": {"images": images, "timesales": []}},
        {"type": "ProductInfoModule", "data": _product_info(product, shop, noise)},
        {"type": "NonMemberBannerModule", "data": {"landingUrl": _login_url(product.item_no)}},
        margin,
        _benefits(product, noise),
        _shipping(product),
        margin,
        seller_module(shop, noise),
        _catalog(product, noise),
        {"type": "PromotionBannerModule", "data": promotions()},
        _recommendation(product),
        margin,
        {"type": "TabListModule", "data": _tabs(noise)},
    ]
    if product.description is not None:
        modules += [_detail_info(product), margin]
    if noise and noise.below(2):
        modules.insert(noise.below(3), {"type": "TimeDealModule", "data": {"remainingSeconds": noise.below(86_400)}})
    return {
        "moduleList": modules,
        "bottom": {
            "freeGift": "",
            "likeCount": noise.below(500) if noise else 3,
            "isLike": False,
            "hasLowestOtherProduct": bool(noise and noise.below(2)),
        },
        "nextApiUrl": f"/v1/item/{product.item_no}/detail/bottom?sellerId={product.seller}&catalogNo={_catalog_no(product)}",
    }


def options(product: Product, noise: Chance | None) -> list[Json]:
    """The array of variants; its order means nothing."""
    rows: list[Json] = [
        {
            "optionNo": option.option_no,
            "itemNo": product.options_from,
            "color": option.color,
            "size": option.size,
            "shippingType": "NONE",
            "stock": option.stock,
            "sizeGuide": "",
        }
        for option in product.options
    ]
    return [_turned(row, noise) for row in noise.shuffled(rows)] if noise else rows


def _list_item(product: Product, place: int, noise: Chance | None) -> Json:
    liked = bool(noise and noise.below(5) == 0)
    suffix = "300x300/extent/300x400" if noise is None or noise.below(2) else "400x400/extent/400x533"
    item: Json = {
        "itemNo": product.item_no,
        "imageUrlList": [f"{url}/_dims_/resize/{suffix}" for url in product.images],
        "brandName": product.brand.name,
        "landingUrl": product_url(product.item_no) + (f"?r={noise.below(9999)}" if noise else ""),
        "name": _text(product.name, noise),
        "price": _won(product.discount_price, noise),
        "tagList": [tag(title, noise) for title in (noise.shuffled(product.tags) if noise else product.tags)],
        "originalPrice": _won(product.original_price, noise),
        "normalPrice": _won(product.normal_price, noise),
        "discountRate": str(product.discount_rate),
        "likeStatus": liked,
        "appDiscountRate": str(product.app_discount_rate),
        "appPrice": _won(product.app_price, noise),
        "likeImageUrl": f"https://static-ux.mustit.co.kr/img/m/m_icon/heart_{'on' if liked else 'off'}.png",
        "webSpacingInfo": "even" if place % 2 else "odd",
    }
    return _turned(item, noise)


def _search_item(keyword: str, product: Product, total: int, *, last: bool, noise: Chance | None) -> Json:
    link = f"{product_url(product.item_no)}?from_keyword={quote(keyword, safe='')}"
    header, large, medium, _ = product.category
    ga4: Json = {"item_id": product.item_no, "item_name": product.name, "link": link, "AD_product": "N"}
    return {
        "itemNo": product.item_no,
        "imageUrlList": [f"{url}/_dims_/resize/300x300/extent/300x400" for url in product.images],
        "brandName": product.brand.name,
        "brandCode": product.brand.code,
        "shippingType": product.shipping_type,
        "name": _text(product.name, noise),
        "price": _won(product.discount_price, noise),
        "originalPrice": _won(product.original_price, noise),
        "discountRate": str(product.discount_rate),
        "tagList": [tag(title, noise) for title in product.tags],
        "badgeList": [],
        "landingUrl": link + "&isNewTab=Y",
        "likeCount": str(noise.below(90) if noise else 1),
        "likeStatus": False,
        "reviewScore": "0",
        "isLastItem": last,
        "isLowestPrice": True,
        "catalogItemCount": 1 + product.item_no % 30,
        "trackingInfo": {"eventType": "select_content", "parameters": '{"content_type":"click_item"}'},
        "catalogNo": _catalog_no(product),
        "catalogMainImageUrl": product.images[0],
        "amplitudeInfo": {
            "eventType": "click_product_in_search_result",
            "parameters": {
                "brand_id": product.brand.code,
                "brand_name": product.brand.name,
                "category_1_id": large[0],
                "category_1_name": header[1] + large[1],
                "category_2_id": medium[0],
                "category_2_name": medium[1],
                "product_id": product.item_no,
                "product_name": product.name,
                "list_price": product.normal_price,
                "selling_price": product.selling_price,
                "discount_price": product.discount_price,
                "discount_rate": product.discount_rate,
                "sorting_name": "최신순",
                "product_count": total,
            },
        },
        "ga4Info": {"SRP": ga4, "BLP": ga4, "LP": {**ga4, "category_id": f"{header[0]}_{large[0]}_{medium[0]}"}},
        "isAd": False,
    }


def _product_info(product: Product, shop: Shop, noise: Chance | None) -> Json:
    header, large, medium, small = product.category
    info: Json = {
        "sellerNo": shop.number,
        "sellerId": product.seller.upper() if noise and noise.below(8) == 0 else product.seller,
        "itemNo": product.item_no,
        "itemName": _text(product.name, noise),
        "brandName": product.brand.name,
        "brandNameKr": product.brand.name_kr,
        "brandCode": product.brand.code,
        "headerCategoryCode": header[0],
        "headerCategory": header[1],
        "largeCategoryCode": large[0],
        "largeCategory": large[1],
        "mediumCategoryCode": medium[0],
        "mediumCategory": medium[1],
    }
    if small is not None:
        info |= {"smallCategoryCode": small[0], "smallCategory": small[1]}
    info |= {
        "normalPrice": product.normal_price,
        "discountRate": product.discount_rate,
        "sellingPrice": product.selling_price,
        "discountPrice": product.discount_price,
        "isBoutiqueItem": False,
        "isSoldOut": product.sold_out,
        "stock": product.stock,
        "userDiscountInfo": {"dpsDiscount": False, "purchasePrice": product.discount_price, "isLike": False},
        "badgeList": [badge(noise)] if noise and noise.below(2) else [],
        "discountDetails": _discounts(product),
        "catalogId": _catalog_no(product),
        "countPriceComparison": 1 + (noise.below(9) if noise else product.item_no % 4),
        "isPriceComparison": True,
        "isLowestPrice": bool(noise is None or noise.below(2)),
    }
    return _turned(info, noise)


def _discounts(product: Product) -> Json:
    less = product.selling_price - product.discount_price
    return {
        "prices": [
            {"type": "NORMAL", "name": "정상가", "price": product.normal_price},
            {"type": "DISCOUNT_PRICE", "name": "할인가", "price": product.selling_price},
        ],
        "discounts": [
            {"type": "ACCOUNT", "name": "회원할인", "price": less, "isAccountGroup": False},
            {"type": "DPS_DISCOUNT", "name": "스페셜 쿠폰", "price": less, "isAccountGroup": True},
        ],
        "total": {"type": "ACCOUNT", "name": "최대혜택가", "price": product.discount_price},
    }


def _benefits(product: Product, noise: Chance | None) -> Json:
    months = noise.pick((3, 6, 10, 12)) if noise else 6
    items: list[Json] = [
        {"type": "REWARD", "data": {"point": noise.below(5000) if noise else 3000}},
        {
            "type": "INTEREST_FREE",
            "data": {"interestMaxMonth": months, "Installment": product.discount_price // months},
        },
        {"type": "AS", "data": {"isAfterService": True}},
    ]
    return {"type": "PurchaseBenefitModule", "data": {"title": "혜택안내", "items": items}}


def _shipping(product: Product) -> Json:
    days = 1 + product.item_no % 3 + (7 if product.shipping_type == "OVERSEAS" else 0)
    data: Json = {
        "shippingType": product.shipping_type,
        "shippingFee": product.shipping_fee,
        "shippingFeeType": fee_type(product),
        "isEachShippingFee": False,
        "isDirectShipping": False,
        "isCustomsDuty": False,
        "averageDeliveryDay": {"text": f"평균 배송 {days}일 소요", "focusText": f"{days}일 소요"},
    }
    return {"type": "ShippingModule", "data": {"title": "배송정보", "items": [{"type": "SHIPPING", "data": data}]}}


def _catalog(product: Product, noise: Chance | None) -> Json:
    own = _offer(product, product.item_no, product.seller, product.discount_price, focus=True)
    dearer = product.discount_price * (110 + (noise.below(60) if noise else 30)) // 100 // 100 * 100
    other = _offer(product, product.item_no - 495_000, "elsewhere.mall", dearer, focus=False)
    group: Json = {
        "title": "가격비교",
        "count": 2,
        "isSelectedFreeShipping": False,
        "isRegisteredLowestAlarm": False,
        "catalogNo": _catalog_no(product),
        "items": [own, other],
        "landingUrl": "",
    }
    return {"type": "CatalogModule", "data": {"NEW": group, "USED": {**group, "count": 0, "items": []}}}


def _offer(product: Product, item_no: int, seller: str, price: int, *, focus: bool) -> Json:
    return {
        "itemNo": item_no,
        "sellerId": seller,
        "isLowestPrice": focus,
        "sellPrice": str(price),
        "sellPriceWeb": str(price),
        "usedStatus": "",
        "shippingType": "국내배송",
        "shippingFee": "무료",
        "isTariff": False,
        "tagList": [],
        "sellerBadgeUrl": "https://static-ux.mustit.co.kr/img/front/icon/seller/badge_gold.svg" if focus else "",
        "isFocusItem": focus,
        "amplitudeInfo": {
            "eventType": "click_price_comparison_product",
            "parameters": {
                "brand_id": product.brand.code,
                "brand_name": product.brand.name,
                "category_1_id": product.category.large[0],
                "category_1_name": product.category.header[1] + product.category.large[1],
                "category_2_id": product.category.medium[0],
                "category_2_name": product.category.medium[1],
                "category_3_id": "",
                "product_id": item_no,
                "product_name": product.name,
                "discount_price": price,
                "discount_rate": product.discount_rate,
                "is_lowest_price": focus,
            },
        },
    }


def _recommendation(product: Product) -> Json:
    header, large, medium, _ = product.category
    return {
        "type": "LazyComponent",
        "data": {
            "params": dict.fromkeys(("eid", "uid", "adid", "os", "osVersion", "model", "gender")),
            "method": "GET",
            "url": f"/v1/ai-recommendation/item/{product.item_no}"
            f"?headerCategory={header[0]}&largeCategory={large[0]}&mediumCategory={medium[0]}",
        },
    }


def _tabs(noise: Chance | None) -> list[Json]:
    return [
        {"type": "DETAIL", "title": "상세정보"},
        {"type": "REVIEW", "title": "리뷰", "count": noise.below(40) if noise else 0},
        {"type": "INQUIRY", "title": "문의", "count": noise.below(9) if noise else 0},
    ]


def _detail_info(product: Product) -> Json:
    data: Json = {
        "title": "상세정보",
        "itemNo": product.item_no,
        "itemStatus": product.item_status,
        "originCountry": product.origin_country,
        "shippingLocation": words.PLACES[product.item_no % len(words.PLACES)],
        "sellerEvaluations": [],
        "warningTextSellerStatus": [],
        "descriptionMarkUp": product.description,
    }
    return {"type": "ProductDetailInfoModule", "data": data}


def _won(amount: int, noise: Chance | None) -> str | int:
    return amount if noise and noise.below(6) == 0 else f"{amount:,}"


def _text(text: str, noise: Chance | None) -> str:
    """With noise: sometimes decomposed, sometimes with blanks around it."""
    if noise is None:
        return text
    return (text, unicodedata.normalize("NFD", text), f" {text}  ")[noise.below(3)]


def _turned(row: Json, noise: Chance | None) -> Json:
    return dict(reversed(row.items())) if noise and noise.below(3) == 0 else row


def _catalog_no(product: Product) -> int:
    return product.item_no - 7_418_237


def _login_url(item_no: int) -> str:
    return "https://m.web.mustit.co.kr/m/member/login?redirect=" + quote(product_url(item_no), safe="")
