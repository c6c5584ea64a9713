"""Traces: one per task, from trigger to delivery, each step the child of the one before."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from json import dumps, loads

from sellerwatch.domain.traces import checked, root, trace_id
from sellerwatch.ports.traces import Span
from simulation.village import NEVER, Village, a_village
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 100, "identities": 40}


class Heard:
    """`ports.traces.Traces` that keeps what it is told."""

    is_on = True

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def tell(self, spans: Iterable[Span]) -> None:
        self.spans.extend(spans)

    async def send(self) -> int:
        return 0

    async def close(self) -> None:
        """Nothing is left to send."""

    def of(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


def crawled(rates: dict[str, float] | None = None, seed: int = 221) -> tuple[Heard, list[str | None], dict[str, str]]:
    heard = Heard()

    async def story() -> tuple[list[str | None], dict[str, str]]:
        settings = QUIET | {"sweep_seconds": 60}
        async with a_village(seed, {"shops": {"a": 5}, "rates": rates or {}}, traces=heard, **settings) as village:
            await village.register("a")
            await village.crawl("a", 20_000)
            return headers(village), dict(await village.rows("SELECT task_id, status FROM crawler_tasks"))

    sent, tasks = run_virtually(story())
    return heard, sent, tasks


def headers(village: Village) -> list[str | None]:
    return village.house.product_server.traceparents  # type: ignore[union-attr]


def test_each_task_has_one_trace_that_begins_with_its_trigger_and_ends_with_its_delivery() -> None:
    heard, _, tasks = crawled()
    by_trace: dict[str, list[Span]] = defaultdict(list)
    for span in heard.spans:
        by_trace[trace_id(span.context)].append(span)
    assert set(by_trace) == {trace_id(root(task_id)) for task_id in tasks}
    delivered = [spans for spans in by_trace.values() if any(span.name == "deliver" for span in spans)]
    assert len(delivered) == 5
    for spans in delivered:
        steps = {span.name: span for span in spans}
        assert [name for name in steps if name != "request"] == ["trigger", "relay", "crawl", "absorb", "deliver"]
        chain = [steps[name] for name in ("trigger", "relay", "crawl", "absorb", "deliver")]
        assert chain[0].parent is None
        for before, after in pairwise(chain):
            assert after.parent == before.context
            assert before.began <= after.began <= after.ended
        assert steps["request"].parent == steps["crawl"].context
        assert steps["deliver"].is_call
    for spans in by_trace.values():
        assert len({span.context for span in spans}) == len(spans)
        assert {span.parent for span in spans} - {None} <= {span.context for span in spans}


def test_an_observation_also_follows_from_the_tasks_of_its_other_documents() -> None:
    heard, _, tasks = crawled()
    known = {span.context for span in heard.of("crawl")}
    for span in heard.of("absorb"):
        assert len(span.links) == 2
        assert {*span.links, span.parent} <= known
    assert len(tasks) == 11


def test_the_product_server_is_told_the_context_of_the_very_sending_and_only_it() -> None:
    heard, sent, _ = crawled()
    assert len(sent) == 5
    assert set(sent) == {span.context for span in heard.of("deliver")}
    assert all(checked(context) for context in sent)


def test_an_attempt_that_failed_is_a_span_of_its_own_with_its_error() -> None:
    heard, _, tasks = crawled({"error": 30, "html": 20}, seed=222)
    crawls = heard.of("crawl")
    failed = [span for span in crawls if span.error]
    assert failed
    assert len({span.context for span in crawls}) == len(crawls)
    assert len([span for span in crawls if not span.error]) == list(tasks.values()).count("SUCCESS")
    assert len(heard.of("relay")) > len(heard.of("trigger")) == len(tasks)
    for span in crawls:
        assert span.parent in {relay.context for relay in heard.of("relay")}


def test_the_same_story_makes_the_same_traces() -> None:
    assert crawled()[0].spans == crawled()[0].spans


def test_no_span_tells_an_address_a_token_or_a_body() -> None:
    heard, _, _ = crawled({"error": 20}, seed=223)
    text = repr(heard.spans)
    for secret in ("http://", "127.0.0.1", "token=", "Mozilla", "productData", "sealed", "v1."):
        assert secret not in text


def test_where_nobody_listens_the_queue_and_the_product_server_are_told_the_same_contexts() -> None:
    """They derive from the task's id, and what the receiver does with them is its own business."""

    async def story() -> None:
        async with a_village(221, {"shops": {"a": 5}, "rates": {}}, **QUIET | {"sweep_seconds": 60}) as village:
            assert not village.house.traces.is_on
            await village.register("a")
            await village.crawl("a")
            sent = headers(village)
            roots = {trace_id(root(task_id)) for task_id in await village.column("SELECT task_id FROM crawler_tasks")}
            assert len(sent) == len({trace_id(str(context)) for context in sent}) == 5
            assert {trace_id(str(context)) for context in sent} <= roots
            told = [loads(text) for text in await village.column("SELECT attributes FROM queue_messages")]
            assert {trace_id(attributes["traceparent"]) for attributes in told} == roots
            assert {attributes["sellerId"] for attributes in told} == {"a"}

    run_virtually(story())


def test_an_event_that_no_task_led_to_has_a_context_too() -> None:
    async def story() -> None:
        async with a_village(226, {"shops": {"a": 1}}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            payload = loads((await village.column("SELECT payload FROM product_outbox"))[0])
            del payload["traceparent"]
            await village.change("UPDATE product_outbox SET status = 'WAITING', payload = ?", dumps(payload))
            await village.settled()
            assert all(checked(context) for context in headers(village))
            assert len(set(headers(village))) == 2

    run_virtually(story())


def test_a_crawler_tells_the_marketplace_no_context() -> None:
    """It would tell all identities to be of one house."""

    async def story() -> None:
        async with a_village(225, {"shops": {"a": 2}}, traces=Heard(), **QUIET) as village:
            send = village.transport.send
            seen: list[str] = []

            async def noted(url: str, headers: dict[str, str], **how: object) -> object:
                seen.extend(name.lower() for name in headers)
                return await send(url, headers, **how)  # type: ignore[arg-type]

            village.transport.send = noted  # type: ignore[method-assign, assignment]
            await village.register("a")
            await village.crawl("a")
            assert "user-agent" in seen
            assert "traceparent" not in seen

    run_virtually(story())
