"""Real processes in a folder of their own: a sandbox, `sellerwatch up` on a SQLite file, commands, and what became of it.

Every process is ended by its own id at the latest when the town is left. What is compared comes from outside: the
sandbox's truth and the product server's copies over HTTP, the products as the `product export` command writes them,
and counts by plain SQL.
"""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from sellerwatch.sandbox.truth import disagreements
from servers import MariaDb

NAME = "town"
TOKEN_KEYS = "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
JWT_SECRET = "of the tests, thirty-two bytes and some more"
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
STEP_SECONDS = 0.05
PATIENCE = 90.0
OPEN = {
    "executions": "SELECT count(*) FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')",
    "tasks": "SELECT count(*) FROM crawler_tasks WHERE status NOT IN ('SUCCESS', 'FAILED')",
    "attempts": "SELECT count(*) FROM crawl_executions WHERE status = 'RUNNING'",
    "task outbox": "SELECT count(*) FROM crawler_task_outbox WHERE status IN ('PENDING', 'PROCESSING')",
    "raws": "SELECT count(*) FROM product_raw_data WHERE status = 'PENDING'",
    "product outbox": "SELECT count(*) FROM product_outbox WHERE status IN ('WAITING', 'SENDING')",
    "scheduler outbox": "SELECT count(*) FROM scheduler_outbox WHERE status IN ('WAITING', 'SENDING')",
    "messages": "SELECT count(*) FROM queue_messages WHERE state = 'READY'",
}
BAD = {
    "failed tasks": "SELECT count(*) FROM crawler_tasks WHERE status = 'FAILED'",
    "failed executions": "SELECT count(*) FROM crawling_schedule_executions WHERE status != 'COMPLETED'",
    "failed raws": "SELECT count(*) FROM product_raw_data WHERE status = 'FAILED'",
    "failed deliveries": "SELECT count(*) FROM product_outbox WHERE status = 'FAILED'",
    "dead letters": "SELECT count(*) FROM queue_messages WHERE state = 'DEAD'",
    "miscounted executions": """
        SELECT count(*) FROM crawling_schedule_executions e
        WHERE (e.total_tasks_created, e.completed_tasks, e.failed_tasks) != (
            SELECT count(*), coalesce(sum(t.status = 'SUCCESS'), 0), coalesce(sum(t.status = 'FAILED'), 0)
            FROM crawler_tasks t WHERE t.execution_id = e.execution_id)""",
    "changes that no delivery tells of": """
        SELECT count(*) FROM product_changes c LEFT JOIN product_outbox o
        ON o.product_id = c.product_id AND o.version = c.version WHERE o.outbox_id IS NULL""",
}


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@dataclass
class Running:
    """A command that goes on until it is ended; what it says is kept in two files."""

    process: "subprocess.Popen[bytes]"
    out: Path
    err: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def says(self) -> str:
        return self.out.read_text(encoding="utf-8") + self.err.read_text(encoding="utf-8")

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def until_it_says(self, what: str, seconds: float = PATIENCE) -> str:
        """The line with that in it."""

        def has_come() -> bool:
            assert self.is_alive() or what in self.out.read_text(encoding="utf-8"), self.says()
            return what in self.out.read_text(encoding="utf-8")

        until(has_come, seconds, lambda: f"it never said {what!r}: {self.says()}")
        return next(line for line in self.out.read_text(encoding="utf-8").splitlines() if what in line)

    def kill(self) -> None:
        """As `kill -9` does."""
        self.process.kill()
        self.process.wait(30)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def ended(self, seconds: float = PATIENCE) -> int:
        return self.process.wait(seconds)


