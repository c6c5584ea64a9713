"""Traces over OTLP/HTTP: OpenTelemetry's model and encoding, our own wire to the one configured origin.

Promises what ports/traces.py says. At most `ROOM` spans wait, the oldest are forgotten first; one POST is under way at
a time; no redirect is followed and no proxy asked. A collector that is away, slow or refuses costs a request now and
then and nothing else. Refuses: plain http to other machines unless declared.

Options, as OpenTelemetry calls them: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS`,
`OTEL_TRACES_SAMPLER_ARG` (the share of traces that are told, decided by the trace: all processes decide alike).
"""

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import unquote

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.traces import span_id, trace_id
from sellerwatch.domain.wire import checked_neighbour, divided
from sellerwatch.ports.time import Clock
from sellerwatch.ports.traces import Span
from sellerwatch.ports.wire import Dial, NoReply

ROOM: Final = 16_384
BATCH: Final = 200
RESPONSE_BYTES: Final = 64 << 10
TEXT_MAX: Final = 300
CONNECT_SECONDS: Final = 2.0
TOTAL_SECONDS: Final = 5.0
CLOSING_SECONDS: Final = 2.0
_PATH: Final = "/v1/traces"
_LATER: Final = frozenset({408, 429, 500, 502, 503, 504})
_HEADERS: Final = {"User-Agent": "sellerwatch", "Content-Type": "application/x-protobuf", "Accept-Encoding": "identity"}


class OtlpTraces:
    """ports.traces.Traces to an OpenTelemetry collector."""

    is_on = True

    def __init__(
        self,
        endpoint: str,
        options: Mapping[str, str],
        clock: Clock,
        dial: Dial,
        *,
        version: str,
        instance: str,
        allow_plain_http: bool = False,
    ) -> None:
        checked = checked_neighbour("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, allow_plain_http=allow_plain_http)
        origin, target = divided(checked)
        self._target = target.partition("?")[0].rstrip("/") + _PATH
        self._wire = dial(origin)
        self._clock = clock
        self._headers = {**_HEADERS, **_pairs(options.get("OTEL_EXPORTER_OTLP_HEADERS", ""))}
        named = {"service.name": options.get("OTEL_SERVICE_NAME", "sellerwatch")}
        own = {"service.version": version, "service.instance.id": instance}
        self._resource = Resource({**_pairs(options.get("OTEL_RESOURCE_ATTRIBUTES", "")), **named, **own})
        self._scope = InstrumentationScope("sellerwatch", version)
        self._below = _share(options.get("OTEL_TRACES_SAMPLER_ARG"))
        self._waiting: deque[Span] = deque(maxlen=ROOM)

    def tell(self, spans: Iterable[Span]) -> None:
        self._waiting.extend(span for span in spans if int(trace_id(span.context)[:8], 16) < self._below)

    async def send(self) -> int:
        sent = 0
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            if not await self._post(batch, TOTAL_SECONDS):
                # Back to where they were, as far as newer ones have left room.
                room = ROOM - len(self._waiting)
                self._waiting.extendleft(reversed(batch[max(0, len(batch) - room) :]))
                break
            sent += len(batch)
        return sent

    async def close(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(ROOM, len(self._waiting)))]
        if batch:
            await self._post(batch, CLOSING_SECONDS)
        await self._wire.close()

    def encoded(self, spans: Iterable[Span]) -> bytes:
        """As a collector reads them."""
        body: bytes = encode_spans([self._readable(span) for span in spans]).SerializeToString()
        return body

    async def _post(self, spans: list[Span], seconds: float) -> bool:
        """Whether they are done with: taken, or never to be."""
        try:
            reply = await self._wire.send(
                self._target,
                self._headers,
                self.encoded(spans),
                connect_timeout=min(CONNECT_SECONDS, seconds),
                total_seconds=seconds,
                max_bytes=RESPONSE_BYTES,
                is_body_needed=False,
            )
        except NoReply:
            return False
        return reply.status not in _LATER

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            context=_context(span.context),
            parent=_context(span.parent) if span.parent else None,
            resource=self._resource,
            attributes={name: _cut(value) for name, value in span.facts.items()},
            links=[Link(_context(link)) for link in span.links],
            kind=SpanKind.CLIENT if span.is_call else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error[:TEXT_MAX]) if span.error else Status(),
            start_time=_nanoseconds(span.began),
            end_time=_nanoseconds(max(span.began, span.ended)),
            instrumentation_scope=self._scope,
        )


def _context(text: str) -> SpanContext:
    return SpanContext(int(trace_id(text), 16), int(span_id(text), 16), is_remote=False, trace_flags=TraceFlags(1))


def _nanoseconds(at: datetime) -> int:
    seconds = int(at.timestamp())
    return seconds * 1_000_000_000 + at.microsecond * 1000


def _cut(value: str | int) -> str | int:
    return value[:TEXT_MAX] if isinstance(value, str) else value


def _pairs(text: str) -> dict[str, str]:
    """`name=value,…`, percent-encoded, as OpenTelemetry has them."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}


def _share(text: str | None) -> int:
    """Below which number of 32 bits a trace begins that is told."""
    try:
        share = 1.0 if text is None else float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise Invalid("OTEL_TRACES_SAMPLER_ARG", text, "a share from 0 to 1")
    return round(share * (1 << 32))
