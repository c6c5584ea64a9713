"""`explain`, as it is typed and as it is asked for over HTTP."""

from pathlib import Path

import pytest

from builders import a_schedule, a_seller, an_id
from desk import Desk
from doors import door
from sellerwatch.domain.sellers import SellerStatus
from sellerwatch.domain.verdicts import Culprit, Finding, Stage, Verdict
from sellerwatch.entry.console.verdicts import drawn
from simulation.virtual import BEGINNING

ROOT = "/api/v1/explain"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.plant(lambda unit: [unit.sellers.add(a_seller("shop-1", status=SellerStatus.INACTIVE))])
    desk.plant(lambda unit: unit.schedules.add(a_schedule("shop-1")))
    return desk


def test_a_person_reads_who_holds_it_up_since_when_and_what_to_do(desk: Desk) -> None:
    said = desk.type("explain", "seller", "shop-1")
    assert said.exit_code == 0
    lines = [line.rstrip() for line in said.out.splitlines()]
    assert lines[0] == "seller shop-1"
    assert lines[2].startswith("  ▶ seller    the seller is INACTIVE")
    assert lines[4].startswith("SELLER_INACTIVE  the seller is INACTIVE")
    assert lines[5].startswith("  since   2026-03-02 12:00:00 UTC, ")
    assert lines[6:] == [
        "  clears  when a person does something",
        "  do      `sellerwatch seller activate shop-1`",
    ]


def test_a_program_reads_the_same(desk: Desk) -> None:
    told = desk.type("explain", "seller", "shop-1", "--json").json
    assert told["culprit"] == "SELLER_INACTIVE"
    assert (told["stage"], told["needsAPerson"], told["clearsAt"]) == ("seller", True, None)
    assert told["since"] == "2026-03-02T12:00:00.123Z"
    assert [each["isClear"] for each in told["walked"]] == [False]


@pytest.mark.parametrize(
    "words",
    [
        ("seller", "nobody"),
        ("task", an_id("none")),
        ("agent", "4711"),
        ("agent", "١"),
        ("task", "'; DROP TABLE sellers"),
    ],
)
def test_who_does_not_exist_is_told_in_one_line(desk: Desk, words: tuple[str, str]) -> None:
    said = desk.type("explain", *words)
    assert (said.exit_code, said.out, len(said.problems)) == (1, "", 1)
    assert said.problems[0].startswith("error: no ")


def test_what_others_wrote_cannot_paint_the_terminal() -> None:
    evil = Finding(Stage.DELIVERY, "refused: \x1b[31mx\u202e\n", Culprit.DELIVERY_FAILED, advice="mend\x07")
    text = drawn("seller \x1b]0;x", Verdict(Culprit.DELIVERY_FAILED, evil, (evil,)), BEGINNING).plain
    assert not {"\x1b", "\u202e", "\x07"} & set(text)


async def test_over_http_all_three_are_answered_alike(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        await at.house.load_pool()
        await at.house.sellers.register("shop-1", "Shop")
        answer = await at.call("GET", f"{ROOT}/sellers/shop-1")
        assert answer.status == 200
        assert answer.json()["culprit"] == "NOTHING"
        assert [each["stage"] for each in answer.json()["walked"]] == ["seller", "schedule", "delivery"]
        [(uuid,)] = await at.house.database.read(
            lambda connection: connection.exec_driver_sql(
                "SELECT user_agent_id FROM user_agent_pool WHERE agent_id = 7"
            ).fetchall()
        )
        await at.house.identities.suspend(7)
        agent = (await at.call("GET", f"{ROOT}/user-agents/{uuid}")).json()
        assert (agent["culprit"], agent["subject"], agent["id"]) == ("IDENTITY_SUSPENDED", "agent", uuid)
        assert agent["clearsAt"] is not None
        assert (await at.call("GET", f"{ROOT}/tasks/{an_id('none')}")).status == 404
        assert (await at.call("GET", f"{ROOT}/sellers/nobody")).status == 404
        assert (await at.call("GET", f"{ROOT}/tasks/x")).status == 400
        assert (await at.call("GET", f"{ROOT}/sellers/shop-1", token="")).status == 401
