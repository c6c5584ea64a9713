"""The shops and what is true of their products, from a seed and nothing else.

A product is made when somebody asks for it and is the same each time; only what was changed since is kept. So a shop of
20 000 costs no more than its list of numbers. Revisions tell renderers when what they kept is stale.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sellerwatch.domain.errors import Conflict, Invalid, Unknown
from sellerwatch.sandbox import words
from sellerwatch.sandbox.chance import Chance

OUTSIDER = "elsewhere.mall"
"""A shop nobody registered: its items turn up in keyword searches."""
_OUTSIDER_SIZE = 24
_PRODUCTS_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Option:
    """One variant that can be ordered."""

    option_no: int
    color: str
    size: str
    stock: int


@dataclass(frozen=True, slots=True)
class Product:
    """Everything that is business about one item. Texts are trimmed and composed; images carry no resizing suffix."""

    item_no: int
    seller: str
    name: str
    brand: words.Brand
    category: words.Category
    normal_price: int
    original_price: int
    selling_price: int
    discount_price: int
    app_price: int
    loose_stock: int
    images: tuple[str, ...]
    shipping_type: str
    shipping_fee: int
    options: tuple[Option, ...]
    options_from: int
    tags: tuple[str, ...]
    origin_country: str | None
    item_status: str | None
    description: str | None

    @property
    def stock(self) -> int:
        """What its options hold, or what it holds itself when it has none."""
        return sum(option.stock for option in self.options) if self.options else self.loose_stock

    @property
    def sold_out(self) -> bool:
        return self.stock == 0

    @property
    def discount_rate(self) -> int:
        return _rate(self.normal_price, self.discount_price)

    @property
    def app_discount_rate(self) -> int:
        return _rate(self.normal_price, self.app_price)


@dataclass(slots=True)
class Shop:
    """A seller's list, newest first. `revision` grows whenever the list, or anything in it, changes."""

    seller: str
    number: int
    order: list[int] = field(default_factory=list)
    revision: int = 0


class World:
    """Shops, products, and the changes made to them."""

    def __init__(self, seed: int, shops: Mapping[str, int], images_max: int = 4) -> None:
        self.seed = seed
        self._images_max = images_max
        self._next_item = 110_000_000 + Chance(seed, "first item").below(5_000_000)
        self._steps = Chance(seed, "steps between items")
        self._owner: dict[int, str] = {}
        self._gone: set[int] = set()
        self._changed: dict[int, Product] = {}
        self._revisions: dict[int, int] = {}
        self._kept: OrderedDict[int, Product] = OrderedDict()
        self.outsider = Shop(OUTSIDER, 1)
        for item_no in range(100_000_000, 100_000_000 + _OUTSIDER_SIZE):
            self._owner[item_no] = OUTSIDER
            self.outsider.order.insert(0, item_no)
        self.shops: dict[str, Shop] = {}
        for seller, amount in shops.items():
            self.add_shop(seller, amount)

    def shop(self, seller: str) -> Shop | None:
        """The shop of that id, whatever its case; None for an unknown one."""
        found = self.shops.get(seller)
        if found is None:
            folded = seller.casefold()
            found = next((shop for name, shop in self.shops.items() if name.casefold() == folded), None)
        return found

    def product(self, item_no: int) -> Product | None:
        """The product as it is now, gone ones as they were last; None for a number never given out."""
        changed = self._changed.get(item_no)
        if changed is not None:
            return changed
        kept = self._kept.get(item_no)
        if kept is None:
            seller = self._owner.get(item_no)
            if seller is None:
                return None
            kept = self._kept[item_no] = make_product(self.seed, item_no, seller, self._images_max)
            if len(self._kept) > _PRODUCTS_KEPT:
                self._kept.popitem(last=False)
        return kept

    def products(self, seller: str) -> Iterator[Product]:
        """Those listed now, in the list's order."""
        for item_no in self._known(seller).order:
            product = self.product(item_no)
            if product is not None:
                yield product

    def is_listed(self, item_no: int) -> bool:
        return item_no in self._owner and item_no not in self._gone

    def revision(self, item_no: int) -> int:
        """How often the product was changed."""
        return self._revisions.get(item_no, 0)

    def listed(self) -> list[int]:
        """Every listed item of every shop, in a fixed order."""
        return [item_no for shop in self.shops.values() for item_no in shop.order]

    def add_shop(self, seller: str, amount: int) -> list[int]:
        """A new shop with its products."""
        if not seller or self.shop(seller) is not None or seller.casefold() == OUTSIDER:
            raise Conflict("SHOP_EXISTS", f"there is a shop {seller!r} already")
        self.shops[seller] = Shop(seller, 600 + 13 * len(self.shops))
        return self.add_products(seller, amount)

    def add_products(self, seller: str, amount: int) -> list[int]:
        """New products at the head of the list."""
        if amount < 0:
            raise Invalid("amount", amount, "a number of products")
        shop = self._known(seller)
        fresh = []
        for _ in range(amount):
            self._next_item += self._steps.between(1, 5)
            self._owner[self._next_item] = shop.seller
            fresh.append(self._next_item)
        shop.order[:0] = reversed(fresh)
        shop.revision += 1
        return fresh

    def remove_products(self, seller: str, items: Iterable[int]) -> list[int]:
        """They leave the list, and their pages are gone."""
        shop = self._known(seller)
        leaving = set(items) & set(shop.order)
        shop.order = [item_no for item_no in shop.order if item_no not in leaving]
        self._gone |= leaving
        self._touch(shop, leaving)
        return sorted(leaving)

    def bring_back(self, item_no: int) -> None:
        """A removed product is listed again, as the newest."""
        if item_no not in self._gone:
            raise Unknown("removed product", item_no)
        shop = self._known(self._owner[item_no])
        self._gone.discard(item_no)
        shop.order.insert(0, item_no)
        self._touch(shop, (item_no,))

    def transfer(self, item_no: int, seller: str) -> None:
        """Another shop sells the item from now on."""
        product, new = self.product(item_no), self._known(seller)
        if product is None or not self.is_listed(item_no):
            raise Unknown("listed product", item_no)
        old = self._known(product.seller)
        old.order.remove(item_no)
        old.revision += 1
        new.order.insert(0, item_no)
        self._owner[item_no] = new.seller
        self.put(replace(product, seller=new.seller))

    def bump(self, seller: str, place: int) -> int | None:
        """The item at that place moves to the head of the list, as when a seller renews it; nothing about it changes."""
        shop = self._known(seller)
        if not shop.order:
            return None
        item_no = shop.order.pop(place % len(shop.order))
        shop.order.insert(0, item_no)
        shop.revision += 1
        return item_no

    def put(self, product: Product) -> None:
        """This is the product from now on."""
        if self._owner.get(product.item_no) != product.seller:
            raise Unknown(f"product of {product.seller}", product.item_no)
        self._changed[product.item_no] = product
        self._kept.pop(product.item_no, None)
        self._touch(self._known(product.seller), (product.item_no,))

    def _known(self, seller: str) -> Shop:
        shop = self.outsider if seller == OUTSIDER else self.shop(seller)
        if shop is None:
            raise Unknown("shop", seller)
        return shop

    def _touch(self, shop: Shop, items: Iterable[int]) -> None:
        shop.revision += 1
        for item_no in items:
            self._revisions[item_no] = self._revisions.get(item_no, 0) + 1


