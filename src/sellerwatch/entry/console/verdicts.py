"""A verdict, for people and for programs: who holds it up, since when, until when, and what to do."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sellerwatch.domain.products import shown_at
from sellerwatch.domain.verdicts import Culprit, Finding, Verdict
from sellerwatch.entry.console.text import since, until, visible

if TYPE_CHECKING:
    from rich.text import Text

# What is as it should be, or ends by itself soon: named, not painted red.
_CALM = frozenset(
    {Culprit.NOTHING, Culprit.EXECUTION_OPEN, Culprit.TASK_WAITS, Culprit.IDENTITY_LENT, Culprit.BUDGET_SPENT}
)


def shape(subject: str, name: str, verdict: Verdict, at: datetime) -> dict[str, Any]:
    """As the API and `--json` tell it."""
    found = verdict.found
    return {
        "subject": subject,
        "id": name,
        "at": shown_at(at),
        "culprit": verdict.culprit.value,
        "stage": found.stage.value,
        "text": found.text,
        "since": _shown(found.since),
        "clearsAt": _shown(found.clears_at),
        "needsAPerson": found.needs_a_person,
        "advice": found.advice or None,
        "walked": [
            {"stage": each.stage.value, "isClear": each.culprit is None, "text": each.text} for each in verdict.walked
        ],
    }


def drawn(title: str, verdict: Verdict, at: datetime) -> "Text":
    from rich.text import Text  # noqa: PLC0415 - slow to load

    text = Text()
    text.append(f"{visible(title)}\n\n", "bold")
    for finding in verdict.walked:
        mark, style = ("✓", "green") if finding.culprit is None else ("▶", _style(verdict))
        text.append(f"  {mark} ", style)
        text.append(f"{finding.stage:<10}", "dim")
        text.append(f"{visible(finding.text)}\n")
    text.append("\n")
    text.append(f"{verdict.culprit}", f"bold {_style(verdict)}")
    text.append(f"  {visible(verdict.found.text)}\n")
    for name, line in _lines(verdict.found, at):
        text.append(f"  {name:<8}", "dim")
        text.append(f"{visible(line)}\n")
    text.rstrip()
    return text


def _lines(found: Finding, at: datetime) -> list[tuple[str, str]]:
    lines = []
    if found.since:
        lines.append(("since", f"{found.since:%F %H:%M:%S} UTC, {since(found.since, at)} ago"))
    if found.clears_at:
        lines.append(("clears", f"{until(found.clears_at, at)}, at {found.clears_at:%F %H:%M:%S} UTC"))
    elif found.needs_a_person:
        lines.append(("clears", "when a person does something"))
    elif found.culprit:
        lines.append(("clears", "by itself; when, is not known"))
    if found.advice:
        lines.append(("do", found.advice))
    return lines


def _style(verdict: Verdict) -> str:
    if verdict.culprit in _CALM:
        return "green" if verdict.culprit is Culprit.NOTHING else "yellow"
    return "red"


def _shown(at: datetime | None) -> str | None:
    return shown_at(at) if at else None
