"""A server that is killed while people push: what it acknowledged is there, whole, and once."""

import random
import threading
import time

import pytest

from isorun.errors import RegistryError
from isorun.packages.names import parse_wanted
from isorun.registries import Client
from isorun.registry.opening import Registry
from isorun.registry.verifying import verify_registry
from registries_made import package, tokens
from served_registry import Served

pytestmark = [pytest.mark.slow, pytest.mark.chaos]
KILLS, PUSHERS = 8, 3


@pytest.fixture(params=["sqlite", "postgres"])
def index(request):
    if request.param == "sqlite":
        return None, []
    server = request.getfixturevalue("postgres")
    server.ask("SET client_min_messages = warning; DROP SCHEMA IF EXISTS isorun_registry CASCADE")
    return server, ["--index", server.url()]


class Pushing(threading.Thread):
    """Pushes package after package, each until it is acknowledged, and keeps what was."""

    def __init__(self, number, url, token, folder):
        super().__init__(daemon=True)
        self.number, self.client, self.folder = number, Client(url, token), folder
        self.acknowledged, self.cut, self.over = {}, 0, False

    def run(self):
        for seed in range(10_000):
            data = package(1000 * (self.number + 1) + seed)
            path = self.folder / f"{self.number}-{seed}.isorun"
            path.write_bytes(data)
            while not self.over:
                try:
                    offered, _ = self.client.push(path, parse_wanted("lab/a/b"))
                except RegistryError:
                    self.cut += 1
                    time.sleep(0.1)
                else:
                    assert offered.version not in self.acknowledged
                    self.acknowledged[offered.version] = offered.sha256
                    break
            path.unlink()
            if self.over:
                return


def test_nothing_acknowledged_is_lost_by_kills(index, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    postgres, words = index
    registry = Registry(tmp_path / "registry", words[-1] if words else "")
    registry.people.set_up_token()
    token = tokens(registry)["ann"]
    registry.close()
    start = lambda port=0: Served(tmp_path, "--registry", "registry", *words, port=port)  # noqa: E731
    server = start()
    pushers = [Pushing(number, server.url, token, tmp_path) for number in range(PUSHERS)]
    for pusher in pushers:
        pusher.start()
    chance = random.Random(5)
    for kill in range(KILLS):
        known = sum(len(pusher.acknowledged) for pusher in pushers)
        deadline = time.monotonic() + 60
        while sum(len(pusher.acknowledged) for pusher in pushers) < known + 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(chance.random() * 0.3)
        if postgres is not None and kill % 2:
            postgres.kill()
            postgres.start()
        else:
            server.kill()
            server = start(server.port)
    for pusher in pushers:
        pusher.over = True
    for pusher in pushers:
        pusher.join(60)
    assert server.close() == 0
    acknowledged = {version: sha for pusher in pushers for version, sha in pusher.acknowledged.items()}
    assert len(acknowledged) == sum(len(pusher.acknowledged) for pusher in pushers) > 5 * KILLS
    assert sum(pusher.cut for pusher in pushers) > 0
    registry = Registry(tmp_path / "registry", words[-1] if words else "")
    found = verify_registry(registry)
    assert found.damage == ()
    ann = registry.people.identify(token)
    there = {item.version: item.digest for item in registry.index.versions(ann, parse_wanted("lab/a/b").name)}
    assert {version: there.get(version) for version in acknowledged} == acknowledged
    assert sorted(there) == list(range(1, len(there) + 1))
    assert len(set(there.values())) == len(there)
    assert len(there) - len(acknowledged) <= PUSHERS, "at most what was under way at the end was not told"
    registry.close()
