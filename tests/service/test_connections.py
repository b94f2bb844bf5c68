"""Connections that send nothing do not shut others out, and small requests do not take much memory."""

import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection

import pytest

from mfbandit._internal.limits import MAX_ARMS, MAX_CELLS, MAX_SILENT_SECONDS
from tests.support.services import FIDELITIES, create, problem, served, talking

FILES = 256


@pytest.fixture
def small_service(tmp_path):
    """A service that may open few files."""
    code = (
        "import resource, sys; from mfbandit.__main__ import main\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES})); main()"
    )
    command = [sys.executable, "-c", code, "serve", str(tmp_path / "a.db"), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = process.stderr.readline().split(" at ")[1].split()[0]
    yield url
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, "")


def connected(url):
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=30)


def test_more_silent_connections_than_files(small_service):
    with ExitStack() as stack, talking(small_service) as client:
        create(client, "ads")
        for _ in range(2 * FILES):
            stack.enter_context(connected(small_service))
        start = time.monotonic()
        for _ in range(20):  # each over a connection of its own, that costs next to nothing
            with closing(HTTPConnection(small_service.removeprefix("http://"), timeout=30)) as connection:
                connection.request("GET", "/health")
                assert connection.getresponse().status == 200
        assert client.get("/api/experiments/ads").status_code == 200
        assert time.monotonic() - start < MAX_SILENT_SECONDS


@pytest.mark.slow
def test_silent_ones_are_closed_after_a_while(tmp_path):
    head = "POST /api/experiments HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    parts = {"nothing": "", "half a header": head, "half a body": f'{head}Content-Length: 1000\r\n\r\n{{"name":'}
    with served(tmp_path / "a.db") as service, ExitStack() as stack:
        waiting = {}
        for what, text in parts.items():
            waiting[what] = stack.enter_context(connected(service.url))
            waiting[what].sendall(text.encode())
        dripping = stack.enter_context(connected(service.url))
        for byte in head.encode()[:3]:
            dripping.sendall(bytes([byte]))
            time.sleep(0.5)
        for what, one in waiting.items():
            assert not _closed(one), what  # not at once
        deadline = time.monotonic() + MAX_SILENT_SECONDS + 60
        for what, one in {**waiting, "byte by byte": dripping}.items():
            while not _closed(one):
                assert time.monotonic() < deadline, what


def _closed(connection):
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


class TestSizes:
    def test_arms_times_fidelities_is_limited(self, tmp_path):
        costs = [float(2**m) for m in range(32)]
        large = {**FIDELITIES, "costs": costs, "biases": [float(32 - m) for m in range(1, 33)]}
        with served(tmp_path / "a.db") as service, talking(service.url) as client:
            body = {"name": "large", "arms": MAX_ARMS, "fidelities": large}
            answer = client.post("/api/experiments", json=body)
            rule = f"arms times fidelities must be at most {MAX_CELLS:,}, got 1,000,000 times 32"
            problem(answer, 422, "invalid", rule)
            body = {"name": "large", "arms": MAX_CELLS // 32 + 1, "fidelities": large}
            problem(client.post("/api/experiments", json=body), 422, "invalid", "arms times fidelities")
            assert client.get("/api/experiments").json()["experiments"] == []
