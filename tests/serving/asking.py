"""Requests to a server without a line: what came over it is handed to the app, byte for byte as one says it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from isorun.serving import api, sessions
from isorun.serving.app import own_doors
from isorun.serving.gate import Reached

HOST = "127.0.0.1:8008"
REACHED = Reached.at([f"http://{HOST}"])
OWN_PAGE = {"origin": f"http://{HOST}"}


def all_doors(registry):
    """Everything that a server with a registry answers."""
    return [*own_doors(), *sessions.doors(registry.people, REACHED), *api.doors(registry, largest=2**26)]


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    whole: bool = False

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Asker:
    """Asks an app. token: goes with every request, unless one is said."""

    def __init__(self, app, token=None, host=HOST):
        self.app, self.token, self.host = app, token, host

    def with_token(self, token):
        return Asker(self.app, token, self.host)

    def get(self, path, **options):
        return self("GET", path, **options)

    def post(self, path, **options):
        return self("POST", path, **options)

    def many(self, requests):
        """The answers to (method, path, options) each, asked one after another on one loop."""

        async def ask():
            return [await self._asked(method, path, **options) for method, path, options in requests]

        return asyncio.run(ask())

    def __call__(self, method, path, **options):
        """The answer. pieces: the body as it comes; None among them is the line cut there."""
        return asyncio.run(self._asked(method, path, **options))

    def _asked(self, method, path, *, headers=(), body=b"", pieces=None, json_body=None, address="127.0.0.1"):
        headers = {"host": self.host, **dict(headers)}
        if json_body is not None:
            body, headers["content-type"] = json.dumps(json_body).encode(), "application/json"
        if self.token is not None:
            headers.setdefault("authorization", f"Bearer {self.token}")
        if pieces is None:
            pieces = [body]
            if body:
                headers.setdefault("content-length", str(len(body)))
        elif "content-length" not in headers:
            headers.setdefault("transfer-encoding", "chunked")
        raw, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(raw).decode("utf-8", "replace"),
            "raw_path": raw.encode("latin-1", "replace"),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items() if value],
            "client": (address, 50_000),
            "server": ("127.0.0.1", 8008),
        }
        return _asked(self.app, scope, list(pieces))


async def _asked(app, scope, pieces):
    answer = Answer()

    async def receive():
        if not pieces:
            await asyncio.sleep(3600)
        piece = pieces.pop(0)
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message):
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")
            answer.whole = not message.get("more_body", False)

    await asyncio.wait_for(app(scope, receive, send), 60)
    return answer
