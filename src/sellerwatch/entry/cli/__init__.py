"""The commands: `sellerwatch …`, also `python -m sellerwatch`. Each parses, calls one flow or report, and says what
came of it: exit 0 it is done, 1 it failed (one clear line on stderr), 2 it was used wrongly.

    door      where a command begins and its errors end
    listed    which commands there are, and the module of each
    options   what several of them share
"""

from pathlib import Path
from typing import Annotated

import typer

import sellerwatch
from sellerwatch.entry.cli.door import Commands, Start

_EPILOG = "Example: sellerwatch seller add dmont --name 'D. Mont' --crawl, then: sellerwatch up"


def _begin(
    ctx: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", help="A TOML file of settings.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Watch sellers' shops, and deliver every change of every product, inside a hard request budget."""
    ctx.obj = Start(config, debug)
    if version:
        typer.echo(sellerwatch.__version__)
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit


def _app() -> typer.Typer:
    app = typer.Typer(
        cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, epilog=_EPILOG
    )
    app.callback(invoke_without_command=True, epilog=_EPILOG)(_begin)
    return app


app = _app()


def main() -> None:
    app(prog_name="sellerwatch")
