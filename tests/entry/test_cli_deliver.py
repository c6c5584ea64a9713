"""What `sellerwatch deliver reconcile` promises: the difference told, sent unless tried, and exit 1 on what is suspicious."""

import json
from pathlib import Path

import pytest

from builders import NOON
from desk import Desk, a_product, an_event
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.ports.store import Unit

PRODUCTS = [a_product(number, version=number) for number in (1, 2, 3)]


def plant(unit: Unit) -> None:
    unit.products.save(PRODUCTS)
    unit.events.add([an_event(one, one.version, OutboxStatus.COMPLETED, sent_at=NOON) for one in PRODUCTS])


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.plant(plant)
    return desk


def a_file(desk: Desk, text: str) -> str:
    file = desk.folder / "versions"
    file.write_text(text, encoding="utf-8")
    return str(file)


def waiting(desk: Desk) -> int:
    return len(desk.type("outbox", "list", "--status", "WAITING", "--json").json)


def test_the_difference_is_shown_for_trial_and_then_sent(desk: Desk) -> None:
    file = a_file(desk, "\ufeffitemNo,version\n1,1\n2,1\n")
    tried = desk.type("deliver", "reconcile", file, "--dry-run")
    compared = "2 products compared: 1 the same, 1 older there, 1 missing there\n"
    assert (tried.exit_code, tried.out) == (0, compared + "2 products would be sent once more\n")
    assert waiting(desk) == 0
    assert desk.type("deliver", "reconcile", file).out == compared + "2 products will be sent once more\n"
    assert waiting(desk) == 2
    assert desk.type("outbox", "resend", "--all", "--dry-run").out == (
        "1 product would be sent once more\n2 products left alone: the newest version is on its way, or held\n"
    )


def test_what_is_suspicious_is_told_and_is_exit_1(desk: Desk) -> None:
    file = a_file(desk, "".join(json.dumps({"itemNo": number, "version": 3}) + "\n" for number in (1, 2, 3, 77)))
    said = desk.type("deliver", "reconcile", file)
    assert said.exit_code == 1
    assert said.problems == [
        "suspicious: 2 products that the server has in a version we never sent",
        "suspicious: 1 product that the server has and we do not know",
    ]
    found = desk.type("deliver", "reconcile", file, "--json")
    assert found.exit_code == 1
    assert found.json["newer"] == {
        "count": 2,
        "samples": [{"itemNo": 1, "there": 3, "here": 1}, {"itemNo": 2, "there": 3, "here": 2}],
    }
    assert waiting(desk) == 0


def test_what_can_not_be_read_is_one_line(desk: Desk) -> None:
    broken = desk.type("deliver", "reconcile", a_file(desk, "<html>\n"))
    assert broken.exit_code == 1
    assert broken.problems[0].startswith("error: line 1: '<html>' is not")
    gone = desk.type("deliver", "reconcile", str(desk.folder / "nowhere"))
    assert gone.exit_code == 2
    assert " is not a file that exists, or a url" in gone.err
    none = desk.type("deliver", "reconcile", "https://products.test/versions")
    assert none.problems[0].startswith("error: no product server is set")


def test_a_url_of_another_server_is_not_asked(desk: Desk) -> None:
    ours = {
        "SELLERWATCH_PRODUCT_SERVER_URL": "https://products.test/hooks",
        "SELLERWATCH_PRODUCT_SERVER_SECRET": "whsec_c2FuZGJveC1zYW5kYm94LXNhbmRib3gtc2FuZGJveA==",
    }
    for url in ("https://elsewhere.test/versions", "http://products.test/versions", "https://products.test:444/"):
        said = desk.type("deliver", "reconcile", url, **ours)
        assert said.problems == [
            "error: versions are read from https://products.test only, where events go, or from a file"
        ]
