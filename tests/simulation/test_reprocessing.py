"""After a parser is mended: the product server is told what really differs, and the marketplace is not asked again."""

from dataclasses import replace

from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.domain.documents import Document, DocumentKind
from sellerwatch.flows.reprocess import Reprocess
from simulation.village import a_village
from simulation.virtual import run_virtually

QUICK = {"sweep_seconds": 600, "site_requests_per_second": 100, "identities": 60}


class Mistaken(Parse):
    """Of every third item it takes one price for the other."""

    def document(self, kind: DocumentKind, item_no: int, raw: bytes) -> Document:
        document = super().document(kind, item_no, raw)
        if kind is not DocumentKind.DETAIL or item_no % 3:
            return document
        fields = {**document.fields, "sellingPrice": document.fields["normalPrice"]}
        return replace(document, fields=fields, digest="m" + document.digest[1:])


def test_a_mended_parser_corrects_the_receivers_copy_without_a_request_to_the_marketplace() -> None:
    async def story() -> None:
        async with a_village(61, {"shops": {"a": 30}}, **QUICK) as village:
            house, receiver = village.house, village.sandbox.receiver
            object.__setattr__(house.absorb, "reader", Mistaken())
            await village.register("a")
            await village.crawl("a")
            village.sandbox.mutate(0.3, seed=1)
            await village.crawl("a")
            wrong = await village.wrong_products("a")
            assert len(wrong) > 5
            object.__setattr__(house.absorb, "reader", house.reader)
            requests, deliveries = len(village.transport.trace), receiver.counts["deliveries"]
            reprocess = Reprocess(house.store, house.reader, house.clock, house.bell)
            told = [done async for done in reprocess.run(village.clock.now().replace(year=2025), is_trial=True)][-1]
            assert (told.events, set(told.fields)) == (len(wrong), {"sellingPrice"})
            done = [done async for done in reprocess.run(village.clock.now().replace(year=2025))][-1]
            await village.settled()
            assert done == told
            await village.check()
            assert receiver.counts["deliveries"] - deliveries == len(wrong)
            assert len(village.transport.trace) == requests

    run_virtually(story())
