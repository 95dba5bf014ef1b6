"""Nothing passes the gate that was not declared, and nothing leaves it without its headers."""

import argparse
import asyncio
import re
import threading
from pathlib import Path

import pytest
from asking import Asker
from fastapi import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, WebSocketRoute

from isorun import registry as registry_room
from isorun import serving
from isorun.cli import serve
from isorun.errors import RegistryConflict, StoreError
from isorun.registry import EVERYTHING, Scope, Viewer
from isorun.serving import EVERYONE, Door, bodies
from isorun.serving.app import gated, own_doors
from isorun.serving.gate import HEADERS, Gate, Reached, viewer_of
from isorun.serving.sessions import cookie_name

REACHED = Reached.at(["http://127.0.0.1:8008", "http://localhost:8008"])
READER = Viewer("ann", frozenset({Scope.READ}))
OWN = {"origin": "http://127.0.0.1:8008"}


def who_asks(request: Request):
    return {"user": viewer_of(request).user}


async def echo(request: Request):
    return {"body": (await request.body()).decode()}


async def streamed(request: Request):
    return {"sizes": [len(piece) async for piece in request.stream()]}


def broken():
    raise ZeroDivisionError("the secret path /etc/shadow")


def unreadable():
    raise StoreError("the disk of /srv/registry is full")


def there_already():
    raise RegistryConflict("version 3 is there already", found="other bytes", hint="push it as a new version")


DOORS = [
    *own_doors(),
    Door("/who", who_asks, Scope.READ),
    Door("/all", who_asks, EVERYONE),
    Door("/echo", echo, EVERYONE, "POST", 1000),
    Door("/echo", echo, Scope.READ, "DELETE", 1000),
    Door("/stream", streamed, Scope.PUSH, "PUT", 5000, streamed=True),
    Door("/open-stream", streamed, EVERYONE, "PUT", 5000, streamed=True),
    Door("/broken", broken, EVERYONE),
    Door("/unreadable", unreadable, EVERYONE),
    Door("/conflict", there_already, EVERYONE),
    Door("/studies/{name}", who_asks, EVERYONE),
]


@pytest.fixture
def ask():
    return Asker(gated(DOORS, REACHED, identify={"t-ann": READER}.get))


def test_others_are_answered_while_a_token_is_looked_up():
    answered = threading.Event()

    def identify(token):
        return READER if answered.wait(30) else None  # as an index that waits for a disk or a server

    async def quick(_: Request):
        answered.set()
        return JSONResponse({})

    ask = Asker(
        gated([Door("/who", who_asks, Scope.READ), Door("/quick", quick, EVERYONE)], REACHED, identify=identify)
    )

    async def both():
        slow = asyncio.ensure_future(ask._asked("GET", "/who", headers={"authorization": "Bearer t"}))
        await asyncio.sleep(0)
        return await asyncio.gather(slow, ask._asked("GET", "/quick"))

    assert [answer.status for answer in asyncio.run(both())] == [200, 200]


