"""`sellerwatch deliver …`: whether the product server has what it was told."""

import io
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Invalid, Refused
from sellerwatch.entry.cli.door import end_badly, group, run
from sellerwatch.entry.cli.options import Json, checked
from sellerwatch.entry.cli.outbox import tell_resent
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.progress import steps_done
from sellerwatch.entry.console.tables import complain, draw, put_json, right, say, table
from sellerwatch.entry.console.text import count
from sellerwatch.entry.versions import versions_in
from sellerwatch.flows.resend import Resent, Suspicion

if TYPE_CHECKING:
    from sellerwatch.wiring import House

_ENCODING = "utf-8-sig"

app = group("Deliveries: whether the product server has what it was told.")


@app.callback()
def _deliveries() -> None:
    """A group, although it has one command."""


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _is_there(source: str) -> None:
    if not _is_url(source) and not Path(source).is_file():
        raise Invalid("source", source, "a file that exists, or a url")


@app.command(epilog="Example: sellerwatch deliver reconcile versions.csv --dry-run")
def reconcile(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL",
            help="itemNo and version: JSON lines or CSV; a url of your own server.",
            callback=checked(_is_there),
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Send nothing; show what would be sent.")] = False,
    as_json: Json = False,
) -> None:
    """Compare the versions that the product server has with ours, and send what is missing or older there once more.

    Exit 1 when it has versions that we never sent: then one of the two was set back, and somebody should look.
    """

    async def work(house: "House") -> Resent:
        text = _lines(await _asked(house, source)) if _is_url(source) else _opened(source)
        with text, steps_done("products compared") as show:
            async for done in house.resend.difference(versions_in(text), is_trial=dry_run):
                show(done.compared, None)
        return done

    done = run(ctx, work)
    if as_json:
        put_json(shapes.resent(done))
    else:
        say(
            f"{count(done.compared, 'product')} compared: {done.same} the same, {done.older} older there, "
            f"{done.missing} missing there"
        )
        tell_resent(done, is_trial=dry_run)
        _suspect("that the server has in a version we never sent", done.newer)
        _suspect("that the server has and we do not know", done.unknown)
    if done.newer.count or done.unknown.count:
        end_badly()


def _opened(file: str) -> IO[str]:
    return Path(file).open(encoding=_ENCODING, newline="")


def _lines(body: bytes) -> IO[str]:
    return io.TextIOWrapper(io.BytesIO(body), encoding=_ENCODING, newline="")


async def _asked(house: "House", url: str) -> bytes:
    if house.product_server is None:
        raise Refused("no product server is set: versions are read from PRODUCT_SERVER_URL's server only, or a file")
    return await house.product_server.versions(url, house.clock.now())


def _suspect(what: str, found: Suspicion) -> None:
    if found.count:
        complain(f"suspicious: {count(found.count, 'product')} {what}")
        draw(table([right("item"), right("version there"), right("version here")], found.samples))
