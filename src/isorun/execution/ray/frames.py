"""Messages between isorun and the process that speaks to Ray: JSON, and bytes that nobody on the way reads."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["Frames"]

_HEAD: Final = struct.Struct("!IQ")


class Frames:
    """A connection on which whole messages are sent, by any thread, and received, by one."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """Send a message; OSError when nobody is there to read it."""
        text = json.dumps(message).encode()
        with self._lock:
            self._connection.sendall(b"".join((_HEAD.pack(len(text), len(body)), text, body)))

    def receive(self) -> tuple[dict[str, Any], bytes] | None:
        """The next message; None when there will be no more."""
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        of_text, of_body = _HEAD.unpack(head)
        text, body = self._file.read(of_text), self._file.read(of_body)
        return (json.loads(text), body) if len(text) == of_text and len(body) == of_body else None

    def end(self) -> None:
        """Send and receive no more; whoever waits for a message gets None."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        """Give the connection back, when nobody receives any more."""
        self._file.close()
        self._connection.close()
