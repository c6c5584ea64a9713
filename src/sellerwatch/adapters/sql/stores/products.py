"""Products and their changes.

Promises what the port says; a product that is saved and read again is equal to the last comma. Which column holds
which field stands in `COLUMN_OF` alone; what a field is in the database (a number, a flag, a text, JSON) follows from
its column; a field without one stands among `further`. A field that is not known and one that says nothing are both
NULL, and are both absent when they return.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, Boolean, Insert, Integer, String, bindparam, case, insert, select, update

from sellerwatch.adapters.sql.dialect import upsert
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Additions, PerDialect, Session, cut, dumps, loads
from sellerwatch.adapters.sql.shelves import PRODUCTS
from sellerwatch.adapters.sql.tables import product_changes, products
from sellerwatch.adapters.sql.tables.columns import JSON
from sellerwatch.domain.changes import Change, FieldChange, Proof
from sellerwatch.domain.documents import ChangeKind, DocumentKind, Value, frozen
from sellerwatch.domain.products import Product, ProductStatus, Seen
from sellerwatch.ports.store import Head, Standing, Touch

_P = products.c
_C = product_changes.c
_STATUSES = {status.value: status for status in ProductStatus}
_KINDS = {kind.value: kind for kind in ChangeKind}
_MINI_SHOP, _DETAIL, _OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION

PREFIX_OF = {_MINI_SHOP: "minishop", _DETAIL: "detail", _OPTION: "option"}
"""The document's columns are `{prefix}_data_hash`, `{prefix}_raw_hash` and `{prefix}_at`."""

COLUMN_OF = {
    "name": "name",
    "brandCode": "brand_code",
    "brandName": "brand_name",
    "brandNameKr": "brand_name_kr",
    "category": "category",
    "normalPrice": "normal_price",
    "sellingPrice": "selling_price",
    "discountPrice": "discount_price",
    "discountRate": "discount_rate",
    "stock": "stock",
    "soldOut": "is_sold_out",
    "images": "images",
    "shipping": "shipping",
    "originCountry": "origin_country",
    "itemStatus": "item_status",
    "description": "description",
    "descriptionImages": "description_images",
    "appPrice": "app_price",
    "appDiscountRate": "app_discount_rate",
    "originalPrice": "original_price",
    "tags": "tags",
    "price": "list_price",
    "options": "options",
}

_SEEN = tuple(f"{PREFIX_OF[kind]}_{what}" for kind in DocumentKind for what in ("data_hash", "raw_hash", "at"))
_HEAD = ("item_no", "product_id", "seller_id", "status", "absences", *_SEEN)
_ABOUT = (*_HEAD, "version", "first_seen_at", "last_seen_at", "last_changed_at", "created_at", "updated_at")
_NEVER_CHANGE = frozenset({"item_no", "product_id", "created_at"})


def _fields(is_it: Callable[[Any], bool]) -> tuple[str, ...]:
    """Those whose column's type is of this sort."""
    return tuple(field for field, column in COLUMN_OF.items() if is_it(_P[column].type))


# In groups, so that what most fields need nothing of is done for few.
_FLAGS = _fields(lambda kind: isinstance(kind, Boolean))
_NUMBERS = _fields(lambda kind: isinstance(kind, Integer))
_TEXTS = _fields(lambda kind: isinstance(kind, String) and kind is not JSON)
_JSONS = _fields(lambda kind: kind is JSON)
_FIELDS = (*_FLAGS, *_NUMBERS, *_TEXTS, *_JSONS)
_LENGTHS = tuple((field, getattr(_P[COLUMN_OF[field]].type, "length", None)) for field in _TEXTS)
_KNOWN = frozenset(_FIELDS)
_COLUMNS = (*_ABOUT, "is_complete", *(COLUMN_OF[field] for field in _FIELDS), "further")


def _save(dialect: str) -> Insert:
    return upsert(dialect, products, ["item_no"], [name for name in _COLUMNS if name not in _NEVER_CHANGE])


def _touch(kind: DocumentKind) -> Prepared:
    at: BindParameter[Any] = bindparam("at")
    known_at, known_hash = _P[f"{PREFIX_OF[kind]}_at"], _P[f"{PREFIX_OF[kind]}_raw_hash"]
    last_seen_at = case((_P.last_seen_at < at, at), else_=_P.last_seen_at)
    return Prepared(
        update(products)
        .where(_P.item_no == bindparam("item"), known_hash == bindparam("raw"), known_at < at)
        .values({known_at: at, _P.last_seen_at: last_seen_at}),
        ("item", "raw", "at"),
    )


