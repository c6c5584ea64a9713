"""The settings as those who live by them want them: limits, budgets, patience and rules."""

from datetime import timedelta

from sellerwatch.domain.leadership import LeadRules
from sellerwatch.domain.recollection import Budget
from sellerwatch.flows.heal import HealRules
from sellerwatch.ports.pool import Limits
from sellerwatch.settings import Settings
from sellerwatch.steps.asking import Patience
from sellerwatch.steps.settling import Rules

CLOCKS_APART_SECONDS = 5.0
"""By so much the clocks of two of our processes may differ."""


def limits_of(settings: Settings) -> Limits:
    hours = settings.identity_probation_hours
    return Limits(
        hourly_limit=settings.identity_hourly_limit,
        guard_seconds=settings.identity_window_guard,
        min_interval_seconds=settings.identity_min_interval,
        lease_seconds=settings.lease_seconds,
        concurrency=settings.concurrency,
        site_requests_per_second=settings.site_requests_per_second,
        is_paced_evenly=settings.identity_pacing == "even",
        min_available_percent=settings.pool_min_available_rate,
        breaker_open_seconds=settings.breaker_open_seconds,
        site_failure_percent=settings.site_failure_rate,
        probation=timedelta(hours=hours) if hours else None,
    )


def budget_of(settings: Settings) -> Budget:
    limits = limits_of(settings)
    return Budget(
        limits.hourly_limit,
        timedelta(seconds=limits.min_interval_seconds),
        timedelta(seconds=limits.window_seconds + limits.guard_seconds),
        timedelta(seconds=limits.lease_seconds),
    )


def lead_rules_of(settings: Settings) -> LeadRules:
    """What was lent when a lead ends has come back before anybody else lends, by clocks that are a little apart."""
    back_seconds = settings.lease_seconds + CLOCKS_APART_SECONDS
    return LeadRules(grace=timedelta(seconds=max(settings.identity_window_guard, back_seconds)))


def patience_of(settings: Settings) -> Patience:
    request_seconds = settings.connect_timeout + settings.read_timeout
    return Patience(
        attempt_seconds=settings.task_attempt_seconds,
        identity_switches=settings.task_identity_switches,
        lease_age_seconds=min(settings.identity_window_guard / 2, settings.lease_seconds / 4),
        network_seconds=max(0.0, min(request_seconds, settings.claim_seconds - request_seconds)),
        rest_seconds=settings.identity_min_interval,
    )


def rules_of(settings: Settings) -> Rules:
    return Rules(
        task_retries=settings.task_retries,
        page_size=settings.page_size,
        absorb_wait_seconds=settings.absorb_wait_seconds,
        is_delta=settings.crawl_mode == "delta",
        freshness_hours=settings.freshness_hours,
    )


def heal_rules_of(settings: Settings) -> HealRules:
    return HealRules(
        stuck_seconds=settings.task_stuck_seconds,
        orphan_seconds=settings.published_orphan_seconds,
        abandons_max=settings.task_abandons,
        raw_retries=settings.raw_retries,
        task_outbox_retries=settings.task_outbox_retries,
        page_size=settings.page_size,
        timezone=settings.metrics_timezone,
    )
