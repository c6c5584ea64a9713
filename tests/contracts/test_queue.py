"""The promises of ports/queue.py, sentence by sentence, on every engine that claims to keep them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest

import servers
from contracts import aws_world
from contracts.engines import ENGINES
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.queue import SqlQueue
from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.queue import Outgoing

VISIBILITY = 30
MAX_RECEIVES = 3


class TestClock:
    """Waiting moves it along; what is due by then happens first."""

    __test__ = False

    def __init__(self) -> None:
        self.seconds = 0.0
        self.due: list[tuple[float, Callable]] = []
        self.waits = 0

    def now(self) -> datetime:
        return datetime(2026, 11, 18, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await self._pass(seconds, lambda: False)

    async def within(self, seconds, awaitable):
        waiting = asyncio.ensure_future(awaitable)
        await asyncio.wait({waiting}, timeout=0)
        await self._pass(seconds, waiting.done)
        if not waiting.done():
            waiting.cancel()
            raise TimeoutError
        return waiting.result()

    async def _pass(self, seconds, is_over) -> None:
        self.waits += 1
        end = self.seconds + seconds
        while not is_over() and self.due and self.due[0][0] <= end:
            moment, happen = self.due.pop(0)
            self.seconds = moment
            await happen()
            await asyncio.wait({asyncio.ensure_future(self._nothing())})
        self.seconds = self.seconds if is_over() else end

    async def _nothing(self) -> None: ...


class AwsClock(TestClock):
    """The stand-in's clock goes along."""

    __test__ = False

    def __init__(self, aws: servers.Aws) -> None:
        self._aws = aws
        super().__init__()

    @property
    def seconds(self) -> float:
        return self._seconds

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        self._aws.advance(seconds - getattr(self, "_seconds", 0.0))
        self._seconds = seconds


@pytest.fixture(params=[*ENGINES, "sqs"])
def kind(request) -> str:
    return request.param


only_database = pytest.mark.parametrize("kind", ENGINES, indirect=True)
only_sqs = pytest.mark.parametrize("kind", ["sqs"], indirect=True)


@pytest.fixture
def clock(request, kind) -> TestClock:
    return AwsClock(request.getfixturevalue("aws_server")) if kind == "sqs" else TestClock()


@pytest.fixture
async def queues(request, kind, clock) -> AsyncIterator[Callable]:
    """Opens a queue; opened twice under one name, it is one queue seen by two processes."""
    if kind == "sqs":
        async with aws_world.queues(request.getfixturevalue("aws_server"), clock, VISIBILITY, MAX_RECEIVES) as opened:
            yield opened
        return
    database = request.getfixturevalue(kind)
    seeds = iter(range(1000))

    async def opened(name="tasks", **options) -> SqlQueue:
        return SqlQueue(database, clock, SeededChance(next(seeds)), name, VISIBILITY, MAX_RECEIVES, **options)

    opened.database = database
    yield opened


@pytest.fixture
async def queue(queues):
    return await queues()


def message(task="1", group="dmont", publication=1, **attributes) -> Outgoing:
    return Outgoing({"taskId": task}, group, f"outbox-{task}-{publication}", attributes)


def tasks(deliveries) -> list[str]:
    return [delivery.body["taskId"] for delivery in deliveries]


async def bodies(queue, count=10) -> list[str]:
    return tasks(await queue.receive(count, 0))


async def die(queue, task="1", group="dmont") -> str:
    """Send a message and bury it; its letter."""
    await queue.send([message(task, group)])
    await queue.bury((await queue.receive(1, 0))[0].receipt, "it is poison")
    return next(letter.letter_id for letter in await queue.dead_letters(100) if letter.task_id == task)


# send


async def test_what_is_sent_is_received_as_it_was(queue):
    sent = Outgoing({"taskId": "1", "sellerId": "가게 “quoted”"}, "dmont", "outbox-1-1", {"traceparent": "00-ab-cd-01"})
    assert await queue.send([sent]) == [None]
    [delivery] = await queue.receive(1, 0)
    assert (delivery.body, delivery.group, delivery.attributes) == (sent.body, sent.group, sent.attributes)


