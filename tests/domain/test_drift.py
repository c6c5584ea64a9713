"""Drift: shares are judged on samples, against what is usual."""

import pytest

from builders import NOON
from sellerwatch.domain.changes import Change, FieldChange
from sellerwatch.domain.documents import ChangeKind, Document, DocumentKind
from sellerwatch.domain.drift import JUMP, LEARNED_MAX, LIMITS, WINDOW, Breach, Measure, Progress, Tally, Watch
from sellerwatch.domain.meaning import MEANING

DETAIL = DocumentKind.DETAIL
BREACH = Breach(Measure.MISSING, "DETAIL.brandName", 0.9, 0.01, 90, 100, "1000")


def a_document(*missing: str) -> Document:
    return Document(DETAIL, 1000, "nord", {}, "digest", missing)


def a_change(field: str, old: object, new: object) -> Change:
    return Change("c", "p", 1000, "nord", 2, (ChangeKind.INFO,), (FieldChange(field, old, new),), NOON)


def a_watch(usual: Tally | None, batch: Tally, **progress: object) -> Watch:
    watch = Watch("execution", "nord", usual, Progress(**progress))  # type: ignore[arg-type]
    watch.take(batch)
    return watch


def seen(count: int, missing: int = 0) -> Tally:
    tally = Tally()
    for number in range(count):
        tally.read(a_document(*(("brandName",) if number < missing else ())), "1000")
    return tally


def changed(count: int, hits: int, field: str = "sellingPrice", old: object = 1000, new: object = 1001) -> Tally:
    tally = Tally()
    for number in range(count):
        tally.compare([a_document()], a_change(field, old, new) if number < hits else None, MEANING)
    return tally


@pytest.mark.parametrize(
    ("usual", "of", "missing", "is_met"),
    [
        (0, 100, 30, False),
        (0, 100, 31, True),
        (40, 100, 70, False),
        (40, 100, 71, True),
        (0, 19, 19, False),
        (0, 20, 20, True),
        (0, 24, 9, False),
    ],
)
def test_a_missing_field_is_judged_by_how_far_its_share_lies_above_the_usual(
    usual: int, of: int, missing: int, is_met: bool
) -> None:
    breach = a_watch(seen(100, usual), seen(of, missing)).breach(MEANING)
    assert (breach is not None) == is_met
    if breach:
        assert (breach.measure, breach.field, breach.hits, breach.of) == (
            Measure.MISSING, "DETAIL.brandName", missing, of,
        )  # fmt: skip


def test_without_a_usual_nothing_is_judged_and_with_too_small_a_one_not_what_needs_it() -> None:
    assert a_watch(None, seen(1000, 1000)).breach(MEANING) is None
    assert a_watch(seen(LIMITS[Measure.MISSING].sample - 1), seen(1000, 1000)).breach(MEANING) is None


@pytest.mark.parametrize(
    ("old", "new", "has_jumped"),
    [
        (1000, 1000 * JUMP - 1, False),
        (1000, 1000 * JUMP, True),
        (1000 * JUMP, 1001, False),
        (1000 * JUMP, 1000, True),
        (1000, 0, True),
        (0, 1000, False),
    ],
)
def test_a_price_jumps_by_its_ratio_to_the_last_version(old: int, new: int, has_jumped: bool) -> None:
    tally = changed(40, 40, old=old, new=new)
    assert tally.of("jumped", "sellingPrice") == (40 if has_jumped else 0)
    assert tally.of("priced", "sellingPrice") == 40


def test_a_field_changed_in_more_than_half_of_what_was_seen_is_drift_and_what_stayed_the_same_counts() -> None:
    usual = Tally({"documents": {"DETAIL": 100}})
    assert a_watch(usual, changed(60, 31, "stock", 1, 2)).breach(MEANING) is not None
    assert a_watch(usual, changed(60, 29, "stock", 1, 2)).breach(MEANING) is None
    assert a_watch(usual, changed(60, 60, "stock", 1, 2), same={DETAIL: 100}).breach(MEANING) is None


def test_a_field_that_usually_changes_may_go_on_doing_so() -> None:
    usual = changed(100, 60, "stock", 1, 2)
    assert a_watch(usual, changed(100, 95, "stock", 1, 2)).breach(MEANING) is None


def test_what_appears_is_no_drift_and_what_is_emptied_is_missing() -> None:
    assert changed(1, 1, "brandName", None, "NORD").sections == {"known": {"DETAIL": 1}}
    emptied = changed(1, 1, "images", ("a",), ())
    assert emptied.of("missing", "DETAIL.images") == 1


def test_the_window_slides_and_what_is_usual_fades() -> None:
    watch = a_watch(None, seen(2 * WINDOW))
    assert watch.recent.of("documents", "DETAIL") == WINDOW
    assert watch.crawl.of("documents", "DETAIL") == 2 * WINDOW
    for _ in range(20):
        watch = a_watch(watch.learned(afresh=False), seen(1000))
    assert watch.learned(afresh=False).of("documents", "DETAIL") <= LEARNED_MAX


def test_what_a_person_released_replaces_what_was_usual() -> None:
    watch = a_watch(seen(1000), seen(50, 50))
    assert watch.learned(afresh=True).of("documents", "DETAIL") == 50
    assert watch.learned(afresh=False).of("documents", "DETAIL") == 1050


def test_a_breach_says_which_field_how_often_and_for_example() -> None:
    assert BREACH.text == "DETAIL.brandName is missing in 90 of 100 (90%, usually 1%); 1000"


def test_each_limit_has_a_reason() -> None:
    assert set(LIMITS) == set(Measure) - {Measure.PAGES}
    assert all(limit.why for limit in LIMITS.values())
