"""A real nginx in front of services, with a file that docs or deploy/ show; ended by its own handle."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.requirements import missing, no_nginx

DOCS = Path(__file__).parents[2] / "docs" / "proxy.md"
HOST = "ads.example.org"
FRAME = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


def documented() -> str:
    """The file that the docs show."""
    (found,) = re.findall(r"```nginx\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    return str(found)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that its own key has signed, and the key."""
    pem, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", str(key)]
    command += ["-out", str(pem), "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return pem, key


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def nginx(folder: Path, backend: int, *, without: str = "", prefix_off: bool = False) -> Iterator[tuple[str, Path]]:
    """The documented nginx in front of a port of this machine: its address with the prefix, and its certificate.

    Args:
        folder: for its files.
        backend: the port of the service.
        without: leave out lines with this text.
        prefix_off: take the prefix off.
    """
    if reason := no_nginx():
        missing(reason)
    pem, key = certificate(folder)
    text = "\n".join(line for line in documented().splitlines() if not (without and without in line))
    changes = {
        "/etc/ssl/certs/ads.example.org.pem": str(pem),
        "/etc/ssl/private/ads.example.org.key": str(key),
        "http://127.0.0.1:8000;": f"http://127.0.0.1:{backend}{'/' * prefix_off};",
    }
    with running(folder, text, "listen 443 ssl", changes) as port:
        yield f"https://{HOST}:{port}/bandits", pem


@contextmanager
def running(folder: Path, text: str, listen: str, changes: dict[str, str]) -> Iterator[int]:
    """An nginx with a file for its servers: the port of this machine that it listens at.

    Args:
        folder: for its files.
        text: what is inside of ``http``.
        listen: how the file says where to listen; it has that once.
        changes: what else to replace, each once there.
    """
    if reason := no_nginx():
        missing(reason)
    port = free_port()
    for old, new in {**changes, listen: f"listen 127.0.0.1:{port} ssl"}.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(FRAME.format(folder=folder, user=user, server=text))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _wait_for(port: int, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < end
            time.sleep(0.05)
        else:
            return
