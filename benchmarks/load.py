"""Many clients in one process, each a connection of its own; light, to leave the machine to the server."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import uvloop


@dataclass(frozen=True)
class Load:
    """What came of some seconds under load."""

    clients: int
    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float

    def __str__(self) -> str:
        return f"{self.per_second:8,.0f}/s   p50 {self.p50_ms:6.1f} ms   p99 {self.p99_ms:6.1f} ms"


class Client(asyncio.Protocol):
    """One connection that is kept open, one request at a time."""

    def __init__(self) -> None:
        self._seen = b""
        self._answer: asyncio.Future[Any] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Wait until all that the header promised is there."""
        self._seen += data
        end = self._seen.find(b"\r\n\r\n")
        if end < 0 or self._answer is None:
            return
        head = self._seen[:end].lower()
        length = int(head[head.index(b"content-length:") + 15 :].split(b"\r\n")[0])
        if len(self._seen) >= end + 4 + length:
            status, body = int(self._seen[9:12]), self._seen[end + 4 :]
            self._seen = b""
            self._answer.set_result((status, json.loads(body)))

    def connection_lost(self, error: Exception | None) -> None:
        """Whoever waits is told."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionError("closed"))

    async def post(self, path: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - anything JSON can say
        """Send a request and wait for its answer, which must be good."""
        content = json.dumps(body).encode()
        self._answer = asyncio.get_running_loop().create_future()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self._transport.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        status, answer = await self._answer
        if status >= 300:
            raise RuntimeError(f"{path} answered {status}: {answer}")
        return answer


Step = Callable[[Client], Awaitable[bool]]


def load(port: int, clients: int, seconds: float, prepare: Callable[[Client], Awaitable[Step]]) -> Load:
    """Let clients repeat a step for some seconds, or until it returns False."""
    return uvloop.run(_load(port, clients, seconds, prepare))


async def _load(port: int, clients: int, seconds: float, prepare: Callable[[Client], Awaitable[Step]]) -> Load:
    loop = asyncio.get_running_loop()
    connect = partial(loop.create_connection, Client, "127.0.0.1", port)
    first = (await connect())[1]
    step, taken = await prepare(first), list[float]()
    crowd = [first, *[(await connect())[1] for _ in range(clients - 1)]]  # late: a service closes silent connections
    start = time.perf_counter()

    async def work(client: Client) -> None:
        before, more = time.perf_counter(), True
        while more and before < start + seconds:
            more = await step(client)
            now = time.perf_counter()
            taken.append(now - before)
            before = now

    await asyncio.gather(*map(work, crowd))
    p50, p99 = np.percentile(taken, [50, 99]) * 1e3
    return Load(clients, len(taken), len(taken) / (time.perf_counter() - start), float(p50), float(p99))


def cpu_seconds(process: int) -> float:
    """Processor time that a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