_head = select(*(_P[name] for name in _HEAD))
_whole = select(*(_P[name] for name in (*_ABOUT, *(COLUMN_OF[field] for field in _FIELDS), "further")))

_HEADS = PreparedIn(lambda items: _head.where(_P.item_no.in_(items)))
_TOUCH = {kind: _touch(kind) for kind in DocumentKind}
_standing = select(_P.id, _P.item_no, _P.version).where(_P.version > 0)
_STANDINGS = PreparedIn(lambda items: _standing.where(_P.item_no.in_(items)))
_after = _standing.where(_P.id > bindparam("after")).order_by(_P.id).limit(bindparam("count"))
_STANDINGS_AFTER = Prepared(_after, ("after", "count"))
_STANDINGS_OF_AFTER = Prepared(_after.where(_P.seller_id == bindparam("seller")), ("after", "count", "seller"))
_LOCK = PreparedIn(lambda items: _whole.where(_P.item_no.in_(items)).with_for_update())
_GET = Prepared(_whole.where(_P.item_no == bindparam("item")), ("item",))
_SAVE = PerDialect(_save, _COLUMNS)
_DISCOVER = Prepared(insert(products), _COLUMNS)


class Products:
    __slots__ = ("_missed", "_session", "_spoilt")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._missed: set[int] = set()
        self._spoilt: set[int] = set()

    def heads(self, item_nos: Iterable[int]) -> dict[int, Head]:
        seen = self._seen
        rows = self._session.rows_in(_HEADS, item_nos)
        return self._session.by_key(
            PRODUCTS, rows, lambda row: Head(row[0], row[1], row[2], _STATUSES[row[3]], row[4], seen(row))
        )

    def touch(self, touches: Sequence[Touch]) -> None:
        to_db = self._session.to_db
        for kind, statement in _TOUCH.items():
            rows = [(touch.item_no, touch.raw_hash, to_db(touch.at)) for touch in touches if touch.kind is kind]
            rows.sort()
            self._session.many(statement, rows)

    def standings(self, item_nos: Iterable[int]) -> dict[int, Standing]:
        return {row[1]: Standing(*row) for row in self._session.rows_in(_STANDINGS, item_nos)}

    def standings_after(self, number: int, count: int, seller_id: str | None = None) -> list[Standing]:
        statement = _STANDINGS_AFTER if seller_id is None else _STANDINGS_OF_AFTER
        wanted = (number, count) if seller_id is None else (number, count, seller_id)
        return [Standing(*row) for row in self._session.rows(statement, wanted)]

    def lock(self, item_nos: Iterable[int]) -> dict[int, Product]:
        asked = set(item_nos)
        rows = self._session.rows_in(_LOCK, asked)
        found = self._session.by_key(PRODUCTS, rows, self._product)
        if len(found) < len(rows):
            self._spoilt |= {row[0] for row in rows} - found.keys()
        self._missed |= asked - found.keys() - self._spoilt
        return found

    def spoilt(self) -> set[int]:
        return self._spoilt

    def get(self, item_no: int) -> Product | None:
        row = self._session.first(_GET, (item_no,))
        return None if row is None else self._session.one(PRODUCTS, row, self._product)

    def save(self, products: Sequence[Product]) -> None:
        to_db = self._session.to_db
        rows: list[Row] = []
        for product in sorted(products, key=lambda product: product.item_no):
            row: list[object] = [
                product.item_no,
                product.product_id,
                product.seller_id,
                product.status.value,
                product.absences,
            ]
            for kind in DocumentKind:
                known = product.seen.get(kind)
                row += (known.digest, known.raw_hash, to_db(known.at)) if known else (None, None, None)
            row += (
                product.version,
                to_db(product.first_seen_at),
                to_db(product.last_seen_at),
                to_db(product.last_changed_at),
                to_db(product.created_at),
                to_db(product.updated_at),
                int(product.is_complete),
            )
            value_of = product.fields.get
            row += map(value_of, _FLAGS)
            row += map(value_of, _NUMBERS)
            row += [text and text[:most] for text, most in ((value_of(name), most) for name, most in _LENGTHS)]
            row += [None if value is None else dumps(value) for value in map(value_of, _JSONS)]
            row.append(_further(product.fields))
            rows.append(tuple(row))
        # Two that discover the same product at once must not write over each other.
        self._session.insert_new(_DISCOVER, [row for row in rows if row[0] in self._missed])
        self._session.many(_SAVE, [row for row in rows if row[0] not in self._missed])
        self._missed.difference_update(product.item_no for product in products)

    def _seen(self, row: Row) -> dict[DocumentKind, Seen]:
        """Of a row that begins like `_HEAD`."""
        from_db = self._session.from_db
        seen = {}
        if row[5] is not None:
            seen[_MINI_SHOP] = Seen(row[5], row[6], from_db(row[7]))
        if row[8] is not None:
            seen[_DETAIL] = Seen(row[8], row[9], from_db(row[10]))
        if row[11] is not None:
            seen[_OPTION] = Seen(row[11], row[12], from_db(row[13]))
        return seen

    def _product(self, row: Row) -> Product:
        from_db = self._session.from_db
        version, first_seen_at, last_seen_at, last_changed_at, created_at, updated_at = row[14:20]
        return Product(
            product_id=row[1],
            item_no=row[0],
            seller_id=row[2],
            first_seen_at=from_db(first_seen_at),
            last_seen_at=from_db(last_seen_at),
            created_at=from_db(created_at),
            updated_at=from_db(updated_at),
            last_changed_at=self._session.from_db_or_none(last_changed_at),
            status=_STATUSES[row[3]],
            version=version,
            absences=row[4],
            fields=_said(row[20:-1]) | further(row[-1]),
            seen=self._seen(row),
        )


