"""`sellerwatch dlq …`: messages that were received too often, or could not be understood."""

from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import end_badly, group, run
from sellerwatch.entry.cli.options import Json, check_one
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.tables import complain, draw, put_json, right, say, table
from sellerwatch.entry.console.text import count, left_out, moment

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Dead letters: messages received too often, or not understood.")


@app.command("list", epilog="Example: sellerwatch dlq list --json")
def list_letters(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 50,
    as_json: Json = False,
) -> None:
    """List the dead letters, with why they are."""
    letters = run(ctx, lambda house: house.repair.dead_letters(limit))
    if as_json:
        put_json([shapes.dead_letter(letter) for letter in letters])
        return
    if not letters:
        say("there are no dead letters")
        return
    rows = [(one.letter_id, one.task_id, one.group, one.receives, moment(one.sent_at), one.error) for one in letters]
    draw(table(["id", "task", "group", right("received"), "sent", "error"], rows))


@app.command(epilog="Example: sellerwatch dlq redrive --all")
def redrive(
    ctx: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="As `dlq list` shows them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Put dead letters back into the queue, as new messages."""
    check_one(ctx, "ID… or --all", first=bool(ids), second=everything)

    async def work(house: "House") -> int:
        return await house.repair.redrive(ids)

    driven = run(ctx, work)
    if driven or not ids:
        say(f"{count(driven, 'dead letter')} back in the queue")
    if ids and driven < len(set(ids)):
        complain(f"error: {left_out(ids, driven)} not among the dead letters")
        end_badly()
