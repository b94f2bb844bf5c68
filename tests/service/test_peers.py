"""Answers that another service begins and does not end: it was killed, or stopped, in the middle of them."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from mfbandit.service.peers import WHOLE_BYTES, NotAnswered, Peers
from mfbandit.service.public_address import ADDRESS, PublicAddress
from mfbandit.store import ServiceEntry

SCOPE = {
    "method": "GET",
    "path": "/api/experiments/ads",
    "headers": [],
    ADDRESS: PublicAddress("http", "localhost", ""),
}


@asynccontextmanager
async def service(length, sent, *, ends):
    """One that promises a body and sends a part of it; then its connection ends, or nothing happens any more."""
    came, go_on = asyncio.Event(), asyncio.Event()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (length, b"x" * sent))
        await writer.drain()
        came.set()
        if not ends:
            await go_on.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield ServiceEntry("0a", address, "", "secret", 0.0, 0.0, None, 0.0, True), came
    finally:
        go_on.set()
        server.close()


async def passed_on(length, sent, *, ends):
    """What a client gets of an answer, and what whoever passed it on is told."""
    async with service(length, sent, ends=ends) as (peer, came):
        messages = []
        peers = Peers(lambda _: ends or not came.is_set())

        async def send(message):
            messages.append(message)

        try:
            await peers.pass_on(peer, dict(SCOPE), b"", send)
        except NotAnswered as error:
            return messages, error
        finally:
            await peers.close()
        return messages, None


@pytest.mark.parametrize("ends", [True, False], ids=["killed", "stopped"])
class TestAnAnswerThatBreaksOff:
    def test_of_a_usual_size_has_not_begun(self, ends):
        """It can be asked for again elsewhere, or is refused in words."""
        messages, error = asyncio.run(passed_on(100, 10, ends=ends))
        assert messages == []
        assert isinstance(error, NotAnswered)

    def test_that_is_long_is_cut_and_never_begun_twice(self, ends):
        """Nothing is raised: the server sees that the answer is not complete, and closes the connection."""
        messages, error = asyncio.run(passed_on(2 * WHOLE_BYTES, WHOLE_BYTES + 1, ends=ends))
        assert error is None
        assert [message["type"] for message in messages].count("http.response.start") == 1
        assert all(message.get("more_body", True) for message in messages)


@pytest.mark.parametrize("length", [0, 100, 2 * WHOLE_BYTES])
def test_a_whole_answer_is_passed_back(length):
    messages, error = asyncio.run(passed_on(length, length, ends=True))
    assert error is None
    assert b"".join(message.get("body", b"") for message in messages) == b"x" * length
    assert [message["type"] for message in messages].count("http.response.start") == 1
    assert not messages[-1].get("more_body", False)
