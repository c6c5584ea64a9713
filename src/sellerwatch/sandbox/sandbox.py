"""The sandbox: a fake marketplace and a fake product server in one, without any transport.

`answer` is all there is: synchronous, with the time as an argument, so that a simulation calls it on a virtual clock and a
server puts it on a socket. Beside the two there are `/__` paths to look inside and to change the world.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import parse_qs

import orjson

from sellerwatch.domain.errors import Conflict, Invalid, Unknown
from sellerwatch.sandbox import mutate
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.conditions import Conditions, check_rates
from sellerwatch.sandbox.faults import NAMES, Fault, Faults
from sellerwatch.sandbox.market import Market
from sellerwatch.sandbox.receiver import Receiver
from sellerwatch.sandbox.reply import Reply, json_reply, refusal
from sellerwatch.sandbox.truth import Difference, Truth, truth_of
from sellerwatch.sandbox.world import World

Json = dict[str, object]
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]{0,60}")
_HELP = {
    "GET /__stats": "requests, identities, violations, peaks, what robots.txt forbids, deliveries",
    "POST /__mutate": '{"share": 0.01, "seed": 7, "only": ["price"], "add": {"shop": 3}, "remove": {"shop": 2}, '
    '"rename": {"sellingPrice": "salePrice"}} -> what changed',
    "POST /__faults": '{"rates": {"html": 1}, "next": [{"path": "DETAIL", "fault": "html", "times": 2}], '
    '"receiver": {"rates": {}, "next": []}, "revokeTokens": true, "clear": true}',
    "POST /__robots": "the text of robots.txt from now on; to break it, stage a fault for ROBOTS",
    "GET /__truth/{itemNo}": "the product as a perfect crawl would know it",
    "GET /__truth?seller=": "all of a shop",
    "GET /__copy/{itemNo}": "the last event the product server applied",
    "faults": dict(NAMES),
    "mutations": list(mutate.MUTATIONS),
}
_STAGED_FIELDS = frozenset(
    {"path", "fault", "times", "status", "retryAfter", "retryAfterSeconds", "seconds", "location", "headers", "body"}
)


class Sandbox:
    """A world with two servers in front of it."""

    def __init__(self, conditions: Conditions | None = None) -> None:
        self.conditions = conditions = conditions or Conditions()
        self.world = World(conditions.seed, conditions.shops, conditions.images_max)
        self.market = Market(conditions, self.world)
        self.receiver = Receiver(
            conditions.secret,
            Faults(conditions.seed, "receiver faults", conditions.receiver_rates),
            conditions.receiver_latency_ms / 1000,
        )
        self._rounds = 0

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes, now: float) -> Reply:
        """The reply to one request. `target`: path and query; `now`: seconds since the epoch."""
        lowered = {name.lower(): value for name, value in headers.items()}
        if target.startswith("/__"):
            return self._control(method, target, body)
        if target.partition("?")[0] == self.conditions.products_path:
            if method != "POST":
                return refusal(405, "Method Not Allowed", [("allow", "POST")])
            return self.receiver.receive(target, lowered, body, now)
        return self.market.answer(method, target, lowered, now)

    def truth(self, item_no: int) -> Truth:
        """The product as a perfect crawl would know it; a removed one as it was last, DELISTED."""
        product = self.world.product(item_no)
        if product is None:
            raise Unknown("item", item_no)
        return truth_of(product, listed=self.world.is_listed(item_no))

    def truths(self, seller: str) -> Iterator[tuple[int, Truth]]:
        """All listed products of a shop, in the list's order."""
        for product in self.world.products(seller):
            yield product.item_no, truth_of(product, listed=True)

    def mutate(self, share: float, seed: int | None = None, only: tuple[str, ...] = ()) -> list[Difference]:
        """Change that share of all products; without a seed each round is another one. The exact account."""
        self._rounds += 1
        names = ("round", self._rounds) if seed is None else ("seed", seed)
        return mutate.mutate(self.world, share, *names, only=only)

    def change(self, item_no: int, kind: str, seed: int = 0) -> list[Difference]:
        """One change, of a kind in `mutate.MUTATIONS`, to one product. The exact account."""
        if kind not in mutate.MUTATIONS:
            raise Invalid("kind of mutation", kind, "one of " + ", ".join(mutate.MUTATIONS))
        return mutate.change(self.world, item_no, kind, Chance(self.conditions.seed, "change", item_no, kind, seed))

    def add_products(self, seller: str, amount: int) -> list[int]:
        """New products at the head of a shop's list, which is opened if there is none."""
        known = self.world.shop(seller)
        return self.world.add_shop(seller, amount) if known is None else self.world.add_products(seller, amount)

    def remove_products(self, seller: str, amount: int, seed: int = 0) -> list[int]:
        """So many products, chosen by the seed, leave a shop."""
        shop = self.world.shop(seller)
        if shop is None:
            raise Unknown("shop", seller)
        if amount < 0:
            raise Invalid("amount", amount, "a number of products")
        chosen = Chance(self.conditions.seed, "remove", seller, seed).sample(shop.order, amount)
        return self.world.remove_products(seller, chosen)

    def rename(self, names: Mapping[str, str]) -> None:
        """From now on these keys of the marketplace's documents have other names; all others have their own again."""
        for old, new in names.items():
            if not _KEY.fullmatch(old) or not _KEY.fullmatch(new):
                raise Invalid("rename", f"{old} to {new}", "names of letters and digits")
        self.market.renamed = dict(names)

    def stage(self, where: str, fault: Fault, times: int = 1) -> None:
        """The next requests of a path, a kind (DETAIL, PRODUCTS, ...) or `*` meet this fault."""
        faults = self.receiver.faults if where.partition("?")[0] in self._receiver_places() else self.market.faults
        faults.stage(where, fault, times)

    def stats(self) -> Json:
        """What was seen so far."""
        by_kind: dict[str, Json] = {}
        statuses: Counter[str] = Counter()
        for (kind, status), count in sorted(self.market.counts.items()):
            name = str(status) if status else "dropped"
            by_kind.setdefault(kind, {})[name] = count
            statuses[name] += count
        return {
            "requests": {
                "total": sum(statuses.values()),
                "byKind": by_kind,
                "byStatus": dict(sorted(statuses.items())),
            },
            **self.market.gate.shown(),
            "disallowed": self.market.disallowed,
            "faults": dict(sorted(self.market.faults.happened.items())),
            "shops": {seller: len(shop.order) for seller, shop in self.world.shops.items()},
            "receiver": self.receiver.shown(),
        }

    def _receiver_places(self) -> set[str]:
        return {"PRODUCTS", self.conditions.products_path}

    def _control(self, method: str, target: str, body: bytes) -> Reply:
        path, _, query = target.partition("?")
        try:
            match method, path.split("/")[1:]:
                case "GET", ["__"]:
                    return json_reply(_HELP)
                case "GET", ["__stats"]:
                    return json_reply(self.stats())
                case "GET", ["__truth"]:
                    return self._shown_truths(parse_qs(query).get("seller", [""])[0])
                case "GET", ["__truth", item]:
                    return self._shown_truth(_item_no(item))
                case "GET", ["__copy", item]:
                    copy = self.receiver.copy(_item_no(item))
                    return refusal(404, "nothing was delivered") if copy is None else json_reply(copy)
                case "POST", ["__robots"]:
                    self.market.hang_out(body.decode("utf-8", "replace"))
                    return json_reply({"bytes": len(body)})
                case "POST", ["__mutate"]:
                    return json_reply(self._mutated(_asked(body)))
                case "POST", ["__faults"]:
                    return json_reply(self._faulted(_asked(body)))
        except Unknown as error:
            return refusal(404, str(error))
        except (Invalid, Conflict) as error:
            return refusal(400, str(error))
        return refusal(404, f"no {method} {path}; GET /__ lists what there is")

    def _shown_truth(self, item_no: int) -> Reply:
        truth = self.truth(item_no)
        product = self.world.product(item_no)
        return json_reply({"itemNo": item_no, "sellerId": product.seller if product else None, "productData": truth})

    def _shown_truths(self, seller: str) -> Reply:
        items = [{"itemNo": item_no, "productData": truth} for item_no, truth in self.truths(seller)]
        return json_reply({"sellerId": seller, "count": len(items), "items": items})

    def _mutated(self, asked: Json) -> Json:
        share, seed, only = asked.get("share", 0), asked.get("seed"), asked.get("only", [])
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise Invalid("share", share, "a fraction from 0 to 1")
        if isinstance(seed, bool) or not isinstance(seed, int | None):
            raise Invalid("seed", seed, "a whole number")
        if not isinstance(only, list):
            raise Invalid("only", only, "a list of kinds")
        names = asked.get("rename")
        if names is not None:
            if not isinstance(names, dict):
                raise Invalid("rename", names, "an object of old and new names")
            self.rename({str(old): str(new) for old, new in names.items()})
        changes = self.mutate(share, seed, tuple(map(str, only)))
        added = {seller: self.add_products(seller, amount) for seller, amount in _amounts(asked, "add").items()}
        removed = {
            seller: self.remove_products(seller, amount, seed or self._rounds)
            for seller, amount in _amounts(asked, "remove").items()
        }
        items = len({change["itemNo"] for change in changes})
        return {"items": items, "changes": changes, "added": added, "removed": removed}

    def _faulted(self, asked: Json) -> Json:
        receiver = asked.get("receiver") or {}
        if not isinstance(receiver, dict):
            raise Invalid("receiver", receiver, "an object with rates and next")
        for faults, wanted in ((self.market.faults, asked), (self.receiver.faults, receiver)):
            if wanted.get("clear"):
                faults.clear()
                faults.set_rates({})
            rates = wanted.get("rates")
            if rates is not None:
                faults.set_rates(_rates(rates))
            for staged in cast("list[object]", wanted.get("next") or []):
                where, fault, times = _staged(staged)
                faults.stage(where, fault, times)
        revoked = self.market.gate.revoke() if asked.get("revokeTokens") else 0
        return {
            "rates": self.market.faults.rates,
            "receiver": {"rates": self.receiver.faults.rates},
            "revokedTokens": revoked,
        }


