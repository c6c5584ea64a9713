"""Rows as JSON shows them: camelCase, moments in ISO 8601 UTC, the names of the REST API."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sellerwatch.domain.products import shown_at
from sellerwatch.domain.sellers import Seller
from sellerwatch.flows.punctuality import Late
from sellerwatch.flows.reprocess import Reprocessed
from sellerwatch.flows.resend import Resent, Suspicion
from sellerwatch.ports.pool import PoolFigures, Standing
from sellerwatch.ports.queue import DeadLetter, Depth
from sellerwatch.ports.reports import (
    ChangeRow,
    Difference,
    ExecutionRow,
    OutboxRow,
    Overview,
    ProductRow,
    SellerDetail,
    SellerRow,
    VersionRow,
)

Shape = dict[str, Any]


def time(at: datetime | None) -> str | None:
    return shown_at(at) if at else None


def seller(row: SellerRow | Seller) -> Shape:
    return {
        "sellerId": row.seller_id,
        "name": row.name,
        "status": row.status.value,
        "source": row.crawl_source.value,
        "crawlingIntervalDays": row.interval_days,
        "totalProductCount": row.total_product_count,
        "createdAt": time(row.created_at),
        "updatedAt": time(row.updated_at),
    }


def seller_detail(detail: SellerDetail) -> Shape:
    schedule, last, products = detail.schedule, detail.last_execution, detail.products
    return {
        **seller(detail.seller),
        "schedule": schedule
        and {
            "ruleName": schedule.rule_name,
            "expression": schedule.expression,
            "status": schedule.status.value,
            "nextRunAt": time(schedule.next_run_at),
            "lastTriggeredAt": time(schedule.last_triggered_at),
        },
        "lastExecution": last and execution(last),
        "productCounts": {"total": products.total, "complete": products.complete, "delisted": products.delisted},
    }


def execution(row: ExecutionRow) -> Shape:
    return {
        "executionId": row.execution_id,
        "sellerId": row.seller_id,
        "status": row.status.value,
        "totalTasks": row.total_tasks,
        "completedTasks": row.completed_tasks,
        "failedTasks": row.failed_tasks,
        "progressRate": row.progress_rate,
        "successRate": row.success_rate,
        "startedAt": time(row.started_at),
        "completedAt": time(row.completed_at),
        "errorMessage": row.error_message,
    }


def product(row: ProductRow) -> Shape:
    """The product itself and, flat beside it, its data; its own status is the product's."""
    return {
        "itemNo": row.item_no,
        "sellerId": row.seller_id,
        "status": row.status.value,
        "version": row.version,
        "complete": row.is_complete,
        "firstSeenAt": time(row.first_seen_at),
        "lastSeenAt": time(row.last_seen_at),
        "lastChangedAt": time(row.last_changed_at),
        **row.data(),
    }


def change(row: ChangeRow) -> Shape:
    return {
        "version": row.version,
        "changedAt": time(row.changed_at),
        "kinds": [kind.value for kind in row.kinds],
        "fields": [field.shown() for field in row.fields],
    }


def change_of(row: ChangeRow) -> Shape:
    """A change among those of others."""
    return {"itemNo": row.item_no, "sellerId": row.seller_id, **change(row)}


def version(row: VersionRow) -> Shape:
    """A change with what proved it and which delivery carried it."""
    delivery = row.delivery
    return {
        **change(row.change),
        "executionId": row.execution_id,
        "proofs": [
            {
                "kind": proof.kind.value,
                "rawId": proof.raw_id,
                "fetchedAt": time(proof.fetched_at),
                "kept": proof.is_kept,
            }
            for proof in row.proofs
        ],
        "delivery": delivery
        and {
            "outboxId": delivery.outbox_id,
            "version": delivery.version,
            "status": delivery.status,
            "confirmedAt": time(delivery.confirmed_at),
            "note": delivery.note,
        },
    }


def difference(found: Difference) -> Shape:
    return {
        "itemNo": found.item_no,
        "fromVersion": found.from_version,
        "toVersion": found.to_version,
        "fields": [field.shown() for field in found.fields],
    }


def reprocessed(found: Reprocessed) -> Shape:
    return {
        "items": found.items,
        "raws": found.raws,
        "passedOver": found.passed_over,
        "events": found.events,
        "created": found.created,
        "quarantines": found.quarantines,
        "fields": {
            name: {
                "count": tally.count,
                "samples": [{"itemNo": item_no, "old": old, "new": new} for item_no, old, new in tally.samples],
            }
            for name, tally in sorted(found.fields.items())
        },
        "notUnderstood": {
            where: {
                "count": tally.count,
                "samples": [{"itemNo": item_no, "why": why} for item_no, why, _ in tally.samples],
            }
            for where, tally in sorted(found.not_understood.items())
        },
    }


