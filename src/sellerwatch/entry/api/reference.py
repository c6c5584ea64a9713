"""The reference: `/openapi.json`, and `/docs`, the same for people.

Promises: the page is one file without scripts and loads nothing from anywhere.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import orjson
from fastapi import FastAPI
from starlette.responses import HTMLResponse, Response

from sellerwatch.entry.api.document import document
from sellerwatch.entry.api.guard import EVERYONE, ROLES, policy

Json = dict[str, Any]
STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{margin-bottom:0}section{border-top:1px solid #d5dae0;padding:1rem 0}h2{font-size:1.05rem;font-family:ui-monospace,monospace}
.method{display:inline-block;min-width:3.5rem;padding:0 .4rem;border-radius:.3rem;background:#0b5cad;color:#fff;text-align:center}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}
th{font-weight:600;color:#57606a}code{font-family:ui-monospace,monospace}.quiet{color:#57606a}
@media(prefers-color-scheme:dark){body{color:#e6e9ed;background:#14171a}section{border-color:#333a42}.quiet,th{color:#9aa4af}}
"""


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
    headers = {"Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"}

    @app.get("/openapi.json", include_in_schema=False, openapi_extra=policy(EVERYONE))
    async def openapi() -> Response:
        return Response(orjson.dumps(document(app)), media_type="application/json")

    @app.get("/docs", include_in_schema=False, openapi_extra=policy(EVERYONE))
    async def docs() -> Response:
        return HTMLResponse(page(document(app)), headers=headers)


def _operation(path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Json]) -> str:
    roles = " or ".join(operation[ROLES]) or "no token needed"
    return (
        f'<section><h2><span class="method">{method.upper()}</span> {escape(path)}</h2>'
        f'<p>{_text(operation.get("description", ""))} <span class="quiet">({escape(roles)})</span></p>'
        f"{_parameters(operation)}{_body('Body', operation.get('requestBody', {}), schemas)}"
        f"{''.join(_answer(status, answer, schemas) for status, answer in sorted(operation['responses'].items()))}"
        "</section>"
    )


def _parameters(operation: Mapping[str, Any]) -> str:
    rows = [(each["name"], each["in"], each.get("description", "")) for each in operation.get("parameters", ())]
    return _table(("parameter", "where", ""), rows)


def _answer(status: str, answer: Mapping[str, Any], schemas: Mapping[str, Json]) -> str:
    if int(status) >= 400 and "application/json" not in answer.get("content", {}):
        return f'<p class="quiet">{status} {_text(answer["description"])}</p>'
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


def _text(markdown: str) -> str:
    """Of Markdown our texts have code in backticks, nothing else."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(markdown))


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        f"<tr><td><code>{escape(row[0])}</code></td>{''.join(f'<td>{_text(e)}</td>' for e in row[1:])}</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
