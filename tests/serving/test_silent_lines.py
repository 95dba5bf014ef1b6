"""The server at a socket: lines on which nothing comes, or never a whole request, keep nobody out."""

import contextlib
import socket
import threading
import time

import pytest
import uvicorn
from starlette.responses import Response

from isorun.serving import EVERYONE, Door, app
from isorun.serving.gate import Reached


@pytest.fixture
def port(request, monkeypatch):
    """Of a server that waits for little. Its parameter: how long who takes nothing is waited for."""
    monkeypatch.setattr(app, "_HEADER_SECONDS", 0.3)
    monkeypatch.setattr(app, "_MOST_AT_ONCE", 4)
    monkeypatch.setattr(app, "_UNREAD_SECONDS", getattr(request, "param", 0.5))
    with app.bound("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        large = Door("/large", lambda _: Response(b"x" * 2**25), EVERYONE, plain=True)
        gate = app.gated([*app.own_doors(), large], Reached.at([f"http://127.0.0.1:{port}"]))
        server = uvicorn.Server(app.settings_of(gate))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield port
        server.should_exit = True
        thread.join()


def asked(line, port):
    line.sendall(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"}"):  # a JSON object, to its end
        answer += line.recv(2**16)
    return answer.split(b"\r\n")[0]


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


@pytest.mark.parametrize("said", [b"", b"GET /health HTTP/1.1\r\n"], ids=["silent", "begun"])
def test_lines_without_a_whole_request_are_cut_and_others_are_heard(said, port):
    lines = [connected(port) for _ in range(4)]
    for line in lines:
        line.sendall(said)
    assert [line.recv(1) for line in lines] == [b""] * 4, "each is cut"
    with connected(port) as line:
        assert asked(line, port) == b"HTTP/1.1 200 OK"
    for line in lines:
        line.close()


def test_a_line_is_used_again_and_cut_when_its_next_request_does_not_come(port):
    with connected(port) as line:
        for _ in range(3):
            time.sleep(0.2)
            assert asked(line, port) == b"HTTP/1.1 200 OK"
        line.sendall(b"GET /hea")
        assert line.recv(1) == b""


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux alone cuts such lines")
def test_lines_on_which_nobody_reads_an_answer_are_cut_and_others_are_heard(port):
    lines = [connected(port) for _ in range(4)]
    for line in lines:
        line.sendall(f"GET /large HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    heard, end = b"", time.monotonic() + 30
    while heard != b"HTTP/1.1 200 OK" and time.monotonic() < end:
        time.sleep(0.2)
        with connected(port) as line, contextlib.suppress(OSError):
            heard = heard_of(line, port)
    assert heard == b"HTTP/1.1 200 OK"
    for line in lines:
        line.close()


@pytest.mark.parametrize("port", [60.0], indirect=True)
def test_who_reads_an_answer_by_the_byte_is_cut(port, monkeypatch):
    monkeypatch.setattr(app, "_READING_SECONDS", 0.5)
    with narrow(port) as line:
        line.sendall(f"GET /large HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        taken, began = 0, time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            while time.monotonic() < began + 3:
                time.sleep(0.05)
                taken += len(line.recv(10))
            while piece := line.recv(2**20):
                taken += len(piece)
        assert 0 < taken < 2**24, "what the kernels had, and not the whole answer"


def test_who_reads_an_answer_slowly_gets_all_of_it(port, monkeypatch):
    monkeypatch.setattr(app, "_READING_SECONDS", 0.3)
    with narrow(port) as line:
        line.sendall(f"GET /large HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        taken, end = 0, time.monotonic() + 1.5
        while taken < 2**25:
            if time.monotonic() < end:
                time.sleep(0.05)  # longer than it is looked at, and then quickly
            piece = line.recv(2**14 if time.monotonic() < end else 2**20)
            assert piece, f"cut after {taken:,} bytes"
            taken += len(piece)


def narrow(port):
    """A line whose kernel takes little for it."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**14)
    line.settimeout(20)
    line.connect(("127.0.0.1", port))
    return line


def heard_of(line, port):
    """The first line of the answer, whatever that is; empty where the line was cut."""
    line.sendall(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    return line.recv(2**16).split(b"\r\n")[0]
