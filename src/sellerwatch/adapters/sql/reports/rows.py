"""How each row of a report is read: its statement, and what is made of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select

from sellerwatch.adapters.sql.session import loads
from sellerwatch.adapters.sql.shown import opened, word
from sellerwatch.adapters.sql.stores.products import COLUMN_OF, further
from sellerwatch.adapters.sql.tables import (
    circuit_breaker_state,
    crawler_tasks,
    crawling_schedule_executions,
    product_changes,
    products,
    rate_limit_bucket,
    sellers,
    user_agent_pool,
    user_agent_token,
)
from sellerwatch.adapters.sql.tables.columns import JSON
from sellerwatch.domain.changes import FieldChange
from sellerwatch.domain.documents import ChangeKind, frozen
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.sellers import CrawlSource, SellerStatus
from sellerwatch.domain.tasks import NO_ITEM, NO_PAGE, TaskKind, TaskStatus
from sellerwatch.ports.reports import ChangeRow, IdentityRow, ProductRow, SellerRow, TaskRow

_S = sellers.c
_E = crawling_schedule_executions.c
_T = crawler_tasks.c
_P = products.c
_C = product_changes.c
_JSON_COLUMNS = frozenset(column for column in COLUMN_OF.values() if _P[column].type is JSON)

SELLER = select(
    _S.seller_id,
    _S.name,
    _S.crawl_source,
    _S.crawling_interval_days.label("interval_days"),
    _S.status,
    _S.total_product_count,
    _S.created_at,
    _S.updated_at,
)
TASK = select(
    _T.task_id,
    _T.execution_id,
    _T.seller_id,
    _T.task_type.label("kind"),
    _T.request_url,
    _T.item_no,
    _T.page_no,
    _T.status,
    _T.retry_count,
    _T.abandon_count,
    _T.error_message,
    _T.created_at,
    _T.published_at,
    _T.started_at,
    _T.completed_at,
)
PRODUCT = select(
    _P.id.label("number"),
    _P.product_id,
    _P.item_no,
    _P.seller_id,
    _P.status,
    _P.version,
    _P.is_complete,
    _P.first_seen_at,
    _P.last_seen_at,
    _P.last_changed_at,
    *(_P[column].label(f"field_{column}") for column in COLUMN_OF.values()),
    _P.further.label("field_further"),
)
CHANGE = select(_C.id.label("number"), _C.item_no, _C.seller_id, _C.version, _C.changed_at, _C.kinds, _C.fields)
IDENTITY = (
    select(
        user_agent_pool.c.agent_id,
        user_agent_pool.c.user_agent_id,
        user_agent_pool.c.user_agent,
        user_agent_pool.c.status,
        user_agent_pool.c.health_score,
        func.coalesce(circuit_breaker_state.c.circuit_state, "CLOSED").label("breaker"),
        rate_limit_bucket.c.current_tokens.label("remaining"),
        user_agent_token.c.issued_at.label("token_issued_at"),
        user_agent_token.c.expires_at.label("token_expires_at"),
        user_agent_pool.c.suspended_at,
        user_agent_pool.c.last_used_at,
        user_agent_pool.c.requests_per_day,
        user_agent_pool.c.usage_count,
        user_agent_pool.c.success_count,
        user_agent_pool.c.failure_count,
    )
    .outerjoin(rate_limit_bucket, rate_limit_bucket.c.agent_id == user_agent_pool.c.agent_id)
    .outerjoin(
        user_agent_token,
        and_(user_agent_token.c.agent_id == user_agent_pool.c.agent_id, user_agent_token.c.is_active.is_(True)),
    )
    .outerjoin(
        circuit_breaker_state,
        and_(
            circuit_breaker_state.c.scope == "IDENTITY",
            circuit_breaker_state.c.agent_id == user_agent_pool.c.agent_id,
        ),
    )
    .where(user_agent_pool.c.is_active.is_(True))
)


def wanted_products(
    seller_id: str | None, complete: bool | None, changed_since: datetime | None
) -> Iterable[ColumnElement[bool]]:
    if seller_id is not None:
        yield _P.seller_id == seller_id
    if complete is not None:
        yield _P.is_complete.is_(complete)
    if changed_since is not None:
        yield _P.last_changed_at >= changed_since


def changes_of(item_no: int) -> Select[Any]:
    # By way of the product's id: changes have no index of their own on the item.
    product_id = select(_P.product_id).where(_P.item_no == item_no).scalar_subquery()
    return CHANGE.where(_C.product_id == product_id).order_by(_C.version)


def wanted_changes(seller_id: str | None, since: datetime | None) -> Iterable[ColumnElement[bool]]:
    if seller_id is not None:
        yield _C.seller_id == seller_id
    if since is not None:
        yield _C.changed_at >= since


def newest(statement: Select[Any]) -> Select[Any]:
    return statement.order_by(_E.started_at.desc(), _E.id.desc())


def seller_row(row: Mapping[Any, Any]) -> SellerRow:
    source, status = word(CrawlSource, row["crawl_source"]), word(SellerStatus, row["status"])
    return SellerRow(**{**row, "crawl_source": source, "status": status})


def task_row(row: Mapping[Any, Any]) -> TaskRow:
    return TaskRow(
        **{
            **row,
            "kind": word(TaskKind, row["kind"]),
            "status": word(TaskStatus, row["status"]),
            "item_no": None if row["item_no"] == NO_ITEM else row["item_no"],
            "page_no": None if row["page_no"] == NO_PAGE else row["page_no"],
        }
    )


def product_row(row: Mapping[Any, Any]) -> ProductRow:
    """Whole, or not at all: what is drawn from it must be right."""
    return _product_row(row, loads, further(row["field_further"]))


def product_shown(row: Mapping[Any, Any]) -> ProductRow:
    """In a list: without the fields that can't be read."""
    more: dict[str, Any] = opened(row["field_further"], {})
    return _product_row(row, lambda text: opened(text, None), {name: frozen(value) for name, value in more.items()})


def _product_row(row: Mapping[Any, Any], load: Callable[[str], Any], more: dict[str, Any]) -> ProductRow:
    known = {name: value for name, value in row.items() if not name.startswith("field_")}
    fields = {
        name: value
        for name, column in COLUMN_OF.items()
        if (text := row[f"field_{column}"]) is not None
        and (value := frozen(load(text)) if column in _JSON_COLUMNS else text) is not None
    }
    return ProductRow(**{**known, "status": word(ProductStatus, row["status"]), "fields": fields | more})


def change_row(row: Mapping[Any, Any]) -> ChangeRow:
    return _change_row(row, loads(row["fields"]))


def change_shown(row: Mapping[Any, Any]) -> ChangeRow:
    return _change_row(row, opened(row["fields"], []))


def _change_row(row: Mapping[Any, Any], told: Sequence[Mapping[str, Any]]) -> ChangeRow:
    kinds = tuple(word(ChangeKind, kind) for kind in row["kinds"].split(","))
    fields = tuple(FieldChange(one["field"], frozen(one["old"]), frozen(one["new"])) for one in told)
    about = (row["number"], row["item_no"], row["seller_id"], row["version"])
    return ChangeRow(*about, row["changed_at"], kinds, fields)


def identity_row(row: Mapping[Any, Any]) -> IdentityRow:
    remaining = None if row["remaining"] is None else int(row["remaining"])
    return IdentityRow(**{**row, "status": word(IdentityStatus, row["status"]), "remaining": remaining})
