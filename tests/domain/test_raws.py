"""Raws: what they bear after each verb, and that their content is never touched."""

from copy import deepcopy

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders import NOON, an_id, at
from sellerwatch.domain.documents import DocumentKind, content_hash
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.raws import Raw, RawStatus, raw_id


def a_raw(body: bytes = b"{}") -> Raw:
    raw_hash = content_hash(body)
    identity = raw_id(7, DocumentKind.DETAIL, raw_hash)
    return Raw(identity, 7, "nord", an_id("task"), an_id("run"), DocumentKind.DETAIL, body, raw_hash, NOON, NOON)


class TheLifeOfARaw(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.raw = a_raw()
        self.failures_tried_again = 0

    def tell(self, verb: str, *arguments: object) -> bool:
        before = deepcopy(self.raw)
        try:
            getattr(self.raw, verb)(*arguments)
        except WrongVerb:
            assert self.raw == before
            return False
        return True

    @rule(note=st.none() | st.just("skipped"))
    def processed(self, note: str | None) -> None:
        if self.tell("processed", an_id("product"), at(1), note):
            assert (self.raw.status, self.raw.error_message) == (RawStatus.PROCESSED, note)

    @rule()
    def failed(self) -> None:
        if self.tell("failed", "DETAIL: empty", at(60)):
            assert (self.raw.error_message, self.raw.next_attempt_at) == ("DETAIL: empty", at(60))

    @rule()
    def again(self) -> None:
        was = self.raw.status
        if self.tell("again", at(2)):
            self.failures_tried_again += was is RawStatus.FAILED
            assert (self.raw.status, self.raw.next_attempt_at) == (RawStatus.PENDING, at(2))

    @invariant()
    def only_failures_count_as_retries(self) -> None:
        assert self.raw.retry_count == self.failures_tried_again

    @invariant()
    def its_content_is_never_altered(self) -> None:
        raw, fresh = self.raw, a_raw()
        assert (raw.raw_id, raw.body, raw.raw_hash, raw.crawled_at) == (
            fresh.raw_id,
            fresh.body,
            fresh.raw_hash,
            fresh.crawled_at,
        )


TestTheLifeOfARaw = TheLifeOfARaw.TestCase


def test_a_raw_is_one_by_item_kind_and_content() -> None:
    digest, other = content_hash(b"{}"), content_hash(b"[]")
    ids = [raw_id(item, kind, one) for item in (7, 77) for kind in DocumentKind for one in (digest, other)]
    assert len(set(ids)) == len(ids)
    assert raw_id(7, DocumentKind.DETAIL, digest) == a_raw().raw_id
