"""The OpenAPI document as one plain page: no script, nothing from elsewhere, so it works offline."""

import json
from html import escape
from typing import Any

from mfbandit._internal.typing import JSON


def api_page(document: dict[str, Any], root: str = "") -> str:
    """Render a page that lists every route: what it does and what it takes.

    Args:
        document: the OpenAPI document.
        root: what comes before every path, behind a proxy.

    >>> page = api_page({"info": {"title": "t", "version": "1"}, "paths": {"/x": {"get": {"description": "<b>"}}}})
    >>> "&lt;b&gt;" in page, "<script" in page
    (True, False)
    """
    info = document["info"]
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            tag = (route.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append(_route(document, method, root + path, route))
    parts = [f"<h2>{escape(tag)}</h2>\n{''.join(routes)}" for tag, routes in groups.items()]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><link rel="stylesheet" href="{root}/static/style.css"></head><body><main>'
        f"<h1>{title}</h1><p>{escape(info.get('summary', ''))}</p>"
        "<p>Bodies are JSON. Where the store has tokens, send <code>Authorization: Bearer mfb_...</code>. Errors are "
        f"problem details (RFC 9457). For programs there is <a href='{root}/openapi.json'>openapi.json</a>.</p>"
        f"{''.join(parts)}</main></body></html>"
    )


def _route(document: dict[str, Any], method: str, path: str, route: dict[str, Any]) -> str:
    about = escape(route.get("description", ""))
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    inside = [_parameters(route.get("parameters", []))]
    if body is not None:
        inside.append(f"<p>Body:</p><pre>{escape(json.dumps(example_of(document, body), indent=2))}</pre>")
    return (
        f"<details><summary><code><span class='method'>{method.upper()}</span> {escape(path)}</code> "
        f"<span class='about'>{about}</span></summary>{''.join(inside)}</details>\n"
    )


def _parameters(parameters: list[dict[str, Any]]) -> str:
    if not parameters:
        return ""
    rows = (
        f"<tr><td><code>{escape(one['name'])}</code></td><td>in the {escape(one['in'])}</td>"
        f"<td>{escape(one.get('description', ''))}</td></tr>"
        for one in parameters
    )
    return f"<table>{''.join(rows)}</table>"


def example_of(document: dict[str, Any], schema: dict[str, Any]) -> JSON:
    """Make up a value that fits a schema.

    >>> example_of({}, {"type": "array", "items": {"type": "integer"}})
    [1]
    """
    match schema:
        case {"$ref": reference}:
            return example_of(document, document["components"]["schemas"][reference.rpartition("/")[2]])
        case {"examples": [example, *_]} | {"default": example}:
            return example
        case {"anyOf": [*others, {"type": "null"}]}:
            return example_of(document, others[0])
        case {"anyOf": [*_, last]}:
            return example_of(document, last)
        case {"enum": values}:
            return " | ".join(map(str, values))
    return _of_type(document, schema)


def _of_type(document: dict[str, Any], schema: dict[str, Any]) -> JSON:
    match schema.get("type"):
        case "object":
            return {name: example_of(document, one) for name, one in schema.get("properties", {}).items()}
        case "array":
            return [example_of(document, schema.get("items", {}))]
        case kind:
            return {"string": "...", "integer": 1, "number": 0.5, "boolean": True}.get(str(kind))
