"""Products, the raw documents they are made from, their changes, the outbox to the product server, daily figures."""

from sqlalchemy import Date, Index, String

from sellerwatch.adapters.sql.tables.columns import (
    BIG,
    COUNT,
    ERROR,
    FLAG,
    HASH,
    JSON,
    LARGE,
    MOMENT,
    OWNER,
    SELLER,
    STATUS,
    UID,
    exact,
    key,
    number,
    optional,
    required,
    table,
    unique,
)

products = table(
    "products",
    key(),
    required("product_id", UID),
    required("item_no", BIG),
    required("seller_id", SELLER),
    optional("minishop_data_hash", HASH),
    optional("detail_data_hash", HASH),
    optional("option_data_hash", HASH),
    # The bytes' hash of the newest document known to equal what was applied, and when that one was fetched.
    optional("minishop_raw_hash", HASH),
    optional("detail_raw_hash", HASH),
    optional("option_raw_hash", HASH),
    optional("minishop_at", MOMENT),
    optional("detail_at", MOMENT),
    optional("option_at", MOMENT),
    required("is_complete", FLAG, 0),
    required("status", STATUS),
    required("version", COUNT, 0),
    required("absences", COUNT, 0),
    # What the detail page owns.
    optional("name", String(1000)),
    optional("brand_code", BIG),
    optional("brand_name", String(500)),
    optional("brand_name_kr", String(500)),
    optional("category", JSON),
    optional("normal_price", BIG),
    optional("selling_price", BIG),
    optional("discount_price", BIG),
    optional("discount_rate", COUNT),
    optional("stock", BIG),
    optional("is_sold_out", FLAG),
    optional("images", JSON),
    optional("shipping", JSON),
    optional("origin_country", String(500)),
    optional("item_status", String(500)),
    optional("description", LARGE),
    optional("description_images", JSON),
    # What the list owns, and its price while no detail is known.
    optional("app_price", BIG),
    optional("app_discount_rate", COUNT),
    optional("original_price", BIG),
    optional("tags", JSON),
    optional("list_price", BIG),
    # What the options document owns.
    optional("options", JSON),
    # Fields that are declared and have no column of their own (yet), by name.
    optional("further", JSON),
    required("first_seen_at", MOMENT),
    required("last_seen_at", MOMENT),
    optional("last_changed_at", MOMENT),
    required("created_at", MOMENT),
    required("updated_at", MOMENT),
    unique("idx_product_id", "product_id"),
    unique("idx_item_no", "item_no"),
    Index("idx_seller_id_is_complete", "seller_id", "is_complete"),
    Index("idx_seller_id_status", "seller_id", "status"),
    Index("idx_last_changed_at", "last_changed_at"),
    # How old the oldest document of any ACTIVE product is, in one step each.
    Index("idx_status_minishop_at", "status", "minishop_at"),
    Index("idx_status_detail_at", "status", "detail_at"),
    Index("idx_status_option_at", "status", "option_at"),
)

product_raw_data = table(
    "product_raw_data",
    key(),
    required("raw_id", UID),
    optional("product_id", UID),
    required("item_no", BIG),
    required("seller_id", SELLER),
    required("execution_id", UID),
    required("task_id", UID),
    required("data_type", STATUS),
    required("raw_json", LARGE),
    required("raw_hash", HASH),
    required("status", STATUS),
    required("retry_count", COUNT, 0),
    required("next_attempt_at", MOMENT),
    optional("claimed_by", OWNER),
    optional("claimed_until", MOMENT),
    optional("error_message", ERROR),
    required("crawled_at", MOMENT),
    required("created_at", MOMENT),
    optional("processed_at", MOMENT),
    unique("idx_raw_id", "raw_id"),
    Index("idx_product_id_data_type", "product_id", "data_type"),
    Index("idx_claim", "status", "data_type", "next_attempt_at"),
    # Whether anything of an execution, or of an item in it, waits: the rows are large and are not opened for that.
    Index("idx_execution_id_status", "execution_id", "status", "item_no"),
    # Of which items anything was crawled since a moment, and what of one item.
    Index("idx_item_no_crawled_at", "item_no", "crawled_at"),
)

product_changes = table(
    "product_changes",
    key(),
    required("change_id", UID),
    required("product_id", UID),
    required("item_no", BIG),
    required("seller_id", SELLER),
    required("version", COUNT),
    required("kinds", exact(200)),
    # An old and a new description may both be in it.
    required("fields", LARGE),
    required("changed_at", MOMENT),
    # The documents it rests on: kind, hash of the bytes, when fetched. None: a list told, or it is of an older version.
    optional("proofs", JSON),
    optional("execution_id", UID),
    unique("idx_change_id", "change_id"),
    unique("uk_product_version", "product_id", "version"),
    Index("idx_seller_id_changed_at", "seller_id", "changed_at"),
)

product_outbox = table(
    "product_outbox",
    key(),
    required("outbox_id", UID),
    required("product_id", UID),
    required("event_type", exact(32)),
    required("version", COUNT),
    required("payload", LARGE),
    required("status", STATUS),
    required("retry_count", COUNT, 0),
    required("next_attempt_at", MOMENT),
    optional("claimed_by", OWNER),
    optional("claimed_until", MOMENT),
    optional("error_message", ERROR),
    required("created_at", MOMENT),
    optional("sent_at", MOMENT),
    # When the answer that told of the change was received: from here its delay counts.
    optional("seen_at", MOMENT),
    # HELD rows of a quarantine only foretell: they block nothing and are never sent themselves.
    optional("quarantine_id", UID),
    unique("idx_outbox_id", "outbox_id"),
    Index("idx_status_created_at", "status", "created_at"),
    Index("idx_product_id_version", "product_id", "version"),
    # What is due is found without walking over what waits for later.
    Index("idx_claim", "status", "next_attempt_at", "id"),
    # Whether a row is the first of its product, without reading a payload.
    Index("idx_open", "product_id", "status", "version"),
)

crawling_metrics_daily = table(
    "crawling_metrics_daily",
    key(),
    required("seller_id", SELLER),
    required("date", Date()),
    required("success_rate", number(9, 2), 0),
    # Above 100 while a shop shrinks: its complete products are compared with what it counts now.
    required("progress_rate", number(9, 2), 0),
    required("total", COUNT, 0),
    required("completed", COUNT, 0),
    required("failed", COUNT, 0),
    required("in_progress", COUNT, 0),
    unique("uk_seller_date", "seller_id", "date"),
)
