"""A service as people run it: a process of its own on a free port of this machine, ended by its own handle."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

FIDELITIES = {"costs": [1, 10], "biases": [0.1, 0], "concentration": {"name": "Bounded", "low": 0, "high": 1}}
EXPECTED = (
    "Invalid HTTP request received.",
    "mfbandit.store: outage ",
    '"mfbandit.access"',
)  # lines that are no complaint
PROBLEM = "application/problem+json"


class Service:
    """A running ``mfbandit serve``."""

    def __init__(self, store: Path, port: int = 0, host: str = "127.0.0.1", options: Sequence[str] = ()) -> None:
        command = [sys.executable, "-m", "mfbandit", "serve", str(store), "--port", str(port), "--host", host]
        command += options
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=not_measured())
        assert self.process.stderr is not None
        self.said_before, self.greeting = "", self.process.stderr.readline()
        while " at http://" not in self.greeting:  # what it has to say first, such as what was lost
            assert self.greeting, self.said_before
            self.said_before += self.greeting
            self.greeting = self.process.stderr.readline()
        self.url = self.greeting.split(" at ")[1].split()[0]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self) -> tuple[int, str]:
        """Tell it to end; its exit code, and what it wrote since its greeting."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


def not_measured() -> dict[str, str]:
    """The environment without measuring which lines run: that doubles the time to start, and others run them, too."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


def complaints(said: str) -> list[str]:
    """The lines of a service's log but those about requests, bytes that are no HTTP, and outages of its database."""
    return [line for line in said.splitlines() if not any(words in line for words in EXPECTED)]


@contextmanager
def served(store: Path, port: int = 0, host: str = "127.0.0.1", options: Sequence[str] = ()) -> Iterator[Service]:
    """A service for as long as the block lasts; it must have had nothing to complain about."""
    service = Service(store, port, host, options)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            code, said = service.stop()
            assert (code, complaints(said)) == (0, []), said


@contextmanager
def talking(url: str, token: str | None = None) -> Iterator[httpx.Client]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        yield client


def create(client: httpx.Client, name: str, **more: Any) -> dict[str, Any]:
    """Make an experiment, of three arms and by MFUCB if nothing else is said; its status."""
    body = {"name": name, "arms": ["a", "b", "c"], "fidelities": FIDELITIES, "policy": {"name": "MFUCB"}, **more}
    answer = client.post("/api/experiments", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def problem(answer: httpx.Response, status: int, kind: str, *said: str) -> dict[str, Any]:
    """The answer must be a problem by RFC 9457, of this status and kind, and say these words."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    told = dict(answer.json())
    assert told["type"] == f"urn:mfbandit:{kind}"
    assert told["status"] == status
    assert told["title"]
    assert isinstance(told["detail"], str)
    for words in said:
        assert words in told["detail"], told["detail"]
    return told