async def test_for_each_message_it_says_none_or_why_not(queue):
    refused = [
        Outgoing({"taskId": "1"}, "", "outbox-1-1"),
        Outgoing({"taskId": "1"}, "dmont", "d" * 129),
        Outgoing({"taskId": "x" * 300_000}, "dmont", "outbox-2-1"),
        Outgoing({"taskId": object()}, "dmont", "outbox-3-1"),
    ]
    said = await queue.send([message("1", "a"), *refused, message("5", "b")])
    assert [why is None for why in said] == [True, False, False, False, False, True]
    assert await bodies(queue) == ["1", "5"]


async def test_a_dedup_id_accepted_within_five_minutes_is_accepted_again_and_delivers_nothing(queue, clock):
    assert await queue.send([message("1")]) == [None]
    assert await queue.send([message("1")]) == [None]
    [delivery] = await queue.receive(10, 0)
    await queue.ack([delivery.receipt])
    clock.seconds += 299
    assert await queue.send([message("1")]) == [None]
    assert await queue.receive(10, 0) == []


async def test_a_dedup_id_is_known_in_its_own_queue_only_and_twice_in_one_batch_is_once(queues):
    first, second = await queues("first"), await queues("second")
    assert await first.send([message("1"), message("1")]) == [None, None]
    assert await second.send([message("1")]) == [None]
    assert await bodies(first) == ["1"]
    assert await bodies(second) == ["1"]


@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("end", ["ack", "bury"])
async def test_after_five_minutes_a_dedup_id_delivers_again(queue, kind, clock, end, pruned):
    await queue.send([message("1")])
    [delivery] = await queue.receive(1, 0)
    await (queue.ack([delivery.receipt]) if end == "ack" else queue.bury(delivery.receipt, "poison"))
    clock.seconds += 301
    if pruned and kind != "sqs":
        await queue.prune()
    assert await queue.send([message("1")]) == [None]
    assert await bodies(queue) == ["1"]
    assert len(await queue.dead_letters(9)) == (end == "bury")


@only_database
async def test_unavailable_when_the_outcome_is_not_known(queues):
    queue = await queues()
    with queues.database.engine.connect() as other:
        # On SQLite whoever begins to write holds it all.
        other.exec_driver_sql("SELECT 1" if queues.database.dialect == "sqlite" else "LOCK TABLES queue_messages WRITE")
        with pytest.raises(Unavailable):
            await queue.send([message("1")])
        other.invalidate()
    assert await queue.send([message("1")]) == [None]


# order and groups


async def test_within_a_group_the_order_is_that_of_sending_one_after_the_other(queue):
    await queue.send([message("1"), message("2")])
    await queue.send([message("3")])
    seen = []
    while got := await queue.receive(10, 0):
        assert len(got) == 1
        seen += tasks(got)
        await queue.ack([got[0].receipt])
    assert seen == ["1", "2", "3"]


async def test_a_message_is_not_received_while_an_earlier_one_of_its_group_is_out(queue, clock):
    await queue.send([message("1"), message("2")])
    assert await bodies(queue) == ["1"]
    assert await bodies(queue) == []
    clock.seconds += VISIBILITY + 1
    assert await bodies(queue) == ["1"]


async def test_a_message_is_not_received_while_an_earlier_one_of_its_group_waits_for_its_next_delivery(queue, clock):
    await queue.send([message("1"), message("2")])
    [first] = await queue.receive(10, 0)
    await queue.nack(first.receipt, 60)
    clock.seconds += 59
    assert await bodies(queue) == []
    clock.seconds += 2
    assert await bodies(queue) == ["1"]


async def test_groups_do_not_wait_for_each_other(queue):
    await queue.send([message("1", "a"), message("2", "a"), message("3", "b"), message("4", "c")])
    assert await bodies(queue, 2) == ["1", "3"]
    assert await bodies(queue) == ["4"]


async def test_two_receivers_never_hold_two_messages_of_one_group(queues):
    first, second = await queues(), await queues()
    await first.send([message(str(number), f"group-{number % 7}") for number in range(70)])
    held: dict[str, tuple] = {}
    done: list[str] = []
    for turn in range(200):
        receiver = (first, second)[turn % 2]
        for delivery in await receiver.receive(3, 0):
            assert delivery.group not in held
            held[delivery.group] = (receiver, delivery.receipt)
            done += tasks([delivery])
        if turn % 3 == 0 and held:
            holder, receipt = held.pop(next(iter(held)))
            await holder.ack([receipt])
    assert sorted(map(int, done)) == list(range(70))
    for group in range(7):
        assert [int(task) for task in done if int(task) % 7 == group] == list(range(group, 70, 7))


