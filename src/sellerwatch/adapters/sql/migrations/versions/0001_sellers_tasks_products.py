"""Sellers and executions, tasks, products, and what the house keeps about itself."""

from functools import partial

from sqlalchemy import CheckConstraint, MetaData

from sellerwatch.adapters.sql.migrations import frozen as f

revision = "0001_sellers_tasks_products"
down_revision = None
branch_labels = ("house",)
depends_on = None

tables = MetaData()
table = partial(f.table, tables)

table(
    "sellers",
    f.key(),
    f.required("seller_id", f.SELLER),
    f.required("name", f.words(200)),
    f.required("crawl_source", f.STATUS, "MINI_SHOP"),
    f.required("crawling_interval_days", f.COUNT),
    f.required("status", f.STATUS),
    f.required("total_product_count", f.COUNT, 0),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    CheckConstraint("crawling_interval_days BETWEEN 1 AND 30", name="ck_sellers_crawling_interval_days"),
    f.unique("idx_seller_id", "seller_id"),
    f.index("idx_status", "status"),
)

table(
    "crawling_schedules",
    f.key(),
    f.required("schedule_id", f.UID),
    f.required("seller_id", f.SELLER),
    f.required("schedule_rule", f.exact(64)),
    f.required("schedule_expression", f.exact(64)),
    f.required("status", f.STATUS),
    f.optional("next_run_at", f.MOMENT),
    f.optional("last_triggered_at", f.MOMENT),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    f.unique("idx_schedule_id", "schedule_id"),
    f.unique("idx_seller_id", "seller_id"),
    f.index("idx_status", "status"),
    f.index("idx_due", "status", "next_run_at"),
)

table(
    "scheduler_outbox",
    f.key(),
    f.required("outbox_id", f.UID),
    f.required("schedule_id", f.UID),
    f.required("event_type", f.exact(32)),
    f.required("payload", f.JSON),
    f.required("status", f.STATUS),
    f.required("retry_count", f.COUNT, 0),
    f.required("next_attempt_at", f.MOMENT),
    f.optional("claimed_by", f.OWNER),
    f.optional("claimed_until", f.MOMENT),
    f.optional("error_message", f.ERROR),
    f.required("created_at", f.MOMENT),
    f.optional("sent_at", f.MOMENT),
    f.unique("idx_outbox_id", "outbox_id"),
    f.index("idx_status_created_at", "status", "created_at"),
    f.index("idx_claim", "status", "next_attempt_at", "id"),
    f.index("idx_schedule_id", "schedule_id", "status"),
)

table(
    "crawling_schedule_executions",
    f.key(),
    f.required("execution_id", f.UID),
    f.required("schedule_id", f.UID),
    f.required("seller_id", f.SELLER),
    f.required("trigger_key", f.exact(200)),
    f.required("status", f.STATUS),
    f.required("total_tasks_created", f.COUNT, 0),
    f.required("completed_tasks", f.COUNT, 0),
    f.required("failed_tasks", f.COUNT, 0),
    f.required("progress_rate", f.number(5, 2), 0),
    f.required("success_rate", f.number(5, 2), 0),
    f.required("started_at", f.MOMENT),
    f.optional("completed_at", f.MOMENT),
    f.optional("error_message", f.ERROR),
    f.optional("open_key", f.SELLER),
    f.required("plan_attempts", f.COUNT, 0),
    f.optional("next_attempt_at", f.MOMENT),
    f.optional("claimed_by", f.OWNER),
    f.optional("claimed_until", f.MOMENT),
    f.optional("expected_items", f.COUNT),
    f.required("list_state", f.STATUS, "OPEN"),
    f.unique("idx_execution_id", "execution_id"),
    f.index("idx_schedule_id_started_at", "schedule_id", "started_at"),
    f.index("idx_seller_id_started_at", "seller_id", "started_at"),
    f.index("idx_status", "status"),
    f.unique("uk_schedule_trigger", "schedule_id", "trigger_key"),
    f.unique("uk_open_key", "open_key"),
    f.index("idx_list_state", "status", "list_state"),
)

table(
    "crawler_tasks",
    f.key(),
    f.required("task_id", f.UID),
    f.required("execution_id", f.UID),
    f.required("seller_id", f.SELLER),
    f.required("task_type", f.STATUS),
    f.required("request_url", f.exact(2048)),
    f.required("item_no", f.BIG, 0),
    f.required("page_no", f.COUNT, "-1"),
    f.required("status", f.STATUS),
    f.required("retry_count", f.COUNT, 0),
    f.required("abandon_count", f.COUNT, 0),
    f.optional("attempt_id", f.UID),
    f.optional("claimed_by", f.OWNER),
    f.optional("claimed_until", f.MOMENT),
    f.optional("error_message", f.ERROR),
    f.required("created_at", f.MOMENT),
    f.optional("published_at", f.MOMENT),
    f.optional("started_at", f.MOMENT),
    f.optional("completed_at", f.MOMENT),
    f.optional("checked_at", f.MOMENT),
    f.unique("idx_task_id", "task_id"),
    f.index("idx_seller_id_created_at", "seller_id", "-created_at"),
    f.index("idx_status_created_at", "status", "-created_at"),
    f.unique("uk_execution_task", "execution_id", "task_type", "item_no", "page_no"),
    f.index("idx_seller_created_status", "seller_id", "created_at", "status"),
)

