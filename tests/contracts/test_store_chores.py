"""What ports/store.py promises of what keeps the house, on every engine."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select

from builders import NOON, a_publication, a_seller, a_task, an_attempt, an_execution, an_id, at
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.adapters.sql.stores.chores import ALL_SELLERS
from sellerwatch.adapters.sql.stores.prune import _KINDS
from sellerwatch.domain.breakers import BreakerScope, BreakerState, Transition
from sellerwatch.domain.documents import DocumentKind, content_hash
from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.identities import SealedToken
from sellerwatch.domain.outbox import EventType, OutboxStatus, ProductEvent, TaskOutboxStatus
from sellerwatch.domain.products import Product, ProductStatus, Seen
from sellerwatch.domain.raws import Raw, RawStatus, raw_id
from sellerwatch.domain.tasks import AttemptStatus, TaskStatus
from sellerwatch.ports.store import Store, Usage

MINI_SHOP, DETAIL, OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION
DAY = 86400
TODAY = date(2026, 3, 2)


async def rows_of(database: Database, table: str, *names: str) -> list[tuple[Any, ...]]:
    found = tables.metadata.tables[table]
    statement = select(*(found.c[name] for name in names)).order_by(*found.primary_key.columns)
    return await database.read(lambda connection: [tuple(row) for row in connection.execute(statement)])


async def prune(store: Store, what: str, before: datetime, count: int = 100) -> int:
    return await store.transact(lambda unit: unit.chores.prune(what, before, count))


# usage and drift


async def test_each_request_is_a_row_of_the_usage_log(store: Store, database: Database) -> None:
    fine = Usage(1, "https://shop.test/a", NOON, an_id("task"), 200, 120, is_success=True)
    limited = Usage(2, "https://shop.test/" + "b" * 2000, at(1), None, 429, 30, error_message="e" * 5000)
    await store.transact(lambda unit: unit.chores.log_usage([fine, limited]))
    names = ("agent_id", "task_id", "request_url", "http_method", "http_status_code", "response_time_ms")
    assert await rows_of(database, "token_usage_log", *names) == [
        (1, an_id("task"), "https://shop.test/a", "GET", 200, 120),
        (2, None, limited.request_url[:1000], "GET", 429, 30),
    ]
    flags = ("is_success", "is_rate_limited", "is_429_error", "error_message", "request_timestamp")
    assert await rows_of(database, "token_usage_log", *flags) == [
        (True, False, False, None, NOON),
        (False, True, True, "e" * 2048, at(1)),
    ]


async def test_drift_is_counted_by_day(store: Store, database: Database) -> None:
    rows = [
        (DETAIL, "stock", "missing", "1000"),
        (DETAIL, "stock", "missing", "1001"),
        (OPTION, "colour", "unknown", "x" * 900),
    ]
    await store.transact(lambda unit: unit.chores.note_drift(rows, NOON))
    await store.transact(lambda unit: unit.chores.note_drift(rows[:1], at(60)))
    await store.transact(lambda unit: unit.chores.note_drift(rows[:1], at(DAY)))
    names = ("data_type", "field", "problem", "day", "times", "sample", "last_seen_at")
    assert await rows_of(database, "field_drift", *names) == [
        ("DETAIL", "stock", "missing", TODAY, 3, "1000", at(60)),
        ("DETAIL", "stock", "missing", TODAY + timedelta(days=1), 1, "1000", at(DAY)),
        ("OPTION", "colour", "unknown", TODAY, 1, "x" * 500, NOON),
    ]


async def test_new_names_are_those_of_today_that_no_earlier_day_had(store: Store) -> None:
    def seen(unit: Any) -> None:
        unit.chores.note_drift([(DETAIL, "old", "unknown", "1")], at(-DAY))
        for name, problem, times in (("old", "unknown", 3), ("new", "unknown", 2), ("rare", "unknown", 1)):
            unit.chores.note_drift([(DETAIL, name, problem, "1")] * times, NOON)
        unit.chores.note_drift([(DETAIL, "stock", "missing", "1"), (OPTION, "else", "unknown", "1")] * 2, NOON)

    await store.transact(seen)
    assert await store.read(lambda unit: unit.chores.new_names(DETAIL, 2, at(60))) == ["new"]
    assert await store.read(lambda unit: unit.chores.new_names(DETAIL, 2, at(DAY))) == []


# alerts


async def raise_alert(store: Store, name: str = "away", text: str = "it is away", seconds: float = 0) -> None:
    await store.transact(lambda unit: unit.chores.raise_alert(name, "critical", text, {"no": [1]}, at(seconds)))


async def to_tell(store: Store, seconds: float) -> list[tuple[Any, ...]]:
    return await store.read(lambda unit: unit.chores.alerts_to_tell(at(seconds), 3600))


async def test_an_alert_is_open_since_it_was_first_raised_and_counted(store: Store, database: Database) -> None:
    await raise_alert(store)
    await raise_alert(store, text="still away", seconds=5)
    assert await to_tell(store, 9) == [("away", "critical", "still away", NOON, {"no": [1]})]
    assert await rows_of(database, "alerts", "times") == [(2,)]


async def test_an_open_alert_is_told_once_per_repeat_time(store: Store) -> None:
    await raise_alert(store)
    await raise_alert(store, "late", seconds=1)
    await store.transact(lambda unit: unit.chores.told("away", at(2)))
    assert [row[0] for row in await to_tell(store, 3601)] == ["late"]
    assert [row[0] for row in await to_tell(store, 3602)] == ["away", "late"]


async def test_a_cleared_alert_is_not_told_and_opens_anew_when_it_is_raised_again(
    store: Store, database: Database
) -> None:
    await raise_alert(store)
    await store.transact(lambda unit: unit.chores.told("away", at(1)))
    await store.transact(lambda unit: unit.chores.clear_alert("away", at(2)))
    await store.transact(lambda unit: unit.chores.clear_alert("away", at(3)))
    await store.transact(lambda unit: unit.chores.clear_alert("never raised", at(3)))
    assert await rows_of(database, "alerts", "cleared_at") == [(at(2),)]
    assert await to_tell(store, 9999) == []
    await raise_alert(store, seconds=10)
    assert await rows_of(database, "alerts", "since", "times", "cleared_at") == [(at(10), 1, None)]
    # Each name once per repeat time, however often it comes and goes.
    assert await to_tell(store, 20) == []
    assert len(await to_tell(store, 3601)) == 1


# processes and sweeps


async def test_a_process_shows_life_until_it_leaves(store: Store, database: Database) -> None:
    for seconds in (0, 9):
        await store.transact(
            lambda unit, s=seconds: unit.chores.show_life("w-1", "worker", "h" * 300, 7, "0.1", at(s))  # type: ignore[misc]
        )
    names = ("owner", "role", "host", "pid", "version", "started_at", "seen_at")
    assert await rows_of(database, "processes", *names) == [("w-1", "worker", "h" * 255, 7, "0.1", NOON, at(9))]
    await store.transact(lambda unit: unit.chores.leave("w-1"))
    assert await rows_of(database, "processes", "owner") == []


async def test_the_last_run_of_a_sweep_is_noted(store: Store, database: Database) -> None:
    await store.transact(lambda unit: unit.chores.note_sweeps([("zombies", 3, "e" * 3000, NOON)]))
    await store.transact(lambda unit: unit.chores.note_sweeps([("zombies", 0, None, at(9))]))
    assert await rows_of(database, "sweeps", "name", "last_run_at", "last_found", "last_error") == [
        ("zombies", at(9), 0, None)
    ]


# figures


def a_product(item_no: int, seller_id: str, *, complete: bool = True) -> Product:
    product = Product.discover(item_no, seller_id, NOON)
    kinds = DocumentKind if complete else [MINI_SHOP]
    product.seen = {kind: Seen("d", "r", NOON) for kind in kinds}
    return product


async def figures(store: Store, day: date = TODAY) -> int:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return await store.transact(lambda unit: unit.chores.write_daily_figures(day, start, start + timedelta(days=1)))


async def test_daily_figures_are_of_the_tasks_created_that_day_and_the_products_complete(
    store: Store, database: Database
) -> None:
    one, two, removed = an_execution("one"), an_execution("two"), an_execution("removed")
    states = [*[TaskStatus.SUCCESS] * 3, TaskStatus.FAILED, TaskStatus.RETRY, TaskStatus.WAITING]
    tasks = [a_task(item, state=state, execution=one) for item, state in enumerate(states, 1)]
    tasks.append(a_task(1, state=TaskStatus.SUCCESS, execution=removed))
    tasks += [a_task(20 + place, execution=one, at=at(days * DAY)) for place, days in enumerate((-1, 1))]

    def work(unit: Any) -> None:
        unit.sellers.add(a_seller("one"))
        seller = a_seller("two")
        unit.sellers.add(seller)
        seller.record_product_count(8, NOON)
        unit.sellers.save(seller)
        unit.tasks.add(tasks)
        gone = a_product(4, "two")
        gone.status = ProductStatus.DELISTED
        unit.products.save([a_product(1, "two"), a_product(2, "two"), a_product(3, "two", complete=False), gone])

    await store.transact(work)
    assert two.seller_id == "two"
    assert not await store.read(lambda unit: unit.chores.figured_days(TODAY))
    expected = [
        ("", 57.14, 25.0, 7, 4, 1, 2),
        ("one", 50.0, 0.0, 6, 3, 1, 2),
        ("two", 0.0, 25.0, 0, 0, 0, 0),
    ]
    names = ("seller_id", "success_rate", "progress_rate", "total", "completed", "failed", "in_progress")
    for _ in range(2):
        assert await figures(store) == 3
        assert await rows_of(database, "crawling_metrics_daily", *names) == expected
    assert ALL_SELLERS == ""
    assert await store.read(lambda unit: unit.chores.figured_days(TODAY))
    assert not await store.read(lambda unit: unit.chores.figured_days(TODAY + timedelta(days=1)))


async def test_a_day_is_unsettled_while_tasks_of_its_figures_were_open(store: Store) -> None:
    async def unsettled(since: date) -> list[date]:
        return await store.read(lambda unit: unit.chores.unsettled_days(since))

    task = a_task(1, state=TaskStatus.WAITING)
    await store.transact(lambda unit: unit.tasks.add([task]))
    await figures(store)
    assert await unsettled(TODAY) == [TODAY]
    assert await unsettled(TODAY + timedelta(days=1)) == []
    task.cancel("cancelled", at(9))
    await store.transact(lambda unit: unit.tasks.save([task]))
    await figures(store)
    assert await unsettled(TODAY) == []


async def test_a_day_without_anything_is_figured_too(store: Store) -> None:
    assert await figures(store) == 1
    assert await store.read(lambda unit: unit.chores.figured_days(TODAY))


# forgetting


async def test_what_no_one_knows_is_not_pruned(store: Store) -> None:
    with pytest.raises(Unknown, match="sellers"):
        await prune(store, "sellers", NOON)


async def test_attempts_that_ended_are_forgotten_in_batches(store: Store, database: Database) -> None:
    attempts = []
    for place, status in enumerate([*[AttemptStatus.SUCCESS] * 3, AttemptStatus.FAILED, AttemptStatus.RUNNING]):
        task = a_task(place + 1)
        attempts.append(an_attempt(task, status=status, started_at=at(place - 10)))
    young = an_attempt(a_task(99), status=AttemptStatus.SUCCESS, started_at=NOON)
    await store.transact(lambda unit: unit.attempts.add([*attempts, young]))
    assert [await prune(store, "attempts", NOON, 3) for _ in range(3)] == [3, 1, 0]
    kept = {row[0] for row in await rows_of(database, "crawl_executions", "attempt_id")}
    assert kept == {attempts[-1].attempt_id, young.attempt_id}


async def test_tasks_and_their_outbox_rows_are_forgotten_when_their_execution_has_ended(
    store: Store, database: Database
) -> None:
    ended, going_on = an_execution("one", status=ExecutionStatus.COMPLETED), an_execution("two")
    old = [a_task(item, state=TaskStatus.SUCCESS, execution=ended) for item in (1, 2)]
    young = a_task(3, state=TaskStatus.SUCCESS, execution=ended, at=at(DAY))
    needed = a_task(4, state=TaskStatus.SUCCESS, execution=going_on)

    def work(unit: Any) -> None:
        for execution in (ended, going_on):
            unit.executions.add(execution)
        unit.tasks.add([*old, young, needed])
        for task in (*old, needed):
            unit.publications.add([a_publication(task, status=TaskOutboxStatus.SENT)])
        unit.publications.add([a_publication(young, at=at(DAY), status=TaskOutboxStatus.SENT)])

    await store.transact(work)
    assert [await prune(store, "task_outbox", at(60), 1) for _ in range(3)] == [1, 1, 0]
    left = {row[0] for row in await rows_of(database, "crawler_task_outbox", "task_id")}
    assert left == {young.task_id, needed.task_id}
    assert [await prune(store, "tasks", at(60)) for _ in range(2)] == [2, 0]
    assert {row[0] for row in await rows_of(database, "crawler_tasks", "task_id")} == left


async def test_outbox_rows_of_tasks_that_are_gone_are_forgotten(store: Store) -> None:
    await store.transact(lambda unit: unit.publications.add([a_publication(a_task(1), status=TaskOutboxStatus.FAILED)]))
    assert await prune(store, "task_outbox", at(60)) == 1


async def test_events_that_were_sent_are_forgotten_and_no_others(store: Store, database: Database) -> None:
    def event(place: int, status: OutboxStatus, created_at: datetime) -> ProductEvent:
        outbox_id, product_id = an_id(f"event/{place}"), an_id(f"product/{place}")
        return ProductEvent(outbox_id, {}, created_at, status, 0, NOON, None, None, product_id, EventType.UPDATED, 1)

    events = [event(place, status, at(-5)) for place, status in enumerate(OutboxStatus)]
    events.append(event(9, OutboxStatus.COMPLETED, NOON))
    await store.transact(lambda unit: unit.events.add(events))
    assert await prune(store, "product_outbox", NOON) == 1
    left = [row[0] for row in await rows_of(database, "product_outbox", "status")]
    assert sorted(left) == ["COMPLETED", "FAILED", "HELD", "SENDING", "WAITING"]


def some_raws(item_no: int, ages: Sequence[float], status: RawStatus = RawStatus.PROCESSED) -> list[Raw]:
    """Of one item, each with content of its own, as old as this in days."""
    raws = []
    for age in ages:
        body = f"{item_no}/{age}".encode()
        digest = content_hash(body)
        when = at(-age * DAY)
        raw = Raw(
            raw_id(item_no, DETAIL, digest), item_no, "s", an_id("t"), an_id("e"), DETAIL, body, digest, when, when
        )
        raw.status = status
        raws.append(raw)
    return raws


async def keep_raws(store: Store, raws: Sequence[Raw]) -> None:
    def work(unit: Any) -> None:
        unit.raws.put(raws)
        for raw in raws:
            if raw.status is RawStatus.PROCESSED:
                raw.product_id = an_id(f"product/{raw.item_no}")
        unit.raws.save(raws)

    await store.transact(work)


async def test_old_raws_are_forgotten_but_never_the_newest_of_an_item_and_kind(
    store: Store, database: Database
) -> None:
    unchanged, changed, fresh = some_raws(1, [300]), some_raws(2, [300, 200, 100]), some_raws(3, [300, 1])
    waiting = some_raws(4, [300, 299], RawStatus.PENDING)
    await keep_raws(store, [*unchanged, *changed, *fresh, *waiting])
    before = at(-90 * DAY)
    assert [await prune(store, "raws", before, 2) for _ in range(3)] == [2, 1, 0]
    left = {row[0] for row in await rows_of(database, "product_raw_data", "raw_id")}
    assert left == {raw.raw_id for raw in [*unchanged, changed[2], fresh[1], *waiting]}


async def test_old_raws_that_came_to_nothing_are_forgotten_once_a_newer_one_was_understood(
    store: Store, database: Database
) -> None:
    failed, [understood] = some_raws(1, [400, 300], RawStatus.FAILED), some_raws(1, [200])
    alone, of_no_item = some_raws(2, [300], RawStatus.FAILED), some_raws(0, [300], RawStatus.FAILED)
    [applied], [skipped, skipped_again] = some_raws(3, [300]), some_raws(3, [250, 200])
    await keep_raws(store, [*failed, understood, *alone, *of_no_item, applied, skipped, skipped_again])
    await store.transact(lambda unit: unit.raws.save([_unowned(skipped), _unowned(skipped_again)]))
    for expected in (4, 0):
        assert await prune(store, "raws", at(-90 * DAY), 100) == expected
    left = {row[0] for row in await rows_of(database, "product_raw_data", "raw_id")}
    assert left == {raw.raw_id for raw in (understood, *alone, applied, skipped_again)}


def _unowned(raw: Raw) -> Raw:
    raw.product_id = None
    return raw


async def test_tokens_that_were_replaced_are_forgotten_when_they_are_no_good_any_more(
    store: Store, database: Database
) -> None:
    def token(name: str, hours: float) -> SealedToken:
        sealed = f"v1.k1.{b64encode(name.encode() * 40).decode()}"
        return SealedToken(sealed, f"{name:0>64}", NOON, at(hours * 3600))

    async def keep(kept: SealedToken) -> None:
        await store.transact(lambda unit: unit.identities.keep_token(1, kept, NOON))

    for name, hours in (("a", 1), ("b", 30), ("c", 1)):
        await keep(token(name, hours))
    assert [await prune(store, "tokens", at(2 * 3600)) for _ in range(2)] == [1, 0]
    left = await rows_of(database, "user_agent_token", "token_fingerprint")
    assert sorted(row[0][-1] for row in left) == ["b", "c"]
    assert [await prune(store, "refreshes", at(2 * 3600)) for _ in range(2)] == [2, 0]
    assert await rows_of(database, "token_refresh_schedule", "is_enabled") == [(True,)]


async def test_a_raw_that_was_needed_is_looked_at_again_a_month_later(store: Store) -> None:
    raws = some_raws(1, [300])
    await keep_raws(store, raws)
    assert await prune(store, "raws", at(-90 * DAY)) == 0
    await keep_raws(store, some_raws(1, [80]))
    assert await prune(store, "raws", at(-70 * DAY)) == 0
    assert await prune(store, "raws", at(-59 * DAY)) == 1


async def test_usage_breaker_events_and_processes_are_forgotten_by_age(store: Store, database: Database) -> None:
    def work(unit: Any) -> None:
        for seconds in (-2, -1, 0, 1):
            when = at(seconds)
            unit.chores.log_usage([Usage(1, "u", when, is_success=seconds % 2 == 0)])
            unit.chores.show_life(f"w{seconds}", "worker", "h", 1, "0", when)
            change = Transition(BreakerScope.SITE, None, BreakerState.CLOSED, BreakerState.OPEN, 1, when, "r")
            unit.breakers.record([change])

    await store.transact(work)
    for what in ("usage", "breaker_events", "processes"):
        assert [await prune(store, what, NOON, 1) for _ in range(3)] == [1, 1, 0]
    assert len(await rows_of(database, "token_usage_log", "log_id")) == 2
    assert [row[0] for row in await rows_of(database, "processes", "seen_at")] in ([NOON, at(1)], [at(1), NOON])


async def test_messages_that_were_acked_are_forgotten_dead_letters_stay(store: Store, database: Database) -> None:
    def message(place: int, state: str, done_at: datetime | None) -> dict[str, Any]:
        about = {"queue": "q", "message_group": "g", "dedup_id": str(place), "body": "{}", "attributes": "{}"}
        return about | {"state": state, "visible_at": NOON, "sent_at": NOON, "done_at": done_at}

    rows = [
        message(1, "DONE", at(-9)),
        message(2, "DONE", at(9)),
        message(3, "DEAD", at(-9)),
        message(4, "READY", None),
    ]
    await database.write(lambda connection: connection.execute(insert(tables.queue_messages), rows))
    assert await prune(store, "queue", NOON) == 1
    assert [row[0] for row in await rows_of(database, "queue_messages", "dedup_id")] == ["2", "3", "4"]


async def test_nothing_large_is_scanned_to_find_what_may_be_forgotten_or_figured(sqlite: Database) -> None:
    store = SqlStore(sqlite)
    said: list[str] = []
    driver: Any = await sqlite.write(lambda connection: connection.connection.driver_connection)
    driver.set_trace_callback(said.append)
    for what in (*_KINDS, "raws"):
        await prune(store, what, NOON)
    await figures(store)
    driver.set_trace_callback(None)
    asked = [sql for sql in said if sql.startswith("SELECT")]
    steps = [row[3] for sql in asked for row in driver.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert len(asked) > 20
    # The oldest rows of the outbox, in the order they were written; small tables; each seller.
    few = {"crawler_task_outbox", "processes", "queue_messages", "sellers", "anon_1"}
    assert [step for step in steps if step.startswith("SCAN") and step.split()[1] not in few] == []


async def test_schedule_notices_that_were_sent_are_forgotten(store: Store, database: Database) -> None:
    rows = [
        {
            "outbox_id": an_id(place),
            "schedule_id": an_id("s"),
            "event_type": "SCHEDULE_CREATED",
            "payload": "{}",
            "status": status,
            "next_attempt_at": NOON,
            "created_at": NOON,
        }
        for place, status in enumerate(("WAITING", "COMPLETED"))
    ]
    await database.write(lambda connection: connection.execute(insert(tables.scheduler_outbox), rows))
    assert await prune(store, "scheduler_outbox", at(1)) == 1


async def test_the_last_moment_at_which_nothing_could_be_received_is_known_to_all(store: Store) -> None:
    assert await store.read(lambda unit: unit.chores.paused_at()) is None
    await store.transact(lambda unit: unit.chores.note_pause("no identity free: EMPTY", at(1)))
    await store.transact(lambda unit: unit.chores.note_pause("robots.txt can't be had: " + "x" * 900, at(7)))
    assert await store.read(lambda unit: unit.chores.paused_at()) == at(7)
