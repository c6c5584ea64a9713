"""Traces over OTLP/HTTP, against a collector of our own."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from builders import NOON, an_id
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.adapters.otlp import BATCH, ROOM, OtlpTraces
from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.traces import child, root
from sellerwatch.ports.traces import Span


class Collector:
    """Keeps what it is sent, and answers as told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, ExportTraceServiceRequest]] = []
        self.status, self.headers, self.is_silent = 200, {}, False
        self.url = ""

    async def take(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.is_silent:
            await asyncio.get_running_loop().create_future()
        self.requests.append(
            (request.path, request.headers, ExportTraceServiceRequest.FromString(await request.read()))
        )
        return web.Response(status=self.status, headers=self.headers)

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for _, _, told in self.requests
            for resource in told.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    collector = Collector()
    runner = web.ServerRunner(web.Server(collector.take), shutdown_timeout=0.1)
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield collector
    await runner.cleanup()


def traces_to(url: str, **options: str) -> OtlpTraces:
    return OtlpTraces(url, options, SystemClock(), Http1, version="1.2.3", instance="host:1:ab")


def a_span(name: str = "crawl", number: int = 1, **other: Any) -> Span:
    parent = root(an_id(number))
    at = NOON + timedelta(seconds=1)
    return Span(name, child(parent, name), parent, NOON, at, **{"facts": {"task.kind": "DETAIL"}, **other})


async def test_a_span_arrives_as_it_was_told(collector: Collector) -> None:
    traces = traces_to(collector.url + "/base/", OTEL_SERVICE_NAME="watch", OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b")
    link = root(an_id("other"))
    told = a_span(error="HTTP 500", links=(link,), is_call=True, facts={"http.response.status_code": 500})
    traces.tell([told])
    assert await traces.send() == 1
    await traces.close()
    [(path, headers, request)] = collector.requests
    assert (path, headers["content-type"], headers["x-key"]) == ("/base/v1/traces", "application/x-protobuf", "a b")
    named = {each.key: each.value.string_value for each in request.resource_spans[0].resource.attributes}
    assert (named["service.name"], named["service.version"]) == ("watch", "1.2.3")
    [span] = collector.spans
    assert (span.name, span.trace_id.hex(), span.span_id.hex()) == ("crawl", told.context[3:35], told.context[36:52])
    assert span.parent_span_id.hex() == root(an_id(1))[36:52]
    assert span.end_time_unix_nano - span.start_time_unix_nano == 1_000_000_000
    assert (span.status.code, span.status.message, span.kind) == (2, "HTTP 500", 3)
    assert span.links[0].trace_id.hex() == link[3:35]
    assert span.attributes[0].value.int_value == 500


async def test_many_go_in_batches(collector: Collector) -> None:
    traces = traces_to(collector.url)
    traces.tell(a_span(number=number) for number in range(BATCH * 2 + 1))
    assert await traces.send() == BATCH * 2 + 1 == len(collector.spans)
    assert len(collector.requests) == 3
    await traces.close()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_what_the_collector_cannot_take_now_is_sent_later_in_its_order(collector: Collector, status: int) -> None:
    traces = traces_to(collector.url)
    traces.tell([a_span(number=1), a_span(number=2)])
    collector.status = status
    assert await traces.send() == 0
    traces.tell([a_span(number=3)])
    collector.status = 200
    collector.requests.clear()
    assert await traces.send() == 3
    assert [span.trace_id.hex() for span in collector.spans] == [root(an_id(number))[3:35] for number in (1, 2, 3)]
    await traces.close()


async def test_what_the_collector_refuses_is_not_sent_again(collector: Collector) -> None:
    traces = traces_to(collector.url)
    collector.status = 400
    traces.tell([a_span()])
    assert await traces.send() == 1
    assert await traces.send() == 0
    assert len(collector.requests) == 1
    await traces.close()


async def test_a_redirect_leads_nowhere(collector: Collector) -> None:
    traces = traces_to(collector.url)
    collector.status, collector.headers = 307, {"Location": collector.url + "/elsewhere"}
    traces.tell([a_span()])
    await traces.send()
    assert [path for path, _, _ in collector.requests] == ["/v1/traces"]
    await traces.close()


async def test_a_collector_that_is_away_costs_no_error_and_only_so_much_room() -> None:
    traces = traces_to("http://127.0.0.1:1")
    traces.tell(a_span(number=number) for number in range(ROOM + 10))
    assert await traces.send() == 0
    assert len(traces._waiting) == ROOM
    traces.tell([a_span(number=-1)])
    assert len(traces._waiting) == ROOM
    assert traces._waiting[-1] == a_span(number=-1)
    await traces.close()


async def test_what_is_left_is_sent_at_the_end(collector: Collector) -> None:
    traces = traces_to(collector.url)
    traces.tell([a_span()])
    await traces.close()
    assert len(collector.spans) == 1


async def test_a_share_of_the_traces_is_told_whole(collector: Collector) -> None:
    traces = traces_to(collector.url, OTEL_TRACES_SAMPLER_ARG="0.25")
    for number in range(400):
        traces.tell([a_span("relay", number), a_span("crawl", number)])
    sent = await traces.send()
    by_trace = {span.trace_id for span in collector.spans}
    assert 60 < len(by_trace) < 140
    assert sent == 2 * len(by_trace)
    await traces.close()


@pytest.mark.parametrize("share", ["2", "-1", "nan", "half", ""])
def test_a_share_that_is_none_is_refused_with_its_name(share: str) -> None:
    with pytest.raises(Invalid, match="OTEL_TRACES_SAMPLER_ARG"):
        traces_to("http://127.0.0.1:1", OTEL_TRACES_SAMPLER_ARG=share)


def test_plain_http_to_another_machine_is_refused() -> None:
    with pytest.raises(Invalid, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        traces_to("http://collector.example")
