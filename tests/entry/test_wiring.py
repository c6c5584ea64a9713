"""Building the house: what is refused before anything is written."""

from pathlib import Path

import pytest

from sellerwatch.domain.errors import Invalid
from sellerwatch.settings import load
from sellerwatch.wiring import build


def test_a_file_that_is_no_database_is_refused_and_no_key_is_put_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear database, or so they say,")
    with pytest.raises(Invalid, match="a SQLite database"):
        build(load(overrides={"database_url": f"sqlite:///{file}"}))
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="in a folder that exists"):
        build(load(overrides={"database_url": f"sqlite:///{tmp_path}/nowhere/house.db"}))
