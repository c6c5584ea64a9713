"""What `sellerwatch product` promises: products shown, their history, and exports that no spreadsheet runs."""

import csv
import io
import json
from pathlib import Path

import pytest

from builders import a_seller
from desk import Desk, a_change, a_product
from sellerwatch.entry.cli import products as commands
from sellerwatch.ports.store import Unit


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


def test_a_time_that_is_none_is_refused(desk: Desk) -> None:
    said = desk.type("product", "export", "--changed-since", "yesterday")
    assert said.exit_code == 1
    assert said.problems == [
        "error: --changed-since: 'yesterday' is not a time like 2026-11-18T09:30, or so long ago: 90min, 6h, 2d"
    ]
