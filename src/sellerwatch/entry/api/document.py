"""The OpenAPI document, made from the code.

Promises: OpenAPI 3.1 with every operation, parameter, header, error and credential, and an example of everything that
goes in or out. No 422: invalid input is 400. The same code makes the same document.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

import sellerwatch
from sellerwatch.entry.api.shapes.problems import Problem

TITLE: Final = "Sellerwatch"
SUMMARY: Final = (
    "Watches the shops of marketplace sellers and delivers every change of every product. JSON in camelCase, times in "
    "ISO 8601 UTC. Every error is problem+json of one shape."
)
TAGS: Final = {
    "sellers": "Whom we watch, and the crawls of each.",
    "executions": "Crawls: how far they have come.",
    "metrics": "What a day came to.",
    "products": "What is known of the products, and how it came to be so.",
    "user-agents": "Identities: whom requests are made as.",
    "outbox": "What is to be sent.",
    "quarantines": "Crawls that look like drift, kept from the products until somebody decides.",
    "dead-letters": "Messages received too often, or not understood.",
    "explain": "What holds something up, and until when.",
    "crawling": "For other systems.",
    "house": "The process itself; open to all.",
}
REFERENCE: Final = "#/components/schemas/{model}"
Json = dict[str, Any]


def document(app: FastAPI) -> Json:
    if app.openapi_schema is None:
        made = get_openapi(
            title=TITLE,
            version=sellerwatch.__version__,
            summary=SUMMARY,
            openapi_version="3.1.0",
            routes=app.routes,
            separate_input_output_schemas=False,
        )
        made["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
        _complete(made["components"])
        for operation in operations(made):
            _mend(operation, made["components"]["schemas"])
        app.openapi_schema = made
    return app.openapi_schema


def operations(made: Mapping[str, Any]) -> Iterator[Json]:
    for path in made["paths"].values():
        yield from path.values()


def example(schema: Any, schemas: Mapping[str, Json]) -> Any:
    """One value that the schema allows: its own example, or one put together from those of its parts."""
    if "$ref" in schema:
        return example(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for given in ("examples", "enum"):
        if schema.get(given):
            return schema[given][0]
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], schemas)
    match schema.get("type"):
        case "object":
            return {name: example(part, schemas) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [example(schema["items"], schemas)]
    raise LookupError(f"no example for {schema}")


def _complete(components: Json) -> None:
    schemas = components.setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template=REFERENCE)
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "role ADMIN writes and reads, VIEWER reads; `sellerwatch token issue`",
        },
        "key": {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "of another system; `sellerwatch key generate`",
        },
    }


def _mend(operation: Json, schemas: Mapping[str, Json]) -> None:
    operation["responses"].pop("422", None)
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _plain(parameter["schema"], schemas)
    contents = [holder.get("content", {}) for holder in (operation.get("requestBody", {}), *_answers(operation))]
    for content in contents:
        for media in content.values():
            media["example"] = example(media["schema"], schemas)


def _answers(operation: Mapping[str, Any]) -> list[Json]:
    return list(operation["responses"].values())


def _plain(schema: Json, schemas: Mapping[str, Json]) -> Json:
    """A parameter is there or it is not: it is never null. Its values are told on the spot."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) == 1:
        schema = {**kinds[0], **schema}
    if "$ref" in schema:
        schema = {**schemas[schema["$ref"].rpartition("/")[2]], **schema}
    return {name: value for name, value in schema.items() if name not in {"anyOf", "$ref", "title", "description"}}
