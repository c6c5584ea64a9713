"""The shape of the database: upwards, downwards, where it stands, and whether it is what `tables` says.

Promises: on SQLite a change of shape happens whole or not at all; on MySQL, whose definitions commit by themselves,
each revision is noted when it is done. "head" and "base" mean both lines of revisions (see `migrations`);
`identities@base` takes back the seven identity tables and leaves the rest.
"""

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    Engine,
    MetaData,
    Table,
    func,
    inspect,
    select,
    text,
)

from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.dialect import SQLITE, for_definitions, for_dialect
from sellerwatch.domain.errors import Invalid

Way = Literal["up", "down"]
_MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine, revision: str = "head", *, now: datetime | None = None) -> None:
    """Go up to `revision`. `now` is the time of the seeds and of the first partition; without it, the database's."""
    _move(engine, "up", "heads" if revision == "head" else revision, now)


def downgrade(engine: Engine, revision: str, *, now: datetime | None = None) -> None:
    """Go down to `revision`: "base" leaves nothing, "identities@base" leaves everything but the identities."""
    _move(engine, "down", revision, now)


def current(engine: Engine) -> tuple[str, ...]:
    """The revisions the database stands at, one per line; none when it is empty."""
    with engine.connect() as connection:
        return tuple(sorted(MigrationContext.configure(connection).get_current_heads()))


def behind(connection: Connection) -> str:
    """Where the database stands, when that is not where this version would bring it; else nothing."""
    stands = sorted(MigrationContext.configure(connection).get_current_heads())
    wanted = sorted(ScriptDirectory(str(_MIGRATIONS)).get_heads())
    return "" if stands == wanted else (", ".join(stands) or "no revision at all")


def check(engine: Engine) -> list[str]:
    """How the database differs from the tables, a line each; empty when it does not."""
    with engine.connect() as connection:
        wanted = for_dialect(tables.metadata, connection.dialect.name)
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_server_default": _defaults_differ,
                # Alembic knows no direction of indexes and no checks; `_keys` compares those.
                "include_object": lambda _item, _name, kind, *_rest: kind != "index",
            },
        )
        lines = [line for difference in compare_metadata(context, wanted) for line in _told(difference)]
        return sorted([*lines, *_keys(connection, wanted)])


def script(dialect_name: str, *, now: datetime) -> str:
    """The statements that make everything out of nothing, for reading or for somebody else's hands; none is run."""
    output = StringIO()
    with _environment("up", "heads", now, as_sql=True) as environment:
        environment.configure(dialect_name=dialect_name, output_buffer=output, literal_binds=True)
        environment.run_migrations()
    return output.getvalue()


def _move(engine: Engine, way: Way, revision: str, now: datetime | None) -> None:
    with (
        for_definitions(engine).begin() as connection,
        _environment(way, revision, now or _now(connection)) as environment,
    ):
        # What SQLite does between BEGIN and COMMIT it does whole, definitions included.
        environment.configure(connection=connection, transactional_ddl=connection.dialect.name == SQLITE)
        try:
            environment.run_migrations()
        except CommandError as error:
            raise Invalid("revision", revision, f"a revision of this database ({error})") from error


def _environment(way: Way, revision: str, now: datetime, *, as_sql: bool = False) -> EnvironmentContext:
    """Alembic without its ini file and env.py: nothing of ours runs by being found in a folder."""
    config = Config(attributes={"now": now.astimezone(UTC)})
    found = ScriptDirectory(str(_MIGRATIONS))

    def steps(standing: Any, _context: MigrationContext) -> list[RevisionStep]:
        # Alembic's own commands call these two; it has no public name for them.
        if way == "up":
            return list(found._upgrade_revs(revision, standing))  # noqa: SLF001
        return list(found._downgrade_revs(revision, standing))  # noqa: SLF001

    return EnvironmentContext(config, found, fn=steps, as_sql=as_sql, destination_rev=revision)


