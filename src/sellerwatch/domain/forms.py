"""Forms: how a value is written, read once and for all into one normal form.

A form takes what the marketplace wrote and gives the one value it means, or raises Unreadable with the name of the
field. It never guesses: `"17%"`, `"1~3 days"`, an empty text where a number belongs, a number with a sign or a
fraction are errors, not numbers. Two ways to write the same value give the same value; two values never do.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from sellerwatch.domain.documents import Value
from sellerwatch.domain.errors import Unreadable

WON_MAX = 10**12
PIECES_MAX = 10**9
NUMBER_MAX = 2**63 - 1
TEXT_MAX = 500
URL_MAX = 2_048
HTML_MAX = 2_000_000
LIST_MAX = 5_000
DECOMPOSED_MOST = 4
"""So many code points can one character be before it is composed."""
COMBINING_MAX = 64
"""So many combining marks in a row are an attack: bringing them into order takes the square of their number."""

LEVELS = ("header", "large", "medium", "small")

CATEGORY_KEYS = frozenset(f"{level}Category{end}" for level in LEVELS for end in ("Code", ""))
SHIPPING_KEYS = frozenset({"shippingType", "shippingFee", "shippingFeeType", "averageDeliveryDay"})
OPTION_KEYS = frozenset({"optionNo", "itemNo", "color", "size", "stock", "shippingType", "sizeGuide"})

_WHOLE = re.compile(r"(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.00?)?", re.ASCII)
_IMAGE = re.compile(r"""<img\b[^<>]*?\ssrc\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""", re.IGNORECASE)
_RESIZED = "/_dims_/"


Read: TypeAlias = Callable[[object, str], Value]


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of value: how it is read, when two of them are equal, and what stands for "none of it"."""

    name: str
    read: Read
    compared: str = "exactly"
    nothing: Value = None
    keys: frozenset[str] = frozenset()
    """The names it reads inside the value, where that is an object or holds some."""
    keys_are_all: bool = False
    """The value's entries are known to hold nothing else: another name in them is drift."""


def won(value: object, where: str) -> int:
    return _whole(value, where, WON_MAX)


def pieces(value: object, where: str) -> int:
    return _whole(value, where, PIECES_MAX)


def percent(value: object, where: str) -> int:
    return _whole(value, where, 100)


def number(value: object, where: str) -> int:
    return _whole(value, where, NUMBER_MAX)


def flag(value: object, where: str) -> bool:
    if type(value) is not bool:
        raise _unreadable(where, value, "true or false")
    return value


def text(value: object, where: str) -> str | None:
    """Trimmed and in Unicode NFC. An empty text says nothing, as null does."""
    return _text(value, where, TEXT_MAX) or None


def markup(value: object, where: str) -> str | None:
    return _text(value, where, HTML_MAX) or None


def images(value: object, where: str) -> tuple[str, ...]:
    """Urls in their order, without the suffix that only says how large."""
    return tuple(url for one in _list(value, where) if (url := _image(one, where)))


def images_in_markup(value: object, where: str) -> tuple[str, ...]:
    """The pictures a description shows, in their order; pictures written out inside it (`data:`) are no urls."""
    if not isinstance(value, str):
        raise _unreadable(where, value, "a text")
    found = []
    for quoted, single_quoted, bare in _IMAGE.findall(value):
        url = quoted or single_quoted or bare
        url = (html.unescape(url) if "&" in url else url).strip()
        if url.startswith(("http://", "https://", "//")) and len(url) <= URL_MAX:
            found.append(_image(url, where))
    if len(found) > LIST_MAX:
        raise Unreadable(where, f"more than {LIST_MAX} images")
    return tuple(found)


def tags(value: object, where: str) -> tuple[str, ...]:
    """The titles as a set: neither their order nor their colours mean anything."""
    titles = {_said(_object(one, where), "title", where) for one in _list(value, where)}
    return tuple(sorted(titles - {""}))


def category(value: object, where: str) -> Value:
    """Levels from the top, each with code and name. None: the document names no level at all."""
    module = _object(value, where)
    levels = []
    for level, code_key, name_key in _LEVEL_KEYS:
        code, name = module.get(code_key), module.get(name_key)
        if code is None and name is None:
            continue
        shown: dict[str, Value] = {"level": level, "code": _code(code, where), "name": _text(name, where, TEXT_MAX)}
        levels.append(shown)
    return tuple(levels) or None


def shipping(value: object, where: str) -> Value:
    """The first item of type SHIPPING. None: there is none."""
    for item in _list(value, where):
        entry = _object(item, where)
        if entry.get("type") == "SHIPPING":
            return _shipping(_object(entry.get("data"), where), where)
    return None


