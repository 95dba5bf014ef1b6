"""A line that is cut between a COMMIT and its answer: the change is asked for again, and is made once."""

import pytest
from postgres_server import Proxy

from isorun.packages.names import parse_wanted
from isorun.registry.opening import Registry
from isorun.registry.people import TokenAsked
from isorun.registry.verifying import verify_registry
from registries_made import package, push, viewers

pytestmark = pytest.mark.long


@pytest.fixture
def cut(postgres, quick_folder, checkers):
    """A registry whose line to its index can be cut."""
    postgres.ask("SET client_min_messages = warning; DROP SCHEMA IF EXISTS isorun_registry CASCADE")
    proxy = Proxy(postgres.port)
    registry = Registry(quick_folder / "registry", postgres.url(port=proxy.port), checkers=checkers)
    registry.people.set_up_token()
    yield registry, proxy
    registry.close()
    proxy.close()


def test_what_was_done_and_not_told_is_not_done_twice(cut, monkeypatch):
    registry, proxy = cut
    who = viewers(registry)
    changes = {
        "pushed": lambda: push(registry, who["ann"], "lab/a/b", package(1)).version.version,
        "made": lambda: registry.people.add_token(who["ann"], TokenAsked()).number,
        "user": lambda: registry.people.add_user(who["root"], "eve").user,
        "yanked": lambda: registry.index.yank(who["ann"], wanted, "wrong"),
        "unyanked": lambda: registry.index.unyank(who["ann"], wanted),
        "joined": lambda: registry.people.add_member(who["root"], "group", "carl"),
        "left": lambda: registry.people.remove_member(who["root"], "group", "carl"),
    }
    wanted = parse_wanted("lab/a/b@1")
    for name, change in changes.items():
        if name == "yanked":  # else the line would be cut while it is looked for
            found = registry.index.version(who["ann"], wanted)
            monkeypatch.setattr(registry.index, "version", lambda *_, found=found: found)
        lines = verify_registry(registry).head.line
        proxy.swallow = b"COMMIT"
        change()
        assert proxy.swallow is None, f"{name}: nothing was cut"
        added = {"user": 2, "joined": 2}.get(name, 1)  # with his token; with the group
        assert verify_registry(registry).head.line == lines + added, name
    assert proxy.swallowed == len(changes)
    assert verify_registry(registry).damage == ()
