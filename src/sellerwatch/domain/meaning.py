"""Meaning: what follows from the table of fields (domain/fields.py), worked out once.

Which document owns a field, how a document is read, which kind of change a difference is, what the outgoing event
says. Because each field has exactly one owner, a product never depends on the order in which its documents come.

Refused: a document in which a required field is missing or any declared field can't be read. It becomes an error that
names the field, never a null, a zero or an empty list. Names that aren't declared are ignored, and told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sellerwatch.domain import forms
from sellerwatch.domain.documents import ChangeKind, Document, DocumentKind, Value
from sellerwatch.domain.errors import Unknown, Unreadable
from sellerwatch.domain.fields import DATA_ORDER, FIELDS, MODULES_NOT_ALWAYS_THERE, VOLATILE, Field

UNKNOWN_MAX = 20
PRODUCT_URL = "https://m.web.mustit.co.kr/v2/m/product/product_detail/{itemNo}"
_TOLD_MAX = 5
"""So many of the unknown names are told with a refusal: the new name of what is missing may be among them."""

Keys = Mapping[DocumentKind, Mapping[str, frozenset[str]]]


class Meaning:
    """One table of fields, and all that follows from it."""

    def __init__(self, fields: Sequence[Field] = FIELDS) -> None:
        self.fields = tuple(fields)
        self.keys: Keys = {kind: _keys(self.fields, kind) for kind in DocumentKind}
        """By module ("" is the document itself): the names that are read."""
        self._owned = {field.name: field for field in self.fields if not field.stands_for}
        self._owned_by = {
            kind: frozenset(name for name, field in self._owned.items() if field.document is kind)
            for kind in DocumentKind
        }
        self._stand_ins = tuple((field.name, field.stands_for) for field in self.fields if field.stands_for)
        self._tolerances = {name: field.tolerance for name, field in self._owned.items() if field.tolerance}
        self._parts = {kind: _parts(self.fields, kind, self.keys[kind]) for kind in DocumentKind}
        self._expected = {kind: _expected(self.fields, kind) for kind in DocumentKind}
        self._shown = _shown(self._owned.values())

    def field(self, name: str) -> Field:
        """The declaration of a product's field."""
        try:
            return self._owned[name]
        except KeyError:
            raise Unknown("field", name) from None

    def owner_of(self, name: str) -> DocumentKind:
        return self.field(name).document

    def change_kind(self, name: str) -> ChangeKind:
        return self.field(name).change

    def owned(self, document: Document, known: Mapping[str, Value]) -> dict[str, Value]:
        """The product's fields that this document is the owner of; what is within its tolerance of the value that is
        known is that value."""
        names = self._owned_by[document.kind]
        owned = {name: value for name, value in document.fields.items() if name in names}
        if not self._tolerances:
            return owned
        for name in self._tolerances.keys() & owned.keys():
            if _is_near(known.get(name), owned[name], self._tolerances[name]):
                owned[name] = known[name]
        return owned

    def stand_ins(self, document: Document) -> dict[str, Value]:
        """What it can say about fields that another document owns, for as long as that one isn't known."""
        if document.kind is not DocumentKind.MINI_SHOP:
            return {}
        return {target: document.fields.get(name) for name, target in self._stand_ins}

    def product_data(
        self, fields: Mapping[str, Value], item_no: int, status: str, product_url: str = PRODUCT_URL
    ) -> dict[str, Value]:
        """`productData` of the outgoing event and of the API; what isn't known yet is null."""
        known = {**fields, "status": status, "url": product_url.replace("{itemNo}", str(item_no))}
        return {
            key: known.get(source) if isinstance(source, str) else {inner: known.get(name) for inner, name in source}
            for key, source in self._shown
        }

    def read(
        self, kind: DocumentKind, content: Mapping[str, object]
    ) -> tuple[dict[str, Value], tuple[str, ...], tuple[str, ...]]:
        """The fields a document says, in normal form; the usual ones it lacks; names it has that nobody declared.

        `content` is a list's entry as it is; of a DETAIL its modules' data by type; of an OPTION `{"options": [...]}`.
        """
        fields: dict[str, Value] = {}
        missing: list[str] = []
        unknown: list[str] = []
        from_search = kind is DocumentKind.MINI_SHOP and not _SEARCH_MARKS.isdisjoint(content)
        for part in self._parts[kind]:
            source = _source(part, content)
            for step in part.steps:
                value = source.get(step.key) if step.key else source
                said = None if value is None else step.read(value, step.where)
                if said is not None:
                    fields[step.name] = said
                    if step.entry_keys:
                        unknown += _undeclared(value, step)
                elif not (from_search and not step.in_search):
                    fields[step.name] = step.nothing
                    if step.usual and (source or part.always_there):
                        missing.append(step.name)
            if not part.known.issuperset(source):
                unknown += [f"{part.name}.{name}" if part.name else name for name in source.keys() - part.known]
        strange = printable(unknown) if unknown else ()
        if missing:
            self._refuse_holes(kind, missing, strange)
        return fields, tuple(missing), strange

    def _refuse_holes(self, kind: DocumentKind, missing: list[str], strange: tuple[str, ...]) -> None:
        required, expected = self._expected[kind]
        instead = f"; unknown instead: {', '.join(strange[:_TOLD_MAX])}" if strange else ""
        if len(missing) * 2 > expected:
            raise Unreadable(kind.value, f"most of its fields are missing: {', '.join(missing)}{instead}")
        for name in missing:
            if name in required:
                raise Unreadable(f"{kind.value}.{name}", f"missing{instead}")


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    key: str
    read: forms.Read
    where: str
    nothing: Value
    usual: bool
    in_search: bool
    entry_keys: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    steps: tuple[_Step, ...]
    known: frozenset[str]
    always_there: bool


