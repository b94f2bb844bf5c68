"""Requests to a service in this process, without a server: for settings and clocks that only a test has."""

import asyncio
from typing import Any

import httpx

from mfbandit.service.asgi import App


class InProcess:
    """Sends requests to an application; keeps no cookies by itself, and follows no redirects.

    Args:
        app: the application.
        base_url: what the sender takes for its address.
        sender: the IP address from which requests seem to come.
    """

    def __init__(self, app: App, base_url: str = "http://localhost", sender: str = "127.0.0.1") -> None:
        self._app, self._base_url, self._sender = app, base_url, sender

    def request(self, method: str, address: str, **more: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, client=(self._sender, 50_000))
            async with httpx.AsyncClient(transport=transport, base_url=self._base_url) as client:
                return await client.request(method, address, **more)

        return asyncio.run(send())

    def get(self, address: str, **more: Any) -> httpx.Response:
        return self.request("GET", address, **more)

    def post(self, address: str, **more: Any) -> httpx.Response:
        return self.request("POST", address, **more)