table(
    "crawler_task_outbox",
    f.key(),
    f.required("outbox_id", f.UID),
    f.required("task_id", f.UID),
    f.required("seller_id", f.SELLER),
    f.required("priority", f.COUNT, 0),
    f.required("idempotency_key", f.exact(128)),
    f.required("publish_count", f.COUNT, 0),
    f.required("message_group", f.exact(128)),
    f.required("payload", f.SHORT),
    f.required("status", f.STATUS),
    f.required("retry_count", f.COUNT, 0),
    f.required("next_attempt_at", f.MOMENT),
    f.optional("claimed_by", f.OWNER),
    f.optional("claimed_until", f.MOMENT),
    f.optional("error_message", f.ERROR),
    f.required("created_at", f.MOMENT),
    f.optional("sent_at", f.MOMENT),
    f.unique("idx_outbox_id", "outbox_id"),
    f.index("idx_task_id", "task_id"),
    f.unique("uk_idempotency_key", "idempotency_key"),
    f.index("idx_claim", "status", "seller_id", "priority", "next_attempt_at", "id"),
)

table(
    "crawl_executions",
    f.key(),
    f.required("attempt_id", f.UID),
    f.required("task_id", f.UID),
    f.required("seller_id", f.SELLER),
    f.optional("agent_id", f.BIG),
    f.required("status", f.STATUS),
    f.optional("http_status", f.COUNT),
    f.optional("duration_ms", f.COUNT),
    f.optional("response_bytes", f.BIG),
    f.optional("response_summary", f.exact(2048)),
    f.optional("error_message", f.ERROR),
    f.required("started_at", f.MOMENT),
    f.optional("completed_at", f.MOMENT),
    f.unique("idx_attempt_id", "attempt_id"),
    f.index("idx_task_id_started_at", "task_id", "started_at"),
    f.index("idx_status_started_at", "status", "started_at"),
)

table(
    "listings",
    f.named("execution_id", f.UID),
    f.named("item_no", f.BIG),
    f.required("seller_id", f.SELLER),
    f.required("page_no", f.COUNT),
    f.required("is_gone", f.FLAG, 0),
    rowid=False,
)

table(
    "products",
    f.key(),
    f.required("product_id", f.UID),
    f.required("item_no", f.BIG),
    f.required("seller_id", f.SELLER),
    f.optional("minishop_data_hash", f.HASH),
    f.optional("detail_data_hash", f.HASH),
    f.optional("option_data_hash", f.HASH),
    f.optional("minishop_raw_hash", f.HASH),
    f.optional("detail_raw_hash", f.HASH),
    f.optional("option_raw_hash", f.HASH),
    f.optional("minishop_at", f.MOMENT),
    f.optional("detail_at", f.MOMENT),
    f.optional("option_at", f.MOMENT),
    f.required("is_complete", f.FLAG, 0),
    f.required("status", f.STATUS),
    f.required("version", f.COUNT, 0),
    f.required("absences", f.COUNT, 0),
    f.optional("name", f.words(1000)),
    f.optional("brand_code", f.BIG),
    f.optional("brand_name", f.words(500)),
    f.optional("brand_name_kr", f.words(500)),
    f.optional("category", f.JSON),
    f.optional("normal_price", f.BIG),
    f.optional("selling_price", f.BIG),
    f.optional("discount_price", f.BIG),
    f.optional("discount_rate", f.COUNT),
    f.optional("stock", f.BIG),
    f.optional("is_sold_out", f.FLAG),
    f.optional("images", f.JSON),
    f.optional("shipping", f.JSON),
    f.optional("origin_country", f.words(500)),
    f.optional("item_status", f.words(500)),
    f.optional("description", f.LARGE),
    f.optional("description_images", f.JSON),
    f.optional("app_price", f.BIG),
    f.optional("app_discount_rate", f.COUNT),
    f.optional("original_price", f.BIG),
    f.optional("tags", f.JSON),
    f.optional("list_price", f.BIG),
    f.optional("options", f.JSON),
    f.required("first_seen_at", f.MOMENT),
    f.required("last_seen_at", f.MOMENT),
    f.optional("last_changed_at", f.MOMENT),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    f.unique("idx_product_id", "product_id"),
    f.unique("idx_item_no", "item_no"),
    f.index("idx_seller_id_is_complete", "seller_id", "is_complete"),
    f.index("idx_seller_id_status", "seller_id", "status"),
    f.index("idx_last_changed_at", "last_changed_at"),
)

