"""Promise: what Sellerwatch reads from the sandbox's pages is the sandbox's truth, whatever the noise."""

import pytest

from sandbox.visits import Visitor, a_sandbox, detail_path, list_path, option_path
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.meaning import MEANING
from sellerwatch.sandbox.truth import agrees, disagreements


def documents(visitor, item_no):
    """The three documents of an item, read as Sellerwatch reads them."""
    parse = Parse()
    entries = {entry.item_no: entry.raw for entry in parse.listing("MINI_SHOP", visitor.ask(list_path()).body).entries}
    parse.verify("DETAIL", item_no, visitor.ask(detail_path(item_no)).body)
    return [
        parse.document(DocumentKind.MINI_SHOP, item_no, entries[item_no]),
        parse.document(DocumentKind.DETAIL, item_no, visitor.ask(detail_path(item_no)).body),
        parse.document(DocumentKind.OPTION, item_no, visitor.ask(option_path(item_no)).body),
    ]


def data_of(read, item_no):
    fields = {}
    for document in read:
        fields |= MEANING.owned(document, fields)
    return MEANING.product_data(fields, item_no, "ACTIVE")


@pytest.mark.parametrize("noise", [False, True])
def test_every_field_that_is_read_is_true(noise):
    sandbox = a_sandbox({"atelier": 40}, noise=noise)
    visitor = Visitor(sandbox).log_in()
    for item_no in sandbox.world.listed():
        data = data_of(documents(visitor, item_no), item_no)
        assert disagreements(sandbox.truth(item_no), data) == []
        assert sandbox.truth(item_no).keys() <= data.keys()


def test_noise_changes_no_digest_and_pages_without_noise_show_no_drift():
    calm, noisy = (Visitor(a_sandbox({"atelier": 12}, noise=noise)).log_in() for noise in (False, True))
    for item_no in calm.sandbox.world.listed():
        expected = documents(calm, item_no)
        assert [(document.missing, document.unknown) for document in expected] == [((), ())] * 3
        for _ in range(3):
            found = documents(noisy, item_no)
            assert [document.digest for document in found] == [document.digest for document in expected]


def test_search_entries_read_the_same_as_list_entries():
    sandbox = a_sandbox({"atelier": 10})
    visitor, parse = Visitor(sandbox).log_in(), Parse()
    page = parse.listing("SEARCH", visitor.ask("/mustit-api/facade-api/v1/search/items?keyword=atelier&pageNo=1").body)
    assert not page.bad
    for entry in page.entries:
        read = parse.document(DocumentKind.MINI_SHOP, entry.item_no, entry.raw)
        truth = sandbox.truth(entry.item_no)
        assert (read.fields["name"], read.fields["originalPrice"]) == (truth["name"], truth["originalPrice"])
        assert (read.missing, read.unknown) == ((), ())


def test_agreement_allows_more_keys_but_no_other_value():
    assert agrees({"fee": 0}, {"fee": 0, "delivery": "soon"})
    assert agrees([1, 2], (1, 2))
    for truth, told in (({"fee": 0}, {}), ([1], [1, 2]), ([1, 2], [2, 1]), (0, False), (1, "1"), ({}, None), (None, 0)):
        assert not agrees(truth, told)
    assert disagreements({"name": "a", "stock": 1, "tags": []}, {"name": "a", "stock": 2}) == ["stock", "tags"]
