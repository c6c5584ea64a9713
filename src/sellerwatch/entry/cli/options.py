"""Options that several commands share, by one name and one meaning."""

from typing import Annotated

import typer

from sellerwatch.entry.console.text import grouped

SIZE_MAX = 1000

Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
PageNo = Annotated[int, typer.Option("--page", min=0, help="Which page, from 0.")]
Size = Annotated[int, typer.Option("--size", min=1, max=SIZE_MAX, help="So many on a page.")]


def footer(page: int, size: int, shown: int, total: int) -> str | None:
    """Which part of a longer list was shown; None when it was all of it."""
    if shown == total:
        return None
    first = page * size
    part = f"{grouped(first + 1)} to {grouped(first + shown)}" if shown else "none"
    return f"{part} of {grouped(total)} (--page, --size)"
