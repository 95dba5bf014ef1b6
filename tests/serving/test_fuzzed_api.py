"""Schemathesis makes requests from the API's own description, by the thousand: none is a server error.

It needs an environment of its own: ISORUN_SCHEMATHESIS names its program (pip install schemathesis).
"""

import json
import os
import re
import subprocess

import pytest
from asking import REACHED, all_doors

from isorun.registry.opening import Registry
from isorun.registry.verifying import verify_registry
from isorun.serving.app import gated
from registries_made import package, push, tokens
from served_registry import Served

PROGRAM = os.environ.get("ISORUN_SCHEMATHESIS", "")
CASES = 10_000
KNOWN = {
    "owner": ["lab", "ann", "nobody"],
    "project": ["a"],
    "name": ["private", "public"],
    "user": ["ann", "bob", "eve"],
    "version": ["1", "2", "latest", "new"],
    "words": ["toy", "%", ""],
}


def described(registry, address):
    """The API's description, with names that lead somewhere among all texts."""
    found = gated(all_doors(registry), REACHED)._app.openapi()
    for methods in found["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                known = {**KNOWN, "address": [address], "replicates": [address, ""]}.get(parameter["name"])
                if known:
                    parameter["schema"] = {"anyOf": [{"enum": known}, parameter["schema"]]}
                if parameter["name"] == "number":  # the first is the token that asks: without it all is refused
                    parameter["schema"]["minimum"] = 2
    return found


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM, reason="ISORUN_SCHEMATHESIS names no schemathesis")
def test_no_request_is_a_server_error(tmp_path):
    registry = Registry(tmp_path / "registry")
    registry.people.set_up_token()
    made = tokens(registry)
    ann = registry.people.identify(made["ann"])
    push(registry, ann, "lab/a/private", package(1))
    address = push(registry, ann, "lab/a/public", package(2), public=True).version.address
    (tmp_path / "api.json").write_text(json.dumps(described(registry, address)))
    operations = sum(door.listed for door in all_doors(registry))
    registry.close()
    server = Served(tmp_path, "--registry", "registry")
    try:
        done = subprocess.run(
            [
                *(PROGRAM, "run", "api.json", "--url", server.url, "--checks", "not_a_server_error", "--no-color"),
                *("-H", f"Authorization: Bearer {made['root']}", "--max-examples", str(CASES // operations + 100)),
                *("--phases", "fuzzing", "--continue-on-failure", "--seed", "7", "--suppress-health-check", "all"),
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=3000, check=False,
        )  # fmt: skip
    finally:
        assert server.close() == 0
    counted = re.search(r"([\d,]+) generated", done.stdout)
    assert counted, done.stdout[-3000:] + done.stderr[-2000:]
    print(counted[0])
    assert done.returncode == 0, done.stdout[-5000:]
    assert int(counted[1].replace(",", "")) >= CASES
    assert "Error at" not in server.said, server.said[-2000:]
    registry = Registry(tmp_path / "registry")
    assert verify_registry(registry).damage == ()
    registry.close()
