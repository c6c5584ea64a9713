"""Alerts by webhook."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import structlog
from aiohttp import web

from sellerwatch.adapters.alerts import WebhookAlerts
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.domain.errors import Invalid
from sellerwatch.ports.outside import Alert, Severity

SINCE = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
ALERT = Alert("pool-empty", Severity.CRITICAL, "no identity is left", SINCE, {"identities": 0, "seen": SINCE})


class Hook:
    def __init__(self) -> None:
        self.got: list[dict] = []
        self.status = 200

    async def take(self, request: web.BaseRequest) -> web.StreamResponse:
        self.got.append(json.loads(await request.read()))
        headers = {"Location": "/elsewhere"} if self.status == 302 else {}
        return web.Response(status=self.status, headers=headers)


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    hook = Hook()
    runner = web.ServerRunner(web.Server(hook.take))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    hook.url = f"http://127.0.0.1:{runner.addresses[0][1]}/canary-path"
    hook.alerts = WebhookAlerts(hook.url, Http1)
    yield hook
    await hook.alerts.close()
    await runner.cleanup()


async def test_an_alert_is_told_as_json(hook):
    assert await hook.alerts.tell(ALERT)
    assert hook.got == [
        {
            "text": "no identity is left",
            "name": "pool-empty",
            "severity": "critical",
            "since": "2026-11-18T12:00:00Z",
            "details": {"identities": 0, "seen": "2026-11-18T12:00:00Z"},
        }
    ]


@pytest.mark.parametrize("status", [302, 400, 404, 500])
async def test_a_hook_that_refuses_was_not_reached(hook, status):
    hook.status = status
    assert not await hook.alerts.tell(ALERT)
    assert len(hook.got) == 1


async def test_nobody_there_is_false_and_never_an_error():
    with structlog.testing.capture_logs() as logs:
        assert not await WebhookAlerts("http://127.0.0.1:1/canary-path", Http1).tell(ALERT)
    assert [entry["event"] for entry in logs] == ["alert", "alert not told"]
    assert "canary" not in repr(logs)


@pytest.mark.parametrize(
    "details", [{"a": object()}, {1: {2, 3}}, {"a": "\ud800"}, {"a": 10**400}, {"a": float("nan")}]
)
async def test_details_of_any_kind_never_raise(hook, details):
    assert await hook.alerts.tell(Alert("x", Severity.WARNING, "x", SINCE, details)) in {True, False}


async def test_without_a_hook_an_alert_is_in_the_log_and_counts_as_told():
    with structlog.testing.capture_logs() as logs:
        assert await WebhookAlerts(None, Http1).tell(ALERT)
    [entry] = logs
    assert (entry["log_level"], entry["name"], entry["text"]) == ("error", "pool-empty", "no identity is left")


@pytest.mark.parametrize("url", ["nonsense", "http://hooks.test/canary", "https://user:canary@hooks.test/"])
def test_a_bad_address_is_refused(url):
    with pytest.raises(Invalid) as caught:
        WebhookAlerts(url, Http1)
    assert "canary" not in str(caught.value)
