"""What can go wrong with an answer, on purpose: by rate and seed, or staged by a test for the next request of a path.

A rate is drawn per path and per how often that path was asked, so the same request meets the same fate however the others
are interleaved. Staged faults come before rates and are used up one by one.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import orjson

from sellerwatch.domain.errors import Invalid
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.reply import HTML, Reply

NAMES: Mapping[str, str] = {
    "error": "an error status (default 503), with Retry-After if asked",
    "throttle": "429 although the limit was kept",
    "unauthorized": "401: the visitor's tokens are revoked",
    "drop": "the connection ends without an answer",
    "cut": "the connection ends in the middle of the body",
    "lost": "the request takes effect, the answer is lost",
    "slow": "the answer comes late",
    "html": "status 200 with an HTML page",
    "truncate": "a well-formed answer whose JSON ends in the middle",
    "empty": "status 200 with an empty body",
    "redirect": "302, within the host unless a location is given",
    "gone": "404 or 410",
    "wrong_item": "the detail of another item of the shop",
    "bad_item": "a list page in which one item is broken",
    "bad_price": "a price that is no number",
    "hollow": "a document in which nearly every business field is missing",
    "short_page": "a list page with fewer items than it should have",
    "shuffle": "items move to the head of the list just before the page is answered",
    "answer": "exactly the given status, headers and body",
}
_ANYWHERE = frozenset({"error", "throttle", "drop", "cut", "lost", "slow"})
_MAINTENANCE = (
    "<!doctype html><html lang=ko><title>점검</title><body><h1>서비스 점검 중입니다</h1></body></html>".encode()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong. What a name does not use is ignored."""

    name: str
    status: int = 0
    retry_after: str = "none"
    retry_after_seconds: float = 60
    seconds: float = 12
    location: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise Invalid("fault", self.name, "one of " + ", ".join(NAMES))
        if self.retry_after not in {"none", "seconds", "date"}:
            raise Invalid("retryAfter", self.retry_after, "one of none, seconds, date")


class Faults:
    """The faults of one server: rates, staged ones, and how often each came true."""

    def __init__(self, seed: int, stream: str, rates: Mapping[str, float]) -> None:
        self._seed = seed
        self._stream = stream
        self._asked: Counter[str] = Counter()
        self._staged: dict[str, deque[Fault]] = {}
        self._rates: dict[str, float] = {}
        self.happened: Counter[str] = Counter()
        self.set_rates(rates)

    @property
    def rates(self) -> dict[str, float]:
        return dict(self._rates)

    def set_rates(self, rates: Mapping[str, float]) -> None:
        """These rates and no others, from now on."""
        self._rates = {name: percent for name, percent in sorted(rates.items()) if percent}

    def stage(self, where: str, fault: Fault, times: int = 1) -> None:
        """For the next requests of `where`: a path, with or without query; a kind such as DETAIL; or `*`."""
        self._staged.setdefault(where, deque()).extend([fault] * times)

    def clear(self) -> None:
        """No staged fault is left."""
        self._staged.clear()

    def meet(self, places: Iterable[str], target: str, *, is_document: bool = True) -> tuple[Fault, Chance] | None:
        """The fault this request meets, with the chance to work it out; `places`: what it may have been staged for.

        What is no document (a token, robots.txt) meets by rate only what happens to any request.
        """
        if not self._staged and not self._rates:
            return None
        self._asked[target] += 1
        chance = Chance(self._seed, self._stream, target, self._asked[target])
        fault = self._next_staged(places)
        if fault is None:
            fault = self._drawn(chance)
            if fault is None or not (is_document or fault.name in _ANYWHERE):
                return None
        self.happened[fault.name] += 1
        return fault, chance

    def _next_staged(self, places: Iterable[str]) -> Fault | None:
        for place in places:
            waiting = self._staged.get(place)
            if waiting:
                fault = waiting.popleft()
                if not waiting:
                    del self._staged[place]
                return fault
        return None

    def _drawn(self, chance: Chance) -> Fault | None:
        roll = chance.share() * 100
        for name, percent in self._rates.items():
            roll -= percent
            if roll < 0:
                return _by_rate(name, chance)
        return None


def _by_rate(name: str, chance: Chance) -> Fault:
    form = chance.pick(("none", "seconds", "date")) if name in {"error", "throttle"} else "none"
    status = {"error": chance.pick((500, 502, 503, 504)), "gone": chance.pick((404, 410))}.get(name, 0)
    return Fault(name=name, status=status, retry_after=form)


def spoil(reply: Reply, fault: Fault, chance: Chance) -> None:
    """Damage a good answer, in place."""
    match fault.name:
        case "cut":
            reply.headers.append(("content-length", str(len(reply.body))))
            reply.body, reply.drop = reply.body[: len(reply.body) // 2], True
        case "lost":
            reply.body, reply.drop = b"", True
        case "slow":
            reply.delay += fault.seconds
        case "truncate":
            reply.body = reply.body[: max(1, len(reply.body) * chance.between(30, 95) // 100)]
        case "bad_item" | "bad_price" | "hollow" | "short_page":
            reply.body = orjson.dumps(_edited(orjson.loads(reply.body), fault.name, chance))


def maintenance() -> Reply:
    """What a site shows while it is being mended."""
    return Reply(200, [("content-type", HTML)], _MAINTENANCE)


def _edited(document: object, name: str, chance: Chance) -> object:
    if not isinstance(document, dict):
        return document
    rows = _rows(document)
    if name == "short_page":
        for _ in range(chance.between(1, max(1, len(rows) // 10)) if rows else 0):
            rows.pop(chance.below(len(rows)))
        _put_rows(document, rows)
    elif name == "bad_item" and rows:
        rows[chance.below(len(rows))].update({"itemNo": None, "imageUrlList": "none"})
    elif name == "bad_price":
        target = chance.pick(rows) if rows else _info(document)
        target["price" if rows else "sellingPrice"] = chance.pick(("가격문의", "-", "12,9OO", ""))
    elif name == "hollow":
        for row in rows or [_info(document)]:
            for field in row.keys() - {"itemNo", "sellerId", "likeStatus"}:
                del row[field]
    return document


def _rows(document: dict[str, object]) -> list[dict[str, object]]:
    if "items" in document:
        return cast("list[dict[str, object]]", document["items"])
    return [data for kind, data in _modules(document) if kind == "SearchItemV2"]


def _put_rows(document: dict[str, object], rows: list[dict[str, object]]) -> None:
    if "items" in document:
        document["items"] = rows
        return
    left = {id(row) for row in rows}
    modules = cast("list[dict[str, object]]", document["moduleList"])
    document["moduleList"] = [
        module for module in modules if module["type"] != "SearchItemV2" or id(module["data"]) in left
    ]


def _info(document: dict[str, object]) -> dict[str, object]:
    return next((data for kind, data in _modules(document) if kind == "ProductInfoModule"), {})


def _modules(document: dict[str, object]) -> Iterator[tuple[object, dict[str, object]]]:
    for module in cast("list[dict[str, object]]", document.get("moduleList", [])):
        data = module["data"]
        if isinstance(data, dict):
            yield module["type"], data
