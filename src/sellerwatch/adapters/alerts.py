"""Alerts to whoever is on call, by webhook.

Promises: one POST of `{text, name, severity, since, details}`, and never an exception: what could not be told is
told again by whoever asked. Every alert is in the log as well. Without a url nobody is on call, and the log is where
alerts go: then an alert counts as told.
"""

from typing import Final

import orjson
import structlog

from sellerwatch.domain.wire import checked_neighbour, divided
from sellerwatch.ports.outside import Alert, Severity
from sellerwatch.ports.wire import Dial, NoReply, Wire

CONNECT_SECONDS: Final = 3.0
TOTAL_SECONDS: Final = 8.0
RESPONSE_BYTES: Final = 64 << 10
_HEADERS: Final = {"User-Agent": "sellerwatch", "Accept-Encoding": "identity", "Content-Type": "application/json"}


class WebhookAlerts:
    """ports.outside.Alerts over a wire to the hook, where there is one."""

    def __init__(self, url: str | None, dial: Dial, *, allow_plain_http: bool = False) -> None:
        self._wire: Wire | None = None
        if url:
            checked_neighbour("ALERT_WEBHOOK_URL", url, allow_plain_http=allow_plain_http)
            origin, self._target = divided(url)
            self._wire = dial(origin)
        self._log = structlog.get_logger(__name__)

    async def tell(self, alert: Alert) -> bool:
        """Whether it was heard: any 2xx."""
        log = self._log.error if alert.severity is Severity.CRITICAL else self._log.warning
        log("alert", name=alert.name, severity=alert.severity.value, text=alert.text)
        if self._wire is None:
            return True
        try:
            status = await self._post(self._wire, _body(alert))
        except NoReply as failure:
            # What it says holds nothing of the hook's address, which is its password.
            self._log.warning("alert not told", name=alert.name, problem=failure.detail)
            return False
        except (ValueError, TypeError) as error:
            self._log.warning("alert not told", name=alert.name, problem=type(error).__name__)
            return False
        if not 200 <= status < 300:
            self._log.warning("alert not told", name=alert.name, problem=f"answered {status}")
        return 200 <= status < 300

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()

    async def _post(self, wire: Wire, body: bytes) -> int:
        reply = await wire.send(
            self._target,
            _HEADERS,
            body,
            connect_timeout=CONNECT_SECONDS,
            total_seconds=TOTAL_SECONDS,
            max_bytes=RESPONSE_BYTES,
            is_body_needed=False,
        )
        return reply.status


def _body(alert: Alert) -> bytes:
    document = {
        "text": alert.text,
        "name": alert.name,
        "severity": alert.severity.value,
        "since": alert.since,
        "details": dict(alert.details),
    }
    return orjson.dumps(document, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
