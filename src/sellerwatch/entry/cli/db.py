"""`sellerwatch db …`: the shape of the database, and what in it may be forgotten."""

from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import end_badly, group, is_missing, run, settings_of
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console.tables import complain, draw, put_json, right, say, table
from sellerwatch.entry.console.text import count

if TYPE_CHECKING:
    from sellerwatch.ports.partitions import Kept, Partition
    from sellerwatch.wiring import House

app = group("The database: its shape, and what in it may be forgotten.")


@app.command(epilog="Example: sellerwatch db upgrade")
def upgrade(ctx: typer.Context) -> None:
    """Make the database, or bring it to the shape that this version needs; harmless when it is there."""
    stands = _move(ctx, None)
    say(f"the database is at {stands}")


@app.command(epilog="Example: sellerwatch db downgrade identities@base   (takes back the identity tables only)")
def downgrade(
    ctx: typer.Context,
    revision: Annotated[str, typer.Argument(metavar="REVISION", help="Where to; `base` leaves nothing.")],
) -> None:
    """Take the database back to an earlier shape. What only the later one can hold is lost."""
    stands = _move(ctx, revision)
    say(f"the database is at {stands}")


@app.command(epilog="Example: sellerwatch db check")
def check(ctx: typer.Context, as_json: Json = False) -> None:
    """Compare the database with the shape that this version needs; exit 1 when they differ."""
    from sellerwatch.adapters.sql import schema  # noqa: PLC0415 - slow to load

    async def work(house: "House") -> list[str]:
        return schema.check(house.database.engine)

    differences = run(ctx, work)
    if as_json:
        put_json(differences)
    else:
        for line in differences:
            complain(line)
    if differences:
        end_badly()
    if not as_json:
        say("the database is as it should be")


@app.command(epilog="Example: sellerwatch db partitions")
def partitions(ctx: typer.Context, as_json: Json = False) -> None:
    """Keep the months of the log of requests, where the database has partitions, and list them; harmless at any time."""
    from sellerwatch.domain.retention import usage_kept_since  # noqa: PLC0415 - slow to load

    async def work(house: "House") -> tuple["Kept", list["Partition"]]:
        at = house.clock.now()
        kept = await house.months.keep(at, usage_kept_since(at, house.settings.usage_retention_months))
        return kept, await house.months.all()

    kept, found = run(ctx, work)
    if as_json:
        put_json([{"name": each.name, "before": each.before, "rows": each.rows} for each in found])
    elif not found:
        say("SQLite has no partitions: the log of requests is pruned row by row")
    else:
        draw(table(["partition", "before", right("rows")], [_row(each) for each in found]))
        say(f"{count(len(kept.made), 'month')} made, {count(len(kept.dropped), 'month')} dropped")


@app.command(epilog="Example: sellerwatch db prune")
def prune(ctx: typer.Context) -> None:
    """Delete what is older than it may be kept, now and not little by little."""

    async def work(house: "House") -> int:
        pruned = 0
        while some := await house.forget.prune():
            pruned += some
        return pruned

    say(f"{count(run(ctx, work), 'row')} deleted")


def _row(partition: "Partition") -> tuple[str, str | None, int]:
    return partition.name, f"{partition.before:%F}" if partition.before else None, partition.rows


def _move(ctx: typer.Context, revision: str | None) -> str:
    """To the newest revision, or back to that one; where the database stands then."""
    from sellerwatch.adapters.sql import schema  # noqa: PLC0415 - slow to load
    from sellerwatch.wiring import build  # noqa: PLC0415 - slow to load

    settings = settings_of(ctx)
    if revision is not None and is_missing(settings):
        complain(f"error: there is no database {settings.database_file}")
        end_badly()
    house = build(settings)
    try:
        if revision is None:
            house.upgrade()
        else:
            schema.downgrade(house.database.engine, revision, now=house.clock.now())
        return ", ".join(schema.current(house.database.engine)) or "no revision: it is empty"
    finally:
        house.database.close()
