"""A cluster of Ray on this machine: the one that runs here, if it is this user's, and the token of one that is started.

Ray writes the address of the last cluster that was started here into a folder that it lets everybody write to. Jobs
carry secrets, so that file is a hint and no more: what it names has to be shown to be this user's.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from isorun.worker.runfolder import open_own

__all__ = ["cluster_here", "token_variables"]

_LISTENING: Final = "0A"
_SOCKETS: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_LONGEST_ADDRESS: Final = 300


def cluster_here() -> str:
    """The address of a cluster that runs on this machine and is this user's; empty where there is none."""
    folder = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray"  # noqa: S108 - Ray's own place
    with suppress(OSError, ValueError):
        text, private = _read(folder / "ray_current_cluster")
        address = text.strip()
        host, _, digits = address.rpartition(":")
        port = int(digits)
        if _is_here(host.strip("[]")):
            return address if _all_ours(port) else ""
        return address if private and _only_ours(folder.lstat(), stat.S_IFDIR) else ""
    return ""


def token_variables(folder: Path) -> dict[str, str]:
    """What makes Ray ask everybody for a token, which is made here, in a folder that is this user's alone.

    What the user said of it is left alone. Ray knows tokens since 2.52; an older one takes no notice.
    """
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return {"RAY_AUTH_MODE": "token"}
    path = folder / "token"
    with os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW), "w") as file:
        file.write(secrets.token_hex(32))
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path)}


def _read(path: Path) -> tuple[str, bool]:
    """The text of a file that is no link, and whether nobody but this user can have written it."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, encoding="utf-8") as file:
        private = _only_ours(os.fstat(opened), stat.S_IFREG)
        return file.read(_LONGEST_ADDRESS), private


def _only_ours(found: os.stat_result, kind: int) -> bool:
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _is_here(host: str) -> bool:
    """Whether an address is one of this machine's: nobody can be bound to another's."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(place)
    except OSError:
        return False
    return True


def _all_ours(port: int) -> bool:
    """Whether this user's processes listen on a port of this machine, and nobody else's."""
    return set(_listeners(port)) == {os.getuid()}


def _listeners(port: int) -> Iterator[int]:
    for table in _SOCKETS:
        with suppress(FileNotFoundError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                _, place, _, state, _, _, _, uid, *_ = line.split()
                if state == _LISTENING and int(place.rpartition(":")[2], 16) == port:
                    yield int(uid)