def _asked(body: bytes) -> Json:
    try:
        asked = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        raise Invalid("body", body[:40], "JSON") from None
    if not isinstance(asked, dict):
        raise Invalid("body", body[:40], "a JSON object")
    return asked


def _item_no(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise Unknown("item", text)
    return int(text)


def _amounts(asked: Json, name: str) -> dict[str, int]:
    amounts = asked.get(name) or {}
    if not isinstance(amounts, dict) or not all(type(amount) is int for amount in amounts.values()):
        raise Invalid(name, amounts, "an object of shops and numbers")
    return amounts


def _rates(rates: object) -> dict[str, float]:
    if not isinstance(rates, dict):
        raise Invalid("rates", rates, "an object of faults and percentages")
    check_rates(rates)
    return rates


def _staged(staged: object) -> tuple[str, Fault, int]:
    if (
        not isinstance(staged, dict)
        or not isinstance(staged.get("path"), str)
        or not isinstance(staged.get("fault"), str)
    ):
        raise Invalid("next", staged, 'an object such as {"path": "DETAIL", "fault": "html"}')
    unknown = staged.keys() - _STAGED_FIELDS
    if unknown:
        raise Invalid("next", sorted(map(str, unknown)), "known: " + ", ".join(sorted(_STAGED_FIELDS)))
    headers = staged.get("headers") or {}
    if not isinstance(headers, dict):
        raise Invalid("headers", headers, "an object")
    fault = Fault(
        name=staged["fault"],
        status=int(_amount(staged, "status", 0)),
        retry_after=str(staged.get("retryAfter", "none")),
        retry_after_seconds=_amount(staged, "retryAfterSeconds", 60),
        seconds=_amount(staged, "seconds", 12),
        location=str(staged.get("location", "")),
        headers=tuple((str(name).lower(), str(value)) for name, value in headers.items()),
        body=str(staged.get("body", "")).encode(),
    )
    return staged["path"], fault, int(_amount(staged, "times", 1))


def _amount(staged: Json, name: str, default: float) -> float:
    amount = staged.get(name, default)
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount <= 1_000_000:
        raise Invalid(name, amount, "a number from 0 to 1000000")
    return amount
