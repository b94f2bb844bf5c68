"""The reference of the service's routes, from its OpenAPI document."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from _site.pages import code, heading, plain, save, terms
from mfbandit import Store
from mfbandit.service import create_app
from mfbandit.service.api_page import example_of


def write(app: Any) -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/a.db") as store:
        document = asyncio.run(_document(create_app(store)))
    about = (
        "Bodies are JSON. Where the store has tokens, send ``Authorization: Bearer mfb_...``. Errors are problem "
        "details (RFC 9457). A running service shows this page at ``/api``, and ``/openapi.json`` for programs. "
        "How to start one: :doc:`../live`."
    )
    save(Path(app.srcdir) / "reference", "http", [heading("HTTP"), about, "", *_routes(document)])


async def _document(service: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://localhost") as client:
        found: dict[str, Any] = (await client.get("/openapi.json")).json()
        return found


def _routes(document: dict[str, Any]) -> Iterator[str]:
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            groups.setdefault((route.get("tags") or ["other"])[0], []).append((method, path, route))
    for tag, routes in groups.items():
        yield heading(tag[0].upper() + tag[1:], "-")
        for method, path, route in routes:
            yield heading(f"{method.upper()} {path}", "~")
            yield from _route(document, route)


def _route(document: dict[str, Any], route: dict[str, Any]) -> Iterator[str]:
    yield plain(route.get("description", "")) + "\n"
    given = [one for one in route.get("parameters", []) if one.get("description")]
    yield terms((f"``{one['name']}`` (in the {one['in']})", one["description"]) for one in given)
    for title, content in (("Body", route.get("requestBody", {})), ("Answer", _success(route))):
        schema = content.get("content", {}).get("application/json", {}).get("schema")
        if schema:
            yield f"{title}:\n"
            yield code(json.dumps(example_of(document, schema), indent=2, ensure_ascii=False), "json")


def _success(route: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next((answer for code, answer in route["responses"].items() if code[0] == "2"), {})
    return found