def options(value: object, where: str) -> Value:
    """All of them, by number. One that can't be read, or that comes twice, spoils the document: a part is not all."""
    read = [_option(_object(one, where), where) for one in _list(value, where)]
    read.sort(key=_option_no)
    for one, following in pairwise(read):
        if one["optionNo"] == following["optionNo"]:
            raise Unreadable(where, f"option {one['optionNo']} comes twice")
    return tuple(read)


WON = Form("won", won)
PIECES = Form("pieces", pieces)
PERCENT = Form("percent", percent)
NUMBER = Form("number", number)
FLAG = Form("flag", flag)
TEXT = Form("text", text)
MARKUP = Form("markup", markup)
IMAGES = Form("images", images, compared="in order", nothing=())
IMAGES_IN_MARKUP = Form("images in markup", images_in_markup, compared="in order", nothing=())
TAGS = Form("tags", tags, compared="as a set", nothing=())
CATEGORY = Form("category", category, compared="by level", keys=CATEGORY_KEYS)
SHIPPING = Form("shipping", shipping, keys=SHIPPING_KEYS)
OPTIONS = Form("options", options, compared="by optionNo", keys=OPTION_KEYS, keys_are_all=True)

_LEVEL_KEYS = tuple((level, f"{level}CategoryCode", f"{level}Category") for level in LEVELS)


def shown(value: object) -> str:
    """A value in an error: short, on one line, whatever it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return "null" if value is None else repr(value)
    return {"dict": "an object", "list": "a list"}.get(type(value).__name__, f"a {type(value).__name__}")


def _whole(value: object, where: str, most: int) -> int:
    kind = type(value)
    if kind is int:
        amount: int = value  # type: ignore[assignment]  # bool is excluded, which isinstance would let in
    elif isinstance(value, str) and len(value) <= 40 and _WHOLE.fullmatch(digits := value.strip()):
        amount = int(digits.partition(".")[0].replace(",", ""))
    elif isinstance(value, float) and value.is_integer():
        amount = int(value)
    else:
        raise _unreadable(where, value, "a whole number")
    if not 0 <= amount <= most:
        raise _unreadable(where, value, f"a whole number from 0 to {most}")
    return amount


def _text(value: object, where: str, most: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _unreadable(where, value, "a text")
    trimmed = value.strip()
    if not trimmed.isascii() and len(trimmed) <= DECOMPOSED_MOST * most:
        trimmed = _composed(trimmed, where)
    if len(trimmed) > most:
        raise Unreadable(where, f"a text of {len(trimmed)} characters, more than {most}")
    return trimmed


def _composed(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unreadable(where, "half a character (a lone surrogate)") from None
    if unicodedata.is_normalized("NFC", value):
        return value
    run = 0
    for character in value:
        run = run + 1 if unicodedata.combining(character) else 0
        if run > COMBINING_MAX:
            raise Unreadable(where, f"more than {COMBINING_MAX} combining marks in a row")
    return unicodedata.normalize("NFC", value).strip()


def _image(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _unreadable(where, value, "the url of an image")
    return _text(value.partition(_RESIZED)[0], where, URL_MAX)


def _code(value: object, where: str) -> str:
    return str(number(value, where)) if type(value) is int else _text(value, where, TEXT_MAX)


def _shipping(data: Mapping[str, object], where: str) -> dict[str, Value]:
    average = data.get("averageDeliveryDay")
    return {
        "type": _said(data, "shippingType", where),
        "fee": won(data.get("shippingFee"), "DETAIL.shipping.fee"),
        "feeType": _said(data, "shippingFeeType", where),
        "delivery": None if average is None else text(_object(average, where).get("text"), where),
    }


def _option(data: Mapping[str, object], where: str) -> dict[str, Value]:
    return {
        "optionNo": number(data.get("optionNo"), "OPTION.options.optionNo"),
        "color": _said(data, "color", where),
        "size": _said(data, "size", where),
        "stock": pieces(data.get("stock"), "OPTION.options.stock"),
        "shippingType": _text(data.get("shippingType"), "OPTION.options.shippingType", TEXT_MAX),
        "sizeGuide": _text(data.get("sizeGuide"), "OPTION.options.sizeGuide", HTML_MAX),
    }


def _said(data: Mapping[str, object], key: str, where: str) -> str:
    """A text that may be empty but not left out: a renamed field is not an empty one."""
    if key not in data:
        raise Unreadable(where, f"an entry without {key}")
    return _text(data[key], where, TEXT_MAX)


def _option_no(option: Mapping[str, Value]) -> int:
    option_no = option["optionNo"]
    assert isinstance(option_no, int)
    return option_no


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise _unreadable(where, value, "a list")
    if len(value) > LIST_MAX:
        raise Unreadable(where, f"a list of {len(value)}, more than {LIST_MAX}")
    return value


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _unreadable(where, value, "an object")
    return value


def _unreadable(where: str, value: object, expected: str) -> Unreadable:
    return Unreadable(where, f"{shown(value)} is not {expected}")
