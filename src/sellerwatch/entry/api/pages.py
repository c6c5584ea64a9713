"""docs/api-reference.md, from the OpenAPI document.

Promises: every operation with who may use it, what it takes, what it answers and why it may refuse. A test holds the
page in the docs against this.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from sellerwatch.entry.api.guard import ROLES

HEAD: Final = """# API reference

Generated from the code, as are `/openapi.json` (OpenAPI 3.1) and `/docs` of every running process. A way through it is
[the walk](api.md).

Credentials: `ADMIN` and `VIEWER` are roles of a token (`Authorization: Bearer …`), `INTERNAL` is a key (`X-API-Key: …`).
Every answer has an `X-Request-Id`. Every error is `application/problem+json`: {problem}.
"""
Json = Mapping[str, Any]


def reference_page(made: Json) -> str:
    schemas = made["components"]["schemas"]
    parts = [HEAD.replace("{problem}", ", ".join(f"`{name}`" for name in schemas["Problem"]["properties"]))]
    for tag in made["tags"]:
        told = [
            _operation(path, method, operation)
            for path, operations in made["paths"].items()
            for method, operation in operations.items()
            if tag["name"] in operation["tags"]
        ]
        if told:
            parts.append(f"## {tag['name']}\n\n{tag['description']}\n\n" + "\n".join(told))
    return "\n".join(parts).rstrip() + "\n"


def _operation(path: str, method: str, operation: Json) -> str:
    who = " or ".join(f"`{role}`" for role in operation[ROLES]) or "everyone"
    lines = [
        f"### {method.upper()} {path}",
        "",
        f"{_text(operation['description'])} For {who}. `{operation['operationId']}`",
    ]
    lines += _table(("parameter", "in", "values", ""), map(_parameter, operation.get("parameters", ())))
    if "requestBody" in operation:
        is_needed = operation["requestBody"].get("required", False)
        lines += _example("Body" if is_needed else "Body, may be left out", operation["requestBody"])
    for status, answer in operation["responses"].items():
        if int(status) < 400 or "application/json" in answer.get("content", {}):
            headers = [f"`{name}`" for name in answer.get("headers", {}) if name != "X-Request-Id"]
            told = f" (with {', '.join(headers)})" if headers else ""
            lines += _example(f"{status}{told}", answer) if "content" in answer else ["", f"{status}{told}"]
    refused = [status for status, answer in operation["responses"].items() if _is_problem(answer)]
    return "\n".join([*lines, "", f"Refuses with {', '.join(refused)}.", ""])


def _parameter(parameter: Json) -> tuple[str, ...]:
    schema = parameter["schema"]
    needed = " (required)" if parameter["required"] and parameter["in"] != "path" else ""
    return f"`{parameter['name']}`{needed}", parameter["in"], _values(schema), _text(parameter.get("description", ""))


def _values(schema: Json) -> str:
    if "enum" in schema:
        said = " ".join(f"`{value}`" for value in schema["enum"])
    elif "minimum" in schema:
        said = f"{schema['minimum']} to {schema['maximum']}"
    elif "pattern" in schema:
        said = f"`{schema['pattern']}`".replace("|", "\\|")
    else:
        said = str(schema.get("format", schema["type"]))
    return said + (f", default `{schema['default']}`" if schema.get("default") is not None else "")


def _example(title: str, holder: Json) -> list[str]:
    (media, content), *_ = holder["content"].items()
    example = content["example"]
    is_json = media == "application/json"
    shown = orjson.dumps(example, option=orjson.OPT_INDENT_2).decode() if is_json else str(example)
    return ["", f"{title}:", "", f"```{'json' if is_json else ''}", shown, "```"]


def _is_problem(answer: Json) -> bool:
    return "application/problem+json" in answer.get("content", {})


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *lines] if lines else []


def _text(description: str) -> str:
    return " ".join(description.split())
