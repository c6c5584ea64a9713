"""`sellerwatch outbox …`: what is still to be sent, what could not be, and what is held back."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.entry.cli.door import end_badly, group, run
from sellerwatch.entry.cli.options import Json, PageNo, Size, check_one, checked, footer, moment_of, time_of
from sellerwatch.entry.console import shapes
from sellerwatch.entry.console.tables import Column, complain, draw, put_json, right, say, table
from sellerwatch.entry.console.text import count, moment
from sellerwatch.entry.console.trust import quarantine_shape, quarantine_table
from sellerwatch.flows.decide import Decided
from sellerwatch.flows.repair import BATCH, Repaired
from sellerwatch.flows.resend import Resent
from sellerwatch.ports.reports import Box, OutboxRow, Page, QuarantineRow

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Outboxes: what is still to be sent, what could not be, what is held.")

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of rows, as `outbox list` shows them.")]
HeldIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Ids of rows or quarantines, as `outbox held` shows them.")
]


@app.command("list", epilog="Example: sellerwatch outbox list --box product --status FAILED")
def list_rows(
    ctx: typer.Context,
    box: Annotated[Box, typer.Option("--box", case_sensitive=False, help="Which of the three.")] = Box.PRODUCT,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only rows of this status, like FAILED.")
    ] = None,
    page: PageNo = 0,
    size: Size = 50,
    as_json: Json = False,
) -> None:
    """List the rows of an outbox, the oldest first."""
    wanted = status.upper() if status else None
    known = [each.value for each in (TaskOutboxStatus if box is Box.TASK else OutboxStatus)]
    if wanted is not None and wanted not in known:
        said = f"{status!r} is not one of {', '.join(known)}, as the {box} outbox knows them"
        raise typer.BadParameter(said, ctx, param_hint="--status")
    found = run(ctx, lambda house: house.reports.outbox(box, status=wanted, page=page, size=size))
    if as_json:
        put_json([shapes.outbox(row) for row in found.rows])
    elif found.total:
        _show(found)
    else:
        say(f"the {box} outbox has no row" + (f" that is {wanted}" if wanted else ""))


@app.command(epilog="Example: sellerwatch outbox held")
def held(ctx: typer.Context, page: PageNo = 0, size: Size = 50, as_json: Json = False) -> None:
    """List what is held back until somebody releases or discards it, and the quarantines it is held by."""

    async def work(house: "House") -> tuple[Page[OutboxRow], Sequence[QuarantineRow]]:
        rows = await house.reports.outbox(Box.PRODUCT, status="HELD", page=page, size=size)
        return rows, await _open_quarantines(house)

    found, quarantines = run(ctx, work)
    if as_json:
        shown = {"quarantines": [quarantine_shape(row) for row in quarantines]}
        put_json({**shown, "rows": [shapes.outbox(row) for row in found.rows]})
        return
    if quarantines:
        draw(quarantine_table(quarantines))
    if found.total:
        _show(found)
    elif not quarantines:
        say("nothing is held")


@app.command(epilog="Example: sellerwatch outbox retry --since 6h")
def retry(
    ctx: typer.Context,
    ids: Ids = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="All FAILED ones since 2026-11-18T09:30 (UTC), or 6h.",
            callback=checked(time_of),
        ),
    ] = None,
) -> None:
    """Send FAILED rows again, by id or since a time; an id may be of any of the three outboxes.

    A product's row of which a newer version has arrived is not sent any more: it becomes COMPLETED.
    """
    check_one(ctx, "ID… or --since", first=bool(ids), second=since is not None)

    async def work(house: "House") -> Repaired:
        if since is None:
            return await house.repair.retry(ids or [])
        at = moment_of(since, house.clock.now())
        repaired = await house.repair.retry_since(at)
        others = [
            row for box in (Box.SCHEDULER, Box.TASK) for row in await _rows(house, box, status="FAILED", since=at)
        ]
        rest = await house.repair.retry(others)
        return Repaired(repaired.done + rest.done, repaired.superseded, repaired.refused + rest.refused)

    repaired = run(ctx, work)
    _tell(repaired, "sent again")
    if repaired.superseded:
        say(f"{count(repaired.superseded, 'row')} completed: a newer version has arrived")


@app.command(epilog="Example: sellerwatch outbox release --all")
def release(
    ctx: typer.Context,
    ids: HeldIds = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that is held.")] = False,
) -> None:
    """Let what is held go on its way; a quarantine goes as a whole, whichever of its rows is named."""

    async def work(house: "House") -> Decided:
        return await house.decide.release(await _held(house, ids))

    check_one(ctx, "ID… or --all", first=bool(ids), second=everything)
    _tell_decided(run(ctx, work), "released")


@app.command(epilog="Example: sellerwatch outbox discard 019a0000-0000-7000-8000-000000000000")
def discard(
    ctx: typer.Context,
    ids: HeldIds = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that is held.")] = False,
) -> None:
    """Never send what is held; a quarantine goes as a whole, whichever of its rows is named."""

    async def work(house: "House") -> Decided:
        return await house.decide.discard(await _held(house, ids))

    check_one(ctx, "ID… or --all", first=bool(ids), second=everything)
    _tell_decided(run(ctx, work), "discarded")


@app.command(epilog="Example: sellerwatch outbox resend --seller dmont")
def resend(
    ctx: typer.Context,
    seller: Annotated[str | None, typer.Option("--seller", metavar="ID", help="Of this seller.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Of all sellers.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
) -> None:
    """Send the newest version of every complete product once more, when the receiver has lost them."""
    check_one(ctx, "--seller or --all", first=seller is not None, second=everything)

    async def work(house: "House") -> Resent:
        if seller is not None and await house.reports.seller(seller) is None:
            raise Unknown("seller", seller)
        return [done async for done in house.resend.everything(seller, is_trial=dry_run)][-1]

    tell_resent(run(ctx, work), is_trial=dry_run)


def tell_resent(done: Resent, *, is_trial: bool) -> None:
    say(f"{count(done.sent, 'product')} {'would' if is_trial else 'will'} be sent once more")
    if done.on_their_way:
        say(f"{count(done.on_their_way, 'product')} left alone: the newest version is on its way, or held")


async def _held(house: "House", ids: Sequence[str] | None) -> Sequence[str]:
    if ids:
        return ids
    quarantines = await _open_quarantines(house)
    alone = await _rows(house, Box.PRODUCT, status="HELD", alone=True)
    return [*(row.quarantine_id for row in quarantines), *alone]


async def _open_quarantines(house: "House") -> list[QuarantineRow]:
    rows: list[QuarantineRow] = []
    page = 0
    while len(rows) == page * BATCH:
        found = await house.reports.quarantines(status=QuarantineStatus.OPEN, page=page, size=BATCH)
        rows += found.rows
        page += 1
    return rows


async def _rows(
    house: "House", box: Box, *, status: str, since: datetime | None = None, alone: bool = False
) -> list[str]:
    """The ids of all rows of that status; `alone`: of those that no quarantine holds."""
    ids: list[str] = []
    number = 0
    while rows := await house.reports.outbox_after(box, number, BATCH, status=status, since=since):
        ids += [row.outbox_id for row in rows if not (alone and row.quarantine_id)]
        number = rows[-1].number
    return ids


def _show(found: Page[OutboxRow]) -> None:
    rows = [
        (
            row.outbox_id,
            row.subject,
            row.event,
            row.version,
            row.status,
            row.retry_count,
            moment(row.created_at),
            moment(row.next_attempt_at) if row.sent_at is None else f"sent {moment(row.sent_at)}",
            row.error_message,
        )
        for row in found.rows
    ]
    titles: list[Column | str] = [
        "id",
        "about",
        "event",
        right("version"),
        "status",
        right("retries"),
        "written",
        "next",
        "error",
    ]
    draw(table(titles, rows))
    if more := footer(found.page, found.size, len(rows), found.total):
        say(more)


def _tell_decided(decided: Decided, done: str) -> None:
    for quarantine in decided.quarantines:
        say(
            f"the crawl of {quarantine.seller_id} is {done}: {count(quarantine.documents, 'document')}, "
            f"{count(quarantine.events, 'event')}"
        )
    say(f"{count(decided.events, 'row')} {done}")
    for line in decided.refused:
        complain(f"error: {line}")
    if decided.refused:
        end_badly()


def _tell(repaired: Repaired, done: str) -> None:
    say(f"{count(repaired.done, 'row')} {done}")
    for line in repaired.refused:
        complain(f"error: {line}")
    if repaired.refused:
        end_badly()
