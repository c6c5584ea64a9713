"""A product's past, told from its changes: a state is never stored twice, it is wound back from how things stand now.

Promises: each question a fixed number of statements on one snapshot, on the index of the product's versions; payloads
and bodies are not opened.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from sellerwatch.adapters.sql.reports.reading import every, first
from sellerwatch.adapters.sql.reports.rows import CHANGE, PRODUCT, change_row, product_row
from sellerwatch.adapters.sql.stores.products import said_proofs
from sellerwatch.adapters.sql.tables import product_changes, product_outbox, product_raw_data, products
from sellerwatch.domain.changes import FieldChange, difference, rewound
from sellerwatch.domain.outbox import OutboxStatus, superseding
from sellerwatch.domain.products import ProductStatus
from sellerwatch.ports.reports import (
    LAGS_MAX,
    ChangeRow,
    DeliveryRow,
    Difference,
    Lags,
    ProductRow,
    ProofRow,
    VersionRow,
)

_C, _O, _P, _R = product_changes.c, product_outbox.c, products.c, product_raw_data.c
_VERSION = CHANGE.add_columns(_C.product_id, _C.proofs, _C.execution_id)


def product_at(connection: Connection, item_no: int, at: datetime) -> ProductRow | None:
    now = _now(connection, item_no)
    if now is None:
        return None
    if not now.version:
        # How an incomplete product was put together is not kept.
        return now if now.last_seen_at is not None and now.last_seen_at <= at else None
    version, changed_at = _standing(connection, now, at)
    if not version:
        return None
    later = _changes(connection, now, version, now.version)
    return _as_it_was(now, later, version, changed_at, at)


def difference_between(connection: Connection, item_no: int, start: datetime, end: datetime) -> Difference | None:
    now = _now(connection, item_no)
    if now is None:
        return None
    (from_version, _), (to_version, _) = _standing(connection, now, start), _standing(connection, now, end)
    new = rewound(_state(now), _fields(_changes(connection, now, to_version, now.version))) if to_version else {}
    old = rewound(new, _fields(_changes(connection, now, from_version, to_version))) if from_version else {}
    return Difference(item_no, from_version, to_version, difference(old, new))


def versions_after(connection: Connection, item_no: int, version: int, count: int) -> list[VersionRow]:
    product_id = select(_P.product_id).where(_P.item_no == item_no).scalar_subquery()
    wanted = _VERSION.where(_C.product_id == product_id, _C.version > version).order_by(_C.version).limit(count)
    rows = connection.execute(wanted).mappings().all()
    proofs = [(row["version"], proof) for row in rows for proof in said_proofs(row["proofs"])]
    raw_ids = [proof.raw_id(item_no) for _, proof in proofs]
    kept = set(connection.execute(select(_R.raw_id).where(_R.raw_id.in_(raw_ids))).scalars())
    proven: dict[int, list[ProofRow]] = {}
    for number, proof in proofs:
        raw_id = proof.raw_id(item_no)
        proven.setdefault(number, []).append(ProofRow(proof.kind, raw_id, proof.at, raw_id in kept))
    deliveries = _deliveries(connection, rows)
    return [
        VersionRow(
            change_row(row),
            tuple(proven.get(row["version"], ())),
            row["execution_id"],
            _carrier(deliveries, row["version"]),
        )
        for row in rows
    ]


def lags_since(connection: Connection, since: datetime) -> Lags:
    confirmed = (
        select(_O.seen_at, _O.sent_at)
        .where(_O.status == OutboxStatus.COMPLETED.value, _O.created_at >= since)
        .where(_O.error_message.is_(None), _O.seen_at.is_not(None))
        .order_by(_O.created_at.desc())
        .limit(LAGS_MAX)
    )
    lags = sorted(sent_at - seen_at for seen_at, sent_at in connection.execute(confirmed))
    if not lags:
        return Lags(0)
    return Lags(len(lags), lags[(len(lags) - 1) // 2], lags[(len(lags) - 1) * 19 // 20], lags[-1])


def _now(connection: Connection, item_no: int) -> ProductRow | None:
    found = first(connection, PRODUCT.where(_P.item_no == item_no))
    return product_row(found) if found else None


def _standing(connection: Connection, product: ProductRow, at: datetime) -> tuple[int, datetime | None]:
    """The last version that was there at that moment, and since when; 0 when there was none."""
    mine = select(_C.version, _C.changed_at).where(_C.product_id == product.product_id, _C.changed_at <= at)
    row = connection.execute(mine.order_by(_C.version.desc()).limit(1)).first()
    return (row[0], row[1]) if row else (0, None)


def _changes(connection: Connection, product: ProductRow, after: int, until: int) -> list[ChangeRow]:
    """Behind one version up to another, the newest first."""
    mine = CHANGE.where(_C.product_id == product.product_id, _C.version > after, _C.version <= until)
    return every(connection, mine.order_by(_C.version.desc()), change_row)


def _fields(changes: Iterable[ChangeRow]) -> Iterable[tuple[FieldChange, ...]]:
    return (change.fields for change in changes)


def _state(product: ProductRow) -> dict[str, Any]:
    return {**product.fields, "sellerId": product.seller_id, "status": product.status.value}


def _as_it_was(
    now: ProductRow, later: Sequence[ChangeRow], version: int, changed_at: datetime | None, at: datetime
) -> ProductRow:
    fields = rewound(_state(now), _fields(later))
    seller_id, status = fields.pop("sellerId"), ProductStatus(fields.pop("status"))
    is_still_known = now.last_seen_at is not None and now.last_seen_at <= at
    return replace(
        now,
        seller_id=seller_id,
        status=status,
        version=version,
        fields=fields,
        last_changed_at=changed_at,
        last_seen_at=now.last_seen_at if is_still_known else None,
    )


def _deliveries(connection: Connection, versions: Sequence[RowMapping]) -> Mapping[int, RowMapping]:
    """The product's outbox rows from the first of these versions on: a newer one may have carried them."""
    if not versions:
        return {}
    rows = select(_O.outbox_id, _O.version, _O.status, _O.sent_at, _O.error_message).where(
        _O.product_id == versions[0]["product_id"], _O.version >= versions[0]["version"], _O.quarantine_id.is_(None)
    )
    return {row["version"]: row for row in connection.execute(rows).mappings()}


def _carrier(deliveries: Mapping[int, RowMapping], version: int) -> DeliveryRow | None:
    row = deliveries.get(version)
    while row is not None and (newer := superseding(row["error_message"])) is not None:
        row = deliveries.get(newer)
    if row is None:
        return None
    is_confirmed = row["status"] == OutboxStatus.COMPLETED and row["error_message"] is None
    return DeliveryRow(
        row["outbox_id"],
        row["version"],
        row["status"],
        row["sent_at"] if is_confirmed else None,
        row["error_message"],
    )
