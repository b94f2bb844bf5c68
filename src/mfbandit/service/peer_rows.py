"""Rows of the list of experiments that other services own: each is asked once for all of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Annotated, Any

import httpx
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import Response

from mfbandit._internal.limits import MAX_ITEMS_PER_REQUEST
from mfbandit.service.answers import answer
from mfbandit.service.peers import PASSED_ON, peer_headers
from mfbandit.service.public_address import PublicAddress
from mfbandit.service.view_models import unread_row
from mfbandit.store import ServiceEntry, Store, owners_of

PATH = "/peer-rows"
ANSWER_SECONDS = 1.0

Row = dict[str, Any]


class PeerRows:
    """Rows of experiments that other services own, by name.

    Args:
        store: that they share.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, names: Sequence[str]) -> dict[str, Row]:
        """Return the rows of those that other services own; the rest is this one's to show."""
        fleet = self._store.fleet
        if fleet is None:
            return {}
        unknown = [name for name in names if not self._store.owns(name)]
        if not unknown:
            return {}
        with closing(self._store.read()) as connection:
            owners = owners_of(connection, unknown)
        theirs: dict[str, tuple[ServiceEntry, list[str]]] = {}
        for name, owner in owners.items():
            if owner.id != fleet.id and owner.address:
                theirs.setdefault(owner.id, (owner, []))[1].append(name)
        if not theirs:
            return {}
        with ThreadPoolExecutor(len(theirs)) as threads:
            found = list(threads.map(lambda one: _asked(*one), theirs.values()))
        return {row["name"]: row for rows in found for row in rows}


def status_elsewhere(store: Store, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return the status of an experiment that another service owns; None if none is reached that does.

    Args:
        store: that they share.
        name: of the experiment.
    """
    place = None if store.fleet is None else store.fleet.find(name)
    if place is None or place.owner is None or not place.owner.address:
        return None
    try:
        return _get(place.owner, f"/api/experiments/{name}")
    except (httpx.HTTPError, ValueError):
        return None


def _get(owner: ServiceEntry, path: str, **query: list[str]) -> Any:  # noqa: ANN401 - JSON
    headers = peer_headers(owner, PublicAddress("http", "localhost"))
    found = httpx.get(owner.address + path, params=query, headers=headers, timeout=ANSWER_SECONDS, trust_env=False)
    return found.raise_for_status().json()


def _asked(owner: ServiceEntry, names: list[str]) -> list[Row]:
    """Ask a service for the rows of its experiments; one that does not answer is not waited for."""
    try:
        rows = _get(owner, PATH, name=names)["rows"]
    except (httpx.HTTPError, ValueError, LookupError):
        rows = [unread_row(name, "busy", f"the service at {owner.address} does not answer") for name in names]
    return [{**row, "service": owner.address} for row in rows]


def add_peer_rows(app: FastAPI, rows_of: Callable[[Sequence[str]], list[Row]]) -> None:
    """Add the route by which other services ask.

    Args:
        app: the application.
        rows_of: gives the rows of experiments, by their names.
    """

    @app.get(PATH, include_in_schema=False)
    def peer_rows(request: Request, name: Annotated[list[str], Query(max_length=MAX_ITEMS_PER_REQUEST)]) -> Response:
        if not request.scope.get(PASSED_ON):
            raise HTTPException(404)
        return answer({"rows": rows_of(name)})
