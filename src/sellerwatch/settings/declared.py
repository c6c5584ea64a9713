"""Every setting: its name, its form, its default and its meaning.

Promises: a `Settings` that exists is valid and never changes; what belongs together was checked together. Its repr
shows no secret. Refuses: see the forms. No address of another system has a default.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationInfo
from pydantic import field_validator as check
from pydantic_settings import BaseSettings, SettingsConfigDict

from sellerwatch.settings import forms
from sellerwatch.settings.forms import (
    OPEN_ADDRESS,
    Bytes,
    Count,
    EventBridgeAddress,
    OptionalSecret,
    OptionalWeb,
    Override,
    Percent,
    Period,
    Rate,
    Right,
    Seconds,
    Secret,
    SecretWeb,
    Size,
    SqsAddress,
    Switch,
    Text,
)

PREFIX: Final = "SELLERWATCH_"

# How often a sweep runs, in multiples of SWEEP_SECONDS: those that seldom find anything run seldom.
SWEEPS: Final[Mapping[str, int]] = {
    "stuck_tasks": 1,
    "published_orphans": 1,
    "dead_letters": 1,
    "outbox_zombies": 1,
    "failed_task_outbox": 1,
    "failed_raws": 1,
    "executions": 1,
    "leases": 1,
    "tokens": 1,
    "records": 1,
    "ledger": 4,
    "identities": 4,
    "daily_figures": 20,
    "partitions": 240,
    "retention": 240,
}

# What an operator declares by raising it: more load on others or on this machine.
LIMITS: Final = (
    "database_pool_max",
    "concurrency",
    "page_size",
    "task_retries",
    "task_outbox_retries",
    "product_outbox_retries",
    "scheduler_outbox_retries",
    "raw_retries",
    "trigger_retries",
    "task_identity_switches",
    "task_abandons",
    "delivery_batch",
    "delivery_concurrency",
    "max_response_bytes",
    "identity_hourly_limit",
    "site_requests_per_second",
    "queue_max_receives",
    "api_requests_per_second",
)


class Settings(BaseSettings):
    """Every setting; the name of each is its attribute in capitals, with the prefix `SELLERWATCH_`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,
    )
    _otel: dict[str, str] = PrivateAttr(default_factory=dict)

    # First, because the addresses below are read in its light.
    allow_plain_http: Switch = Field(False, description="plain http to other machines too")

    database_url: Annotated[str, AfterValidator(forms.database), Right("a database address")] = Field(
        "sqlite:///sellerwatch.db",
        description="`sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (in memory), "
        "`mysql://` or `mariadb://user:password@host:3306/database`",
    )
    database_pool_min: Size = Field(10, description="connections kept open (MySQL)")
    database_pool_max: Size = Field(50, description="connections at most (MySQL); at least 1: nothing runs without one")
    redis_url: Annotated[Annotated[str, AfterValidator(forms.redis)] | None, Right("a Redis address")] = Field(
        None, description="`redis://host:6379/0`; none: the pool and locks live in the database"
    )
    queue_url: Annotated[str, forms.address(forms.queue), Right("a queue address")] = Field(
        "database:",
        description="`database:` or `sqs:///name.fifo?region=…&endpoint=…&dlq=…` (endpoint percent-encoded)",
    )
    schedule_url: Annotated[str, forms.address(forms.schedule), Right("a schedule address")] = Field(
        "builtin:",
        description="`builtin:` or `eventbridge:///default?region=…&endpoint=…&target_arn=…`"
        ", also `role_arn`, `group_id`",
    )
    trigger_queue_url: Annotated[
        Annotated[str, forms.address(forms.sqs), AfterValidator(forms.apart)] | None, Right("a queue")
    ] = Field(None, description="the SQS queue that EventBridge puts triggers into, `sqs:///name?…`")

    marketplace_url: Annotated[Annotated[str, forms.address(forms.site)] | None, Right("an address")] = Field(
        None, description=f"the marketplace, `https://host`; required by `up`, `worker` and `scheduler`; {OPEN_ADDRESS}"
    )
    mini_shop_path: Annotated[str, AfterValidator(forms.path), Right("a path")] = Field(
        "/mustit-api/facade-api/v1/searchmini-shop-search", description="where the marketplace lists a shop"
    )
    product_server_url: OptionalWeb = Field(
        None, description=f"where changes are delivered; none: rows wait; {OPEN_ADDRESS}"
    )
    product_server_secret: OptionalSecret = Field(
        None, description="signs deliveries: `whsec_` and the base64 of at least 24 bytes; required with the URL"
    )
    alert_webhook_url: SecretWeb = Field(None, description=f"where alerts go, as JSON; {OPEN_ADDRESS}")
    alert_repeat_seconds: Seconds = Field(3600, description="each alert at most once in this time")

    concurrency: Count = Field(100, description="requests to the marketplace at once")
    page_size: Size = Field(500, description="items asked for per list page; at least 1: empty pages never end a list")
    crawl_mode: Annotated[Literal["full", "delta"], BeforeValidator(forms.lowered), Right("full or delta")] = Field(
        "full", description="`full`: every item's documents; `delta`: only of new, changed and stale items"
    )
    freshness_hours: Rate = Field(24, description="older documents are stale (`delta`)")
    task_retries: Count = Field(2, description="retries of a task")
    task_outbox_retries: Count = Field(3, description="retries of a publication")
    product_outbox_retries: Count = Field(5, description="retries of a delivery")
    scheduler_outbox_retries: Count = Field(3, description="retries of a schedule change")
    raw_retries: Count = Field(3, description="retries of processing a raw")
    trigger_retries: Count = Field(3, description="retries of creating an execution's tasks")
    task_identity_switches: Count = Field(3, description="other identities tried at once after a 429")
    task_abandons: Count = Field(30, description="workers that may vanish over one task")
    task_stuck_seconds: Period = Field(600, description="a task that runs longer is taken back")
    task_attempt_seconds: Period = Field(120, description="an attempt lasts at most this, waiting for leases included")
    published_orphan_seconds: Period = Field(900, description="a publication nobody received is repeated after this")
    absorb_wait_seconds: Seconds = Field(900, description="an item's documents are waited for this long")
    delivery_interval: Period = Field(300, description="deliveries are looked for at least this often")
    delivery_batch: Count = Field(100, description="deliveries claimed at once; 0: nothing is delivered, rows wait")
    delivery_concurrency: Count = Field(16, description="deliveries under way at once")
    flap_seconds: Seconds = Field(0, description="a change and its reverse within this time cancel out; 0: off")
    connect_timeout: Period = Field(3, description="seconds to connect to the marketplace")
    read_timeout: Period = Field(10, description="seconds to read an answer of the marketplace")
    max_response_bytes: Bytes = Field(33554432, description="larger answers are refused; at least 1: 0 refuses all")
    respect_robots: Switch = Field(True, description="obey the marketplace's robots.txt")

    identity_hourly_limit: Count = Field(80, description="requests of one identity in any 3600 s")
    identity_min_interval: Seconds = Field(1, description="seconds between two requests of one identity")
    identity_window_guard: Seconds = Field(30, description="seconds that the hour's log reaches back further")
    identity_pacing: Annotated[Literal["burst", "even"], BeforeValidator(forms.lowered), Right("burst or even")] = (
        Field("burst", description="`burst`: as fast as the interval allows; `even`: spread over the hour")
    )
    identity_probation_hours: Rate = Field(0, description="unhealthy identities get another chance; 0: by hand only")
    lease_seconds: Period = Field(30, description="a lease lasts this long")
    pool_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$"), Right("1 to 64 of A-Z a-z 0-9 _ -")] = Field(
        "main", description="the pool's name in Redis keys"
    )
    pool_min_available_rate: Percent = Field(20, description="percent of identities below which the pool rests")
    breaker_open_seconds: Seconds = Field(600, description="a breaker stays open this long")
    site_failure_rate: Percent = Field(50, description="percent of failures above which the site is left alone")
    site_requests_per_second: Rate = Field(10, description="requests to the marketplace over all identities")

    queue_ahead_seconds: Seconds = Field(60, description="work published ahead of what the pool can lease")
    queue_max_receives: Size = Field(3, description="receives until a message is dead; at least 1: one to work on it")
    claim_seconds: Period = Field(30, description="a claim without a sign of life ends after this")
    group_commit_ms: Rate = Field(5, description="milliseconds that writes wait for each other")
    shutdown_seconds: Seconds = Field(25, description="time to finish or hand back what runs")
    raw_retention_days: Count = Field(90, description="older raws that are not the newest of their item are deleted")
    usage_retention_months: Size = Field(3, description="months that the log of requests is kept")
    metrics_timezone: Annotated[str, AfterValidator(forms.zone), Right("a time zone")] = Field(
        "Asia/Seoul", description="whose midnight begins a day of figures"
    )

    sweep_seconds: Period = Field(15, description="period of the sweeps; rare ones take a multiple of it")
    sweep_stuck_tasks_seconds: Override = Field(None, description="period of this sweep")
    sweep_published_orphans_seconds: Override = Field(None, description="period of this sweep")
    sweep_dead_letters_seconds: Override = Field(None, description="period of this sweep")
    sweep_outbox_zombies_seconds: Override = Field(None, description="period of this sweep")
    sweep_failed_task_outbox_seconds: Override = Field(None, description="period of this sweep")
    sweep_failed_raws_seconds: Override = Field(None, description="period of this sweep")
    sweep_executions_seconds: Override = Field(None, description="period of this sweep")
    sweep_leases_seconds: Override = Field(None, description="period of this sweep")
    sweep_tokens_seconds: Override = Field(None, description="period of this sweep")
    sweep_records_seconds: Override = Field(None, description="period of this sweep")
    sweep_ledger_seconds: Override = Field(None, description="period of this sweep")
    sweep_identities_seconds: Override = Field(None, description="period of this sweep")
    sweep_daily_figures_seconds: Override = Field(None, description="period of this sweep")
    sweep_partitions_seconds: Override = Field(None, description="period of this sweep")
    sweep_retention_seconds: Override = Field(None, description="period of this sweep")

    token_keys: OptionalSecret = Field(
        None,
        description="`id:base64(32 bytes)`, comma separated, the first encrypts, the oldest stands last; "
        "made and kept beside the SQLite file, required with MySQL",
    )
    jwt_algorithm: Annotated[
        Literal["HS256", "RS256", "ES256", "EdDSA"], Right("one of HS256, RS256, ES256, EdDSA")
    ] = Field("HS256", description="`HS256`, or `RS256`, `ES256`, `EdDSA` with one of the two keys below")
    jwt_public_key: Annotated[Annotated[str, AfterValidator(forms.pem)] | None, Right("a public key in PEM form")] = (
        Field(None, description="the issuer's public key, PEM")
    )
    jwt_jwks_url: OptionalWeb = Field(None, description=f"the issuer's key set; {OPEN_ADDRESS}")
    jwt_secret: OptionalSecret = Field(
        None,
        description="at least 32 bytes; made and kept beside the SQLite file, required with MySQL (`HS256`)",
    )
    jwt_issuer: Text = Field("sellerwatch", description="`iss` of accepted tokens")
    jwt_audience: Text = Field("sellerwatch-api", description="`aud` of accepted tokens")
    jwt_role_claim: Text = Field("role", description="the claim that holds `ADMIN` or `VIEWER`, or a list of them")
    api_keys: OptionalSecret = Field(
        None, description="`name:hex SHA-256` of each accepted internal key, comma separated"
    )

    api_requests_per_second: Rate = Field(100, description="of one credential at the API")

    log_format: Annotated[
        Literal["auto", "console", "json"], BeforeValidator(forms.lowered), Right("auto, console or json")
    ] = Field("auto", description="`auto`: `console` (in colour) on a terminal, `json` elsewhere")
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(forms.lowered),
        Right("debug, info, warning or error"),
    ] = Field("info", description="`debug`, `info`, `warning` or `error`")
    otel_exporter_otlp_endpoint: OptionalWeb = Field(
        None, description=f"where traces go; none: nowhere; {OPEN_ADDRESS}; other `OTEL_*` are handed on"
    )

    @check("*", mode="before")
    @classmethod
    def _not_empty(cls, value: object) -> object:
        if isinstance(value, str) and not value.strip():
            raise ValueError("is empty; give it a value, or leave it out")
        return value

    @check("database_pool_max")
    @classmethod
    def _room_for_the_kept(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("database_pool_min", 0):
            raise ValueError("is less than SELLERWATCH_DATABASE_POOL_MIN; give at least as many")
        return value

    @check("product_server_secret")
    @classmethod
    def _deliveries_are_signed(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None:
            forms.server_key(value.get_secret_value())
        elif info.data.get("product_server_url"):
            raise ValueError("is missing; with SELLERWATCH_PRODUCT_SERVER_URL give whsec_ and base64 of 24 bytes")
        return value

    @check("token_keys")
    @classmethod
    def _tokens_are_sealed(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None:
            forms.ring(value.get_secret_value())
        elif not _embedded(info.data.get("database_url")):
            raise ValueError("is missing; with MySQL give id:base64(32 bytes)")
        return value

    @check("jwt_jwks_url")
    @classmethod
    def _signatures_can_be_checked(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("jwt_algorithm", "HS256") != "HS256" and value is None and not info.data.get("jwt_public_key"):
            raise ValueError("is missing; with this SELLERWATCH_JWT_ALGORITHM give it or SELLERWATCH_JWT_PUBLIC_KEY")
        return value

    @check("jwt_secret")
    @classmethod
    def _tokens_are_signed(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None:
            forms.long_enough(value.get_secret_value())
        elif not _embedded(info.data.get("database_url")) and info.data.get("jwt_algorithm") == "HS256":
            raise ValueError("is missing; with MySQL give at least 32 bytes")
        return value

    @check("api_keys")
    @classmethod
    def _keys_are_digests(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            forms.digests(value.get_secret_value())
        return value

    def __repr__(self) -> str:
        values = (f"{name}={shown(name, getattr(self, name))}" for name in type(self).model_fields)
        return f"Settings({', '.join(values)})"

    __str__ = __repr__

    @property
    def embedded(self) -> bool:
        """Whether the database is SQLite."""
        return _embedded(self.database_url)

    @property
    def database_file(self) -> Path | None:
        """The SQLite file; none in memory or with MySQL."""
        path = self.database_url.removeprefix("sqlite://").removeprefix("/") if self.embedded else ""
        return Path(path) if path not in {"", ":memory:"} else None

    @property
    def queue(self) -> SqsAddress | None:
        """The queue of SQS, or none: the database."""
        return forms.queue(self.queue_url, plain=True)

    @property
    def trigger_queue(self) -> SqsAddress | None:
        """The queue that EventBridge puts triggers into, if any."""
        return forms.sqs(self.trigger_queue_url, plain=True) if self.trigger_queue_url else None

    @property
    def schedule(self) -> EventBridgeAddress | None:
        """The bus of EventBridge, or none: the built-in schedule."""
        return forms.schedule(self.schedule_url, plain=True)

    @property
    def timezone(self) -> ZoneInfo:
        """Whose midnight begins a day of figures."""
        return ZoneInfo(self.metrics_timezone)

    @property
    def product_server_key(self) -> bytes | None:
        """What signs deliveries."""
        secret = self.product_server_secret
        return forms.server_key(secret.get_secret_value()) if secret else None

    @property
    def token_ring(self) -> tuple[tuple[str, bytes], ...]:
        """The vault's keys, the sealing one first; empty before `with_kept_keys` on SQLite."""
        return forms.ring(self.token_keys.get_secret_value()) if self.token_keys else ()

    @property
    def api_key_digests(self) -> dict[str, bytes]:
        """The SHA-256 of each accepted internal key, by name."""
        return forms.digests(self.api_keys.get_secret_value()) if self.api_keys else {}

    @property
    def otel(self) -> dict[str, str]:
        """Further `OTEL_*` options, as OpenTelemetry calls them."""
        return dict(self._otel)

    def with_otel(self, options: Mapping[str, str]) -> Self:
        """The same, with those options to hand on."""
        copy = self.model_copy()
        copy._otel = dict(options)  # noqa: SLF001 - of our own kind
        return copy

    def sweep_period(self, sweep: str) -> float:
        """Seconds from one run of that sweep to the next."""
        override: float | None = getattr(self, f"sweep_{sweep}_seconds")
        return self.sweep_seconds * SWEEPS[sweep] if override is None else override

    def warnings(self) -> list[str]:
        """One line for each limit that is above its default, and for what the operator overrides."""
        overridden = [] if self.respect_robots else [f"{PREFIX}RESPECT_ROBOTS=false: robots.txt is not obeyed"]
        return overridden + [
            f"{PREFIX}{name.upper()}={value:.15g} is above its default of {default:.15g}"
            for name in LIMITS
            if (value := getattr(self, name)) > (default := type(self).model_fields[name].default)
        ]


def shown(name: str, value: object) -> str:
    """The value as it may be shown: secrets and passwords hidden, one line, not too long."""
    field = Settings.model_fields.get(name)
    if value is None:
        return ""
    if field is None or any(isinstance(mark, Secret) for mark in field.metadata):
        return "***"
    if not isinstance(value, str | int | float):
        return f"({type(value).__name__})"
    text = re.sub(r"(//).*@", r"\1***@", str(value), flags=re.DOTALL)
    if name == "database_url":
        text = re.sub(r"\?.*", "?***", text, flags=re.DOTALL)
    if isinstance(value, bool):
        text = text.lower()
    text = text.encode("unicode_escape").decode()
    return text if len(text) <= 120 else text[:117] + "..."


def _embedded(database_url: str | None) -> bool:
    # One that was refused itself counts as SQLite: nothing more is asked for until it is mended.
    return database_url is None or database_url.startswith("sqlite:")
