"""A real PostgreSQL server for tests, which a test may kill: what survives that was written down.

Nothing of the system's own PostgreSQL is used but its programs: data, sockets and log are in a temporary folder.
"""

import atexit
import contextlib
import functools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg import sql

PATIENCE = 60.0  # seconds; starting takes well under one where nothing else runs


class NoPostgres(Exception):
    """PostgreSQL cannot be started on this machine; the message says why."""


@functools.cache
def programs() -> Path:
    """The folder of initdb and postgres: the newest of Debian's, which are not on PATH, or else what PATH has."""
    debian = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin"), key=lambda path: float(path.parent.name))
    path = shutil.which("postgres")
    for folder in [*reversed(debian), *([Path(path).resolve().parent] if path else [])]:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise NoPostgres("no PostgreSQL server found in /usr/lib/postgresql or on PATH")


@functools.cache
def account() -> dict[str, Any]:
    """Arguments of subprocess that run a program as one who may run PostgreSQL, which refuses to serve as root."""
    if os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam("postgres")
    except KeyError:
        raise NoPostgres("PostgreSQL does not run as root, and there is no user postgres to run it as") from None
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def folder() -> Path:
    """A new temporary folder of the server's account; not pytest's, whose parents only their owner may enter."""
    path = tempfile.mkdtemp(prefix="mfbandit-postgres-")
    if account():
        os.chown(path, account()["user"], account()["group"])
    return Path(path)


def run(*words: object, cwd: Path) -> None:
    """Run a program under the server's account; what it said is in the error if it fails."""
    command = [str(word) for word in words]
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, **account())
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")


@functools.cache
def cluster() -> Path:
    """A cluster as initdb makes it. Servers copy it, as making it takes longer than all else about them."""
    program, home = programs() / "initdb", folder()
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    options = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
    run(program, *options, "-D", home / "data", cwd=home)
    return home / "data"


def free_port() -> int:
    """A port below those that systems give to clients: nobody is given it while the server is down."""
    while True:
        port = 20000 + secrets.randbelow(10000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """A server on a port of loopback that stays its own, from `with Server() as server` to the end of the block.

    In between it may be killed or stopped, and started again with what it had written.
    """

    def __init__(self) -> None:
        template = cluster()
        self.home = folder()
        self.port = free_port()
        self.name = f"mfbandit_{secrets.token_hex(8)}"
        self.process: subprocess.Popen[bytes] | None = None
        run("cp", "-a", template, self.home / "data", cwd=self.home)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.home)

    @property
    def url(self) -> str:
        """Where its first database is."""
        return self._url("postgres")

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def database(self, name: str) -> str:
        """Make an empty database and give its URL."""
        self._say("CREATE DATABASE {}", name)
        return self._url(name)

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self._say("DROP DATABASE {} WITH (FORCE)", name)

    def _say(self, command: str, name: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL(command).format(sql.Identifier(name)))

    def start(self) -> None:
        """Start it, the first time or again, and wait until it takes connections."""
        if self.process is not None:
            raise RuntimeError(f"the server must be stopped before it is started, got process {self.process.pid}")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.home,
            "cluster_name": self.name,  # in the title of each of its processes, by which they are found
            "fsync": "on",
            "recovery_init_sync_method": "syncfs",  # one call after a kill, not one for each of a thousand files
            "dynamic_shared_memory_type": "mmap",  # in the data folder: killed, it leaves nothing elsewhere
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [programs() / "postgres", "-D", self.home / "data", *words],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C is for the tests
                **account(),
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                if self.process is None or self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {(self.home / 'log').read_text()}") from None
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """Fast shutdown: connections are closed and everything is written. Nothing happens if it does not run."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE)
            self.process = None
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as a power cut does: no process of it gets to do anything more."""
        if self.process is None:
            raise RuntimeError("the server must run to be killed, got one that does not")
        self.process.kill()
        self.process.wait()
        self.process = None
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        # Its number may be another program's by the time of the next start, which would be refused then.
        for lock in (self.home / "data" / "postmaster.pid", self.home / f".s.PGSQL.{self.port}.lock"):
            lock.unlink(missing_ok=True)

    def processes(self) -> list[int]:
        """The numbers of its processes, those included whose parent is gone."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self.name in title(pid)]


def title(pid: int) -> str:
    """What a process calls itself; empty if it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""
