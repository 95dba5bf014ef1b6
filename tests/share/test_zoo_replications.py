"""A package of each paper's studies, made by one user, is run again by another in a fresh folder, without a network.

Another user has a home and a cache of his own; where this runs as root and the interpreter may be read by anybody, it
is a user of the system with no rights at all. The network is cut where the system allows it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from isorun.cli.main import main
from isorun.session import open_existing_store
from isorun.share.packing import pack
from isorun.store import STUDIES

pytestmark = [pytest.mark.slow, pytest.mark.alone]

SMALLEST = {
    "ase20": ("lenet1",),
    "tacl18": ("baseline",),
    "fewshot": ("matching-adam",),
    "dream": ("feedback",),
}
NOBODY = 65534


def as_another_user(folder, *words):
    """isorun as somebody else would type it: nothing of this user's home, and no network."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG"}}
    places = {"HOME": ".", "ISORUN_CACHE": "cache", "XDG_CONFIG_HOME": "config", "ISORUN_DATA": "no-data"}
    home = {name: str(folder / place) for name, place in places.items()}
    command = [*cut_off(), sys.executable, "-m", "isorun", *map(str, words)]
    given = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if may_be_nobody(folder) else {}
    return subprocess.run(
        command, cwd=folder, env={**kept, **home}, capture_output=True, text=True, timeout=1800, check=False, **given
    )


def cut_off():
    """What leaves a command without a network, where that can be done and the command keeps its user."""
    program = shutil.which("unshare")
    words = [program, "--user", "--map-current-user", "--net"]
    works = program and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if works else []


def may_be_nobody(folder):
    """Whether a user without rights can read the interpreter and enter the folder."""
    if os.geteuid() != 0:
        return False
    try:
        words = [sys.executable, "-c", "import isorun"]
        tried = subprocess.run(words, cwd=folder, capture_output=True, check=False, user=NOBODY, extra_groups=[])
    except OSError:
        return False
    return tried.returncode == 0


@pytest.fixture(params=sorted(SMALLEST))
def packages(request, tmp_path, monkeypatch, capsys):
    """The packages of a paper's smallest studies."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "no-data"))
    words = [word for part in SMALLEST[request.param] for word in ("--only", part)]
    assert main(["reproduce", request.param, "--store", "made", "--json", *words]) == 0
    capsys.readouterr()
    with open_existing_store("made") as store:
        names = store.documents(STUDIES).names()
    return [Path(pack(name, tmp_path / f"{number}.isorun", store="made").path) for number, name in enumerate(names)]


@pytest.fixture
def fresh():
    """A folder that another user can get to: pytest's own are closed to all others."""
    with tempfile.TemporaryDirectory(prefix="isorun-another-") as folder:
        yield Path(folder)


def belongs_to(folder, user):
    for path in (folder, *folder.iterdir()):
        os.chown(path, user, user)


def test_a_paper_replicates_in_a_fresh_folder_of_another_user(packages, fresh):
    for package in packages:
        shutil.copy(package, fresh)
    if os.geteuid() == 0:
        belongs_to(fresh, NOBODY)
        if not may_be_nobody(fresh):  # cut off from the network, even root may not read what is somebody else's
            belongs_to(fresh, os.getuid())
    for package in packages:
        done = as_another_user(fresh, "replicate", package.name, "-n", "1", "--yes", "--json")
        assert done.returncode == 0, done.stderr[-3000:]
        told = json.loads(done.stdout)
        assert told["verdict"] in {"repeated", "replicated", "undecided"}
        fixed = [group for group in told["groups"] if "default" not in group["group"].partition("level ")[2]]
        assert all(group["outcome"] == "same bits" for group in fixed), told["groups"]
        assert not any(item["kind"] in {"code", "data", "packages", "device"} for item in told["replaced"])
