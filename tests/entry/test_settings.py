"""Settings: every name of the specification, all problems at once, no secret in a line."""

import base64
import os
import re
from pathlib import Path

import pytest

from sellerwatch.settings import SWEEPS, Settings, SettingsRefused, load, needed, settings_page, with_kept_keys
from sellerwatch.settings.declared import LIMITS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
KEY = base64.b64encode(bytes(32)).decode()
CANARY = "canary-0123456789-canary-0123456789"
PEM = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----"
MYSQL = {
    "DATABASE_URL": "mysql://user:hunter2@db.example:3306/sellerwatch",
    "TOKEN_KEYS": f"k1:{KEY}",
    "JWT_SECRET": CANARY,
}
SPECIFIED = """
DATABASE_URL=sqlite:///sellerwatch.db DATABASE_POOL_MIN=10 DATABASE_POOL_MAX=50 REDIS_URL QUEUE_URL=database:
SCHEDULE_URL=builtin: TRIGGER_QUEUE_URL MARKETPLACE_URL PRODUCT_SERVER_URL PRODUCT_SERVER_SECRET ALERT_WEBHOOK_URL
ALERT_REPEAT_SECONDS=3600 CONCURRENCY=100 PAGE_SIZE=500 CRAWL_MODE=full FRESHNESS_HOURS=24 TASK_RETRIES=2
TASK_OUTBOX_RETRIES=3 PRODUCT_OUTBOX_RETRIES=5 SCHEDULER_OUTBOX_RETRIES=3 RAW_RETRIES=3 DELIVERY_INTERVAL=300
DELIVERY_BATCH=100 DELIVERY_CONCURRENCY=16 CONNECT_TIMEOUT=3 READ_TIMEOUT=10 MAX_RESPONSE_BYTES=33554432
IDENTITY_HOURLY_LIMIT=80 IDENTITY_MIN_INTERVAL=1 IDENTITY_WINDOW_GUARD=30 LEASE_SECONDS=30 POOL_MIN_AVAILABLE_RATE=20
BREAKER_OPEN_SECONDS=600 SITE_FAILURE_RATE=50 SITE_REQUESTS_PER_SECOND=10 IDENTITY_PACING=burst QUEUE_AHEAD_SECONDS=60
RESPECT_ROBOTS=True TOKEN_KEYS JWT_ALGORITHM=HS256 JWT_PUBLIC_KEY JWT_JWKS_URL JWT_SECRET JWT_ISSUER=sellerwatch
JWT_AUDIENCE=sellerwatch-api JWT_ROLE_CLAIM=role API_KEYS LOG_FORMAT=auto LOG_LEVEL=info OTEL_EXPORTER_OTLP_ENDPOINT
TASK_STUCK_SECONDS=600 TASK_ABANDONS=30 TASK_ATTEMPT_SECONDS=120 PUBLISHED_ORPHAN_SECONDS=900 TASK_IDENTITY_SWITCHES=3
TRIGGER_RETRIES=3 ABSORB_WAIT_SECONDS=900 QUEUE_MAX_RECEIVES=3 SHUTDOWN_SECONDS=25 GROUP_COMMIT_MS=5 CLAIM_SECONDS=30
SWEEP_SECONDS=15 METRICS_TIMEZONE=Asia/Seoul MINI_SHOP_PATH=/mustit-api/facade-api/v1/searchmini-shop-search
IDENTITY_PROBATION_HOURS=0 RAW_RETENTION_DAYS=90 FLAP_SECONDS=0 POOL_NAME=main ALLOW_PLAIN_HTTP=False
"""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in [name for name in dict(os.environ) if name.startswith("SELLERWATCH_")]:  # noqa: TID251 - cleaned
        monkeypatch.delenv(name)


@pytest.fixture
def given(monkeypatch):
    """Load with these settings in the environment."""

    def loaded(**settings):
        for name, value in settings.items():
            monkeypatch.setenv(f"SELLERWATCH_{name}", value)
        return load()

    return loaded


@pytest.fixture
def refused(given):
    """The lines with which these settings are refused."""

    def lines(**settings):
        with pytest.raises(SettingsRefused) as caught:
            given(**settings)
        assert str(caught.value) == "\n".join(caught.value.problems)
        assert all("\n" not in line for line in caught.value.problems)
        return list(caught.value.problems)

    return lines


