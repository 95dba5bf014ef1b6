"""A real web server that behaves badly on request."""

import hashlib
import http.server
import re
import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from isorun.zoo.data.dataset import Checksum, RemoteFile


@dataclass
class Behaviour:
    """How the server answers for one path."""

    content: bytes = b""
    status: int = 200
    ranges: bool = True
    break_after: int | None = None
    breaks: int = 1
    delay: float = 0.0
    chunk: int = 1 << 16
    length: bool = True
    location: str = ""
    requests: list = field(default_factory=list)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        page.requests.append(self.headers.get("Range"))
        if page.status != 200:
            self.send_response(page.status)
            if page.location:
                self.send_header("Location", page.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send(page)

    def _send(self, page):
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if asked and page.ranges:
            start = int(asked[1])
            if start >= len(page.content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(page.content) - 1}/{len(page.content)}")
        else:
            self.send_response(200)
        body = page.content[start:]
        if page.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        stop = len(body)
        if page.break_after is not None and page.breaks > 0:
            page.breaks -= 1
            stop = min(stop, page.break_after)
        try:
            for first in range(0, stop, page.chunk):
                self.wfile.write(body[first : min(first + page.chunk, stop)])
                self.wfile.flush()
                time.sleep(page.delay)
        except OSError:
            pass
        self.close_connection = True

    def log_message(self, *words):
        pass


class Server:
    def __init__(self):
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.web.daemon_threads = True
        self.web.pages = {}
        self.thread = threading.Thread(target=self.web.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self.web.server_port}{path}"

    def serve(self, path, content=b"", **settings):
        page = Behaviour(content, **settings)
        self.web.pages[path] = page
        return page

    def close(self):
        self.web.shutdown()
        self.web.server_close()
        self.thread.join()


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


@pytest.fixture
def content():
    return np.random.default_rng(1).integers(0, 256, 300_000, dtype=np.uint8).tobytes()


@pytest.fixture
def published(server, content):
    """A file of the server with its size and checksum."""

    def make(*paths, **changes):
        settings = {
            "path": "big.bin",
            "urls": tuple(server.url(path) for path in paths or ("/big.bin",)),
            "size": len(content),
            "checksum": Checksum("sha256", hashlib.sha256(content).hexdigest(), "the test"),
        }
        return RemoteFile(**{**settings, **changes})

    return make
