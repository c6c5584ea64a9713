"""`python -m bench`: the bare fetch loop, the weekend script and our walk, each in a fresh process against a fresh world.

--shops 10x500 1x20000   shops x products, one table each (the default is these two)
--quick                  2x250: does it still run?
--only walk              some of: bare, weekend, walk
--profile                the walk under pyinstrument, a text report into a temporary file; its figures are not comparable
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.measured import Account, told
from bench.world import world

SCENARIOS = {
    "bare": ("fetch_loop", "bare fetch loop"),
    "weekend": ("weekend", "weekend script"),
    "walk": ("walk", "Sellerwatch"),
}
Shops = dict[str, int]


def main() -> int:
    options = _options()
    console = Console()
    for shops in options.shops:
        amount = next(iter(shops.values()))
        table = _table(f"{len(shops)} x {amount} products")
        bare = None
        for name in options.only:
            module, title = SCENARIOS[name]
            report = _report() if options.profile and name == "walk" else None
            with console.status(f"{title}, {len(shops)} x {amount}"):
                account = _run(module, shops, report)
            bare = account.laps[0].cpu_per_1000 if name == "bare" else bare
            _add(table, title, account, bare)
            if report:
                console.print(f"profile: {report}", soft_wrap=True)
        console.print(table)
    return 0


def _run(module: str, shops: Shops, report: Path | None) -> Account:
    arguments = [json.dumps(shops), *([str(report)] if report else [])]
    # Whatever is set on this machine, the bench runs as its scenarios say.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SELLERWATCH_")}
    with world(shops) as url:
        command = [sys.executable, "-m", f"bench.{module}", url, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {module} failed")
    return told(done.stdout.splitlines()[-1])


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    table.add_column("crawl", no_wrap=True)
    for name in ("CPU s/1 000", "x bare", "wall s", "delivered", "peak MB"):
        table.add_column(name, justify="right")
    return table


def _add(table: Table, title: str, account: Account, bare: float | None) -> None:
    for lap in account.laps:
        is_first = lap is account.laps[0]
        table.add_row(
            title if is_first else "",
            lap.name,
            f"{lap.cpu_per_1000:.2f}",
            f"{lap.cpu_per_1000 / bare:.1f}" if bare else "",
            f"{lap.wall_seconds:.1f}",
            str(lap.delivered or ""),
            f"{account.peak_mb:.0f}" if is_first else "",
        )
    table.caption = f"{table.caption or ''}{title}: {account.note.removeprefix('; ')}\n"


def _report() -> Path:
    handle, path = tempfile.mkstemp(prefix="sellerwatch-profile-", suffix=".txt")
    os.close(handle)
    return Path(path)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="CPU per product, and peak memory.")
    parser.add_argument("--shops", nargs="+", type=_shops, default=[_shops("10x500"), _shops("1x20000")], metavar="NxM")
    parser.add_argument("--quick", action="store_const", dest="shops", const=[_shops("2x250")], help="2x250 only")
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--profile", action="store_true", help="Sellerwatch under pyinstrument")
    return parser.parse_args()


def _shops(given: str) -> Shops:
    match = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,6})", given)
    if not match:
        raise argparse.ArgumentTypeError(f"{given}: not shops x products, such as 10x500")
    count, products = map(int, match.groups())
    return {f"shop-{number:02}": products for number in range(1, count + 1)}


if __name__ == "__main__":
    raise SystemExit(main())
