"""Alerts to whoever is on call, by webhook.

Promises: one POST of `{text, name, severity, since, details}`, and never an exception: what could not be told is
told again by whoever asked. Every alert is in the log as well. Without a url nobody is on call, and the log is where
alerts go: then an alert counts as told.
"""

from typing import Final

import aiohttp
import orjson
import structlog

from sellerwatch.domain.wire import checked_neighbour
from sellerwatch.ports.outside import Alert, Severity

CONNECT_SECONDS: Final = 3.0
TOTAL_SECONDS: Final = 8.0


class WebhookAlerts:
    """ports.outside.Alerts. Alerts are rare: each has a connection of its own, and nothing is left to close."""

    def __init__(self, url: str | None, *, allow_plain_http: bool = False) -> None:
        self._url = url and checked_neighbour("ALERT_WEBHOOK_URL", url, allow_plain_http=allow_plain_http)
        self._log = structlog.get_logger(__name__)

    async def tell(self, alert: Alert) -> bool:
        """Whether it was heard: any 2xx."""
        log = self._log.error if alert.severity is Severity.CRITICAL else self._log.warning
        log("alert", name=alert.name, severity=alert.severity.value, text=alert.text)
        if not self._url:
            return True
        try:
            status = await _post(self._url, _body(alert))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, TypeError) as error:
            # Not the error's text: it holds the hook's address, which is its password.
            self._log.warning("alert not told", name=alert.name, problem=type(error).__name__)
            return False
        if not 200 <= status < 300:
            self._log.warning("alert not told", name=alert.name, problem=f"answered {status}")
        return 200 <= status < 300


def _body(alert: Alert) -> bytes:
    document = {
        "text": alert.text,
        "name": alert.name,
        "severity": alert.severity.value,
        "since": alert.since,
        "details": dict(alert.details),
    }
    return orjson.dumps(document, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)


async def _post(url: str, body: bytes) -> int:
    async with (
        aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=TOTAL_SECONDS, connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        ) as session,
        session.post(
            url,
            data=body,
            headers={"Content-Type": "application/json", "User-Agent": "sellerwatch"},
            allow_redirects=False,
        ) as response,
    ):
        return response.status
