"""Building the house: what is refused before anything is written."""

from datetime import timedelta
from pathlib import Path

import pytest

from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.ticker import ticker_loops
from sellerwatch.settings import load
from sellerwatch.wiring import build, opened
from sellerwatch.wiring.measures import lead_rules_of


def test_a_file_that_is_no_database_is_refused_and_no_key_is_put_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear database, or so they say,")
    with pytest.raises(Invalid, match="a SQLite database"):
        build(load(overrides={"database_url": f"sqlite:///{file}"}))
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="in a folder that exists"):
        build(load(overrides={"database_url": f"sqlite:///{tmp_path}/nowhere/house.db"}))


def test_after_a_lead_of_the_pool_nobody_lends_until_what_was_lent_is_back(tmp_path: Path) -> None:
    settings = load(overrides={"database_url": f"sqlite:///{tmp_path}/house.db", "lease_seconds": 120})
    assert lead_rules_of(settings).grace > timedelta(seconds=120)
    guarded = load(overrides={"database_url": f"sqlite:///{tmp_path}/house.db", "identity_window_guard": 300})
    assert lead_rules_of(guarded).grace == timedelta(seconds=300)


async def test_the_lead_of_the_pool_is_kept_also_where_no_redis_is_wanted(tmp_path: Path) -> None:
    """One that was wanted may have led until a moment ago."""
    async with opened(load(overrides={"database_url": f"sqlite:///{tmp_path}/house.db"})) as house:
        assert house.redis_pool is None
        assert "lead" in {loop.name for loop in ticker_loops(house)}
