"""Messages between executor and fork server: length-prefixed JSON over a Unix socket, with open files beside it."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from typing import Any, Mapping, Sequence

_LENGTH = struct.Struct("!I")
_MAX_FILES = 8


def send(connection: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message, and open files that the receiver gets as its own."""
    body = json.dumps(message).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    header = _LENGTH.pack(len(body))
    sent = connection.sendmsg([header], rights)
    connection.sendall(header[sent:] + body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """One message and the files that came with it; None when the other side is gone."""
    space = socket.CMSG_SPACE(_MAX_FILES * array.array("i").itemsize)
    try:
        header, ancillary, _, _ = connection.recvmsg(_LENGTH.size, space)
        files = _files_of(ancillary)
        header += _exactly(connection, _LENGTH.size - len(header)) if header else b""
        body = _exactly(connection, _LENGTH.unpack(header)[0]) if header else b""
    except (ConnectionError, EOFError):
        return None
    return (json.loads(body), files) if header else None


def _files_of(ancillary: Sequence[tuple[int, int, bytes]]) -> list[int]:
    files = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(data[: len(data) - len(data) % files.itemsize])
    for file in files:
        os.set_inheritable(file, False)
    return list(files)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
