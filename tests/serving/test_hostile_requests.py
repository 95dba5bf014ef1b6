"""Requests of enemies: paths that lead elsewhere, changes from other sites, packages that were made to do harm."""

import itertools
import re
import sys
import time
from pathlib import Path

import pytest
from asking import OWN_PAGE, all_doors
from traversals import traversals

from isorun.registry import checking
from isorun.registry.verifying import verify_registry
from registries_made import package, push

sys.path.append(str(Path(__file__).parent.parent / "packages"))
from forged import honest, sealed
from hostile import hostile

USUAL = {
    "owner": "lab",
    "project": "a",
    "name": "b",
    "version": "1",
    "user": "bob",
    "number": "1",
    "address": "sha256:" + "0" * 64,
}
SAID = {"user": "eve", "scopes": ["read"], "sha256": "0" * 64, "bytes": 1, "reason": "x", "public": True}
REFUSED = {400, 401, 403, 404, 405, 413, 414, 422}


def parameters(registry):
    """Every parameter of every path."""
    for door in all_doors(registry):
        yield from ((door, name) for name in re.findall(r"{(\w+)}", door.path))


def with_text(door, name, text):
    path = door.path
    for other, usual in USUAL.items():
        path = path.replace(f"{{{other}}}", text if other == name else usual)
    return door.method, path, {"json_body": SAID} if door.method != "GET" else {}


def test_there_are_more_than_500_traversals_and_30_parameters(registry):
    assert len(traversals()) > 500
    assert len(list(parameters(registry))) > 30


def refuse_all(requests, who, registry):
    requests = list(requests)
    before = {path: path.stat().st_mtime_ns for path in registry.folder.rglob("*") if path.is_file()}
    answers = who.many(requests)
    odd = [
        (item[:2], answer.status)
        for item, answer in zip(requests, answers, strict=True)
        if answer.status not in REFUSED
    ]
    assert odd == []
    assert not any(b"root:x:0" in answer.body or b"SQLite format" in answer.body for answer in answers)
    assert {path: path.stat().st_mtime_ns for path in registry.folder.rglob("*") if path.is_file()} == before


def test_each_traversal_is_refused_somewhere_and_every_parameter_refuses_many(registry, users):
    places = itertools.cycle(parameters(registry))
    refuse_all((with_text(*next(places), text) for text in traversals()), users["root"], registry)


@pytest.mark.long
def test_each_traversal_is_refused_in_every_parameter(registry, users):
    for door, name in parameters(registry):
        refuse_all((with_text(door, name, text) for text in traversals()), users["root"], registry)


def test_a_change_that_a_page_of_another_site_asks_for_is_refused_at_every_door(registry, ask, users):
    changing = [door for door in all_doors(registry) if door.method != "GET"]
    assert len(changing) >= 13
    for door in changing:
        method, path, options = with_text(door, "", "")
        for origin in (
            {},
            {"origin": "null"},
            {"origin": "https://evil.org"},
            {**OWN_PAGE, "sec-fetch-site": "cross-site"},
        ):
            for kind in ({}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}):
                cookie = {"cookie": f"isorun={users['root'].token}"}  # stronger than any session
                answer = ask(method, path, **{**options, "headers": {**cookie, **origin, **kind}})
                assert (answer.status, answer.error["what"][:8]) == (403, "a change"), (method, path, origin)


def test_no_door_but_these_is_open_to_everyone(registry):
    everyone = {(door.method, door.path) for door in all_doors(registry) if door.who == "everyone"}
    assert {item for item in everyone if item[0] != "GET"} == {("POST", "/login"), ("POST", "/logout")}
    read = {path for method, path in everyone if method == "GET"}
    others = {path for path in read if not path.startswith(("/api/packages/", "/api/addresses/"))}
    assert others == {"/health", "/login", "/api/me", "/api/search"}


@pytest.fixture
def pushed(registry, users, monkeypatch):
    """`pushed(data)`: what the server says to it, in how many seconds, with what memory of the verifying process."""
    answers = []
    ask = checking._Checker.ask

    def told(*words):
        answers.append(ask(*words))
        return answers[-1]

    monkeypatch.setattr(checking._Checker, "ask", told)

    def push_it(data):
        answers.clear()
        began = time.monotonic()
        answer = users["ann"]("PUT", "/api/packages/lab/a/b/versions/new", body=data)
        return answer, time.monotonic() - began, answers[-1]["memory"] / 1024 if answers else 0

    return push_it


