"""What ports/store.py promises of raws, on every engine."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from builders import NOON, an_id, at
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.stores.raws import Raws
from sellerwatch.domain.documents import DocumentKind, content_hash
from sellerwatch.domain.raws import Raw, RawStatus, raw_id
from sellerwatch.ports.store import RawSign, Store

MINI_SHOP, DETAIL, OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION
PENDING, PROCESSED, FAILED = RawStatus.PENDING, RawStatus.PROCESSED, RawStatus.FAILED


def a_raw(
    item_no: int = 1000,
    kind: DocumentKind = DETAIL,
    body: bytes = b'{"name":"\xeb\x85\xb8"}',
    *,
    execution: object = 1,
    crawled_at: datetime = NOON,
    ripe_at: datetime = NOON,
    **other: Any,
) -> Raw:
    digest = content_hash(body)
    raw = Raw(
        raw_id(item_no, kind, digest),
        item_no,
        "shop-1",
        an_id(f"task/{execution}/{item_no}/{kind}"),
        an_id(f"execution/{execution}"),
        kind,
        body,
        digest,
        crawled_at,
        ripe_at,
    )
    for name, value in other.items():
        setattr(raw, name, value)
    return raw


async def put(store: Store, *raws: Raw) -> None:
    await store.transact(lambda unit: unit.raws.put(raws))


async def kept(store: Store, *raws: Raw) -> list[Raw]:
    found = await store.transact(lambda unit: unit.raws.lock_by_id([raw.raw_id for raw in raws]))
    by_id = {raw.raw_id: raw for raw in found}
    return [by_id[raw.raw_id] for raw in raws if raw.raw_id in by_id]


async def ripe(store: Store, seconds: float = 0, count: int = 100) -> list[Raw]:
    return await store.transact(lambda unit: unit.raws.lock_ripe(at(seconds), count))


def ids(raws: Sequence[Raw]) -> set[str]:
    return {raw.raw_id for raw in raws}


async def test_new_content_is_stored_as_it_came(store: Store) -> None:
    raws = [a_raw(1, kind, ripe_at=at(60)) for kind in DocumentKind]
    await put(store, *raws)
    assert await kept(store, *raws) == raws


async def test_a_page_of_sixteen_megabytes_is_kept(store: Store) -> None:
    raw = a_raw(body=b'"' + b"x" * (16 * 1024 * 1024) + b'"')
    await put(store, raw)
    assert (await kept(store, raw))[0].body == raw.body


async def test_bytes_that_are_no_text_are_kept_as_a_person_can_read_them(store: Store) -> None:
    raw = a_raw(body=b'{"name":"\xff"}', status=FAILED, error_message="not valid UTF-8")
    await put(store, raw)
    assert (await kept(store, raw))[0].body == rb'{"name":"\xff"}'


async def test_known_content_becomes_pending_again_with_the_new_execution_task_and_moment(store: Store) -> None:
    first = a_raw(execution=1)
    await put(store, first)
    first.processed(an_id("product"), at(5), "a note")
    await store.transact(lambda unit: unit.raws.save([first]))
    again = a_raw(execution=2, crawled_at=at(60), ripe_at=at(90))
    await put(store, again)
    again.product_id = an_id("product")
    assert await kept(store, again) == [again]


async def test_known_content_stays_as_it_is_when_what_is_known_is_newer(store: Store) -> None:
    newer = a_raw(execution=2, crawled_at=at(60))
    await put(store, newer)
    newer.processed(an_id("product"), at(70))
    await store.transact(lambda unit: unit.raws.save([newer]))
    await put(store, a_raw(execution=1, crawled_at=at(59)))
    assert await kept(store, newer) == [newer]


async def test_content_once_stored_is_never_altered(store: Store) -> None:
    raw = a_raw()
    await put(store, raw)
    forged = a_raw(crawled_at=at(9), body=b"{}")
    forged.raw_id = raw.raw_id
    await put(store, forged)
    await store.transact(lambda unit: unit.raws.save([forged]))
    assert (await kept(store, raw))[0].body == raw.body


async def test_a_raw_whose_crawl_has_ended_is_ripe(store: Store) -> None:
    ended, going_on, elsewhere = (
        a_raw(1, MINI_SHOP, ripe_at=at(900)),
        a_raw(2, MINI_SHOP, ripe_at=at(900)),
        a_raw(1, DETAIL, execution=2, ripe_at=at(900)),
    )
    await put(store, ended, going_on, elsewhere)
    assert await ripe(store, 10) == []
    await store.transact(lambda unit: unit.raws.ripen([(ended.execution_id, 1)], at(10)))
    assert ids(await ripe(store, 10)) == {ended.raw_id}


async def test_what_is_ripe_already_is_not_put_off(store: Store) -> None:
    raw = a_raw(1)
    await put(store, raw)
    await store.transact(lambda unit: unit.raws.ripen([(raw.execution_id, 1)], at(10)))
    assert (await kept(store, raw))[0].next_attempt_at == NOON


async def test_what_is_no_longer_pending_does_not_ripen(store: Store) -> None:
    raw = a_raw(1, ripe_at=at(900), status=FAILED, error_message="no")
    await put(store, raw)
    await store.transact(lambda unit: unit.raws.ripen([(raw.execution_id, 1)], at(10)))
    assert (await kept(store, raw))[0].next_attempt_at == at(900)


async def test_an_observation_is_taken_whole_its_unripe_siblings_too(store: Store) -> None:
    listed, detail, options = a_raw(1, MINI_SHOP, ripe_at=at(900)), a_raw(1, DETAIL), a_raw(1, OPTION, ripe_at=at(5))
    another = a_raw(1, DETAIL, b"{}", execution=2, ripe_at=at(900))
    done = a_raw(1, OPTION, b"[]", status=PROCESSED)
    await put(store, listed, detail, options, another, done)
    assert ids(await ripe(store, 0)) == ids([listed, detail, options])


async def test_the_longest_ripe_are_taken_first_and_about_as_many_as_asked_for(store: Store) -> None:
    raws = [a_raw(item, kind, ripe_at=at(item)) for item in range(1, 11) for kind in DocumentKind]
    await put(store, *raws)
    taken = await ripe(store, 100, 6)
    assert {raw.item_no for raw in taken} == {1, 2}
    assert len(taken) == 6


async def test_raws_that_are_done_are_not_taken_again(store: Store) -> None:
    raws = [a_raw(item) for item in (1, 2)]
    await put(store, *raws)

    def work(unit: Any) -> None:
        good, bad = unit.raws.lock_ripe(NOON, 10)
        good.processed(an_id("product"), at(1))
        bad.failed("x" * 5000, at(60))
        unit.raws.save([good, bad])

    await store.transact(work)
    assert await ripe(store, 1000) == []
    good, bad = sorted(await kept(store, *raws), key=lambda raw: raw.status, reverse=True)
    assert (good.status, good.product_id, good.processed_at) == (PROCESSED, an_id("product"), at(1))
    assert (bad.status, bad.error_message, bad.next_attempt_at) == (FAILED, "x" * 2048, at(60))


async def test_failed_raws_with_retries_left_are_found_when_they_are_due(store: Store) -> None:
    due = a_raw(1, status=FAILED, retry_count=2)
    later = a_raw(2, status=FAILED, ripe_at=at(60))
    used_up = a_raw(3, status=FAILED, retry_count=3)
    listed = a_raw(4, MINI_SHOP, status=FAILED)
    await put(store, due, later, used_up, listed, a_raw(5))
    found = await store.transact(lambda unit: unit.raws.lock_failed(at(1), 3, 10))
    assert ids(found) == ids([due, listed])
    assert len(await store.transact(lambda unit: unit.raws.lock_failed(at(1), 3, 1))) == 1


async def test_lesson_10_old_failures_without_a_retry_left_stand_in_no_newer_ones_way(store: Store) -> None:
    used_up = [a_raw(number, status=FAILED, retry_count=3) for number in range(1, 61)]
    newer = a_raw(100, status=FAILED, retry_count=0)
    await put(store, *used_up, newer)
    found = await store.transact(lambda unit: unit.raws.lock_failed(at(1), 3, 50))
    assert ids(found) == ids([newer])


async def test_items_of_which_anything_was_crawled_since_are_found_page_by_page(store: Store) -> None:
    await put(store, a_raw(1, crawled_at=at(-1)), a_raw(3), a_raw(3, OPTION, b"[]"), a_raw(2, status=FAILED), a_raw(4))
    found = await store.read(lambda unit: unit.raws.items_since(NOON, 0, 2))
    found += await store.read(lambda unit: unit.raws.items_since(NOON, found[-1], 2))
    assert found == [2, 3, 4]
    assert await store.read(lambda unit: unit.raws.items_since(NOON, 4, 2)) == []
    assert await store.read(lambda unit: unit.raws.count_items_since(NOON)) == 3
    assert await store.read(lambda unit: unit.raws.count_items_since(NOON, 3)) == 1


async def test_raws_of_items_since_a_moment_are_told_by_their_signs(store: Store) -> None:
    old, new, other = a_raw(1, crawled_at=at(-1)), a_raw(1, OPTION, b"[]", status=FAILED), a_raw(2)
    await put(store, old, new, other, a_raw(3))
    found = await store.read(lambda unit: unit.raws.signs_since([1, 2, 9], NOON))
    signs = [RawSign(raw.raw_id, raw.item_no, raw.kind, raw.crawled_at) for raw in (new, other)]
    assert sorted(found, key=lambda sign: sign.item_no) == signs


async def test_where_several_claim_at_once_an_observation_goes_to_who_gets_its_first_row(
    store: Store, database: Database
) -> None:
    raws = [a_raw(item, kind) for item in (1, 2, 3) for kind in DocumentKind]
    await put(store, *raws)
    pairs = [(raw.execution_id, raw.item_no) for raw in raws]
    got = await database.write(lambda connection: Raws(Session(connection, database.dialect))._nobodys(pairs, 4))
    assert got == [(raws[0].execution_id, 1), (raws[0].execution_id, 2)]


async def test_a_raw_bears_when_it_was_first_stored(store: Store, database: Database) -> None:
    await put(store, a_raw())
    await put(store, a_raw(crawled_at=NOON + timedelta(days=1)))
    created_at = select(tables.product_raw_data.c.created_at)
    assert await database.read(lambda connection: connection.execute(created_at).scalar_one()) == NOON
