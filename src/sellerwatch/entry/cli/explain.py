"""`sellerwatch explain …`: the first thing that holds somebody up, from the schedule to the delivery."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from sellerwatch.domain.verdicts import Verdict
from sellerwatch.entry.cli.door import group, run
from sellerwatch.entry.cli.options import Json
from sellerwatch.entry.console.tables import draw, put_json
from sellerwatch.entry.console.verdicts import drawn, shape

if TYPE_CHECKING:
    from sellerwatch.wiring import House

app = group("Explain what holds a seller, a task or an identity up.")
Name = Annotated[str, typer.Argument(metavar="ID", help="Its id.")]


@app.command(epilog="Example: sellerwatch explain seller dmont")
def seller(ctx: typer.Context, seller_id: Name, as_json: Json = False) -> None:
    """Why a seller is not crawled, or its changes do not arrive."""
    _explain(ctx, "seller", seller_id, lambda house: house.explain.seller(seller_id), as_json=as_json)


@app.command(epilog="Example: sellerwatch explain task 8a1f0c52-…")
def task(ctx: typer.Context, task_id: Name, as_json: Json = False) -> None:
    """Why a task is not done."""
    _explain(ctx, "task", task_id, lambda house: house.explain.task(task_id), as_json=as_json)


@app.command(epilog="Example: sellerwatch explain agent 17")
def agent(ctx: typer.Context, agent_id: Name, as_json: Json = False) -> None:
    """Why an identity makes no requests; by its number or its UUID."""
    _explain(ctx, "agent", agent_id, lambda house: house.explain.identity(agent_id), as_json=as_json)


def _explain(
    ctx: typer.Context, subject: str, name: str, ask: "Callable[[House], Awaitable[Verdict]]", *, as_json: bool
) -> None:
    async def work(house: "House") -> tuple[Verdict, datetime]:
        return await ask(house), house.clock.now()

    verdict, at = run(ctx, work)
    if as_json:
        put_json(shape(subject, name, verdict, at))
    else:
        draw(drawn(f"{subject} {name}", verdict, at))