def _now(connection: Connection) -> datetime:
    if connection.dialect.name == SQLITE:
        at = datetime.fromisoformat(connection.execute(select(func.datetime("now"))).scalar_one())
    else:
        at = connection.execute(select(func.utc_timestamp(type_=DateTime()))).scalar_one()
    return at.replace(tzinfo=UTC)


def _defaults_differ(
    _context: MigrationContext,
    _found: Column[Any],
    _wanted: Column[Any],
    found: str | None,
    _of: Any,
    wanted: str | None,
) -> bool | None:
    """Numbers by their value: MariaDB gives a default of a DECIMAL the places of its column. Else Alembic judges."""
    try:
        return float((found or "").strip("'")) != float((wanted or "").strip("'"))
    except ValueError:
        return None


def _told(difference: Any) -> list[str]:
    if isinstance(difference, list):
        return [line for one in difference for line in _told(one)]
    match difference:
        case ("add_table", table):
            return [f"table {table.name} is missing"]
        case ("remove_table", table):
            return [f"table {table.name} is unknown"]
        case ("add_column", _, table, column):
            return [f"column {table}.{column.name} is missing"]
        case ("remove_column", _, table, column):
            return [f"column {table}.{column.name} is unknown"]
        case (str(what), _, table, column, _, found, wanted) if what.startswith("modify_"):
            return [f"column {table}.{column}: {what.removeprefix('modify_')} is {_plain(found)}, not {_plain(wanted)}"]
    return [f"{difference[0]}: {difference[1:]}"]


def _plain(value: Any) -> str:
    return str(getattr(value, "arg", value))


def _keys(connection: Connection, wanted: MetaData) -> list[str]:
    """Primary keys, indexes and checks of the tables that are there."""
    lines = []
    inspector = inspect(connection)
    there = set(inspector.get_table_names())
    for table in wanted.tables.values():
        if table.name not in there:
            continue
        lines += _compared(
            f"index of {table.name}", _indexes(connection, table.name), _wanted_indexes(table, connection)
        )
        primary = inspector.get_pk_constraint(table.name)["constrained_columns"]
        if primary != [column.name for column in table.primary_key.columns]:
            lines.append(f"primary key of {table.name} is {primary}")
        checks = {str(check["name"]): "there" for check in inspector.get_check_constraints(table.name)}
        named = {str(each.name): "there" for each in table.constraints if isinstance(each, CheckConstraint)}
        lines += _compared(f"check of {table.name}", checks, named)
    return lines


def _compared(what: str, found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    missing = [f"{what}: {name} is missing" for name in wanted.keys() - found.keys()]
    unknown = [f"{what}: {name} is unknown" for name in found.keys() - wanted.keys()]
    other = [
        f"{what}: {name} is {found[name]}, not {wanted[name]}"
        for name in wanted.keys() & found.keys()
        if found[name] != wanted[name]
    ]
    return missing + unknown + other


def _wanted_indexes(table: Table, connection: Connection) -> dict[str, str]:
    wanted = {}
    for index in table.indexes:
        columns = [each.name if isinstance(each, Column) else str(each) for each in index.expressions]
        if connection.dialect.name != SQLITE:
            # MariaDB took the word and forgot it until 10.8.
            columns = [name.removesuffix(" DESC") for name in columns]
        wanted[str(index.name)] = _shown(columns, unique=bool(index.unique))
    return wanted


def _indexes(connection: Connection, table: str) -> dict[str, str]:
    found = {}
    for index in inspect(connection).get_indexes(table):
        columns = [str(name) for name in index["column_names"]]
        if connection.dialect.name == SQLITE:
            rows = connection.execute(
                text("SELECT name, desc FROM pragma_index_xinfo(:i) WHERE key"), {"i": index["name"]}
            )
            columns = [f"{name} DESC" if down else str(name) for name, down in rows]
        found[str(index["name"])] = _shown(columns, unique=bool(index["unique"]))
    return found


def _shown(columns: list[str], *, unique: bool) -> str:
    return f"{'unique ' if unique else ''}({', '.join(columns)})"
