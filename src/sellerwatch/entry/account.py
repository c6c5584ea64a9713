"""The account of a demonstration: what was found, what is true, and how the two were compared.

The sandbox knows the truth of its world and counted what reached it; the house is asked through its reports only, and
the product server's copy is what was delivered. Nothing is believed because the crawler says so.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sellerwatch.ports.reports import ProductRow, Reports
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.sandbox.truth import Difference, agrees, disagreements

PAGE: Final = 500
EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    wanted: str
    found: str
    how: str
    wrong: tuple[str, ...] = ()
    """What is not as it should be, a line each."""

    @property
    def is_right(self) -> bool:
        return not self.wrong


async def account(reports: Reports, sandbox: Sandbox, changes: Sequence[Difference]) -> list[Check]:
    """After the last delivery: everything that was promised, compared."""
    rows: dict[int, ProductRow] = {}
    for seller in sandbox.world.shops:
        rows |= {row.item_no: row for row in await _products(reports, seller)}
    return [
        _found(rows, sandbox),
        _fields(rows, sandbox),
        _versions(rows, changes),
        _told(sandbox, changes),
        _deliveries(rows, sandbox, changes),
        *_budget(sandbox),
    ]


def complete(rows: Iterable[ProductRow]) -> int:
    return sum(row.is_complete for row in rows)


async def _products(reports: Reports, seller_id: str) -> list[ProductRow]:
    rows: list[ProductRow] = []
    number = 0
    while page := await reports.products_after(number, PAGE, seller_id=seller_id):
        rows += page
        number = page[-1].number
    return rows


def _found(rows: Mapping[int, ProductRow], sandbox: Sandbox) -> Check:
    there = set(sandbox.world.listed())
    known = {item_no for item_no, row in rows.items() if row.is_complete}
    wrong = [f"item {item} was not found, or not wholly" for item in sorted(there - known)]
    wrong += [f"item {item} is known but not in the sandbox" for item in sorted(known - there)]
    how = "item numbers of the sandbox's shops against the complete products"
    return Check("products found = products in the sandbox", _n(len(there)), _n(len(known & there)), how, _few(wrong))


def _fields(rows: Mapping[int, ProductRow], sandbox: Sandbox) -> Check:
    compared, wrong = 0, []
    for seller in sandbox.world.shops:
        for item_no, truth in sandbox.truths(seller):
            row = rows.get(item_no)
            fields = disagreements(truth, row.data()) if row else list(truth)
            compared += len(truth)
            wrong += [f"item {item_no}: {field} is not what the sandbox says" for field in fields]
    how = "every field of every product against the sandbox's truth after the changes"
    return Check("every field equal to the truth", _n(compared), _n(compared - len(wrong)), how, _few(wrong))


def _versions(rows: Mapping[int, ProductRow], changes: Sequence[Difference]) -> Check:
    changed = {change["itemNo"] for change in changes}
    wrong = [
        f"item {item_no} is at version {row.version}"
        for item_no, row in rows.items()
        if row.version != (2 if item_no in changed else 1)
    ]
    found = sum(row.version == 2 for row in rows.values())
    how = "those and no others have a second version"
    return Check("products changed in the sandbox", _n(len(changed)), _n(found), how, _few(wrong))


def _told(sandbox: Sandbox, changes: Sequence[Difference]) -> Check:
    """Each change that was made is in an event with its old and new value, and no event tells of another."""
    made: dict[int, dict[str, Difference]] = defaultdict(dict)
    for change in changes:
        made[change["itemNo"]][change["field"]] = change
    wrong: list[str] = []
    right = 0
    for item_no, fields in made.items():
        told = {str(each["field"]): each for each in _events(sandbox, item_no)}
        for name, change in fields.items():
            each = told.get(name, {})
            if agrees(change["old"], each.get("old")) and agrees(change["new"], each.get("new")):
                right += 1
            else:
                wrong.append(f"item {item_no}: the change of {name} was not delivered as it was made")
        wrong += [f"item {item_no}: a change of {name} was delivered that nobody made" for name in told.keys() - fields]
    how = "field, old and new value of each change made against the delivered events"
    return Check("changes delivered = changes made", _n(len(changes)), _n(right), how, _few(wrong))


def _events(sandbox: Sandbox, item_no: int) -> list[dict[str, Any]]:
    copy = sandbox.receiver.copy(item_no)
    told = copy.get("changes") if copy else None
    # Pictures inside a description follow from it: the sandbox counts them as the description.
    return [each for each in told if each["field"] != "descriptionImages"] if isinstance(told, list) else []


def _deliveries(rows: Mapping[int, ProductRow], sandbox: Sandbox, changes: Sequence[Difference]) -> Check:
    receiver = sandbox.receiver
    wanted = len(rows) + len({change["itemNo"] for change in changes})
    counts = receiver.counts
    wrong = [
        f"{counts[name]} deliveries were {words}"
        for name, words in {
            "repeats": "repeated",
            "outOfOrder": "out of order",
            "badSignatures": "badly signed",
            "unreadable": "unreadable",
            "mismatches": "at odds with what was delivered before",
        }.items()
        if counts[name]
    ]
    if counts["deliveries"] != wanted:
        wrong.append(f"{counts['deliveries']} deliveries arrived, not {wanted}")
    for seller in sandbox.world.shops:
        for item_no, truth in sandbox.truths(seller):
            copy = receiver.copy(item_no) or {}
            data = copy.get("productData")
            if not isinstance(data, dict) or disagreements(truth, data):
                wrong.append(f"item {item_no}: the product server's copy is not what the sandbox says")
    how = "signed, in order, none twice; the product server's copies against the truth"
    return Check("events at the product server", _n(wanted), _n(counts["deliveries"]), how, _few(wrong))


def _budget(sandbox: Sandbox) -> list[Check]:
    gate, limit = sandbox.market.gate, sandbox.conditions.hourly_limit
    visitors = gate.visitors.values()
    peak = max((visitor.peak_window for visitor in visitors), default=0)
    violations = sum(visitor.violations for visitor in visitors)
    beyond = [f"an identity made {v.peak_window} requests in an hour" for v in visitors if v.peak_window > limit]
    refused = [f"{violations} requests came beyond the limit"] if violations else []
    return [
        Check(
            "requests per identity in any hour",
            f"at most {limit}",
            _n(peak),
            f"arrivals of {len(visitors)} identities in the sandbox's sliding hour",
            _few(beyond),
        ),
        Check("violations counted by the sandbox", "0", _n(violations), "answers of 429 it had to give", _few(refused)),
    ]


def _few(wrong: Sequence[str]) -> tuple[str, ...]:
    rest = len(wrong) - EXAMPLES
    return (*wrong[:EXAMPLES], *((f"and {rest} more",) if rest > 0 else ()))


def _n(number: int) -> str:
    return f"{number:,}".replace(",", " ")