def resent(done: Resent) -> Shape:
    def told(found: Suspicion) -> Shape:
        samples = [{"itemNo": item_no, "there": there, "here": here} for item_no, there, here in found.samples]
        return {"count": found.count, "samples": samples}

    return {
        "compared": done.compared,
        "same": done.same,
        "missing": done.missing,
        "older": done.older,
        "newer": told(done.newer),
        "unknown": told(done.unknown),
        "sent": done.sent,
        "onTheirWay": done.on_their_way,
    }


def outbox(row: OutboxRow) -> Shape:
    return {
        "outboxId": row.outbox_id,
        "box": row.box.value,
        "subject": row.subject,
        "eventType": row.event,
        "version": row.version,
        "status": row.status,
        "retryCount": row.retry_count,
        "nextAttemptAt": time(row.next_attempt_at),
        "errorMessage": row.error_message,
        "createdAt": time(row.created_at),
        "sentAt": time(row.sent_at),
        "quarantineId": row.quarantine_id,
    }


def dead_letter(letter: DeadLetter) -> Shape:
    return {
        "letterId": letter.letter_id,
        "taskId": letter.task_id,
        "group": letter.group,
        "receives": letter.receives,
        "sentAt": time(letter.sent_at),
        "error": letter.error,
        "body": letter.body,
    }


def pool(figures: PoolFigures) -> Shape:
    breaker = figures.pool_breaker
    return {
        "totalCount": figures.total,
        "activeCount": figures.available,
        "suspendedCount": figures.suspended,
        "blockedCount": figures.blocked,
        "availableRate": figures.available_rate,
        "healthScoreStats": {"avg": figures.health_avg, "min": figures.health_min, "max": figures.health_max},
        "circuitBreaker": {
            "state": breaker.state.value,
            "openedAt": time(breaker.opened_at),
            "retryAt": time(breaker.retry_at()),
        },
        "siteBreaker": figures.site_breaker.state.value,
        "remainingRequests": figures.remaining_requests,
        "nextAvailableAt": time(figures.next_available_at),
        "why": figures.why.value if figures.why else None,
    }


def identity(standing: Standing) -> Shape:
    one, token = standing.identity, standing.identity.token
    return {
        "agentId": one.agent_id,
        "userAgentId": one.user_agent_id,
        "userAgent": one.user_agent,
        "status": one.status.value,
        "healthScore": one.health_score,
        "remainingRequests": standing.remaining,
        "nextFreeAt": time(standing.next_free_at),
        "leasedUntil": time(standing.leased_until),
        "breaker": standing.breaker.state.value,
        "tokenIssuedAt": time(token.issued_at) if token else None,
        "tokenExpiresAt": time(token.expires_at) if token else None,
        "suspendedAt": time(one.suspended_at),
        "lastUsedAt": time(one.last_used_at),
    }


def overview(seen: Overview, figures: PoolFigures, depth: Depth, late: Sequence[Late]) -> Shape:
    return {
        "at": time(seen.at),
        "sellers": {status.value: number for status, number in seen.sellers.items()},
        "processes": [
            {"owner": one.owner, "role": one.role, "host": one.host, "pid": one.pid, "seenAt": time(one.seen_at)}
            for one in seen.processes
        ],
        "executions": [execution(row) for row in seen.executions_open],
        "tasks": {status.value: number for status, number in seen.tasks.items()},
        "queue": {
            "waiting": depth.waiting,
            "out": depth.out,
            "dead": depth.dead,
            "oldestSeconds": round(depth.oldest_seconds, 3),
        },
        "outboxes": {
            box.value: {"byStatus": dict(found.by_status), "oldestAt": time(found.oldest_at)}
            for box, found in seen.outboxes.items()
        },
        "raws": dict(seen.raws),
        "products": {
            "total": seen.products.total,
            "complete": seen.products.complete,
            "delisted": seen.products.delisted,
        },
        "identities": pool(figures),
        "identityBreakersOpen": seen.identity_breakers_open,
        "breakers": [
            {"scope": one.scope, "state": one.state, "openedAt": time(one.opened_at), "retryAt": time(one.retry_at)}
            for one in seen.breakers
        ],
        "alerts": [
            {"name": one.name, "severity": one.severity, "text": one.text, "since": time(one.since)}
            for one in seen.alerts
        ],
        "sweeps": [
            {"name": one.name, "lastRunAt": time(one.last_run_at), "found": one.last_found, "error": one.last_error}
            for one in seen.sweeps
        ],
        "late": [{"name": one.name, "seconds": round(one.seconds)} for one in late],
    }
