"""The document: complete, its examples true, and the page in the docs the same."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from doors import door
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.entry.api.document import document, operations
from sellerwatch.entry.api.pages import reference_page
from sellerwatch.entry.api.words import FORMS

PAGE = Path(__file__).parents[2] / "docs" / "api-reference.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import asyncio  # noqa: PLC0415 - only here

    async def built() -> Any:
        async with door(tmp_path_factory.mktemp("document")) as at:
            return json.loads((await at.call("GET", "/openapi.json", token="")).body), document(at.app)

    sent, kept = asyncio.run(built())
    assert sent == kept
    return sent


def test_the_page_of_the_docs_is_what_the_code_says(made: Any) -> None:
    """To write it anew: PAGE.write_text(reference_page(document(api(house))))."""
    assert PAGE.read_text(encoding="utf-8") == reference_page(made)


def test_every_example_is_allowed_by_its_schema(made: Any) -> None:
    seen = 0
    for operation in operations(made):
        for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
            for media in holder.get("content", {}).values():
                schema = {**media["schema"], "components": made["components"]}
                jsonschema_rs.validator_for(schema).validate(media["example"])
                seen += 1
    assert seen > 200


def test_every_operation_tells_its_errors_its_headers_and_who_may_use_it(made: Any) -> None:
    for operation in operations(made):
        answers = operation["responses"]
        assert operation["description"]
        assert {"400", "413", "415", "500"} <= answers.keys()
        assert "422" not in answers
        if operation["security"]:
            assert {"401", "429", "503"} <= answers.keys()
            assert ("403" in answers) is (operation["security"] == [{"bearer": []}])
        for status, answer in answers.items():
            assert "X-Request-Id" in answer["headers"], operation["operationId"]
            if status == "429" or (status == "503" and operation["security"]):
                assert "Retry-After" in answer["headers"]
        assert set(operation["tags"]) <= {tag["name"] for tag in made["tags"]}


def test_good_answers_are_told_in_a_phrase_too(made: Any) -> None:
    for operation in operations(made):
        for answer in operation["responses"].values():
            assert answer["description"] != "Successful Response", operation["operationId"]


def test_a_schedule_may_be_in_every_state_that_it_knows(made: Any) -> None:
    status = made["components"]["schemas"]["Schedule"]["properties"]["status"]
    reference = made["components"]["schemas"][status["$ref"].rpartition("/")[2]]
    assert reference["enum"] == [each.value for each in ScheduleStatus]


def test_every_pattern_has_words_for_people(made: Any) -> None:
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(made)))
    assert {json.loads(pattern) for pattern in patterns} == FORMS.keys()


def test_every_part_of_a_path_is_a_parameter_and_no_name_is_twice(made: Any) -> None:
    for path, methods in made["paths"].items():
        for operation in methods.values():
            given = [each["name"] for each in operation.get("parameters", ())]
            assert len(set(given)) == len(given)
            assert set(re.findall(r"\{(\w+)\}", path)) == {
                each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"
            }
            assert all(re.fullmatch(r"[a-z][A-Za-z]*", name) for name in given)


def test_every_body_is_closed(made: Any) -> None:
    for name, schema in made["components"]["schemas"].items():
        if schema.get("type") == "object" and name != "Problem":
            assert schema["additionalProperties"] is False, name