def test_every_answer_has_the_headers(ask):
    for path in ("/health", "/nothing", "/broken", "/who", "/conflict"):
        answer = ask.get(path)
        assert {name: answer.headers[name] for name, _ in HEADERS} == dict(HEADERS)
        assert answer.headers["cache-control"] == "no-store"
    policy = dict(HEADERS)["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy


def test_an_app_with_a_route_that_does_not_say_who_may_use_it_does_not_start():
    for path in ("/new", "/echo"):
        app = gated(DOORS, REACHED)._app
        app.add_api_route(path, echo, methods=["PATCH"])
        with pytest.raises(RuntimeError, match=f"do not say who may use them: {path}"):
            Gate(app, REACHED, lambda _: None)


def test_a_route_that_is_mounted_or_is_no_http_is_no_door():
    for route in (Mount("/files", routes=[]), WebSocketRoute("/socket", echo)):
        app = gated(DOORS, REACHED)._app
        app.router.routes.append(route)
        with pytest.raises(RuntimeError, match="do not say who"):
            Gate(app, REACHED, lambda _: None)


def test_a_route_added_later_is_not_reached(ask):
    ask.app._app.add_api_route("/later", echo, methods=["GET"])
    assert ask.get("/later").status == 404


@pytest.mark.parametrize(
    "host", ["evil.org", "127.0.0.1", "127.0.0.1:9", "localhost.evil.org:8008", "", "localhost:8008."]
)
def test_another_host_is_refused(ask, host):
    assert ask.get("/health", headers={"host": host}).status == 421


def test_a_known_host_is_taken_whatever_its_case(ask):
    assert ask.get("/health", headers={"host": "LocalHost:8008"}).status == 200


def test_who_asks_is_known_by_token_and_by_session(ask):
    assert ask.get("/who").status == 401
    assert ask.with_token("t-ann").get("/who").json == {"user": "ann"}
    assert ask.get("/who", headers={"cookie": "a=b; isorun=t-ann"}).json == {"user": "ann"}
    assert ask.get("/all", headers={"cookie": "isorun=over"}).json == {"user": ""}
    assert ask.get("/who", headers={"cookie": "isorun=over"}).status == 401


@pytest.mark.parametrize(
    "said", ["Bearer wrong", "Bearer", "Basic dDp0", "Bearer " + "x" * 201, "t-ann", "bearer t-änn"]
)
def test_a_wrong_token_is_refused_where_none_is_needed_too(ask, said):
    answer = ask.get("/all", headers={"authorization": said})
    assert answer.status == 401
    assert "t-" not in answer.body.decode()


def test_a_scope_that_is_missing_is_told(ask):
    assert ask.with_token("t-ann")("PUT", "/stream").status == 403
    assert ask("PUT", "/stream", headers=OWN).status == 401


def test_on_a_laptop_everyone_reads_and_nobody_pushes():
    ask = Asker(gated(DOORS, REACHED, stranger=EVERYTHING))
    assert ask.get("/who").status == 200
    assert ask("PUT", "/stream", headers=OWN).status == 403


@pytest.mark.parametrize(("method", "path"), [("POST", "/echo"), ("DELETE", "/echo"), ("PUT", "/open-stream")])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://evil.org"},
        {"origin": "https://127.0.0.1:8008"},
        {"origin": "http://127.0.0.1:8008.evil.org"},
        {"origin": "http://127.0.0.1"},
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site"},
        {"referer": "http://127.0.0.1:8008/"},
    ],
)
def test_a_change_from_elsewhere_is_refused_with_a_session_too(ask, method, path, headers):
    answer = ask(method, path, headers={"cookie": "isorun=t-ann", **headers})
    assert answer.status == 403
    assert "own pages" in answer.error["what"]


def test_a_change_from_an_own_page_or_with_a_token_is_taken(ask):
    assert ask.post("/echo", headers=OWN, body=b"hello").json == {"body": "hello"}
    assert ask.with_token("t-ann").post("/echo", body=b"hello").json == {"body": "hello"}


def test_bodies_are_bounded_whether_they_say_their_length_or_not(ask):
    assert ask.post("/echo", headers=OWN, body=b"x" * 1000).status == 200
    assert ask.post("/echo", headers=OWN, body=b"x" * 1001).status == 413
    assert ask.post("/echo", headers=OWN, pieces=[b"x" * 600, b"x" * 401]).status == 413
    assert ask("PUT", "/open-stream", headers=OWN, pieces=[b"x" * 3000] * 2).status == 413
    assert ask("PUT", "/open-stream", headers=OWN, pieces=[b"x" * 2000] * 2).json == {"sizes": [2000, 2000, 0]}


def test_a_request_that_is_cut_reaches_no_route(ask, capsys):
    assert ask.post("/echo", headers={**OWN, "content-length": "10"}, pieces=[b"half", None]).status == 400
    assert capsys.readouterr().err == ""