table(
    "product_raw_data",
    f.key(),
    f.required("raw_id", f.UID),
    f.optional("product_id", f.UID),
    f.required("item_no", f.BIG),
    f.required("seller_id", f.SELLER),
    f.required("execution_id", f.UID),
    f.required("task_id", f.UID),
    f.required("data_type", f.STATUS),
    f.required("raw_json", f.LARGE),
    f.required("raw_hash", f.HASH),
    f.required("status", f.STATUS),
    f.required("retry_count", f.COUNT, 0),
    f.required("next_attempt_at", f.MOMENT),
    f.optional("claimed_by", f.OWNER),
    f.optional("claimed_until", f.MOMENT),
    f.optional("error_message", f.ERROR),
    f.required("crawled_at", f.MOMENT),
    f.required("created_at", f.MOMENT),
    f.optional("processed_at", f.MOMENT),
    f.unique("idx_raw_id", "raw_id"),
    f.index("idx_product_id_data_type", "product_id", "data_type"),
    f.index("idx_claim", "status", "data_type", "next_attempt_at"),
    f.index("idx_execution_id_status", "execution_id", "status", "item_no"),
)

table(
    "product_changes",
    f.key(),
    f.required("change_id", f.UID),
    f.required("product_id", f.UID),
    f.required("item_no", f.BIG),
    f.required("seller_id", f.SELLER),
    f.required("version", f.COUNT),
    f.required("kinds", f.exact(200)),
    f.required("fields", f.LARGE),
    f.required("changed_at", f.MOMENT),
    f.unique("idx_change_id", "change_id"),
    f.unique("uk_product_version", "product_id", "version"),
    f.index("idx_seller_id_changed_at", "seller_id", "changed_at"),
)

table(
    "product_outbox",
    f.key(),
    f.required("outbox_id", f.UID),
    f.required("product_id", f.UID),
    f.required("event_type", f.exact(32)),
    f.required("version", f.COUNT),
    f.required("payload", f.LARGE),
    f.required("status", f.STATUS),
    f.required("retry_count", f.COUNT, 0),
    f.required("next_attempt_at", f.MOMENT),
    f.optional("claimed_by", f.OWNER),
    f.optional("claimed_until", f.MOMENT),
    f.optional("error_message", f.ERROR),
    f.required("created_at", f.MOMENT),
    f.optional("sent_at", f.MOMENT),
    f.unique("idx_outbox_id", "outbox_id"),
    f.index("idx_status_created_at", "status", "created_at"),
    f.index("idx_product_id_version", "product_id", "version"),
    f.index("idx_claim", "status", "next_attempt_at", "id"),
    f.index("idx_open", "product_id", "status", "version"),
)

table(
    "crawling_metrics_daily",
    f.key(),
    f.required("seller_id", f.SELLER),
    f.required("date", f.DAY),
    f.required("success_rate", f.number(9, 2), 0),
    f.required("progress_rate", f.number(9, 2), 0),
    f.required("total", f.COUNT, 0),
    f.required("completed", f.COUNT, 0),
    f.required("failed", f.COUNT, 0),
    f.required("in_progress", f.COUNT, 0),
    f.unique("uk_seller_date", "seller_id", "date"),
)

table(
    "queue_messages",
    f.key("message_id"),
    f.required("queue", f.exact(80)),
    f.required("message_group", f.exact(200)),
    f.required("dedup_id", f.exact(128)),
    f.required("body", f.JSON),
    f.required("attributes", f.JSON),
    f.required("state", f.exact(8)),
    f.required("receives", f.COUNT, 0),
    f.required("visible_at", f.MOMENT),
    f.optional("receipt", f.UID),
    f.required("sent_at", f.MOMENT),
    f.optional("done_at", f.MOMENT),
    f.optional("error", f.ERROR),
    f.unique("uk_queue_dedup_id", "queue", "dedup_id"),
    f.index("idx_next_visible", "queue", "state", "visible_at", "message_id"),
    f.index("idx_group_order", "queue", "state", "message_group", "message_id"),
)

table(
    "processes",
    f.named("owner", f.OWNER),
    f.required("role", f.exact(32)),
    f.required("host", f.exact(255)),
    f.required("pid", f.COUNT),
    f.required("version", f.exact(64)),
    f.required("started_at", f.MOMENT),
    f.required("seen_at", f.MOMENT),
)

table(
    "locks",
    f.named("name", f.exact(200)),
    f.required("owner", f.OWNER),
    f.required("until", f.MOMENT),
)

table(
    "alerts",
    f.named("name", f.exact(200)),
    f.required("severity", f.STATUS),
    f.required("since", f.MOMENT),
    f.optional("last_sent_at", f.MOMENT),
    f.required("times", f.COUNT, 0),
    f.optional("details", f.JSON),
    f.optional("cleared_at", f.MOMENT),
)

table(
    "field_drift",
    f.named("data_type", f.STATUS),
    f.named("field", f.exact(200)),
    f.named("problem", f.exact(64)),
    f.named("day", f.DAY),
    f.required("times", f.COUNT, 0),
    f.optional("sample", f.words(500)),
    f.required("last_seen_at", f.MOMENT),
)

table(
    "sweeps",
    f.named("name", f.exact(64)),
    f.optional("last_run_at", f.MOMENT),
    f.required("last_found", f.COUNT, 0),
    f.optional("last_error", f.ERROR),
)


def upgrade() -> None:
    f.create(tables)


def downgrade() -> None:
    f.drop(tables)
