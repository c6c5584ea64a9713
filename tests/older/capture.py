"""A program: what a release said to its database, as a fixture to hold newer schemas against.

    git worktree add /tmp/older COMMIT
    PYTHONPATH=tests python -m older.capture /tmp/older           # before the first migration that is newer than it

It runs that checkout's own commands through the walk of three shops, with faults, changes, repairs and an operator at every
verb, on SQLite and on MariaDB, and writes each distinct statement once, its values as they were, to `statements/`.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import servers
from e2e.town import NAME, Town, a_town, pause, until

HERE = Path(__file__).parent
STATEMENTS = HERE / "statements"
LONG = 60
SWEPT_SECONDS = 3.0
_TEXT = re.compile(r"'(?:[^'\\]|''|\\.)*'")
_NUMBER = re.compile(r"(?<![\w`.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w`])")
_ROWS = re.compile(r"(\((?:\?|NULL)(?:, ?(?:\?|NULL))*\))(?:, ?\((?:\?|NULL)(?:, ?(?:\?|NULL))*\))+")
_LIST = re.compile(r"\?(?:, ?\?)+")
_UNION = re.compile(r"(?: UNION ALL SELECT [?NUL, ]+)+")
_WANTED = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)
_NOT_OURS = re.compile(r"sqlite_master|information_schema|alembic|PRAGMA|@@|performance_schema", re.IGNORECASE)
OPTIONAL = (
    ("product", "history", "{item}"),
    ("outbox", "list", "--box", "task"),
    ("outbox", "list", "--box", "scheduler"),
    ("outbox", "resend", "--seller", "b"),
    ("raw", "reprocess", "--since", "2020-01-01"),
    ("raw", "retry"),
    ("explain", "seller", "a"),
    ("explain", "agent", "1"),
    ("drift",),
    ("doctor",),
    ("dlq", "list"),
    ("db", "prune"),
    ("db", "partitions"),
    ("agents", "report"),
    ("agents", "rekey"),
)
"""What a release may not know yet."""


def shape(statement: str) -> str:
    """Without its values, and whatever is repeated once: two statements of one shape differ in values only."""
    bare = _NUMBER.sub("?", _TEXT.sub("?", statement))
    bare = _UNION.sub("", _LIST.sub("?, ?", bare))
    return _ROWS.sub(r"\1", re.sub(r"\bNULL\b", "?", bare))


def distinct(said: Iterator[str]) -> list[str]:
    """Of each shape the shortest, its longer texts cut."""
    found: dict[str, str] = {}
    for statement in said:
        one = statement.strip()
        if not _WANTED.match(one) or _NOT_OURS.search(one):
            continue
        one = _TEXT.sub(lambda text: text[0] if len(text[0]) <= LONG else "'{}'", one)
        known = found.setdefault(shape(one), one)
        if len(one) < len(known):
            found[shape(one)] = one
    return sorted(found.values())


def walk(town: Town) -> str:
    """Through everything that a release does to its database; its schema's revision."""
    town.set(sweep_seconds=1, claim_seconds=5, lease_seconds=12, task_attempt_seconds=10, task_stuck_seconds=20)
    if town.mariadb:
        town.does("db", "upgrade")
    town.sandbox("--error-rate", "3", a=14, b=6, c=3)
    up = town.up()
    up.until_it_says("api")
    for seller in ("a", "b"):
        town.does("seller", "add", seller, "--name", f"{seller}'s shop", "--crawl")
    town.does("seller", "add", "c", "--name", "c", "--source", "search", "--crawl")
    until(lambda: not _open(town), 200, lambda: f"open: {town.open_things()}")
    town.mutate(0.5, 3)
    town.type("crawl", "a")
    for verb in ("suspend", "recover", "block", "unblock"):
        town.type("agents", verb, "90")
    for words in (
        ("interval", "b", "3"),
        ("rename", "b", "B"),
        ("deactivate", "b"),
        ("activate", "b"),
        ("deactivate", "c"),
    ):
        town.does("seller", *words)
    town.does("seller", "remove", "c")
    until(lambda: not _open(town), 200, lambda: f"open: {town.open_things()}")
    [(item,)] = town.rows("SELECT max(item_no) FROM products WHERE is_complete")
    for words in (("product", "show", "{item}"), ("product", "export"), ("agents", "status"), ("status",), *OPTIONAL):
        town.type(*(word.format(item=item) for word in words))
    open_crawl = town.type("crawl", "a")
    execution = re.search(r"[0-9a-f-]{36}", open_crawl.out)
    if execution:
        town.type("crawl", "--cancel", execution[0])
    until(lambda: not _open(town), 200, lambda: f"open: {town.open_things()}")
    pause(SWEPT_SECONDS)
    up.signal()
    up.ended()
    return max(str(revision) for (revision,) in town.rows("SELECT version_num FROM alembic_version"))


def _open(town: Town) -> dict[str, int]:
    return {kind: count for kind, count in town.open_things().items() if kind != "messages"}


def on_sqlite(checkout: Path, folder: Path) -> tuple[str, list[str]]:
    spied = folder / "said"
    with a_town(folder) as town:
        town.environment |= {"PYTHONPATH": f"{HERE / 'spy'}:{checkout / 'src'}", "SPY_FILE": str(spied)}
        revision = walk(town)
    return revision, distinct(iter(spied.read_text(encoding="utf-8").splitlines()))


def on_mariadb(checkout: Path, folder: Path, server: servers.MariaDb) -> tuple[str, list[str]]:
    with a_town(folder, server) as town:
        town.environment |= {"PYTHONPATH": str(checkout / "src")}
        server.run("SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1")
        revision = walk(town)
        server.run("SET GLOBAL general_log = 0")
    rows = server.run(
        "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type = 'Query'", database=NAME
    )
    return revision, distinct(str(row[0]).replace("\n", " ") for row in rows)


def written(revision: str, dialect: str, statements: list[str]) -> Path:
    file = STATEMENTS / f"{revision}.{dialect}.sql"
    head = f"-- What a release at schema {revision} says on {dialect}: made by older.capture, one of each shape, never edited.\n"
    file.write_text(head + "".join(f"{one};\n" for one in statements), encoding="utf-8")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m older.capture", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", choices=("sqlite", "mariadb"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sellerwatch-older-") as root:
        for dialect in ("sqlite", "mariadb"):
            if asked.only not in {None, dialect}:
                continue
            folder = Path(root) / dialect
            folder.mkdir()
            if dialect == "sqlite":
                revision, statements = on_sqlite(asked.checkout.resolve(), folder)
            else:
                with servers.a_mariadb() as server:
                    revision, statements = on_mariadb(asked.checkout.resolve(), folder, server)
            sys.stdout.write(f"{len(statements):4} statements in {written(revision, dialect, statements)}\n")


if __name__ == "__main__":
    main()
