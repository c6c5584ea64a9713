"""Parse: the marketplace's answers, taken apart.

A list's page is cut into its entries byte by byte, an item's page is checked before it is kept, and a kept document is
read field by field as domain/fields.py declares. Nothing here remembers, waits or asks.

Whatever the bytes are, the result is what they say or Unreadable: HTML, half a body, numbers of a million digits, two
hundred thousand brackets, names that come twice. One bad entry of a page is handed back beside the good ones, and
costs neither them nor the link to the next page.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import orjson

from sellerwatch.domain import forms
from sellerwatch.domain.addresses import FACADE, SEARCH_PATH
from sellerwatch.domain.documents import Document, DocumentKind, content_hash
from sellerwatch.domain.errors import Invalid, Unreadable
from sellerwatch.domain.meaning import MEANING, Meaning, printable
from sellerwatch.ports.marketplace import BadEntry, Entry, Listing

SEARCH_ITEM = "SearchItemV2"
INFO = "ProductInfoModule"
ENTRIES_MAX = 5_000

T = TypeVar("T")


class Parse:
    """The port Reader, kept."""

    def __init__(self, meaning: Meaning = MEANING) -> None:
        self._meaning = meaning
        modules = meaning.keys[DocumentKind.DETAIL].items()
        self._detail_names = {module: _quoted(names) for module, names in modules}
        self._detail_names[INFO] += _quoted({"itemNo", "sellerId"})
        self._entry_names = _quoted({"itemNo", *meaning.keys[DocumentKind.MINI_SHOP][""]})

    def listing(self, kind: str, body: bytes) -> Listing:
        """The entries of a MINI_SHOP or SEARCH page."""
        if kind == "MINI_SHOP":
            return _mini_shop(body)
        if kind == "SEARCH":
            return _search(body)
        raise Invalid("kind", kind, "MINI_SHOP or SEARCH")

    def verify(self, kind: str, item_no: int, body: bytes) -> None:
        """Unreadable unless the body is a DETAIL of this very item, or an OPTION; it isn't read any further."""
        _refuse_bad_text(kind, body)
        if kind == "OPTION":
            _decode(_OPTIONS, body, kind)
        elif kind == "DETAIL":
            if body.count(b'"moduleList"') > 1:
                _refuse_repeated_names(kind, body)
            info = _decode(_INFO, _only_one(_decode(_MODULES, body, kind).moduleList, INFO), f"{kind} {INFO}")
            _refuse_another(kind, item_no, info.itemNo)
        else:
            raise Invalid("kind", kind, "DETAIL or OPTION")

    def document(self, kind: DocumentKind, item_no: int, raw: bytes) -> Document:
        """All that a document says, in normal form. A MINI_SHOP is an entry of either kind of list."""
        seller_id: str | None = None
        content: Mapping[str, object]
        strange: tuple[str, ...] = ()
        if kind is DocumentKind.DETAIL:
            modules, strange = _detail(raw, self._detail_names)
            content, info = modules, modules.get(INFO, {})
            _refuse_another(kind, item_no, info.get("itemNo"))
            seller_id = _seller_id(info.get("sellerId"))
        elif kind is DocumentKind.MINI_SHOP:
            content = _object(kind.value, raw, self._entry_names)
            _refuse_another(kind, item_no, content.get("itemNo"))
        else:
            content = {"options": _array(raw)}
        fields, missing, unknown = self._meaning.read(kind, content)
        digest = content_hash(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS))
        return Document(kind, item_no, seller_id, fields, digest, missing, strange + unknown)


ItemNo = Annotated[int, msgspec.Meta(ge=1, lt=10**18)]


class _Numbered(msgspec.Struct):
    itemNo: ItemNo  # noqa: N815  # the marketplace's name


class _Option(msgspec.Struct):
    optionNo: int  # noqa: N815


class _Module(msgspec.Struct):
    type: str
    data: msgspec.Raw


class _MiniShopPage(msgspec.Struct):
    count: Any
    items: list[msgspec.Raw]


class _Modules(msgspec.Struct):
    moduleList: list[_Module]  # noqa: N815


class _SearchPage(msgspec.Struct):
    moduleList: list[msgspec.Raw]  # noqa: N815
    nextApiUrl: str | None = None  # noqa: N815


class _Page(Generic[T]):
    """An answer's top level. Names that are not known there are told, at no cost where there are none."""

    def __init__(self, shape: type[T], others: str) -> None:
        ignored = [(name, msgspec.Raw, msgspec.Raw(b"null")) for name in others.split()]
        whole: Any = msgspec.defstruct(shape.__name__, ignored, bases=(shape,), forbid_unknown_fields=True)
        self._known = frozenset(whole.__struct_fields__)
        self._strict = msgspec.json.Decoder(whole)
        self._loose = msgspec.json.Decoder(shape)

    def read(self, body: bytes, where: str) -> tuple[T, tuple[str, ...]]:
        try:
            return self._strict.decode(body), ()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            page = _decode(self._loose, body, where)
            names = _decode(_NAMES, body, where).keys() - self._known
            return page, printable(f"page.{name}" for name in names)


_NAMES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MINI_SHOP_PAGE = _Page(_MiniShopPage, "indexName groupResult")
_SEARCH_PAGE = _Page(_SearchPage, "trackingInfos")
_DETAIL_PAGE = _Page(_Modules, "bottom nextApiUrl trackingInfos")
_MODULES = msgspec.json.Decoder(_Modules)
_MODULE = msgspec.json.Decoder(_Module)
_INFO = msgspec.json.Decoder(_Numbered)
_OPTIONS = msgspec.json.Decoder(list[_Option])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_ARRAY = msgspec.json.Decoder(list[dict[str, Any]])

