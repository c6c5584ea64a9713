"""Answers held against the OpenAPI document."""

import re
from typing import Any

import jsonschema_rs

from doors import Answer, Door
from sellerwatch.entry.api.document import document


def check(at: Door, method: str, path: str, answer: Answer) -> Any:
    """The answer's body, after its status, headers and content were found to be what the document says."""
    made = document(at.app)
    operation = made["paths"][_template(made, path)][method.lower()]
    told = operation["responses"][str(answer.status)]
    for name in told.get("headers", {}):
        assert name.lower() in answer.headers, (path, name)
    (media, content), *others = told.get("content", {"": {}}).items()
    assert not others
    if not media:
        assert not answer.body
        return None
    assert answer.headers["content-type"] == media
    schema = {**content["schema"], "components": made["components"]}
    jsonschema_rs.validator_for(schema).validate(answer.json())
    return answer.json()


def _template(made: dict[str, Any], path: str) -> str:
    place = path.partition("?")[0]
    if place in made["paths"]:
        return place
    return next(each for each in made["paths"] if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), place))
