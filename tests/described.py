"""Answers held against the OpenAPI document."""

import re
from typing import Any

import jsonschema_rs
from fastapi import FastAPI

from doors import Answer, Door
from sellerwatch.entry.api.document import document

_made: dict[str, Any] = {}
_validators: dict[tuple[str, str, int], Any] = {}


def described(app: FastAPI) -> dict[str, Any]:
    """The document. It is the same for every house, and making it takes longer than most tests."""
    if not _made:
        _made.update(document(app))
    return _made


def check(at: Door, method: str, path: str, answer: Answer) -> Any:
    """The answer's body, after its status, headers and content were found to be what the document says."""
    made, method = described(at.app), method.lower()
    template = _template(made, path)
    operation = made["paths"][template][method]
    told = operation["responses"][str(answer.status)]
    for name in told.get("headers", {}):
        assert name.lower() in answer.headers, (path, name)
    (media, content), *others = told.get("content", {"": {}}).items()
    assert not others
    if not media:
        assert not answer.body
        return None
    assert answer.headers["content-type"] == media
    this = template, method, answer.status
    if this not in _validators:
        _validators[this] = jsonschema_rs.validator_for({**content["schema"], "components": made["components"]})
    _validators[this].validate(answer.json())
    return answer.json()


def _template(made: dict[str, Any], path: str) -> str:
    place = path.partition("?")[0]
    if place in made["paths"]:
        return place
    return next(each for each in made["paths"] if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), place))
