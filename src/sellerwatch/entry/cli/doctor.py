"""`sellerwatch doctor`: what is wrong, and what to do about it."""

from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.entry.cli.door import end_badly, group, is_missing, settings_of
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console.tables import put_json, terminal
from sellerwatch.entry.console.text import visible

if TYPE_CHECKING:
    from sellerwatch.entry.diagnosis import Finding
    from sellerwatch.settings import Settings

app = group("A diagnosis.")

_MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "wrong": ("✗", "red")}


@app.command(epilog="Example: sellerwatch doctor --online")
def doctor(
    ctx: typer.Context,
    online: Annotated[bool, typer.Option("--online", help="Ask the marketplace too: one request on a lease.")] = False,
    as_json: Json = False,
) -> None:
    """Check settings, database, pool, queue, schedule and product server. Exit 1 when something is wrong."""
    from sellerwatch.entry.process import started  # noqa: PLC0415 - everything is behind it

    findings = started(_examine(ctx, is_online=online))
    if as_json:
        put_json(
            [{"part": f.part, "state": f.state.value, "said": f.said, "advice": f.advice or None} for f in findings]
        )
    else:
        _show(findings)
    if any(finding.state == "wrong" for finding in findings):
        end_badly()


async def _examine(ctx: typer.Context, *, is_online: bool) -> "list[Finding]":
    from sellerwatch.entry.diagnosis import Finding, State, diagnose  # noqa: PLC0415 - everything is behind it
    from sellerwatch.settings import SettingsRefused  # noqa: PLC0415
    from sellerwatch.wiring import opened  # noqa: PLC0415

    try:
        settings = settings_of(ctx)
    except SettingsRefused as refused:
        return [Finding("settings", State.WRONG, problem, "docs/settings.md") for problem in refused.problems]
    found = [Finding("settings", State.NOTE, line) for line in settings.warnings()]
    found = found or [Finding("settings", State.GOOD, "all as they should be")]
    if is_missing(settings):
        return [*found, _no_database(settings)]
    async with opened(settings) as house:
        return [*found, *await diagnose(house, is_online=is_online)]


def _no_database(settings: "Settings") -> "Finding":
    from sellerwatch.entry.diagnosis import Finding, State  # noqa: PLC0415 - everything is behind it

    said = f"there is no {settings.database_file or 'database'} yet"
    return Finding("database", State.WRONG, said, "make it: `sellerwatch db upgrade`, or just `sellerwatch up`")


def _show(findings: "list[Finding]") -> None:
    from rich.text import Text  # noqa: PLC0415 - slow to load

    console = terminal()
    for finding in findings:
        mark, style = _MARKS[finding.state.value]
        line = Text.assemble((mark, style), f" {finding.part:<15} ", visible(finding.said))
        console.print(line, soft_wrap=True)
        if finding.advice:
            console.print(Text(f"    → {visible(finding.advice)}", style="dim"), soft_wrap=True)
