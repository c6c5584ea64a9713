"""Outboxes: patience, retries, and one row in the place of several."""

from copy import deepcopy
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOON, a_publication, a_task, at
from sellerwatch.domain.changes import Change, FieldChange
from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.ids import derived
from sellerwatch.domain.outbox import EventType, OutboxStatus, ProductEvent, TaskOutboxStatus, backoff
from sellerwatch.domain.products import Product, announce

PRODUCT = Product.discover(7, "nord", NOON)


def an_event(
    version: int, *changes: tuple[str, object, object], kind: ChangeKind = ChangeKind.PRICE, product: Product = PRODUCT
) -> ProductEvent:
    fields = tuple(FieldChange(*change) for change in changes)
    change_id = derived(product.product_id, f"change/{version}")
    return announce(product, Change(change_id, product.product_id, 7, "nord", version, (kind,), fields, NOON))


# ── patience ──


@given(
    st.integers(0, 10_000),
    st.floats(0.001, 1000),
    st.floats(0.001, 100_000),
    st.floats(0, 1, exclude_max=True),
)
def test_a_pause_is_between_half_of_what_is_due_and_all_of_it(
    retry: int, base: float, ceiling: float, chance: float
) -> None:
    due = min(ceiling, base * 2 ** min(retry, 60))
    pause = backoff(retry, base, ceiling, chance).total_seconds()
    assert due / 2 - 1e-6 <= pause <= due + 1e-6
    assert pause <= ceiling + 1e-6


def test_a_pause_doubles_until_its_ceiling() -> None:
    assert [backoff(retry, 30, 3600, 1).total_seconds() for retry in range(9)] == [
        30, 60, 120, 240, 480, 960, 1920, 3600, 3600,
    ]  # fmt: skip
    assert backoff(0, 30, 3600, 0) == timedelta(seconds=15)


# ── retries ──


@pytest.mark.parametrize("retries", range(6))
def test_a_row_is_sent_so_often_and_once_more_and_then_given_up(retries: int) -> None:
    row = an_event(1)
    sends = 0
    while row.status is OutboxStatus.WAITING:
        row.status, sends = OutboxStatus.SENDING, sends + 1
        row.failed("HTTP 500", retries, at(60))
    assert (sends, row.status, row.retry_count) == (retries + 1, OutboxStatus.FAILED, retries)
    row.again(at(99))
    assert (row.status, row.retry_count, row.next_attempt_at) == (OutboxStatus.WAITING, 0, at(99))


def test_a_final_word_costs_no_further_try() -> None:
    row = an_event(1)
    row.status = OutboxStatus.SENDING
    row.failed("HTTP 400", 5, at(60), is_final=True)
    assert (row.status, row.retry_count, row.error_message) == (OutboxStatus.FAILED, 0, "HTTP 400")


def test_waiting_for_a_receiver_that_is_away_costs_no_retry() -> None:
    row = an_event(1)
    for _ in range(1000):
        row.status = OutboxStatus.SENDING
        row.wait(at(60))
    assert (row.status, row.retry_count) == (OutboxStatus.WAITING, 0)


@pytest.mark.parametrize("retries", range(4))
def test_a_publication_is_refused_so_often_and_once_more_and_then_given_up(retries: int) -> None:
    row = a_publication(a_task(7))
    sends = 0
    while row.status is TaskOutboxStatus.PENDING:
        row.status, sends = TaskOutboxStatus.PROCESSING, sends + 1
        row.claimed_by, row.claimed_until = "relay", at(30)
        row.refused("throttled", retries, at(60))
        assert (row.claimed_by, row.claimed_until) == (None, None)
    assert (sends, row.status) == (retries + 1, TaskOutboxStatus.FAILED)


# ── one in the place of several ──


