"""What the fake shops sell: brands, categories, colours, sizes and the words their names are made of.

All of it is invented. Some names carry an ampersand, an apostrophe or an accent on purpose: shops do, and programs stumble.
"""

from typing import NamedTuple

_FIRST = (
    ("Aldora", "알도라"), ("Brevane", "브레바네"), ("Corvo", "코르보"), ("D'Astel", "다스텔"), ("Elmé", "엘메"),
    ("Fiorelle", "피오렐"), ("Graysen", "그레이센"), ("Halden", "할덴"), ("Isola", "이솔라"), ("Jorvik", "요르빅"),
    ("Kestrel", "케스트렐"), ("Lunaire", "루네르"), ("Marchetto", "마르케토"), ("Norrland", "노를란드"),
    ("Ostra", "오스트라"), ("Pelham", "펠햄"), ("Quillon", "퀼론"), ("Rosmarin", "로즈마린"), ("Sandoval", "산도발"),
    ("Tervane", "테르바네"),
)  # fmt: skip
_SECOND = (
    ("", ""),
    (" & Co", " 앤코"),
    (" Atelier", " 아틀리에"),
    (" SPORT", " 스포츠"),
    (" Noir", " 누아르"),
    (" 1924", " 1924"),
)


class Brand(NamedTuple):
    """A label as the marketplace knows it."""

    code: int
    name: str
    name_kr: str


class Category(NamedTuple):
    """A place in the marketplace's tree; some have no fourth level."""

    header: tuple[str, str]
    large: tuple[str, str]
    medium: tuple[str, str]
    small: tuple[str, str] | None


BRANDS = tuple(
    Brand(101 + 7 * number, first + second, first_kr + second_kr)
    for number, ((first, first_kr), (second, second_kr)) in enumerate((f, s) for s in _SECOND for f in _FIRST)
)

_CLOTHES = ("코트/자켓", "탑", "팬츠", "니트", "셔츠/블라우스", "원피스")
_BAGS = ("숄더백", "토트백", "크로스백", "백팩", "클러치")
_SHOES = ("스니커즈", "로퍼", "부츠/워커", "샌들", "플랫")
_EXTRAS = ("지갑", "벨트", "모자", "주얼리", "목도리/스카프")
_TREE = (
    (
        "W",
        "여성",
        (("15", "의류", _CLOTHES), ("16", "가방", _BAGS), ("17", "슈즈", _SHOES), ("18", "액세서리", _EXTRAS)),
    ),
    (
        "M",
        "남성",
        (("15", "의류", _CLOTHES), ("16", "가방", _BAGS), ("17", "슈즈", _SHOES), ("18", "액세서리", _EXTRAS)),
    ),
    ("K", "키즈", (("20", "의류", _CLOTHES[:4]), ("21", "슈즈", _SHOES[:3]), ("27", "액세서리", _EXTRAS[:3]))),
    ("L", "라이프", (("22", "스포츠용품", ("골프", "캠핑")), ("24", "테크", ("오디오", "스마트기기")))),
)
_SMALL = ("베이직", "프리미엄")


def _categories() -> tuple[Category, ...]:
    found = []
    for header_code, header, larges in _TREE:
        for large_code, large, mediums in larges:
            for place, medium in enumerate(mediums, start=1):
                code = f"{large_code}r{place:02}"
                above = ((header_code, header), (large_code, large), (code, medium))
                found.append(Category(*above, None))
                found.extend(
                    Category(*above, (f"{code}r{deep:02}", f"{word} {medium}"))
                    for deep, word in enumerate(_SMALL, start=1)
                )
    return tuple(found)


CATEGORIES = _categories()

SIZES = {
    "의류": ("XS", "S", "M", "L", "XL", "US 4", "IT 40", "2XL"),
    "슈즈": ("220", "230", "240", "250", "260", "270", "280", "EU 42½"),
    "가방": ("FREE", "스몰", "미디움"),
}
OTHER_SIZES = ("FREE", "ONE SIZE", "95cm")
COLOURS = ("블랙", "네이비", "아이보리", "카멜", "버건디", "카키", "그레이", "더스티 핑크", "오프화이트", "코발트블루")
STYLES = (
    "클래식",
    "로고 자수",
    "오버핏",
    "빈티지 워싱",
    "퀼팅",
    "스트라이프",
    "트리오페",
    "모노그램",
    "하이랜드",
    "리버서블",
)
STUFF = ("코튼", "램스울", "캐시미어", "카프스킨", "나일론", "데님", "실크 혼방", "스웨이드")
TAGS = ("무료배송", "오늘출발", "정품보증", "쿠폰", "단독", "주말특가")
COUNTRIES = ("이탈리아", "프랑스", "포르투갈", "베트남", "대한민국", "루마니아", "튀르키예")
CONDITIONS = ("새상품", "새상품", "새상품", "중고상품")
PLACES = ("서울 강남구", "경기 김포시", "부산 해운대구", "대구 수성구", "인천 연수구")