def test_what_is_read_has_no_body_and_none_is_packed(ask):
    assert ask.get("/health", body=b"x").status == 413
    assert ask.get("/health", pieces=[b"x"]).status == 413
    assert ask.post("/echo", headers={**OWN, "content-encoding": "gzip"}, body=b"x").status == 415
    assert ask.post("/echo", headers={**OWN, "content-length": "-1"}, body=b"x").status == 400
    assert ask.post("/echo", headers={**OWN, "content-length": "9" * 30}, body=b"x").status == 400


def test_a_body_whose_length_is_said_in_two_ways_is_refused_and_the_line_is_cut(ask):
    refused = ask.post("/echo", headers={**OWN, "content-length": "5", "transfer-encoding": "chunked"}, body=b"hello")
    assert (refused.status, refused.headers["connection"]) == (400, "close")


def test_a_body_that_does_not_come_is_not_waited_for(ask, monkeypatch):
    monkeypatch.setattr(bodies, "_PIECE_SECONDS", 0.05)
    monkeypatch.setattr(bodies, "_SMALL_SECONDS", 0.05)
    late = {**OWN, "content-length": "10", "transfer-encoding": ""}

    async def slow(scope, receive, send):
        await ask.app(scope, lambda: asyncio.sleep(60), send)

    for method, path in (("POST", "/echo"), ("PUT", "/open-stream")):
        assert Asker(slow)(method, path, headers=late).status == 408


def test_an_error_is_told_in_one_form_without_a_trace(ask, capsys):
    answer = ask.get("/broken")
    assert answer.status == 500
    assert answer.error == {
        "status": 500,
        "what": "the server failed at this",
        "found": "",
        "allowed": "",
        "next": "its terminal says where",
    }
    said = capsys.readouterr().err
    assert "ZeroDivisionError at " in said
    assert "shadow" not in said
    answer = ask.get("/unreadable")
    assert "/srv/registry" not in answer.body.decode()
    assert "/srv/registry is full" in capsys.readouterr().err
    answer = ask.get("/conflict")
    assert (answer.status, answer.error["found"]) == (409, "other bytes")


def test_people_get_a_page(ask):
    answer = ask.get("/studies/a/b", headers={"accept": "text/html,*/*"})
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert b"<h1>404 Not Found</h1>" in answer.body
    page = ask.get("/conflict", headers={"accept": "text/html"}).body.decode()
    assert "version 3 is there already" in page
    assert ask.get("/api/x", headers={"accept": "text/html"}).headers["content-type"] == "application/json"


def test_head_is_get_without_its_body_and_other_methods_are_named(ask):
    answer = ask("HEAD", "/health")
    assert (answer.status, answer.body) == (200, b"")
    assert ask("PATCH", "/echo").headers["allow"] == "DELETE, POST"
    assert ask("OPTIONS", "/echo", headers={"origin": "http://evil.org"}).status == 405


@pytest.mark.parametrize(
    "path",
    ["/studies/..", "/studies/%2e%2e", "/studies/%2E", "/studies/a%2fb", "/studies/a%5cb", "/studies/%00", "/studies//",
     "/studies/a\\b", "/studies/%0d%0a", "/studies/%ff", "/studies/" + "x" * 2000, "//evil.org", "/studies/x/../y"],
)  # fmt: skip
def test_paths_that_could_be_read_in_two_ways_lead_nowhere(ask, path):
    assert ask.get(path).status in {404, 414}


def test_what_decides_is_said_once(ask):
    async def doubled(scope, receive, send, app=ask.app):
        scope["headers"].append((b"host", b"127.0.0.1:8008"))
        await app(scope, receive, send)

    assert Asker(doubled).get("/health").status == 400