@dataclass
class Town:
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    mariadb: MariaDb | None = None
    """None: a SQLite file in the folder."""
    environment: dict[str, str] = field(default_factory=dict)
    """What its processes find besides the settings."""
    started: list[Running] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.folder / "sellerwatch.db"

    @property
    def market(self) -> str:
        return self.settings["MARKETPLACE_URL"]

    def set(self, **settings: object) -> None:
        """From the next command on."""
        self.settings |= {name.upper(): str(value) for name, value in settings.items()}

    def start(self, *words: str) -> Running:
        number = len(self.started)
        out, err = self.folder / f"{number}-{words[0]}.out", self.folder / f"{number}-{words[0]}.err"
        with out.open("wb") as to, err.open("wb") as bad:
            process = subprocess.Popen(
                [sys.executable, "-m", "sellerwatch", *words],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=bad,
            )
        self.started.append(Running(process, out, err))
        return self.started[-1]

    def sandbox(self, *words: str, port: int = 0, **shops: int) -> Running:
        """A marketplace and product server; from now on ours."""
        sellers = ",".join(f"{name}={amount}" for name, amount in shops.items())
        running = self.start("sandbox", "--port", str(port), "--sellers", sellers, "--secret", SECRET, *words)
        address = running.until_it_says("MARKETPLACE_URL=").partition("=")[2]
        self.set(marketplace_url=address, product_server_url=f"{address}/products", product_server_secret=SECRET)
        return running

    def up(self, *, port: int = 0) -> Running:
        return self.start("up", "--port", str(port))

    def type(self, *words: str, seconds: float = PATIENCE) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "sellerwatch", *words],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def does(self, *words: str) -> str:
        said = self.type(*words)
        assert said.code == 0, said
        return said.out

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What the database says; nothing while there is none."""
        if self.mariadb:
            return self.mariadb.run(statement, database=NAME)
        if not self.file.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=30)) as database:
            return database.execute(statement).fetchall()

    def count(self, statement: str) -> int:
        [(number,)] = self.rows(statement)
        return int(number)

    def open_things(self) -> dict[str, int]:
        """What is not at its end, by kind."""
        return {kind: number for kind, statement in OPEN.items() if (number := self.count(statement))}

    def bad_things(self) -> dict[str, int]:
        return {kind: number for kind, statement in BAD.items() if (number := self.count(statement))}

    def until_settled(self, seconds: float = PATIENCE, up: Running | None = None) -> None:
        def is_settled() -> bool:
            assert up is None or up.is_alive(), up.says() if up else ""
            return not self.open_things()

        until(is_settled, seconds, lambda: f"still open: {self.open_things()}; {up.says()[-2000:] if up else ''}")

    def stats(self) -> Any:
        return ask(f"{self.market}/__stats")

    def mutate(self, share: float, seed: int) -> list[dict[str, Any]]:
        changes: list[dict[str, Any]] = ask(f"{self.market}/__mutate", {"share": share, "seed": seed})["changes"]
        return changes

    def truths(self) -> dict[int, dict[str, Any]]:
        """All that is listed, as a perfect crawl would know it."""
        sellers = self.stats()["shops"]
        listed = [item for seller in sellers for item in ask(f"{self.market}/__truth?seller={seller}")["items"]]
        return {item["itemNo"]: item["productData"] for item in listed}

    def products(self) -> dict[int, dict[str, Any]]:
        """As the export writes them."""
        lines = self.does("product", "export").splitlines()
        return {product["itemNo"]: product for product in map(json.loads, lines)}

    def copies(self, items: "set[int]") -> dict[int, Any]:
        """The newest event that the product server took, by item."""
        return {item: ask(f"{self.market}/__copy/{item}") for item in items}

    def changes(self) -> list[tuple[Any, ...]]:
        return self.rows("SELECT item_no, version, kinds, fields FROM product_changes ORDER BY item_no, version")

    def check(self, changed: "set[int]", deliveries: int) -> None:
        """Every product is true and complete, of these a second version, and the product server holds the same."""
        versions = self.check_truth()
        assert versions == {item: 2 if item in changed else 1 for item in versions}
        assert self.stats()["receiver"]["deliveries"] == deliveries

    def check_truth(self) -> dict[int, int]:
        """Every product is true and complete, the product server holds the same, and no budget was exceeded. The
        products' versions."""
        assert self.open_things() == {}
        assert self.bad_things() == {}
        truths, products = self.truths(), self.products()
        copies = self.copies(set(products))
        assert products.keys() == truths.keys()
        for item, truth in truths.items():
            product, copy = products[item], copies[item]
            assert product["complete"], item
            assert disagreements(truth, product) == [], item
            assert disagreements(truth, copy["productData"]) == [], item
            assert product["version"] == copy["version"], item
        seen = self.stats()
        received = seen["receiver"]
        assert (seen["violations"], received["outOfOrder"], received["mismatches"], received["keysReused"]) == (0,) * 4
        assert (received["badSignatures"], received["unreadable"]) == (0, 0)
        assert seen["peakWindow"] <= 80
        return {item: product["version"] for item, product in products.items()}

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SELLERWATCH_")}
        # Compiled once and not at each of the many starts.
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        settings = {f"SELLERWATCH_{name}": value for name, value in self.settings.items()}
        return {"PYTHONPYCACHEPREFIX": str(self.folder.parent / "compiled"), **kept, **self.environment, **settings}


@contextmanager
def a_town(folder: Path, mariadb: MariaDb | None = None, **settings: object) -> Iterator[Town]:
    """With the ceiling over the whole site lifted and deliveries made at once; the identities' budgets stand."""
    town = Town(folder, mariadb=mariadb)
    town.set(site_requests_per_second=1000, delivery_interval=1, log_format="json")
    if mariadb:
        town.set(database_url=mariadb.without_tables(NAME), token_keys=TOKEN_KEYS, jwt_secret=JWT_SECRET)
    town.set(**settings)
    try:
        yield town
    finally:
        for running in town.started:
            running.kill()


def ask(address: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(address, data), timeout=30) as answer:
        return json.load(answer)


def until(is_so: Callable[[], bool], seconds: float, otherwise: Callable[[], str]) -> float:
    """How long it took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < seconds, f"after {seconds} s {otherwise()}"
        time.sleep(STEP_SECONDS)
    return time.monotonic() - began


def pause(seconds: float) -> None:
    """So long that what happens meanwhile is not to be foreseen."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, STEP_SECONDS))


def a_free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        port: int = trying.getsockname()[1]
        return port