@pytest.mark.parametrize("entry", SPECIFIED.split())
def test_every_setting_of_the_specification_exists_with_its_default(entry, given):
    name, _, default = entry.partition("=")
    value = getattr(given(), name.lower())
    assert value is None if not default else str(value).removesuffix(".0") == default


def test_the_page_of_the_docs_is_what_the_declarations_say():
    assert PAGE.read_text(encoding="utf-8") == settings_page()


def test_settings_never_change(given):
    with pytest.raises(ValueError, match="frozen"):
        given().page_size = 3


def test_the_environment_wins_over_the_file_and_overrides_over_both(tmp_path, monkeypatch):
    file = tmp_path / "s.toml"
    file.write_text('page_size = 200\nCONCURRENCY = "7"\nSELLERWATCH_TASK_RETRIES = 4\nrespect_robots = false\n')
    monkeypatch.setenv("SELLERWATCH_PAGE_SIZE", "300")
    monkeypatch.setenv("SELLERWATCH_CONCURRENCY", "8")
    settings = load(file, {"concurrency": 9})
    assert (settings.page_size, settings.concurrency, settings.task_retries) == (300, 9, 4)
    assert settings.respect_robots is False


def test_the_file_can_be_named_in_the_environment(tmp_path, given):
    file = tmp_path / "s.toml"
    file.write_text("page_size = 200\n")
    assert given(CONFIG=str(file)).page_size == 200


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("page_size = 'many'", "SELLERWATCH_PAGE_SIZE=many: is not a whole number"),
        ("page_size = true", "SELLERWATCH_PAGE_SIZE=true: is not a number"),
        ("[page_size]\na = 1", "SELLERWATCH_PAGE_SIZE=(dict): is not a whole number"),
        ("page_sise = 1", "SELLERWATCH_PAGE_SISE=***: is not a setting; did you mean SELLERWATCH_PAGE_SIZE?"),
        ("config = 'x'", "SELLERWATCH_CONFIG=***: is not a setting"),
        ("page_size = 1\nPAGE_SIZE = 2", "has a setting twice"),
        ("page_size = ", "is not TOML"),
    ],
)
def test_a_bad_file_is_refused_with_the_name_that_is_wrong(content, problem, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(content)
    with pytest.raises(SettingsRefused) as caught:
        load(file)
    assert any(problem in line for line in caught.value.problems), caught.value.problems


def test_a_missing_file_is_refused_and_the_rest_is_checked_all_the_same(tmp_path, refused):
    lines = refused(CONFIG=str(tmp_path / "none.toml"), PAGE_SIZE="x")
    assert [line.partition("=")[0] for line in lines] == ["SELLERWATCH_CONFIG", "SELLERWATCH_PAGE_SIZE"]
    assert "cannot be read" in lines[0]


def test_all_problems_are_named_at_once_with_name_value_and_what_would_be_right(refused):
    lines = refused(PAGE_SIZE="0", LOG_LEVEL="loud", MARKETPLACE_URL="ftp://x", CONCURENCY="3", TASK_RETRIES="1.5")
    assert lines == [
        "SELLERWATCH_CONCURENCY=***: is not a setting; did you mean SELLERWATCH_CONCURRENCY?",
        "SELLERWATCH_MARKETPLACE_URL=ftp://x: is not an address like https://host/path, without user or fragment",
        "SELLERWATCH_PAGE_SIZE=0: is not a whole number from 1 to 1000000: empty pages never end a list",
        "SELLERWATCH_TASK_RETRIES=1.5: is not a whole number from 0 to 1000000",
        "SELLERWATCH_LOG_LEVEL=loud: is not debug, info, warning or error",
    ]


@pytest.mark.parametrize("value", ["", "   "])
@pytest.mark.parametrize("name", [*(name.upper() for name in Settings.model_fields), "CONFIG", "OTEL_SERVICE_NAME"])
def test_lesson_52_an_empty_setting_is_refused_at_start(name, value, refused):
    assert any(line.startswith(f"SELLERWATCH_{name}=") and "is empty" in line for line in refused(**{name: value}))


def test_lesson_54_no_address_of_another_system_has_a_default():
    addresses = [name for name in Settings.model_fields if name.endswith(("_url", "_endpoint"))]
    defaults = {name: Settings.model_fields[name].default for name in addresses}
    own = {"database_url": "sqlite:///sellerwatch.db", "queue_url": "database:", "schedule_url": "builtin:"}
    assert {name: default for name, default in defaults.items() if default is not None} == own


REFUSED = [
    ("DATABASE_URL", "postgres://h/db"),
    ("DATABASE_URL", "sqlite:/x.db"),
    ("DATABASE_URL", "sqlite://host/x.db"),
    ("DATABASE_URL", "sqlite:///x.db?mode=ro"),
    ("DATABASE_URL", "mysql://user:p@/db"),
    ("DATABASE_URL", "mysql://host"),
    ("DATABASE_URL", "mysql://host:port/db"),
    ("DATABASE_POOL_MIN", "51"),
    ("REDIS_URL", "http://h"),
    ("REDIS_URL", "redis://"),
    ("REDIS_URL", "redis://h:6379/x"),
    ("REDIS_URL", "redis://h:6379/0/1"),
    ("REDIS_URL", "rediss://h/-1"),
    ("QUEUE_URL", "sqs://queue.fifo"),
    ("QUEUE_URL", "sqs:///"),
    ("QUEUE_URL", "sqs:///a b.fifo"),
    ("QUEUE_URL", "sqs:///a.fifo?regoin=x"),
    ("QUEUE_URL", "sqs:///a.fifo?region="),
    ("QUEUE_URL", "sqs:///a.fifo?region=a&region=b"),
    ("QUEUE_URL", "sqs:///a.fifo?dlq=b"),
    ("QUEUE_URL", "sqs:///a.fifo?endpoint=http%3A%2F%2F10.0.0.1"),
    ("QUEUE_URL", "sqs:///" + "a" * 81),
    ("QUEUE_URL", "rabbit:"),
    ("TRIGGER_QUEUE_URL", "database:"),
    ("QUEUE_URL", "sqs:///a.fifo?region=elsewhere.test%2F"),
    ("QUEUE_URL", "sqs:///a.fifo?dlq=a.fifo"),
    ("SCHEDULE_URL", "eventbridge:///default?target_arn=arn:aws:events:r:1:api-destination%2Fus%2F1"),
    ("SCHEDULE_URL", "eventbridge:///default?target_arn=arn:aws:sqs:r:1:q.fifo&group_id=a%20b"),
    ("SCHEDULE_URL", "eventbridge:///default"),
    ("SCHEDULE_URL", "eventbridge://default?target_arn=arn:x"),
    ("SCHEDULE_URL", "eventbridge:///default?target_arn=x"),
    ("SCHEDULE_URL", "eventbridge:///default?target_arn=arn:x&role_arn=y"),
    ("SCHEDULE_URL", "cron:"),
    ("MARKETPLACE_URL", "http://m.example"),
    ("MARKETPLACE_URL", "http://127.0.0.1.example"),
    ("MARKETPLACE_URL", "http://2130706433"),
    ("MARKETPLACE_URL", "https://user@m.example"),
    ("MARKETPLACE_URL", "https://m.example/path"),
    ("MARKETPLACE_URL", "https://m.example?x"),
    ("MARKETPLACE_URL", "https://m.example\\@evil.example"),
    ("MARKETPLACE_URL", "https://m.exam\nple"),
    ("MARKETPLACE_URL", "https://m.example:0"),
    ("MARKETPLACE_URL", "https://m.example:99999"),
    ("MARKETPLACE_URL", "https://"),
    ("MARKETPLACE_URL", "m.example"),
    ("ALERT_WEBHOOK_URL", "http://hooks.example/x"),
    ("JWT_JWKS_URL", "http://issuer.example/keys"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318"),
    ("MINI_SHOP_PATH", "v1/x"),
    ("MINI_SHOP_PATH", "/v1/../x"),
    ("MINI_SHOP_PATH", "//evil.example/x"),
    ("MINI_SHOP_PATH", "/v1/x?y"),
    ("POOL_NAME", "a}b"),
    ("POOL_NAME", "a\n"),
    ("METRICS_TIMEZONE", "Asia"),
    ("METRICS_TIMEZONE", "../etc/passwd"),
    ("METRICS_TIMEZONE", "KST+9"),
    ("IDENTITY_PACING", "slow"),
    ("CRAWL_MODE", "half"),
    ("LOG_FORMAT", "xml"),
    ("JWT_ALGORITHM", "none"),
    ("JWT_PUBLIC_KEY", "ssh-ed25519 AAAA"),
    ("CONCURRENCY", "-1"),
    ("CONCURRENCY", "1000001"),
    ("SITE_REQUESTS_PER_SECOND", "inf"),
    ("SITE_FAILURE_RATE", "101"),
    ("CLAIM_SECONDS", "0"),
    ("READ_TIMEOUT", "10s"),
    ("SWEEP_LEASES_SECONDS", "nan"),
    ("RESPECT_ROBOTS", "perhaps"),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_an_unusable_value_is_refused_under_its_name(name, value, refused):
    said = "DATABASE_POOL_MAX" if name == "DATABASE_POOL_MIN" else name
    lines = refused(**{name: value})
    assert [line.partition("=")[0] for line in lines] == [f"SELLERWATCH_{said}"]
    assert re.search(r": (is|has) .{10}", lines[0])


NOT_NONE = {
    "database_pool_max": "nothing runs without one",
    "page_size": "empty pages never end a list",
    "max_response_bytes": "0 refuses all",
    "queue_max_receives": "one to work on it",
}
"""The limits that 0 makes nonsense of, and why."""


@pytest.mark.parametrize("limit", [name for name in LIMITS if name not in NOT_NONE])
def test_a_limit_takes_zero_to_a_million_and_is_named_when_above_its_default(limit, given):
    assert given(**{limit.upper(): "0"}).warnings() == []
    (line,) = given(**{limit.upper(): "1000000"}).warnings()
    assert line.startswith(f"SELLERWATCH_{limit.upper()}=1000000 is above its default of ")


@pytest.mark.parametrize("limit", [name for name in LIMITS if name != "max_response_bytes"])
def test_no_limit_takes_more_than_a_million(limit, refused):
    (line,) = refused(**{limit.upper(): "1000001"})
    assert "1000000" in line


@pytest.mark.parametrize(("limit", "why"), NOT_NONE.items())
def test_a_limit_that_can_not_be_none_says_why(limit, why, given, refused):
    (line,) = refused(**{limit.upper(): "0", "DATABASE_POOL_MIN": "1"})
    assert line.startswith(f"SELLERWATCH_{limit.upper()}=0: is not a ")
    assert why in line
    assert "at least 1" in str(Settings.model_fields[limit].description)
    assert getattr(given(**{limit.upper(): "1"}), limit) == 1


def test_defaults_warn_of_nothing(given):
    assert given().warnings() == []


def test_plain_http_goes_to_this_machine_or_where_it_was_allowed(given):
    for address in ("http://localhost:8090", "http://127.0.0.1:8090/", "http://[::1]:8090"):
        assert given(MARKETPLACE_URL=address).marketplace_url == address.rstrip("/")
    assert given(ALLOW_PLAIN_HTTP="true", MARKETPLACE_URL="http://m.example").marketplace_url == "http://m.example"
    assert given(QUEUE_URL="sqs:///q?endpoint=http%3A%2F%2Fhost%3A4566").queue.endpoint == "http://host:4566"


def test_deliveries_need_a_secret_to_sign_with(given, refused):
    (line,) = refused(PRODUCT_SERVER_URL="https://shop.example/hook")
    assert line.startswith("SELLERWATCH_PRODUCT_SERVER_SECRET is missing")
    for secret in ("whsec_", "whsec_!!", "abc", "whsec_" + base64.b64encode(bytes(23)).decode()):
        (line,) = refused(PRODUCT_SERVER_SECRET=secret)
        assert line.startswith("SELLERWATCH_PRODUCT_SERVER_SECRET=***: is not whsec_")
    good = "whsec_" + base64.b64encode(bytes(range(24))).decode()
    assert given(PRODUCT_SERVER_SECRET=good).product_server_key == bytes(range(24))


def test_with_mysql_the_keys_are_required(given, refused):
    lines = refused(DATABASE_URL=MYSQL["DATABASE_URL"])
    assert [line.partition(";")[0] for line in lines] == [
        "SELLERWATCH_TOKEN_KEYS is missing",
        "SELLERWATCH_JWT_SECRET is missing",
    ]
    settings = given(**MYSQL)
    assert not settings.embedded
    assert settings.database_file is None
    assert settings.token_ring == (("k1", bytes(32)),)
    assert with_kept_keys(settings, lambda *_: pytest.fail("asked"), bytes) is settings


def test_a_mariadb_with_a_driver_is_respected(given):
    url = "mariadb+pymysql://u:p@h/db"
    assert given(**{**MYSQL, "DATABASE_URL": url}).database_url == url


def test_other_algorithms_need_a_public_key(given, refused):
    (line,) = refused(JWT_ALGORITHM="RS256")
    assert line.startswith("SELLERWATCH_JWT_JWKS_URL is missing")
    assert given(JWT_ALGORITHM="EdDSA", JWT_PUBLIC_KEY=PEM.replace("\n", "\\n")).jwt_public_key == PEM + "\n"


@pytest.mark.parametrize(
    "ring",
    ["k1", f"k1:{KEY[:-4]}", f"k 1:{KEY}", f":{KEY}", f"k1:{KEY},", f"k1:{KEY},k1:{KEY}", "k1:" + "é" * 44],
)
def test_a_ring_of_bad_keys_is_refused_without_showing_it(ring, refused):
    (line,) = refused(TOKEN_KEYS=ring)
    assert line.startswith("SELLERWATCH_TOKEN_KEYS=***: ")
    assert ring not in line


def test_the_first_token_key_seals(given):
    other = base64.b64encode(bytes([1]) * 32).decode()
    assert given(TOKEN_KEYS=f"new:{other}, old:{KEY}").token_ring == (("new", bytes([1]) * 32), ("old", bytes(32)))


@pytest.mark.parametrize(
    "keys",
    [
        "shop",
        "shop:zz",
        "shop:" + "a" * 63,
        f"a:{'0' * 64},a:{'1' * 64}",
        "blank:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",  # lesson 55
    ],
)
def test_bad_api_keys_are_refused(keys, refused):
    (line,) = refused(API_KEYS=keys)
    assert line.startswith("SELLERWATCH_API_KEYS=***: ")


def test_api_keys_are_digests_by_name(given):
    assert given(API_KEYS=f"a:{'0' * 64}, b:{'Ff' * 32}").api_key_digests == {"a": bytes(32), "b": b"\xff" * 32}


def test_no_secret_is_shown(given, refused):
    secret = {
        **MYSQL,
        "PRODUCT_SERVER_SECRET": "whsec_" + base64.b64encode(CANARY.encode()).decode(),
        "ALERT_WEBHOOK_URL": f"https://hooks.example/{CANARY}",
        "REDIS_URL": f"redis://:{CANARY}@cache.example:6379/0",
        "DATABASE_URL": f"mysql://user:{CANARY}@db.example:3306/shop?password={CANARY}",
        "API_KEYS": f"{CANARY[:20]}:{'ab' * 32}",
    }
    settings = given(**secret)
    assert CANARY[:10] not in repr(settings) + str(settings)
    assert KEY not in repr(settings)
    bad = refused(
        JWT_SECRET="short-" + CANARY[:10],
        DATABASE_URL=f"mysql://user:{CANARY}@/",
        REDIS_URL=f"http://u:{CANARY}@h",
        ALERT_WEBHOOK_URL=f"ftp://{CANARY}",
        API_KEYS=CANARY,
        TOKEN_KEYS=CANARY,
        PRODUCT_SERVER_SECRET=CANARY,
        JWT_SECERT=CANARY,
    )
    assert len(bad) == 8
    assert CANARY[:10] not in "\n".join(bad)


def test_triggers_have_a_queue_of_their_own(given):
    with pytest.raises(SettingsRefused, match=r"TRIGGER_QUEUE_URL.* is a queue of SELLERWATCH_QUEUE_URL too"):
        given(QUEUE_URL="sqs:///a?dlq=b", TRIGGER_QUEUE_URL="sqs:///b")
    assert given(QUEUE_URL="sqs:///a", TRIGGER_QUEUE_URL="sqs:///b").trigger_queue.name == "b"


def test_the_queue_address_is_read_with_its_case_and_its_dead_letters(given):
    queue = given(
        QUEUE_URL="sqs:///Mustit-Crawler.fifo?region=ap-northeast-2&endpoint=http%3A%2F%2F127.0.0.1%3A4566"
    ).queue
    assert (queue.name, queue.dead_letters, queue.fifo) == ("Mustit-Crawler.fifo", "Mustit-Crawler-dlq.fifo", True)
    assert (queue.region, queue.endpoint) == ("ap-northeast-2", "http://127.0.0.1:4566")
    plain = given(QUEUE_URL="sqs:///q?dlq=lost").queue
    assert (plain.dead_letters, plain.fifo, plain.region) == ("lost", False, None)
    assert given(TRIGGER_QUEUE_URL="sqs:///t").trigger_queue.dead_letters == "t-dlq"
    assert given(QUEUE_URL="database:").queue is None


def test_the_schedule_address_is_read(given):
    bus = given(SCHEDULE_URL="eventbridge:///default?target_arn=arn:aws:sqs:x&group_id=g&region=r").schedule
    assert (bus.bus, bus.target_arn, bus.group_id, bus.region, bus.role_arn) == (
        "default",
        "arn:aws:sqs:x",
        "g",
        "r",
        None,
    )
    assert given(SCHEDULE_URL="builtin:").schedule is None


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///data/x.db", "data/x.db"),
        ("sqlite:////var/my data/가게.db", "/var/my data/가게.db"),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
    ],
)
def test_the_database_file_is_relative_absolute_or_none(url, path, given):
    file = given(DATABASE_URL=url).database_file
    assert file == (Path(path) if path else None)


def test_keys_are_kept_beside_the_database_file(tmp_path, given):
    files = {}

    def keep(path, make):
        return files.setdefault(path, make())

    settings = given(DATABASE_URL=f"sqlite:///{tmp_path}/x.db")
    first = with_kept_keys(settings, keep, bytes)
    again = with_kept_keys(settings, keep, lambda count: bytes([7]) * count)
    assert set(files) == {tmp_path / "x.db.token-keys", tmp_path / "x.db.jwt-secret"}
    assert first.token_ring == again.token_ring == (("k1", bytes(32)),)
    assert first.jwt_secret == again.jwt_secret
    assert KEY not in repr(first)


def test_in_memory_keys_last_as_long_as_the_process(given):
    settings = with_kept_keys(given(DATABASE_URL="sqlite://"), lambda *_: pytest.fail("kept"), bytes)
    assert settings.token_ring == (("k1", bytes(32)),)


def test_a_given_key_is_not_made(given):
    settings = given(DATABASE_URL="sqlite://", TOKEN_KEYS=f"mine:{KEY}", JWT_SECRET=CANARY)
    assert with_kept_keys(settings, lambda *_: pytest.fail("kept"), bytes) == settings


def test_a_spoiled_key_file_is_refused_without_showing_it(tmp_path, given):
    settings = given(DATABASE_URL=f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(SettingsRefused, match=r"kept in .*token-keys: is not id:base64") as caught:
        with_kept_keys(settings, lambda *_: CANARY, bytes)
    assert CANARY not in str(caught.value)


def test_what_a_command_needs_is_refused_when_missing(given):
    with pytest.raises(SettingsRefused, match="SELLERWATCH_MARKETPLACE_URL is missing; give"):
        needed(given(), "marketplace_url")
    needed(given(MARKETPLACE_URL="https://m.example"), "marketplace_url")


def test_a_sweep_has_its_period_or_a_multiple_of_the_common_one(given):
    settings = given(SWEEP_SECONDS="2", SWEEP_LEASES_SECONDS="0.5")
    assert settings.sweep_period("leases") == 0.5
    assert settings.sweep_period("stuck_tasks") == 2
    assert given(SWEEP_SECONDS="15").sweep_period("identities") == 60
    assert all(settings.sweep_period(sweep) > 0 for sweep in SWEEPS)


def test_further_otel_options_are_handed_on(given):
    assert given(OTEL_SERVICE_NAME="x").otel == {"OTEL_SERVICE_NAME": "x"}