def _said(values: Sequence[Any]) -> dict[str, Any]:
    """The fields that are not NULL; `values` in the order of `_FIELDS`."""
    fields = {name: value for name, value in zip(_FIELDS, values, strict=True) if value is not None}
    for name in _FLAGS:
        if name in fields:
            fields[name] = bool(fields[name])
    for name in _JSONS:
        if name in fields:
            fields[name] = _thawed(fields[name])
    return fields


def further(text: str | None) -> dict[str, Any]:
    """The fields that have no column of their own."""
    return {} if text is None else {name: frozen(value) for name, value in loads(text).items()}


def _further(fields: Mapping[str, Any]) -> str | None:
    if _KNOWN.issuperset(fields):
        return None
    rest = {name: fields[name] for name in fields.keys() - _KNOWN if fields[name] is not None}
    return dumps(rest) if rest else None


def _thawed(text: str) -> Value:
    """`frozen`, which has nothing to do where no array is inside."""
    value = loads(text)
    if text.find("[", 1) >= 0:
        return frozen(value)
    return tuple(value) if isinstance(value, list) else value


_CHANGE = (
    "change_id",
    "product_id",
    "item_no",
    "seller_id",
    "version",
    "kinds",
    "fields",
    "changed_at",
    "proofs",
    "execution_id",
)
_ADD = Additions(product_changes, _CHANGE, "change_id")
_OF_ITEM = Prepared(
    select(*(_C[name] for name in _CHANGE))
    .where(_C.product_id == select(_P.product_id).where(_P.item_no == bindparam("item")).scalar_subquery())
    .order_by(_C.version),
    ("item",),
)


class Changes:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, changes: Sequence[Change]) -> None:
        rows = [
            (
                change.change_id,
                change.product_id,
                change.item_no,
                change.seller_id,
                change.version,
                cut(",".join(change.kinds), _C.kinds),
                dumps([field.shown() for field in change.fields]),
                self._session.to_db(change.changed_at),
                kept_proofs(change.proofs),
                change.execution_id,
            )
            for change in changes
        ]
        _ADD.put(self._session, rows)

    def of_item(self, item_no: int) -> list[Change]:
        return [self._change(row) for row in self._session.rows(_OF_ITEM, (item_no,))]

    def _change(self, row: Row) -> Change:
        change_id, product_id, item_no, seller_id, version, kinds, fields, changed_at, proofs, execution_id = row
        return Change(
            change_id,
            product_id,
            item_no,
            seller_id,
            version,
            tuple(_KINDS[kind] for kind in kinds.split(",")),
            tuple(FieldChange(each["field"], frozen(each["old"]), frozen(each["new"])) for each in loads(fields)),
            self._session.from_db(changed_at),
            said_proofs(proofs),
            execution_id,
        )


def kept_proofs(proofs: Sequence[Proof]) -> str | None:
    return dumps([(proof.kind, proof.raw_hash, proof.at) for proof in proofs]) if proofs else None


def said_proofs(text: str | None) -> tuple[Proof, ...]:
    if text is None:
        return ()
    return tuple(Proof(DocumentKind(kind), digest, datetime.fromisoformat(at)) for kind, digest, at in loads(text))
