"""Changes to products, with an exact account of what is different afterwards.

The account is the difference of two truths, not a list of intentions: a sold-out option shows up as `options`, `stock` and
perhaps `soldOut`. A product that was chosen always differs in at least one field.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sellerwatch.domain.errors import Invalid
from sellerwatch.sandbox import words
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.truth import Difference, differences, truth_of
from sellerwatch.sandbox.world import Option, Product, World, image, size_of

Mutation = Callable[[Product, Chance], Product]


def mutate(world: World, share: float, *names: object, only: Sequence[str] = ()) -> list[Difference]:
    """Change that share (a fraction) of all listed products, at least one; `names` seed the choice, `only` limits the kinds."""
    if not 0 <= share <= 1:
        raise Invalid("share", share, "a fraction from 0 to 1")
    kinds = _kinds(only)
    listed = world.listed()
    amount = max(1, round(share * len(listed))) if share else 0
    chance = Chance(world.seed, "mutate", *names)
    account: list[Difference] = []
    for item_no in chance.sample(listed, amount):
        account += change(world, item_no, kinds[chance.below(len(kinds))], chance)
    return account


def change(world: World, item_no: int, kind: str, chance: Chance) -> list[Difference]:
    """One change of one product; a kind that cannot apply to it (its only image can't move) becomes a price change."""
    product = world.product(item_no)
    if product is None or not world.is_listed(item_no):
        raise Invalid("itemNo", item_no, "the number of a listed product")
    before = truth_of(product, listed=True)
    changed = MUTATIONS[kind](product, chance)
    account = differences(item_no, before, truth_of(changed, listed=True))
    if not account:
        changed = _price(product, chance)
        account = differences(item_no, before, truth_of(changed, listed=True))
    world.put(changed)
    return account


def _kinds(only: Sequence[str]) -> Sequence[str]:
    for kind in only:
        if kind not in MUTATIONS:
            raise Invalid("kind of mutation", kind, "one of " + ", ".join(MUTATIONS))
    return only or _LIKELY


def _price(product: Product, chance: Chance) -> Product:
    factor = chance.pick((80, 90, 95, 105, 110))
    selling = max(1000, product.selling_price * factor // 100 // 1000 * 1000)
    if selling == product.selling_price:
        selling += 1000
    discount = selling * 91 // 100 // 100 * 100
    normal = max(product.normal_price, selling)
    return replace(
        product,
        normal_price=normal,
        selling_price=selling,
        discount_price=discount,
        app_price=discount,
        original_price=normal,
    )


def _app_price(product: Product, chance: Chance) -> Product:
    return replace(product, app_price=max(100, product.app_price - 100 * chance.between(1, 20)))


def _stock(product: Product, chance: Chance) -> Product:
    if not product.options:
        return replace(product, loose_stock=product.loose_stock + chance.between(1, 5))
    place = chance.below(len(product.options))
    option = product.options[place]
    return _with_option(product, place, replace(option, stock=option.stock + chance.between(1, 5)))


def _swap_stock(product: Product, chance: Chance) -> Product:
    """A piece moves from one option to another: the options change, the stock does not."""
    full = [place for place, option in enumerate(product.options) if option.stock]
    if not full or len(product.options) < 2:
        return product
    giver = chance.pick(full)
    taker = (giver + 1) % len(product.options)
    options = list(product.options)
    options[giver] = replace(options[giver], stock=options[giver].stock - 1)
    options[taker] = replace(options[taker], stock=options[taker].stock + 1)
    return replace(product, options=tuple(options))


def _sold_out(product: Product, _: Chance) -> Product:
    options = tuple(replace(option, stock=0) for option in product.options)
    return replace(product, loose_stock=0, options=options)


def _option_added(product: Product, chance: Chance) -> Product:
    number = max(
        (option.option_no for option in product.options), default=4_000_000_000 + product.item_no % 10_000_000 * 64
    )
    fresh = Option(number + 1, chance.pick(words.COLOURS), size_of(chance, product.category.large[1]), chance.below(4))
    return replace(product, options=(*product.options, fresh))


def _option_removed(product: Product, chance: Chance) -> Product:
    if not product.options:
        return product
    place = chance.below(len(product.options))
    return replace(product, options=product.options[:place] + product.options[place + 1 :])


def _option_text(product: Product, chance: Chance) -> Product:
    if not product.options:
        return product
    place = chance.below(len(product.options))
    return _with_option(
        product, place, replace(product.options[place], size=product.options[place].size + " (소진임박)")
    )


def _image_order(product: Product, _: Chance) -> Product:
    return replace(product, images=product.images[1:] + product.images[:1])


def _image_added(product: Product, chance: Chance) -> Product:
    return replace(product, images=(*product.images, image(chance, product.seller)))


def _name(product: Product, chance: Chance) -> Product:
    return replace(product, name=f"[{chance.pick(('재입고', '특가', '신상', '당일발송'))}] {product.name}")


def _category(product: Product, chance: Chance) -> Product:
    return replace(product, category=chance.pick(words.CATEGORIES))


def _shipping(product: Product, chance: Chance) -> Product:
    fee = 0 if product.shipping_fee else chance.pick((2500, 4000))
    return replace(product, shipping_fee=fee, shipping_type="DOMESTIC")


def _tags(product: Product, chance: Chance) -> Product:
    tag = chance.pick(words.TAGS)
    rest = tuple(known for known in product.tags if known != tag)
    return replace(product, tags=rest if tag in product.tags else (*rest, tag))


def _description(product: Product, chance: Chance) -> Product:
    if product.description is None:
        return product
    return replace(product, description=f"{product.description}\n<p>{chance.pick(words.STYLES)}</p>")


def _with_option(product: Product, place: int, option: Option) -> Product:
    return replace(product, options=(*product.options[:place], option, *product.options[place + 1 :]))


MUTATIONS: Mapping[str, Mutation] = {
    "price": _price,
    "appPrice": _app_price,
    "stock": _stock,
    "swapStock": _swap_stock,
    "soldOut": _sold_out,
    "optionAdded": _option_added,
    "optionRemoved": _option_removed,
    "optionText": _option_text,
    "imageOrder": _image_order,
    "imageAdded": _image_added,
    "name": _name,
    "category": _category,
    "shipping": _shipping,
    "tags": _tags,
    "description": _description,
}
_LIKELY = ("price", "price", "price", "stock", "stock", *MUTATIONS)