_NEXT = re.compile(
    re.escape(SEARCH_PATH.removeprefix(FACADE)) + r"\?(?:[A-Za-z0-9\-._~=&+:,;@!$'()*/?]|%[0-9A-Fa-f]{2}){1,1800}",
    re.ASCII,
)


def _quoted(names: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(f'"{name}"'.encode() for name in sorted(names))


_OPTION_NAMES = _quoted(forms.OPTION_KEYS)


def _mini_shop(body: bytes) -> Listing:
    page, unknown = _MINI_SHOP_PAGE.read(body, "MINI_SHOP")
    count = forms.number(page.count, "MINI_SHOP.count")
    entries, bad = _entries("MINI_SHOP", page.items, valid=_is_text(body))
    return Listing(entries, bad, count, None, ended=not page.items, unknown=unknown)


def _search(body: bytes) -> Listing:
    page, unknown = _SEARCH_PAGE.read(body, "SEARCH")
    items: list[msgspec.Raw] = []
    bad: list[BadEntry] = []
    for raw in page.moduleList:
        try:
            module = _decode(_MODULE, raw, "SEARCH module")
        except Unreadable as error:
            bad.append(BadEntry(bytes(raw), str(error)))
        else:
            if module.type == SEARCH_ITEM:
                items.append(module.data)
    entries, bad_items = _entries("SEARCH", items, valid=_is_text(body))
    next_path = _next_path(page.nextApiUrl)
    has_ended = not (next_path or items or bad)
    return Listing(entries, bad + bad_items, None, next_path, ended=has_ended, unknown=unknown)


def _entries(where: str, items: Sequence[msgspec.Raw], *, valid: bool) -> tuple[list[Entry], list[BadEntry]]:
    if len(items) > ENTRIES_MAX:
        raise Unreadable(where, f"{len(items)} items on one page, more than {ENTRIES_MAX}")
    entries: list[Entry] = []
    bad: list[BadEntry] = []
    for item in items:
        raw = bytes(item)
        try:
            if not valid:
                _refuse_bad_text(f"{where} item", raw)
            entries.append(Entry(_decode(_INFO, raw, f"{where} item").itemNo, raw))
        except Unreadable as error:
            bad.append(BadEntry(raw, str(error)))
    return entries, bad


def _next_path(url: str | None) -> str | None:
    if not url:
        return None
    if not _NEXT.fullmatch(url):
        raise Unreadable("SEARCH.nextApiUrl", f"{forms.shown(url)} is not a relative, encoded address of a search")
    return url


def _detail(raw: bytes, names_of: Mapping[str, tuple[bytes, ...]]) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """The data of the modules that hold business, by type; and what else stands beside the modules."""
    page, unknown = _DETAIL_PAGE.read(raw, "DETAIL")
    content: dict[str, dict[str, Any]] = {}
    for module in page.moduleList:
        names = names_of.get(module.type)
        if names is None:
            continue
        if module.type in content:
            raise Unreadable(f"DETAIL {module.type}", "comes twice")
        content[module.type] = _object(module.type, bytes(module.data), names)
    return content, unknown


def _object(where: str, raw: bytes, names: Iterable[bytes]) -> dict[str, Any]:
    read = _decode(_OBJECT, raw, where)
    for name in names:
        if raw.count(name) > 1:
            # Perhaps only a text or an inner object of that name: look closely.
            _refuse_repeated_names(where, raw)
            break
    return read


def _array(raw: bytes) -> list[dict[str, Any]]:
    options = _decode(_ARRAY, raw, "OPTION")
    for name in _OPTION_NAMES:
        if raw.count(name) != len(options):
            _refuse_repeated_names("OPTION", raw)
            break
    return options


def _decode(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, where: str) -> T:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(where, _why(bytes(raw), error)) from None


def _why(raw: bytes, error: Exception) -> str:
    start = raw[:200].lstrip()
    if not start:
        return "an empty body"
    if start.startswith(b"<"):
        return "a page of HTML instead of JSON"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return f"not what it should be: {str(error)[:200]}"


def _only_one(modules: Iterable[_Module], name: str) -> msgspec.Raw:
    found = [module.data for module in modules if module.type == name]
    if len(found) != 1:
        raise Unreadable("DETAIL", f"{len(found)} modules of type {name} instead of one")
    return found[0]


def _refuse_another(kind: str, item_no: int, found: object) -> None:
    if forms.number(found, f"{kind}.itemNo") != item_no:
        raise Unreadable(kind, f"asked for item {item_no}, was given item {forms.shown(found)}")


def _seller_id(value: object) -> str:
    seller_id = forms.text(value, "DETAIL.sellerId")
    if not seller_id or len(seller_id) > 64:
        raise Unreadable("DETAIL.sellerId", f"{forms.shown(value)} is not the id of a seller")
    return seller_id


def _refuse_bad_text(where: str, raw: bytes) -> None:
    if not _is_text(raw):
        raise Unreadable(where, "not valid UTF-8")


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_repeated_names(where: str, raw: bytes) -> None:
    try:
        json.loads(raw, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise Unreadable(where, str(error)[:200]) from None


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> Mapping[str, object]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a name comes twice in one object")
    return read
