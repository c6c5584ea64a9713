"""Chance: ids that rise, and a seed that repeats itself."""

import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from sellerwatch.adapters.chance import SeededChance, SystemChance, _Sequence

NOW = datetime(2026, 11, 18, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(params=[SystemChance, lambda: SeededChance(7)], ids=["system", "seeded"])
def chance(request):
    return request.param()


def test_an_id_is_a_uuid_of_version_seven_with_the_moment_in_front(chance):
    made = uuid.UUID(chance.uuid7(NOW))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == int(NOW.timestamp() * 1000)


def test_ids_rise_even_when_the_clock_stands_still_or_goes_back(chance):
    moments = [NOW] * 1000 + [NOW - timedelta(hours=1)] * 1000 + [NOW + timedelta(milliseconds=1)] * 1000
    made = [chance.uuid7(moment) for moment in moments]
    assert all(before < after for before, after in pairwise(made))


def test_an_exhausted_millisecond_borrows_from_the_next():
    sequence = _Sequence(lambda bits: (1 << bits) - 1)
    sequence._tail = (1 << 74) - 2
    sequence._milliseconds = int(NOW.timestamp() * 1000)
    assert uuid.UUID(sequence.next(NOW)).int >> 80 == int(NOW.timestamp() * 1000) + 1


def test_numbers_lie_between_zero_and_one_and_bytes_are_as_many_as_asked_for(chance):
    assert all(0 <= chance.random() < 1 for _ in range(100))
    assert len(chance.token_bytes(12)) == 12
    assert chance.token_bytes(16) != chance.token_bytes(16)


def test_the_same_seed_gives_the_same_chance():
    def drawn(seed):
        chance = SeededChance(seed)
        return [chance.random(), chance.token_bytes(8), chance.uuid7(NOW), chance.uuid7(NOW)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
