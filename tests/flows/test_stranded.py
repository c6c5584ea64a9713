"""Identities too ill to recover alone: a person is called for those that only a person can bring back."""

from pathlib import Path

import pytest

from doors import door


@pytest.mark.parametrize(("hours", "called"), [("0", ["identity_stranded:3"]), ("24", [])])
async def test_nobody_is_called_for_whom_probation_brings_back(tmp_path: Path, hours: str, called: list[str]) -> None:
    async with door(tmp_path, identity_probation_hours=hours) as at:
        ill = "UPDATE user_agent_pool SET status = 'SUSPENDED', health_score = 5, is_blocked = 1, suspended_at = ? WHERE agent_id = 3"
        now = f"{at.clock.now():%F %T.%f}"
        await at.house.database.write(lambda connection: connection.exec_driver_sql(ill, (now,)).rowcount)
        await at.house.load_pool()
        await at.house.identities.keep_books()
        overview = await at.house.reports.overview(at.clock.now())
    assert [alert.name for alert in overview.alerts] == called