def test_a_newer_row_tells_the_changes_of_the_one_it_stands_in_for() -> None:
    older = an_event(2, ("price", 1, 2), ("stock", 5, 0))
    newer = an_event(3, ("price", 2, 3), ("stock", 0, 5), ("name", "a", "b"))
    whole = newer.payload["productData"]
    newer.supersede(older, at(5))
    assert (older.status, older.error_message) == (OutboxStatus.COMPLETED, "superseded by 3")
    assert newer.payload["changes"] == [
        {"field": "price", "old": 1, "new": 3},
        {"field": "name", "old": "a", "new": "b"},
    ]
    assert (newer.status, newer.version, newer.payload["version"]) == (OutboxStatus.WAITING, 3, 3)
    assert newer.payload["eventId"] == newer.outbox_id
    assert newer.payload["productData"] == whole


@pytest.mark.parametrize(
    ("kinds", "event_type"),
    [
        ([ChangeKind.CREATED, ChangeKind.PRICE], EventType.CREATED),
        ([ChangeKind.CREATED, ChangeKind.DELISTED], EventType.CREATED),
        ([ChangeKind.CREATED, ChangeKind.PRICE, ChangeKind.STOCK], EventType.CREATED),
        ([ChangeKind.PRICE, ChangeKind.STOCK], EventType.UPDATED),
        ([ChangeKind.PRICE, ChangeKind.DELISTED], EventType.DELISTED),
        ([ChangeKind.DELISTED, ChangeKind.PRICE], EventType.DELISTED),
        ([ChangeKind.DELISTED, ChangeKind.RELISTED], EventType.UPDATED),
        ([ChangeKind.RELISTED, ChangeKind.DELISTED], EventType.DELISTED),
        ([ChangeKind.DELISTED, ChangeKind.RELISTED, ChangeKind.PRICE], EventType.UPDATED),
    ],
)
def test_several_told_as_one_are_called_what_they_come_to(kinds: list[ChangeKind], event_type: EventType) -> None:
    moves = {
        ChangeKind.DELISTED: ("status", "ACTIVE", "DELISTED"),
        ChangeKind.RELISTED: ("status", "DELISTED", "ACTIVE"),
    }
    events = [
        an_event(version, moves.get(kind, ("price", version, version + 1)), kind=kind)
        for version, kind in enumerate(kinds, 1)
    ]
    head, *rest = events
    for newer in rest:
        newer.supersede(head, at(5))
        head = newer
    assert (head.event_type, head.payload["eventType"]) == (event_type, event_type.value)


@pytest.mark.parametrize("version", [3, 4, 99])
def test_a_row_is_never_folded_into_an_older_one_or_into_itself(version: int) -> None:
    ours, other = an_event(3, ("price", 1, 2)), an_event(version, ("price", 2, 3))
    before = deepcopy((ours, other))
    with pytest.raises(WrongVerb):
        ours.supersede(other, at(5))
    assert (ours, other) == before


def test_a_row_is_never_folded_into_another_products() -> None:
    ours = an_event(3, ("price", 1, 2))
    other = an_event(2, ("price", 1, 2), product=Product.discover(8, "nord", NOON))
    before = deepcopy((ours, other))
    with pytest.raises(WrongVerb):
        ours.supersede(other, at(5))
    assert (ours, other) == before


def test_what_arrives_while_one_is_being_sent_is_not_marked_sent_with_it() -> None:
    sending, newer = an_event(2, ("price", 1, 2)), an_event(3, ("price", 2, 3))
    sending.status = OutboxStatus.SENDING
    sending.completed(at(5))
    assert (newer.status, newer.payload["changes"]) == (OutboxStatus.WAITING, [{"field": "price", "old": 2, "new": 3}])
    with pytest.raises(WrongVerb):
        newer.supersede(sending, at(6))


def test_a_row_is_one_by_product_and_version() -> None:
    rows = [an_event(1), an_event(2), an_event(11), an_event(1, product=Product.discover(8, "nord", NOON))]
    assert len({row.outbox_id for row in rows}) == 4
    assert an_event(1).outbox_id == rows[0].outbox_id