def make_product(seed: int, item_no: int, seller: str, images_max: int) -> Product:
    """The product of that number, before anything changed it."""
    chance = Chance(seed, "product", item_no)
    brand = chance.pick(words.BRANDS)
    category = chance.pick(words.CATEGORIES)
    colour = chance.pick(words.COLOURS)
    normal = _normal_price(chance)
    selling = normal * (100 - chance.between(5, 60)) // 100 // 1000 * 1000
    discount = selling * chance.pick((100, 97, 91)) // 100 // 100 * 100
    fee = chance.pick((0, 0, 0, 2500, 3000, 15000))
    options = _options(chance, item_no, category.large[1], colour)
    has_info = chance.below(10) > 0
    return Product(
        item_no=item_no,
        seller=seller,
        name=_name(chance, brand, category, colour),
        brand=brand,
        category=category,
        normal_price=normal,
        original_price=normal,
        selling_price=selling,
        discount_price=discount,
        app_price=discount if chance.below(4) else discount * 98 // 100 // 100 * 100,
        loose_stock=chance.between(0, 12),
        images=tuple(image(chance, seller) for _ in range(chance.between(1, images_max))),
        shipping_type="OVERSEAS" if fee == 15000 else "DOMESTIC",
        shipping_fee=fee,
        options=options,
        options_from=item_no - chance.between(1, 900_000) if chance.below(10) == 0 else item_no,
        tags=tuple(chance.sample(words.TAGS[1:], chance.below(3))) + (() if fee else words.TAGS[:1]),
        origin_country=chance.pick(words.COUNTRIES) if has_info else None,
        item_status=chance.pick(words.CONDITIONS) if has_info else None,
        description=_description(chance, seller) if has_info else None,
    )


def image(chance: Chance, seller: str) -> str:
    """The address of a picture, without resizing."""
    month = chance.between(1, 12)
    name = f"{chance.draw():016x}{chance.draw():016x}"
    return f"https://image.mustit.co.kr/lib/upload/product/{seller}/2025/{month:02}/{name}.jpeg"


def size_of(chance: Chance, large: str) -> str:
    """A size that suits the category."""
    return chance.pick(words.SIZES.get(large, words.OTHER_SIZES))


def _normal_price(chance: Chance) -> int:
    return chance.pick((30, 80, 200, 500, 900)) * chance.between(100, 420) // 100 * 1000


def _name(chance: Chance, brand: words.Brand, category: words.Category, colour: str) -> str:
    code = f"{chance.below(36**3) + 10_000}{chance.pick('ABKRSW')} {chance.pick('EVNS')}{chance.between(100, 9999):04}"
    style = f"{chance.pick(words.STYLES)} {chance.pick(words.STUFF)}"
    if chance.below(100) == 0:
        style = f'"{style}" <리미티드> 50% & more'
    return f"{brand.name_kr} {category.header[1]} {style} {category.medium[1]}({colour}) {code}"


def _options(chance: Chance, item_no: int, large: str, colour: str) -> tuple[Option, ...]:
    sizes = words.SIZES.get(large, words.OTHER_SIZES)
    amount = chance.below(min(len(sizes), 6) + 1)
    first = 4_000_000_000 + item_no % 10_000_000 * 64 + chance.below(3)
    shown = colour if chance.below(2) else ""
    return tuple(
        Option(first + 3 * place, shown, size, chance.pick((0, 1, 1, 2, 3, 9)))
        for place, size in enumerate(sizes[:amount])
    )


def _description(chance: Chance, seller: str) -> str:
    folder = f"https://pictures.example.com/web/product/{seller}/{chance.draw():012x}"
    parts = [f'<p align="center"><img src="{folder}/{number:02}.jpg"></p>' for number in range(1, chance.between(4, 9))]
    return "\n".join([f"<p>{chance.pick(words.STYLES)} &amp; {chance.pick(words.STUFF)}</p>", *parts])


def _rate(normal: int, price: int) -> int:
    return (100 * (normal - price) + normal // 2) // normal