def test_wrong_tokens_from_one_address_are_refused_for_a_while(ask):
    wrong = [ask.with_token("wrong").get("/who").status for _ in range(12)]
    assert wrong[:10] == [401] * 10
    assert wrong[-1] == 429
    assert ask.with_token("wrong").get("/who", address="10.0.0.9").status == 401
    assert ask.with_token("t-ann").get("/who").status == 200


def test_no_trace_is_sent_anywhere_whatever_the_environment_says(monkeypatch):
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    config = gated(DOORS, REACHED)._app._telemetry
    assert not any(config[name] for name in ("tracing", "metrics", "logs", "auto_configure"))


def test_where_every_way_is_encrypted_browsers_are_told_to_use_no_other():
    lab = Reached.at(["https://isorun.lab.org/"])
    assert (lab.hosts, lab.secure) == ({"isorun.lab.org"}, True)
    ask = Asker(gated(DOORS, lab), host="isorun.lab.org")
    assert ask.get("/health").headers["strict-transport-security"].startswith("max-age=")
    assert cookie_name(lab) == "__Host-isorun"
    assert not REACHED.secure
    assert cookie_name(REACHED) == "isorun"


def test_a_server_that_is_told_its_address_is_reached_by_no_other():
    told = argparse.Namespace(host="127.0.0.1", url=["https://isorun.lab.org"])
    assert serve._addresses(told, 8008) == ["https://isorun.lab.org"]
    told.url = None
    assert serve._addresses(told, 8008) == ["http://127.0.0.1:8008", "http://localhost:8008"]


def test_nothing_that_serves_can_ask_another_machine():
    """Neither do these rooms import what could, nor the client of registries."""
    modules = r"urllib\.request|http\.client|httpx|requests|aiohttp|smtplib|ftplib|isorun\.registries"
    asking = re.compile(rf"^\s*(?:import|from) ({modules})\b", re.MULTILINE)
    rooms = [Path(serving.__file__).parent, Path(registry_room.__file__).parent]
    found = {path.name: asking.findall(path.read_text()) for room in rooms for path in room.rglob("*.py")}
    assert len(found) > 20
    assert {name: names for name, names in found.items() if names} == {}
    assert asking.findall("from urllib.request import urlopen\nimport isorun.registries") != []


@pytest.mark.parametrize(
    ("typed", "sent"), [("http://lab.org:80", "http://lab.org"), ("https://lab.org:443/", "https://lab.org")]
)
def test_a_server_whose_usual_port_was_typed_is_reached_without_it(typed, sent):
    reached = Reached.at([typed])
    assert reached.hosts == {"lab.org", typed.rstrip("/").partition("://")[2]}
    ask = Asker(gated(DOORS, reached), host="lab.org")
    assert ask("POST", "/echo", body=b"x", headers={"origin": sent}).status == 200


def test_an_address_that_failed_too_often_comes_through_no_guarded_door():
    ask = Asker(gated([*DOORS, Door("/login", who_asks, EVERYONE, "POST", guarded=True)], REACHED))
    assert ask("POST", "/login", headers=OWN).status == 200
    for _ in range(12):
        ask.with_token("wrong").get("/who")
    assert ask("POST", "/login", headers=OWN).status == 429
    assert ask("POST", "/login", headers=OWN, address="10.0.0.9").status == 200


def test_an_address_that_is_too_long_is_refused():
    ask = Asker(gated(DOORS, REACHED))
    assert ask.get(f"/health?{'q' * 4000}").status == 200
    assert ask.get(f"/health?{'q' * 4001}").status == 414
    assert ask.get(f"/studies/{'s' * 2000}").status == 414


def test_a_route_that_does_more_than_its_door_says_is_none():
    app = gated(DOORS, REACHED)._app
    route = next(route for route in app.router.routes if route.path == "/all")
    route.methods = {"GET", "POST"}
    with pytest.raises(RuntimeError, match="do not say who may use them: /all"):
        Gate(app, REACHED, lambda _: None)