@only_database
async def test_receivers_on_threads_of_their_own_race_and_nothing_is_held_twice(request, kind, clock):
    address = request.getfixturevalue(kind).engine.url.render_as_string(hide_password=False)
    databases = [Database(engine(address)) for _ in range(3)]
    racers = [SqlQueue(each, clock, SeededChance(n), "tasks", VISIBILITY, 3) for n, each in enumerate(databases)]
    await racers[0].send([message(str(number), f"group-{number % 5}") for number in range(60)])
    held: set[str] = set()
    done: list[int] = []

    async def race(queue) -> None:
        while len(done) < 60:
            for delivery in await queue.receive(2, 0):
                assert delivery.group not in held
                held.add(delivery.group)
                done.append(int(delivery.body["taskId"]))
                await queue.depth()
                held.remove(delivery.group)
                await queue.ack([delivery.receipt])

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, race(racer)) for racer in racers))
    for each in databases:
        each.close()
    assert sorted(done) == list(range(60))
    for group in range(5):
        assert [number for number in done if number % 5 == group] == list(range(group, 60, 5))


# receive


async def test_up_to_count_are_received(queue):
    await queue.send([message(str(number), str(number)) for number in range(5)])
    assert await bodies(queue, 0) == []
    assert len(await bodies(queue, 3)) == 3
    assert len(await bodies(queue, 3)) == 2


@only_database
async def test_it_waits_at_most_so_long(queue, clock):
    assert await queue.receive(1, 0) == []
    assert clock.seconds == 0
    assert await queue.receive(1, 7) == []
    assert clock.seconds == pytest.approx(7)
    assert clock.waits < 20


@only_database
async def test_it_receives_as_soon_as_there_is_one(queue, clock):
    clock.due.append((5.0, lambda: queue.send([message("1")])))
    assert tasks(await queue.receive(1, 20)) == ["1"]
    assert 5 <= clock.seconds <= 6


@only_database
async def test_what_comes_back_by_itself_is_received_at_that_moment(queues, clock):
    queue = await queues(poll_seconds=60)
    await queue.send([message("1")])
    [delivery] = await queue.receive(1, 0)
    await queue.nack(delivery.receipt, 12.5)
    assert tasks(await queue.receive(1, 100)) == ["1"]
    assert clock.seconds == pytest.approx(12.5)


@only_database
async def test_the_bell_wakes_a_receiver(queues, clock):
    queue = await queues(bell=AsyncBell(clock), poll_seconds=60)
    clock.due.append((5.0, lambda: queue.send([message("1", "other")])))
    assert tasks(await queue.receive(1, 100)) == ["1"]
    assert clock.seconds == 5
    # And an acknowledged message wakes for the next of its group.
    await queue.send([message("2"), message("3")])
    [first] = await queue.receive(1, 0)
    clock.due.append((9.0, lambda: queue.ack([first.receipt])))
    assert tasks(await queue.receive(1, 100)) == ["3"]
    assert clock.seconds == 9


async def test_each_receive_counts_one(queue, clock):
    await queue.send([message("1")])
    for count in range(1, MAX_RECEIVES + 1):
        [delivery] = await queue.receive(1, 0)
        assert delivery.receives == count
        clock.seconds += VISIBILITY


async def test_a_message_that_was_received_max_receives_times_already_is_a_dead_letter_instead(queue, clock):
    await queue.send([message("1"), message("2")])
    for _ in range(MAX_RECEIVES):
        assert await bodies(queue) == ["1"]
        clock.seconds += VISIBILITY
    assert await bodies(queue) == ["2"]
    [letter] = await queue.dead_letters(10)
    assert (letter.task_id, letter.receives) == ("1", MAX_RECEIVES)
    assert "received 3 times" in letter.error


@only_database
@pytest.mark.parametrize("body", ["", "{", "[1]", '"text"', "null", "12", '{"a": NaN}'])
async def test_a_body_that_is_no_json_object_is_a_dead_letter_at_once(queues, body):
    queue = await queues()
    await queue.send([message("1"), message("2")])

    def spoil(connection):
        connection.execute(
            tables.queue_messages.update().where(tables.queue_messages.c.dedup_id == "outbox-1-1").values(body=body)
        )

    await queues.database.write(spoil)
    assert await bodies(queue) == ["2"]
    [letter] = await queue.dead_letters(10)
    assert (letter.body, letter.receives, letter.task_id) == (body, 0, None)
    assert "JSON" in letter.error


