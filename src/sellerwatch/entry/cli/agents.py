"""`sellerwatch agents …`: the identities that requests are made as, and how they stand."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Refused, Unavailable
from sellerwatch.domain.user_agents import user_agents
from sellerwatch.entry.cli.door import end_badly, group, run
from sellerwatch.entry.cli.manners import report
from sellerwatch.entry.cli.standing import status
from sellerwatch.entry.console.tables import complain, say
from sellerwatch.entry.console.text import count, left_out

if TYPE_CHECKING:
    from sellerwatch.flows.identities import Rekeyed
    from sellerwatch.wiring import House

app = group("Identities: whom requests are made as.")

USER_AGENT_MAX = 500
BATCH = 1000

Numbers = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Their numbers, as `agents status` shows.")]


@app.command(epilog="Example: sellerwatch agents seed --count 50")
def seed(
    ctx: typer.Context,
    number: Annotated[int, typer.Option("--count", min=1, help="How many of the kept list.")] = 100,
) -> None:
    """Add identities with User-Agents that shoppers really send; those known already are not added twice."""
    wanted = user_agents(number)
    added = run(ctx, lambda house: house.identities.add(wanted), makes=True)
    say(f"{count(added, 'identity', 'identities')} added, {len(wanted) - added} known already")


@app.command(epilog="Example: sellerwatch agents add user-agents.txt")
def add(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="One User-Agent a line; # begins a note."),
    ],
) -> None:
    """Add identities from a file. A bad line is named, and the others go on; then the exit code is 1."""
    good: list[str] = []
    bad: list[str] = []
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            continue
        if text.isascii() and text.isprintable() and len(text) <= USER_AGENT_MAX:
            good.append(text)
        else:
            bad.append(f"{file}:{number}: not 1 to {USER_AGENT_MAX} printable ASCII characters: {text[:60]}")
    wanted = list(dict.fromkeys(good))
    added = run(ctx, lambda house: house.identities.add(wanted), makes=True) if wanted else 0
    say(f"{count(added, 'identity', 'identities')} added, {len(good) - added} known already")
    for problem in bad:
        complain(problem)
    if bad:
        end_badly()


@app.command(epilog="Example: sellerwatch agents retire 17 18")
def retire(ctx: typer.Context, numbers: Numbers) -> None:
    """Take identities out of the pool for good; their record stays."""
    retired = run(ctx, lambda house: house.identities.retire(numbers))
    if retired:
        say(f"{count(retired, 'identity', 'identities')} retired")
    if retired < len(set(numbers)):
        complain(f"error: {left_out(numbers, retired)} not in the pool")
        end_badly()


app.command(epilog="Example: sellerwatch agents status --watch")(status)
app.command(epilog="Example: sellerwatch agents report --date 2026-11-18")(report)


@app.command(epilog="Example: sellerwatch agents suspend 17")
def suspend(ctx: typer.Context, numbers: Numbers) -> None:
    """Let identities rest: an hour later they recover by themselves, if their health allows."""
    _each(ctx, numbers, "suspended", lambda house: house.identities.suspend)


@app.command(epilog="Example: sellerwatch agents recover 17")
def recover(ctx: typer.Context, numbers: Numbers) -> None:
    """Bring suspended identities back at once, with a fresh token."""
    _each(ctx, numbers, "back", lambda house: house.identities.recover)


@app.command(epilog="Example: sellerwatch agents block 17")
def block(ctx: typer.Context, numbers: Numbers) -> None:
    """Never use identities again, until they are unblocked."""
    _each(ctx, numbers, "blocked", lambda house: house.identities.block)


@app.command(epilog="Example: sellerwatch agents unblock 17")
def unblock(ctx: typer.Context, numbers: Numbers) -> None:
    """Use blocked identities again, with a fresh token."""
    _each(ctx, numbers, "back", lambda house: house.identities.unblock)


@app.command(epilog="Example: SELLERWATCH_TOKEN_KEYS=k2:…,k1:… sellerwatch agents rekey")
def rekey(ctx: typer.Context) -> None:
    """Seal every kept token under the first of TOKEN_KEYS; then the old key may go. Exit 1 when it may not yet."""
    rekeyed = run(ctx, _rekey)
    say(f"{count(rekeyed.sealed_anew, 'token')} sealed anew")
    if rekeyed.unreadable:
        say(f"{count(rekeyed.unreadable, 'token')} no key of TOKEN_KEYS opens: discarded, new ones are asked for")
    if rekeyed.left:
        complain("error: others still seal under another key: start every process with the new TOKEN_KEYS, then again")
        end_badly()


async def _rekey(house: "House") -> "Rekeyed":
    def reseal(sealed: str, row: str) -> str:
        return house.vault.seal(house.vault.open(sealed, row), row) if house.vault.needs_rekey(sealed) else sealed

    if not await house.load_pool():
        raise Unavailable("no engine leads the pool just now, and what it holds would be left: try again")
    return await house.identities.rekey(reseal)


def _each(
    ctx: typer.Context,
    numbers: Sequence[int],
    done: str,
    verb: "Callable[[House], Callable[[int], Awaitable[None]]]",
) -> None:
    refused: list[str] = []

    async def work(house: "House") -> list[int]:
        await house.load_pool()
        changed = []
        for number in dict.fromkeys(numbers):
            try:
                await verb(house)(number)
            except Refused as refusal:
                refused.append(str(refusal))
            else:
                changed.append(number)
        return changed

    for number in run(ctx, work):
        say(f"identity {number} is {done}")
    for line in refused:
        complain(f"error: {line}")
    if refused:
        end_badly()
