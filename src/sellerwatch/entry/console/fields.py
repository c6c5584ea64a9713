"""docs/fields.md, from the table of fields."""

from collections.abc import Iterable

from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.fields import VOLATILE, Field
from sellerwatch.domain.meaning import Meaning

HEAD = """# Fields

What a document says, and what of it is the product's. Made from `domain/fields.py`, where each row is one line; reading,
comparing, the kinds of change, the counters of drift and the outgoing event follow from the same table.

A **required** field is one without which a document is refused: better none than one that empties the field. A **usual** one
is nearly always there, and its absence is counted. What can't be read as its form is refused by name, never guessed.
"""
_TITLES = {
    DocumentKind.DETAIL: "The detail page owns all it carries.",
    DocumentKind.MINI_SHOP: "An entry of a list owns what no other document has. The rest of it serves the delta crawl, and "
    "stands in for a field of the detail until that is known.",
    DocumentKind.OPTION: "The options document owns the options, all of them: a part is not all.",
}
_COLUMNS = "| field | found at | form | two are the same | kind of change | must it be there | in `productData` |\n"


def fields_page(meaning: Meaning) -> str:
    parts = [HEAD]
    for kind, about in _TITLES.items():
        rows = [_row(field) for field in meaning.fields if field.document is kind]
        parts += [f"\n## {kind}\n\n{about}\n\n", _COLUMNS, "|---" * 7 + "|\n", *rows, _volatile(kind)]
    return "".join(parts)


def _row(field: Field) -> str:
    place = f"`{field.path}`" if not field.path.endswith(".") else f"`{field.path[:-1]}`, by level"
    shown = f"stands in for `{field.stands_for}`" if field.stands_for else f"`{_shown(field)}`"
    cells = (f"`{field.name}`", place, field.form.name, _same(field), field.change.value, _there(field), shown)
    return f"| {' | '.join(cells)} |\n"


def _same(field: Field) -> str:
    return f"no further apart than {field.tolerance}" if field.tolerance else field.form.compared


def _there(field: Field) -> str:
    word = "required" if field.required else "usual" if field.usual else "no"
    return word if field.in_search else f"{word}, but in a search"


def _shown(field: Field) -> str:
    return field.shown or field.name


def _volatile(kind: DocumentKind) -> str:
    known = [each for each in VOLATILE if each.document is kind]
    if not known:
        return "\nNothing in it is volatile.\n"
    lines = "".join(f"- {_place(each.module)}{_names(each.names.split())}\n" for each in known)
    return f"\n**Volatile**, known and without meaning for the product:\n\n{lines}"


def _place(module: str) -> str:
    return f"`{module}`: " if module else ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
