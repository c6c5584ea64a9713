"""The reference: `/openapi.json`, made from the code, and `/docs`, the same for people.

Promises: the page is one file without scripts and loads nothing from anywhere. No route tells of a 422: invalid input
is 400.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse, JSONResponse, Response

import sellerwatch
from sellerwatch.entry.api import problems
from sellerwatch.entry.api.guard import ROLES, open_to_all
from sellerwatch.entry.api.shapes import Problem

TITLE: Final = "Sellerwatch"
SUMMARY: Final = (
    "Watches the shops of marketplace sellers and delivers every change of every product. JSON in camelCase, times in "
    "ISO 8601 UTC. Every error is problem+json of one shape."
)
STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{margin-bottom:0}section{border-top:1px solid #d5dae0;padding:1rem 0}h2{font-size:1.05rem;font-family:ui-monospace,monospace}
.method{display:inline-block;min-width:3.5rem;padding:0 .4rem;border-radius:.3rem;background:#0b5cad;color:#fff;text-align:center}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}
th{font-weight:600;color:#57606a}code{font-family:ui-monospace,monospace}.quiet{color:#57606a}
@media(prefers-color-scheme:dark){body{color:#e6e9ed;background:#14171a}section{border-color:#333a42}.quiet,th{color:#9aa4af}}
"""
DESCRIBED: Final = {
    400: "invalid input",
    401: "not or wrongly authenticated",
    403: "not allowed",
    404: "no such thing",
    405: "no such method here",
    409: "a rule does not allow it",
    413: "the body is too large",
    415: "the body is compressed or not JSON",
    500: "something went wrong inside",
    503: "something this needs is away",
}
Json = dict[str, Any]


def told(*statuses: int) -> dict[int | str, Json]:
    """The problems that a route under `/api` tells of, beside those that every one does."""
    return {
        status: {
            "description": DESCRIBED[status],
            "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted({400, 401, 403, 413, 415, 500, 503, *statuses})
    }


def document(app: FastAPI) -> Json:
    """The OpenAPI document."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=TITLE,
            version=sellerwatch.__version__,
            summary=SUMMARY,
            openapi_version="3.1.0",
            routes=app.routes,
            separate_input_output_schemas=False,
        )
        schemas = made["components"].setdefault("schemas", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs", {}))
        schemas["Problem"] = problem
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        made["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        }
        for operations in made["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        app.openapi_schema = made
    return app.openapi_schema


def page(made: Mapping[str, Any]) -> str:
    """The document as one page of HTML."""
    parts = [
        _operation(path, method, operation, made["components"]["schemas"])
        for path, operations in made["paths"].items()
        for method, operation in operations.items()
    ]
    info = made["info"]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['summary'])}</p>"
        '<p class="quiet">The same for programs: <a href="/openapi.json">/openapi.json</a></p>'
        f"{''.join(parts)}</html>"
    )


def add_routes(app: FastAPI) -> None:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = {"Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"}

    @app.get("/openapi.json", include_in_schema=False, openapi_extra=open_to_all())
    async def openapi() -> Response:
        return JSONResponse(document(app))

    @app.get("/docs", include_in_schema=False, openapi_extra=open_to_all())
    async def docs() -> Response:
        return HTMLResponse(page(document(app)), headers=policy)


def _operation(path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Json]) -> str:
    roles = " or ".join(operation[ROLES]) or "no token needed"
    return (
        f'<section><h2><span class="method">{method.upper()}</span> {escape(path)}</h2>'
        f'<p>{escape(operation.get("description", ""))} <span class="quiet">({escape(roles)})</span></p>'
        f"{_parameters(operation)}{_body('Body', operation.get('requestBody', {}), schemas)}"
        f"{''.join(_answer(status, answer, schemas) for status, answer in sorted(operation['responses'].items()))}"
        "</section>"
    )


def _parameters(operation: Mapping[str, Any]) -> str:
    rows = [(each["name"], each["in"], each.get("description", "")) for each in operation.get("parameters", ())]
    return _table(("parameter", "where", ""), rows)


def _answer(status: str, answer: Mapping[str, Any], schemas: Mapping[str, Json]) -> str:
    if int(status) >= 400 and "application/json" not in answer.get("content", {}):
        return f'<p class="quiet">{status} {escape(answer["description"])}</p>'
    return _body(f"{status} {answer['description']}", answer, schemas)


def _body(title: str, holder: Mapping[str, Any], schemas: Mapping[str, Json]) -> str:
    reference = holder.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
    schema = schemas.get(reference.rpartition("/")[2])
    if schema is None:
        return ""
    required = schema.get("required", ())
    rows = [
        (
            name,
            _kind(each) + ("" if name in required or "default" not in each else f" = {each['default']}"),
            each.get("description", ""),
        )
        for name, each in schema.get("properties", {}).items()
    ]
    return f"<p>{escape(title)}</p>{_table(('field', 'kind', ''), rows)}"


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("type") or schema.get("const") or schema.get("$ref", "").rpartition("/")[2])


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        f"<tr><td><code>{escape(row[0])}</code></td>{''.join(f'<td>{escape(e)}</td>' for e in row[1:])}</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
