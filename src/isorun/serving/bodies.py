"""What a request brings: bounded in size and in time before anything reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from isorun.serving.refusals import Refusal

__all__ = ["bounded", "gathered", "refuse_encodings"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
_PIECE_SECONDS: Final = 30.0
_SMALL_SECONDS: Final = 10.0
_GRACE_SECONDS: Final = 60.0
_SLOWEST_BYTES_A_SECOND: Final = 8 * 2**10


def refuse_encodings(headers: Mapping[str, str], most: int) -> None:
    """What headers say of a body already: one that is too long, or packed, which nobody asked for.

    Of one whose length is said in two ways a proxy may take the other end for the end, and what follows for a request
    of somebody else (RFC 9112, section 6.1).
    """
    if headers.get("transfer-encoding") and "content-length" in headers:
        raise Refusal(400, "the length of the body is said in two ways", headers=(("connection", "close"),))
    said = headers.get("content-length", "0")
    if not (said.isascii() and said.isdigit() and len(said) < 20):
        raise Refusal(400, "the length of the body is no number")
    if int(said) > most:
        raise _too_long(most)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal(415, "a body is taken as it is", found="a Content-Encoding", allowed="none")
    if most == 0 and "transfer-encoding" in headers:
        raise _too_long(0)


async def gathered(receive: Receive, most: int) -> Receive:
    """The whole of a small body, handed on as one piece."""
    read = bounded(receive, most, seconds=_SMALL_SECONDS)
    data, more = bytearray(), True
    while more:
        message = await read()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "the request was cut short")
        data += message.get("body", b"")
        more = message.get("more_body", False)
    return _first({"type": "http.request", "body": bytes(data), "more_body": False}, receive)


def _first(message: Message, then: Receive) -> Receive:
    waiting = [message]

    async def receive() -> Message:
        return waiting.pop() if waiting else await then()

    return receive


def bounded(receive: Receive, most: int, *, seconds: float | None = None) -> Receive:
    """The body piece by piece, refused once it is too long or too slow. seconds: for all of it; else by its size."""
    began, size, over = time.monotonic(), 0, False

    async def read() -> Message:
        nonlocal size, over
        if over:  # only the end of the line is left to hear of
            return await receive()
        allowed = _GRACE_SECONDS + size / _SLOWEST_BYTES_A_SECOND if seconds is None else seconds
        left = min(_PIECE_SECONDS, began + allowed - time.monotonic())
        try:
            message = await asyncio.wait_for(receive(), max(left, 0.001))
        except TimeoutError:
            raise Refusal(408, "the body came too slowly", headers=(("connection", "close"),)) from None
        size += len(message.get("body", b""))
        if size > most:
            raise _too_long(most)
        over = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return read


def _too_long(most: int) -> Refusal:
    allowed = f"{most:,} bytes" if most else "none"
    return Refusal(413, "the body of the request is too long", allowed=allowed, headers=(("connection", "close"),))
