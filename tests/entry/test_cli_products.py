"""What `sellerwatch product` promises: products shown, their history, and exports that no spreadsheet runs."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders import a_seller, at
from desk import Desk, a_change, a_product
from sellerwatch.domain.changes import Proof
from sellerwatch.domain.documents import ChangeKind, DocumentKind
from sellerwatch.domain.products import announce
from sellerwatch.entry.cli import products as commands
from sellerwatch.entry.console.sheets import cell
from sellerwatch.ports.store import Unit

CREATED = ChangeKind.CREATED


def plant(unit: Unit) -> None:
    unit.sellers.add(a_seller("shop-1"))
    risky = a_product(1000, name="=cmd|'/C calc'!A0", tags=("-1", "x"), soldOut=False)
    unit.products.save([risky, a_product(2000, seller_id="shop-2", version=3), a_product(3000)])
    unit.changes.add([a_change(risky, 1, old=621000, new=599000), a_change(risky, 2, "name", "a", "b\x1b[2J")])


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.plant(plant)
    return desk


def test_a_product_is_shown_with_its_data_beside_it(desk: Desk) -> None:
    found = desk.type("product", "show", "1000", "--json").json
    assert (found["itemNo"], found["version"], found["complete"], found["price"]) == (1000, 1, True, 599000)
    assert found["brand"] == {"code": 153, "name": "Maison", "nameKr": "메종"}
    assert "599000" in desk.type("product", "show", "1000").out


def test_an_unknown_item_is_one_line_and_exit_1(desk: Desk) -> None:
    for verb in ("show", "history"):
        said = desk.type("product", verb, "77")
        assert (said.exit_code, said.problems) == (1, ["error: no product of item 77"])
    assert desk.type("product", "show", "x").exit_code == 2


def test_the_history_tells_every_change_old_and_new(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "BATCH", 1)
    found = desk.type("product", "history", "1000", "--json").json
    assert [(one["version"], one["fields"]) for one in found] == [
        (1, [{"field": "sellingPrice", "old": 621000, "new": 599000}]),
        (2, [{"field": "name", "old": "a", "new": "b\x1b[2J"}]),
    ]
    drawn = desk.type("product", "history", "1000").out
    assert "621000" in drawn
    assert "b\\x1b[2J" in drawn


def test_an_export_is_one_json_object_a_line(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "BATCH", 1)
    lines = desk.type("product", "export").out.splitlines()
    assert [json.loads(line)["itemNo"] for line in lines] == [1000, 2000, 3000]
    ours = desk.type("product", "export", "--seller", "shop-1", "--changed-since", "2026-03-02").out.splitlines()
    assert [json.loads(line)["itemNo"] for line in ours] == [1000, 3000]
    assert desk.type("product", "export", "--seller", "nobody").problems == ["error: no seller nobody"]


def test_no_cell_of_a_sheet_is_a_formula(desk: Desk) -> None:
    target = desk.folder / "products.csv"
    said = desk.type("product", "export", "--format", "csv", "--output", str(target))
    assert (said.exit_code, said.out) == (0, f"3 products written to {target}\n")
    first, second, _ = csv.DictReader(io.StringIO(target.read_text(encoding="utf-8")))
    assert first["name"] == "'=cmd|'/C calc'!A0"
    assert (first["brand.nameKr"], first["tags"], first["soldOut"]) == ("메종", '["-1", "x"]', "false")
    assert (second["itemNo"], second["version"], second["stock"]) == ("2000", "3", "")


def test_a_product_is_shown_as_it_was(desk: Desk) -> None:
    desk.plant(lambda unit: unit.changes.add([a_change(a_product(4000), 1, "stock", 1, 2)]))
    desk.plant(lambda unit: unit.products.save([a_product(4000, stock=2)]))
    then = desk.type("product", "show", "4000", "--at", "2026-03-02T13:00", "--json").json
    assert (then["version"], then["stock"]) == (1, 2)
    early = desk.type("product", "show", "4000", "--at", "2026-03-01")
    assert early.exit_code == 1
    assert early.problems == ["error: product of item 4000 has no version as old as 2026-03-01 00:00:00 (UTC)"]
    assert desk.type("product", "show", "77", "--at", "1d").problems == ["error: no product of item 77"]
    assert "'--at': 'soon' is not a time like" in desk.type("product", "show", "4000", "--at", "soon").err


def test_the_history_tells_what_proved_a_version_and_what_carried_it(desk: Desk) -> None:
    product = a_product(5000, version=3)
    proof = Proof(DocumentKind.DETAIL, "a" * 32, at(-5))
    changes = [replace(a_change(product, version), proofs=(proof,)) for version in (1, 2, 3)]
    changes[2] = replace(changes[2], proofs=(), execution_id="crawl-3", kinds=(ChangeKind.DELISTED,))
    events = [announce(product, change) for change in changes]
    events[1].supersede(events[0], at(5))
    events[1].completed(at(6))

    def more(unit: Unit) -> None:
        unit.products.save([product])
        unit.changes.add(changes)
        unit.events.add(events)

    desk.plant(more)
    found = desk.type("product", "history", "5000", "--json").json
    assert [(one["delivery"]["version"], one["delivery"]["status"]) for one in found] == [
        (2, "COMPLETED"),
        (2, "COMPLETED"),
        (3, "WAITING"),
    ]
    assert found[0]["proofs"] == [
        {"kind": "DETAIL", "rawId": proof.raw_id(5000), "fetchedAt": "2026-03-02T11:59:55.123Z", "kept": False}
    ]
    drawn = desk.type("product", "history", "5000").out
    for told in (
        "version 1   2026-03-02 12:00:00   PRICE",
        "1  →  2",
        f"DETAIL fetched 2026-03-02 11:59:55, raw {proof.raw_id(5000)} (forgotten since)",
        f"2026-03-02 12:00:06 with version 2, event {events[1].outbox_id}",
        "the list of crawl crawl-3",
        f"not yet: event {events[2].outbox_id} is WAITING",
    ):
        assert told in drawn


def test_of_long_texts_what_is_shown_begins_shortly_before_they_part(desk: Desk) -> None:
    long = "<p>" + "the same, " * 40
    change = a_change(a_product(3000), 1, "description", long + "and a hem</p>", long + "and no hem</p>")
    desk.plant(lambda unit: unit.changes.add([change]))
    drawn = " ".join(desk.type("product", "history", "3000").out.split())
    assert "…same, the same, the same, and a hem</p> → …same, the same, the same, and no hem</p>" in drawn
    assert len(desk.type("product", "history", "3000", "--json").json[0]["fields"][0]["old"]) > len(long)


def test_the_difference_between_two_moments_is_told(desk: Desk) -> None:
    told = desk.type("product", "history", "1000", "--between", "2026-03-01", "2026-03-03", "--json").json
    assert (told["fromVersion"], told["toVersion"]) == (0, 2)
    drawn = desk.type("product", "history", "1000", "--between", "2026-03-01", "2026-03-03").out
    assert drawn.startswith("from version 0 to version 2\n")
    still = desk.type("product", "history", "1000", "--between", "2026-03-03", "2026-03-04").out
    assert still == "from version 2 to version 2\nno difference\n"
    wrong = desk.type("product", "history", "1000", "--between", "2026-03-03", "2026-03-01")
    assert wrong.exit_code == 2
    assert "--between: '2026-03-03 2026-03-01' is not two moments, the earlier one first" in wrong.err
    assert desk.type("product", "history", "1000", "--between", "2026-03-03").exit_code == 2


def test_changes_are_exported_one_a_line_and_in_a_sheet_one_field_a_row(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "BATCH", 1)
    desk.plant(lambda unit: unit.changes.add([replace(a_change(a_product(6000), 1), kinds=(CREATED,), fields=())]))
    lines = [json.loads(line) for line in desk.type("product", "export", "--changes").out.splitlines()]
    assert [(one["itemNo"], one["version"]) for one in lines] == [(1000, 1), (1000, 2), (6000, 1)]
    assert lines[0]["fields"] == [{"field": "sellingPrice", "old": 621000, "new": 599000}]
    assert desk.type("product", "export", "--changes", "--since", "2026-03-03").out == ""
    sheet = desk.type("product", "export", "--changes", "--format", "csv", "--seller", "shop-1").out
    first, _, third = csv.DictReader(io.StringIO(sheet))
    assert (first["kinds"], first["field"], first["old"], first["new"]) == ("PRICE", "sellingPrice", "621000", "599000")
    assert (third["kinds"], third["field"], third["old"]) == ("CREATED", "", "")
    assert desk.type("product", "export", "--changes", "--complete").exit_code == 2


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t=1", "\r=1"])
def test_a_cell_that_begins_like_a_formula_is_a_text(text: str) -> None:
    assert cell(text) == f"'{text}"
    assert cell(-1) == -1


def peak_mb(desk: Desk, *words: str) -> int:
    """Of a process of its own that does this."""
    code = (
        "import pathlib, sys\nfrom sellerwatch.entry.cli import app\napp(sys.argv[1:], standalone_mode=False)\n"
        "print(pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    environment = {"SELLERWATCH_DATABASE_URL": f"sqlite:///{desk.file}", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, env=environment, cwd=desk.folder, check=True
    )
    return int(done.stdout.split()[-1]) // 1024


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_an_export(desk: Desk) -> None:
    def plant_some(numbers: range) -> None:
        products = [a_product(number, description="x" * 9000) for number in numbers]

        def write(unit: Unit) -> None:
            unit.products.save(products)
            unit.changes.add([a_change(product, 1, "description", "y" * 4500, "x" * 4500) for product in products])

        desk.plant(write)

    target = desk.folder / "export"
    ways = [("--format", "jsonl"), ("--changes", "--format", "csv")]
    # Enough to fill the database's own cache.
    plant_some(range(10_000, 12_500))
    few = [peak_mb(desk, "product", "export", *words, "--output", str(target)) for words in ways]
    plant_some(range(12_500, 17_500))
    for words, before in zip(ways, few, strict=True):
        most = peak_mb(desk, "product", "export", *words, "--output", str(target))
        assert target.stat().st_size > 65_000_000
        # 45 MB more in the file, and more than that, were the rows held.
        assert most < before + 20


def test_a_reader_that_goes_away_ends_an_export_quietly(desk: Desk) -> None:
    desk.plant(lambda unit: unit.products.save([a_product(number, name="x" * 900) for number in range(10_000, 12_000)]))
    command = [sys.executable, "-m", "sellerwatch", "product", "export"]
    environment = {"SELLERWATCH_DATABASE_URL": f"sqlite:///{desk.file}", "PATH": ""}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=desk.folder
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["itemNo"] == 1000
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_time_that_is_none_is_refused(desk: Desk) -> None:
    said = desk.type("product", "export", "--changed-since", "yesterday")
    assert said.exit_code == 2
    assert said.problems[-1].endswith(
        "--changed-since': 'yesterday' is not a time like 2026-11-18T09:30, or so long ago: 90min, 6h, 2d"
    )