def _is_near(known: Value, new: Value, tolerance: int) -> bool:
    return type(known) is int and type(new) is int and abs(known - new) <= tolerance


def _source(part: _Part, content: Mapping[str, object]) -> Mapping[str, object]:
    source = content.get(part.name, _NOTHING) if part.name else content
    if not isinstance(source, dict):
        raise Unreadable(part.name, f"{forms.shown(source)} is not an object")
    return source


def _undeclared(entries: object, step: _Step) -> list[str]:
    assert isinstance(entries, list)
    assert step.entry_keys is not None
    strange = [entry.keys() - step.entry_keys for entry in entries if not step.entry_keys.issuperset(entry)]
    return [f"{step.name}.{name}" for names in strange for name in names]


def printable(names: Iterable[str]) -> tuple[str, ...]:
    """Names out of an answer are hostile too: few, short, printable."""
    return tuple(sorted({ascii(name)[1:-1][:80] for name in names})[:UNKNOWN_MAX])


def _parts(fields: Sequence[Field], kind: DocumentKind, keys: Mapping[str, frozenset[str]]) -> tuple[_Part, ...]:
    steps: dict[str, list[_Step]] = {}
    for field in fields:
        if field.document is kind:
            module, dot, key = field.path.rpartition(".")
            where = f"{kind.value}.{field.name}"
            step = _Step(
                name=field.name,
                key=key,
                read=field.form.read,
                where=where,
                nothing=field.form.nothing,
                usual=field.usual or field.required,
                in_search=field.in_search,
                entry_keys=field.form.keys if field.form.keys_are_all else None,
            )
            steps.setdefault(module if dot else "", []).append(step)
    return tuple(_part(kind, name, tuple(found), keys[name]) for name, found in steps.items())


def _part(kind: DocumentKind, name: str, steps: tuple[_Step, ...], keys: frozenset[str]) -> _Part:
    meaningless = {
        word for each in VOLATILE if each.document is kind and each.module == name for word in each.names.split()
    }
    return _Part(name, steps, keys | meaningless, name not in MODULES_NOT_ALWAYS_THERE)


def _keys(fields: Sequence[Field], kind: DocumentKind) -> dict[str, frozenset[str]]:
    keys: dict[str, frozenset[str]] = {}
    for field in fields:
        if field.document is kind:
            module, _, key = field.path.rpartition(".")
            keys[module] = keys.get(module, frozenset()) | field.form.keys | ({key} if key else set())
    return keys


def _expected(fields: Sequence[Field], kind: DocumentKind) -> tuple[frozenset[str], int]:
    """The required ones, and how many are usual."""
    own = [field for field in fields if field.document is kind]
    return frozenset(field.name for field in own if field.required), sum(f.usual or f.required for f in own)


def _shown(owned: Iterable[Field]) -> tuple[tuple[str, str | tuple[tuple[str, str], ...]], ...]:
    places: dict[str, str | tuple[tuple[str, str], ...]] = {"status": "status", "url": "url", "price": "sellingPrice"}
    for field in owned:
        key, dot, inner = (field.shown or field.name).partition(".")
        if dot:
            known = places.get(key, ())
            assert isinstance(known, tuple)
            places[key] = (*known, (inner, field.name))
        else:
            places[key] = field.name
    return tuple((key, places[key]) for key in dict.fromkeys((*DATA_ORDER, *places)))


_NOTHING: Mapping[str, object] = {}
_SEARCH_MARKS = frozenset({"brandCode", "shippingType"})
MEANING = Meaning()
"""Of the table as it is declared."""
