"""Executions, their tasks, triggers, and a day's figures."""

from typing import Annotated, Literal

from pydantic import Field

from sellerwatch.domain.tasks import TaskKind, TaskStatus
from sellerwatch.entry.api.asked import SELLER_PATTERN, VISIBLE_PATTERN
from sellerwatch.entry.api.shapes import TIME, Given, Taken, like

EXECUTION = "019a0000-0000-7000-8000-000000000000"
KEY_MAX = 128
Percent = Annotated[float, Field(examples=[99.5])]


class CrawlResponse(Given):
    execution_id: str = Field(examples=[EXECUTION])
    task_count: int | None = Field(
        description="its first tasks; null when they are not known within 3 seconds", examples=[3]
    )


class TriggerResponse(Given):
    execution_id: str | None = Field(description="null: the seller is inactive", examples=[EXECUTION])
    task_count: int | None = Field(
        description="its first tasks; null when they are not known within 3 seconds", examples=[3]
    )


class ExecutionResponse(Given):
    execution_id: str = Field(examples=[EXECUTION])
    seller_id: str = Field(examples=["atelier"])
    status: Literal["STARTED", "IN_PROGRESS", "COMPLETED", "FAILED"]
    total_tasks: int = Field(examples=[2400])
    completed_tasks: int = Field(examples=[2388])
    failed_tasks: int = Field(examples=[2])
    progress_rate: Percent = Field(description="percent of its tasks that have ended")
    success_rate: Percent = Field(description="percent of its tasks that succeeded")
    started_at: str = Field(examples=[TIME])
    completed_at: str | None = Field(examples=[TIME])
    error_message: str | None = Field(examples=[None])


class TaskResponse(Given):
    task_id: str = Field(examples=["019a0000-0000-7000-8000-000000000001"])
    execution_id: str = Field(examples=[EXECUTION])
    seller_id: str = Field(examples=["atelier"])
    task_type: TaskKind
    request_url: str = Field(examples=["https://market.example/mustit-api/facade-api/v1/item/118005032/detail"])
    item_no: int | None = Field(examples=[118005032])
    page_no: int | None = Field(examples=[None])
    status: TaskStatus
    retry_count: int = Field(examples=[0])
    error_message: str | None = Field(examples=[None])
    created_at: str = Field(examples=[TIME])
    published_at: str | None = Field(examples=[TIME])
    started_at: str | None = Field(examples=[TIME])
    completed_at: str | None = Field(examples=[TIME])


class NewTrigger(Taken):
    """Of our own rules: their input template gives these three."""

    model_config = like(sellerId="atelier", triggerKey="17793124-05d4-b198-2fde-7ededc63b103")

    seller_id: str = Field(alias="sellerId", pattern=SELLER_PATTERN)
    trigger_key: str | None = Field(
        None, alias="triggerKey", min_length=1, max_length=KEY_MAX, pattern=VISIBLE_PATTERN,
        description="a key known already is answered with its execution; none: the number of the interval",
    )  # fmt: skip
    scheduled_at: str | None = Field(None, alias="scheduledAt", max_length=64, description="for the reader's eyes")


class TriggerDetail(Taken):
    seller_id: str | None = Field(None, alias="sellerId", pattern=SELLER_PATTERN)


class Envelope(Taken):
    """An event as EventBridge sends it. Its id is the trigger key; the seller stands in `detail`, or else the rule
    among the `resources` is named after it."""

    model_config = like(
        **{
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": "123456789012",
            "time": "2026-11-18T12:00:00Z",
            "region": "ap-northeast-2",
            "resources": ["arn:aws:events:ap-northeast-2:123456789012:rule/mustit-crawler-atelier"],
            "detail": {"sellerId": "atelier"},
        }
    )

    key: str = Field(alias="id", min_length=1, max_length=KEY_MAX, pattern=VISIBLE_PATTERN)
    detail: TriggerDetail
    resources: list[Annotated[str, Field(max_length=512)]] = Field(default_factory=list, max_length=20)
    version: str | None = Field(None, max_length=64)
    detail_type: str | None = Field(None, alias="detail-type", max_length=256)
    source: str | None = Field(None, max_length=256)
    account: str | None = Field(None, max_length=64)
    time: str | None = Field(None, max_length=64)
    region: str | None = Field(None, max_length=64)
    replay: str | None = Field(None, alias="replay-name", max_length=256)


class TaskStats(Given):
    total: int = Field(examples=[2400])
    completed: int = Field(examples=[2388])
    failed: int = Field(examples=[2])
    in_progress: int = Field(description="neither SUCCESS nor FAILED", examples=[10])


class CrawlingResponse(Given):
    seller_id: str | None = Field(description="null: of all sellers", examples=["atelier"])
    date: str = Field(description="from midnight to midnight in METRICS_TIMEZONE", examples=["2026-11-18"])
    success_rate: Percent = Field(description="percent of the tasks created that day that succeeded")
    progress_rate: Percent = Field(description="percent of the seller's products that are complete")
    task_stats: TaskStats