async def test_it_is_out_until_its_visibility_ends(queue, clock):
    await queue.send([message("1")])
    assert await bodies(queue) == ["1"]
    clock.seconds += VISIBILITY - 1
    assert await bodies(queue) == []
    clock.seconds += 1
    assert await bodies(queue) == ["1"]


# ack, nack, give_back, extend, bury


async def test_what_is_acked_is_done(queue, clock):
    await queue.send([message("1", "a"), message("2", "b")])
    await queue.ack([delivery.receipt for delivery in await queue.receive(10, 0)])
    clock.seconds += 10 * VISIBILITY
    assert await bodies(queue) == []


VERBS = {
    "ack": lambda queue, receipt: queue.ack([receipt]),
    "nack": lambda queue, receipt: queue.nack(receipt, 0),
    "give_back": lambda queue, receipt: queue.give_back([receipt]),
    "extend": lambda queue, receipt: queue.extend([receipt], 1000),
    "bury": lambda queue, receipt: queue.bury(receipt, "late"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("receipt", ["", "1", "1.", ".x", "nonsense", "1.nonsense", "9" * 5000, "-1.x", "१.x", "1e3.x"])
async def test_an_unknown_receipt_changes_nothing(queue, verb, receipt):
    await queue.send([message("1")])
    [delivery] = await queue.receive(1, 0)
    await VERBS[verb](queue, receipt)
    depth = await queue.depth()
    assert (depth.waiting, depth.out, depth.dead) == (0, 1, 0)
    await queue.ack([delivery.receipt])
    assert (await queue.depth()).out == 0


@pytest.mark.parametrize("verb", VERBS)
async def test_a_receipt_whose_visibility_has_ended_changes_nothing(queue, clock, verb):
    await queue.send([message("1")])
    [late] = await queue.receive(1, 0)
    clock.seconds += VISIBILITY
    await VERBS[verb](queue, late.receipt)
    assert (await queue.depth()).waiting == 1
    [delivery] = await queue.receive(1, 0)
    await VERBS[verb](queue, late.receipt)
    assert (await queue.depth()).out == 1
    await queue.ack([delivery.receipt])
    await VERBS[verb](queue, delivery.receipt)
    clock.seconds += 2000
    assert await bodies(queue) == []
    assert (await queue.depth()).dead == 0


async def test_nack_makes_it_visible_again_after_the_delay_and_the_receive_stays_counted(queue, clock):
    await queue.send([message("1")])
    [delivery] = await queue.receive(1, 0)
    await queue.nack(delivery.receipt, 10)
    clock.seconds += 9
    assert await bodies(queue) == []
    clock.seconds += 1
    [again] = await queue.receive(1, 0)
    assert again.receives == 2


@only_database
async def test_give_back_makes_it_visible_at_once_and_the_receive_is_not_counted(queue):
    await queue.send([message("1", "a"), message("2", "b")])
    for _ in range(MAX_RECEIVES + 2):
        [first] = await queue.receive(1, 0)
        assert (first.body["taskId"], first.receives) == ("1", 1)
        await queue.give_back([first.receipt])


async def test_extend_keeps_it_out_for_so_long_from_now(queue, clock):
    await queue.send([message("1")])
    [delivery] = await queue.receive(1, 0)
    clock.seconds += 20
    await queue.extend([delivery.receipt], VISIBILITY)
    clock.seconds += 29
    assert await bodies(queue) == []
    await queue.ack([delivery.receipt])
    clock.seconds += 60
    assert await bodies(queue) == []


async def test_bury_puts_it_into_the_dead_letters_with_why_and_frees_its_group(queue):
    await queue.send([message("1"), message("2")])
    [delivery] = await queue.receive(1, 0)
    await queue.bury(delivery.receipt, "no such field: taskType" + "!" * 5000)
    [letter] = await queue.dead_letters(10)
    assert letter.error.startswith("no such field: taskType")
    assert (letter.task_id, letter.group, letter.receives) == ("1", "dmont", 1)
    assert await bodies(queue) == ["2"]


# what there is


async def test_depth_tells_what_waits_is_out_and_is_dead_and_the_age_of_the_oldest(queue, kind, clock):
    assert (await queue.depth()).oldest_seconds == 0
    await die(queue, "0")
    await queue.send([message("1", "a"), message("2", "b"), message("3", "c")])
    clock.seconds += 40
    await queue.send([message("4", "d")])
    await queue.receive(1, 0)
    depth = await queue.depth()
    assert (depth.waiting, depth.out, depth.dead) == (3, 1, 1)
    assert depth.oldest_seconds == (0 if kind == "sqs" else 40)


@only_database
async def test_missing_are_the_tasks_that_have_no_message_waiting_or_out(queue):
    await queue.send([message(task, task) for task in ("done", "out", "waiting", "dead", "waiting-too")])
    by_task = {delivery.body["taskId"]: delivery.receipt for delivery in await queue.receive(10, 0)}
    await queue.ack([by_task["done"]])
    await queue.bury(by_task["dead"], "poison")
    await queue.give_back([by_task["waiting"], by_task["waiting-too"]])
    assert await queue.missing(["done", "out", "waiting", "dead", "never", "wait"]) == ["done", "dead", "never", "wait"]


async def test_dead_letters_are_listed_oldest_first_up_to_count(queue, clock):
    for task in ("1", "2", "3"):
        await die(queue, task)
        clock.seconds += 1
    assert [letter.task_id for letter in await queue.dead_letters(2)] == ["1", "2"]
    moments = [letter.sent_at for letter in await queue.dead_letters(9)]
    assert [round((at - moments[0]).total_seconds()) for at in moments] == [0, 1, 2]


async def test_redrive_puts_them_back_as_new_messages(queue, clock):
    letter = await die(queue, "1")
    clock.seconds += 1
    await queue.send([message("2")])
    assert await queue.redrive([letter, letter, "999", "nonsense"]) == 1
    assert await queue.redrive([letter]) == 0
    [second] = await queue.receive(10, 0)
    assert second.body["taskId"] == "2"
    await queue.ack([second.receipt])
    [again] = await queue.receive(10, 0)
    assert (again.body["taskId"], again.receives) == ("1", 1)
    assert (await queue.depth()).dead == 0


async def test_what_was_redriven_can_die_and_be_redriven_again(queue):
    await die(queue, "1")
    for _ in range(3):
        [letter] = await queue.dead_letters(9)
        assert await queue.redrive([letter.letter_id]) == 1
        [delivery] = await queue.receive(1, 0)
        await queue.bury(delivery.receipt, "again")
    assert (await queue.depth()).dead == 1


async def test_dropped_dead_letters_are_forgotten_and_nothing_else_is(queue):
    letter = await die(queue, "1")
    await die(queue, "2")
    await queue.send([message("3")])
    alive = (await queue.receive(1, 0))[0].receipt.partition(".")[0]
    assert await queue.drop_dead([letter, alive]) == 1
    assert [letter.task_id for letter in await queue.dead_letters(9)] == ["2"]
    assert (await queue.depth()).out == 1


async def test_queues_of_other_names_are_not_seen(queues):
    mine, other = await queues("mine"), await queues("other")
    letter = await die(mine, "1")
    await mine.send([message("2")])
    assert await bodies(other) == []
    assert await other.dead_letters(9) == []
    assert await other.redrive([letter]) == await other.drop_dead([letter]) == 0


@only_database
async def test_prune_forgets_only_what_was_done_long_ago(queue, clock):
    await die(queue, "dead")
    await queue.send([message(str(number), str(number)) for number in range(2500)])
    await queue.ack([delivery.receipt for delivery in await queue.receive(2400, 0)])
    clock.seconds += 299
    assert await queue.prune() == 0
    clock.seconds += 2
    assert await queue.prune() == 2400
    depth = await queue.depth()
    assert (depth.waiting + depth.out, depth.dead) == (100, 1)


# where the engine can't


@only_sqs
async def test_where_the_engine_cannot_tell_all_tasks_are_missing(queue):
    await queue.send([message("waiting")])
    assert await queue.missing(["waiting", "never"]) == ["waiting", "never"]


@only_sqs
async def test_where_the_engine_counts_a_receive_that_was_given_back_the_message_is_none_the_less_delivered(queue):
    await queue.send([message("1"), message("2")])
    for _ in range(5 * MAX_RECEIVES):
        [first] = await queue.receive(1, 0)
        await queue.give_back([first.receipt])
    depth = await queue.depth()
    assert (depth.waiting, depth.out, depth.dead) == (2, 0, 0)