def hostile_packages(step):
    yield from itertools.islice(hostile(), 0, None, step)


def refuse_packages(packages, pushed, registry):
    assert pushed(sealed(honest()[0]))[0].status == 201
    before = verify_registry(registry)
    for name, data in packages:
        answer, seconds, memory = pushed(data)
        assert answer.status == 422, (name, answer.status, answer.body[:200])
        assert seconds < 2.0, (name, seconds)
        assert memory < 100, (name, memory)
        assert str(registry.folder) not in answer.body.decode()
    assert verify_registry(registry) == before
    assert registry.sweep() == []


@pytest.mark.long
def test_some_hostile_packages_are_refused(pushed, registry):
    refuse_packages(hostile_packages(40), pushed, registry)


@pytest.mark.slow
def test_all_hostile_packages_are_refused_within_two_seconds_and_100_megabytes(pushed, registry):
    refuse_packages(hostile_packages(1), pushed, registry)


def cut_pushes(registry, who, places):
    data = package(4)
    for place in places:
        answer = who("PUT", "/api/packages/lab/a/b/versions/new", pieces=[data[:place], None])
        assert answer.status == 400, place
    assert [path for path in (registry.folder / "blobs").rglob("*") if path.is_file()] == [
        registry.folder / "blobs" / "writing.lock"
    ]
    assert who.get("/api/packages/lab/a/b").status == 404
    assert who("PUT", "/api/packages/lab/a/b/versions/new", body=data).status == 201


def test_a_push_that_is_cut_leaves_nothing(registry, users):
    size = len(package(4))
    cut_pushes(registry, users["ann"], [0, 1, 2, *range(3, size, size // 30), size - 1, size])


@pytest.mark.long
def test_a_push_that_is_cut_at_any_byte_leaves_nothing(registry, users):
    cut_pushes(registry, users["ann"], range(len(package(4)) + 1))


def test_a_package_that_is_larger_than_allowed_is_not_received(registry, users):
    declared = users["ann"](
        "PUT", "/api/packages/lab/a/b/versions/new", pieces=[b""], headers={"content-length": str(2**26 + 1)}
    )
    assert declared.status == 413
    pieces = [bytes(2**20)] * 65
    assert users["ann"]("PUT", "/api/packages/lab/a/b/versions/new", pieces=pieces).status == 413
    offer = {"sha256": "0" * 64, "bytes": 2**26 + 1}
    assert users["ann"].post("/api/packages/lab/a/b/offers", json_body=offer).status == 413
    assert list((registry.folder / "blobs").rglob("*.part")) == []


def test_a_package_whose_verifying_takes_too_long_or_too_much_is_refused(registry, users, monkeypatch):
    monkeypatch.setattr(checking, "_SECONDS", 0.0)
    monkeypatch.setattr(checking, "_BYTES_A_SECOND", 1e12)
    answer = users["ann"]("PUT", "/api/packages/lab/a/b/versions/new", body=package(4))
    assert (answer.status, answer.error["what"]) == (422, "verifying the package took too much time or memory")
    monkeypatch.setattr(checking, "_SECONDS", 20.0)
    monkeypatch.setattr(checking, "_MEMORY_BYTES", 2**12)
    assert users["ann"]("PUT", "/api/packages/lab/a/b/versions/new", body=package(4)).status == 422
    monkeypatch.setattr(checking, "_MEMORY_BYTES", 2**30)
    assert users["ann"]("PUT", "/api/packages/lab/a/b/versions/new", body=package(4)).status == 201


def test_a_checker_that_is_killed_is_started_again(registry, users, checkers):
    ann = registry.people.identify(users["ann"].token)
    push(registry, ann, "lab/a/b", package(4))
    for checker in checkers._all:
        if checker._process is not None:
            checker._process.kill()
            checker._process.wait()
    assert push(registry, ann, "lab/a/b", package(5)).version.version == 2
