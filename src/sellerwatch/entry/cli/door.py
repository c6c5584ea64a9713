"""Where every command begins and where its errors end.

    settings ─▶ house (opened, its schema checked) ─▶ the command's work ─▶ closed ─▶ exit 0
    refused, troubled, away, broken ─▶ one clear line on stderr ─▶ exit 1        wrong use ─▶ exit 2

Promises: no traceback unless `--debug` asks for it; nothing heavy is loaded before a command needs it. An embedded
database that does not exist yet is made by commands that write, and asked for by those that only read.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import typer
from typer.core import TyperGroup
from typer.main import get_group

from sellerwatch.domain.errors import Refused, SellerwatchError
from sellerwatch.entry.cli.listed import LISTED, Listed
from sellerwatch.entry.console.tables import complain

if TYPE_CHECKING:
    from sellerwatch.settings import Settings
    from sellerwatch.wiring import House

T = TypeVar("T")
_DATABASE_ROOMS = ("sqlalchemy", "sqlite3", "pymysql", "MySQLdb", "alembic")


class Start(NamedTuple):
    """What was said before the command's name."""

    config: Path | None = None
    is_debug: bool = False


class Commands(TyperGroup):
    """The root of all commands: errors end here, whichever command they come from."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._listed = {listed.name: listed for listed in LISTED}
        # The names alone: what is behind them is loaded when it is used.
        self.commands = dict.fromkeys(self._listed)  # type: ignore[assignment]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - typer's signature
        listed = self._listed.get(cmd_name)
        return _loaded(listed) if listed else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        with formatter.section("Commands"):
            formatter.write_dl([(listed.name, listed.about) for listed in LISTED])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except Exception as error:
            # What typer itself raises carries its exit code: wrong use, an exit that was asked for.
            if hasattr(error, "exit_code") or isinstance(error, typer.Abort) or _start(ctx).is_debug:
                raise
            for line in told(error):
                complain(f"error: {line}")
            raise typer.Exit(1) from error


class Group(TyperGroup):
    """A group of commands; of each its first sentence is shown, whole."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(command.help)) for name, command in commands if command])


def group(about: str) -> typer.Typer:
    """A group of commands, in plain help: the drawn one takes three times as long to appear."""
    return typer.Typer(cls=Group, help=about, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def run(ctx: typer.Context, work: "Callable[[House], Awaitable[T]]", *, makes: bool = False) -> T:
    """Do `work` in a house of its own. `makes`: this command may be the first ever, and makes the database."""
    import asyncio  # noqa: PLC0415 - slow to load

    from sellerwatch.wiring import opened  # noqa: PLC0415 - everything is behind it

    settings = settings_of(ctx)
    is_new = is_missing(settings)
    if is_new and not makes:
        raise Refused(f"there is no database {settings.database_file} yet: run `sellerwatch db upgrade`")

    async def within() -> T:
        async with opened(settings) as house:
            if is_new:
                house.upgrade()
            else:
                await house.check_schema()
            return await work(house)

    return asyncio.run(within())


def settings_of(ctx: typer.Context, **overrides: object) -> "Settings":
    from sellerwatch.settings import load  # noqa: PLC0415 - slow to load

    return load(_start(ctx).config, overrides or None)


def is_missing(settings: "Settings") -> bool:
    """Whether the embedded database has not been made yet."""
    file = settings.database_file
    return settings.embedded and (file is None or not file.exists())


def told(error: Exception) -> list[str]:
    """What went wrong, a line each."""
    if isinstance(error, SellerwatchError):
        return str(error).splitlines()
    if type(error).__module__.split(".")[0] in _DATABASE_ROOMS:
        cause = getattr(error, "orig", None) or error
        return [f"database: {_first_line(cause)}"]
    if isinstance(error, OSError) and error.strerror:
        return [f"{error.filename}: {error.strerror}" if error.filename else error.strerror]
    return [f"unexpected {type(error).__name__}: {_first_line(error)} (`sellerwatch --debug …` tells where)"]


def end_badly() -> NoReturn:
    """Exit 1; what went wrong has been told."""
    raise typer.Exit(1)


def _loaded(listed: Listed) -> Any:
    found = get_group(import_module(f"{__package__}.{listed.module}").app)
    return found if listed.is_group else found.commands[listed.name]


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n", 1)[0].split()).partition(". ")[0].rstrip(".") + "."


def _start(ctx: Any) -> Start:
    found = ctx.find_object(Start)
    return found if isinstance(found, Start) else Start()


def _first_line(error: object) -> str:
    return next(iter(str(error).splitlines()), "no reason given")
