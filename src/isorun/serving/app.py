"""Doors put behind the gate, and the server that listens.

    app = gated([*own_doors(), *pages.doors(shelf)], Reached.at(["http://127.0.0.1:8008"]))
    listen(app, socket)

To add pages: give `gated` their doors, in `cli/serve.py` and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import signal
import socket
import struct
import sys
import termios
from collections.abc import Sequence
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from isorun import __version__
from isorun.errors import InputError, IsorunError
from isorun.registry import STRANGER, Viewer
from isorun.serving import EVERYONE, Door
from isorun.serving.gate import Gate, Identify, Reached
from isorun.serving.refusals import Refusal, refusal_of, tell, wants_page

__all__ = ["bound", "gated", "listen", "own_doors", "settings_of"]

_MOST_AT_ONCE: Final = 400
_HEADER_SECONDS: Final = 10.0
_UNREAD_SECONDS: Final = 60.0
"""So long may somebody take nothing of an answer that is there for him."""
_READING_SECONDS: Final = 30.0
_SLOWEST_READER: Final = 1024
"""So many bytes a second he has to take while an answer waits for him, on the average of as many seconds as above."""
_AT_ONCE: Final = struct.pack("ii", 1, 0)
_LONGEST_HEADERS: Final = 16 * 2**10
_SILENT: Final = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
"""FastAPI would send traces to wherever variables of the environment say: this server sends nothing anywhere."""


def gated(
    doors: Sequence[Door],
    reached: Reached,
    *,
    identify: Identify = lambda _: None,
    stranger: Viewer = STRANGER,
    cookie: str = "isorun",
) -> Gate:
    """These doors, each open to whom it says, and nothing else."""
    app = _plain_app(doors) if all(door.plain for door in doors) else _app(doors)
    for kind in (Refusal, IsorunError, HTTPException, Exception):
        app.add_exception_handler(kind, _refused)
    return Gate(app, reached, identify, stranger=stranger, cookie=cookie)


def _plain_app(doors: Sequence[Door]) -> Starlette:
    """Pages alone: what FastAPI offers, their answers do not use."""
    app = Starlette()
    app.router.redirect_slashes = False
    for door in doors:
        app.router.routes.append(Route(door.path, door.answer, methods=[door.method]))
        app.router.routes[-1].door = door
    return app


def _app(doors: Sequence[Door]) -> Starlette:
    from fastapi import FastAPI  # noqa: PLC0415 - pages alone do without
    from fastapi.exceptions import RequestValidationError  # noqa: PLC0415

    app = FastAPI(
        title="isorun",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_SILENT,
    )
    app.add_exception_handler(RequestValidationError, _refused_form)
    for door in doors:
        app.add_api_route(
            door.path,
            door.answer,
            methods=[door.method],
            include_in_schema=door.listed,
            response_model=None,
            operation_id=f"{door.method.lower()}_{door.answer.__name__}",
        )
        app.router.routes[-1].door = door
    return app


def own_doors() -> list[Door]:
    """What every server answers."""
    return [Door("/health", health, EVERYONE, listed=True, plain=True)]


def health(_: Request) -> Response:
    """Whether the server is there, for whoever watches it."""
    return JSONResponse({"isorun": __version__})


async def _refused(request: Any, error: Any) -> Any:
    """What is answered where a route fails. Of what isorun did not raise, the gate tells the terminal where it was."""
    refusal = _refusal(error)
    page = wants_page(request.scope["path"], request.headers.get("accept", ""))
    headers, body = refusal.rendered(page=page)
    return Response(body, refusal.status, headers=dict(headers))


async def _refused_form(request: Any, error: Any) -> Any:
    """What a request says in another form than is needed: what is wrong with it, without what it said."""
    found = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3])
    return await _refused(request, Refusal(422, "the request is not of the form that is needed here", found=found))


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, IsorunError):
        tell(error)
        return refusal_of(error)
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, str(error.detail))
    return Refusal(500, "the server failed at this", hint="its terminal says where")


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there, or the reason why it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _cut_who_reads_nothing(listener)
        listener.bind((host, port))
        listener.listen()  # whoever comes before the server is up waits for it
    except OSError as error:
        listener.close()
        taken = error.errno in {errno.EADDRINUSE, errno.EACCES}
        hint = "isorun serve --port 0 takes a free one" if taken else "--host 127.0.0.1, or an address of this machine"
        raise InputError(
            f"{host}:{port} cannot be listened on", found=error.strerror or str(error), hint=hint
        ) from None
    return listener


def _cut_who_reads_nothing(listener: socket.socket) -> None:
    """Lines that are accepted here are cut by the kernel where an answer waits for a reader who takes none of it.

    Some hundred of them would keep everyone else out, as silent ones would; a closed one, too, waits for its reader.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # not everywhere but on Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_UNREAD_SECONDS * 1000))


def _unread(transport: Any) -> int:
    """How many bytes of answers wait for their reader, here and in the kernel."""
    waiting: int = transport.get_write_buffer_size()
    try:
        sent = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:  # no kernel but Linux says so of a socket
        return waiting
    return waiting + int.from_bytes(sent, sys.byteorder)


class _Impatient(H11Protocol):  # type: ignore[misc] # uvicorn is an extra
    """A line on which no whole request comes is cut, or whose reader takes an answer by the byte.

    Some hundred of them would keep everyone else out.
    """

    _waiting: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that we are told of whatever waits for a reader
        self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again(_unread(self.transport))

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_looking()

    def _look_again(self, unread: int) -> None:
        self._stop_looking()
        self._reading = self.loop.call_later(_READING_SECONDS, self._look_at_reader, unread)

    def _look_at_reader(self, before: int) -> None:
        unread = _unread(self.transport)
        if 0 <= before - unread < _SLOWEST_READER * _READING_SECONDS:
            # Otherwise the kernel would go on by itself with what it has of the answer.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()
        else:
            self._look_again(unread)

    def _stop_looking(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
        self._stop_looking()

    def _wait(self) -> None:
        """Until the headers of a request are there; its body and its answer have limits of their own."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(_HEADER_SECONDS, self._cut)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _cut(self) -> None:
        self._waiting = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def settings_of(app: Gate) -> uvicorn.Config:
    """How the server listens: nothing is logged, no header of a proxy is believed, and everything has an end."""
    return uvicorn.Config(
        app,
        http=_Impatient,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        lifespan="off",
        limit_concurrency=_MOST_AT_ONCE,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
        timeout_graceful_shutdown=5,
    )


def listen(app: Gate, listener: socket.socket) -> None:
    """Serve until the process is told to end (Ctrl-C, SIGTERM)."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does, once all is answered
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(settings_of(app)).run(sockets=[listener])
