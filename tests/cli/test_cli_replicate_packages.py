"""The packages of a package's runs: at hand, made again, missing, or replaced; offline, from wheels in a folder."""

import json
import zipfile

import pytest

pytestmark = pytest.mark.slow

TRAIN = """
import random
import isorun
import isotiny
isorun.result(test_acc=random.random())
isorun.digest("weights.final", [random.random()])
"""
STUDY = """
name = "tiny"
levels = ["fixed-seed"]
seeds = [1, 2]
[approaches.toy]
command = "python train.py"
[metrics.test_acc]
direction = "higher"
"""
METADATA = "Metadata-Version: 2.1\nName: isotiny\nVersion: {0}\n"


def installed(folder, version):
    """A folder for PYTHONPATH that has the library in this version."""
    place = folder / version / "site-packages"
    (place / f"isotiny-{version}.dist-info").mkdir(parents=True)
    (place / "isotiny.py").write_text(f"__version__ = {version!r}\n")
    (place / f"isotiny-{version}.dist-info" / "METADATA").write_text(METADATA.format(version))
    (place / f"isotiny-{version}.dist-info" / "RECORD").write_text("isotiny.py,,\n")
    return {"PYTHONPATH": str(place)}


def wheels(folder, *versions):
    """The variables that let pip find these versions in a folder, and nothing anywhere else."""
    folder.mkdir()
    for version in versions:
        info = f"isotiny-{version}.dist-info"
        files = {
            "isotiny.py": f"__version__ = {version!r}\n",
            f"{info}/METADATA": METADATA.format(version),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        listed = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
        with zipfile.ZipFile(folder / f"isotiny-{version}-py3-none-any.whl", "w") as wheel:
            for name, text in {**files, f"{info}/RECORD": listed}.items():
                wheel.writestr(name, text)
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "UV_OFFLINE": "1", "UV_FIND_LINKS": str(folder)}


@pytest.fixture
def packed(shell):
    shell.write("train.py", TRAIN)
    shell.write("study.toml", STUDY)
    then = installed(shell.folder, "1.0")
    assert shell("run", "study.toml", env=then).returncode == 0
    assert shell("pack", "study.toml", "-o", "tiny.isorun", "--no-sign").returncode == 0
    return shell, then


def told(done, code=0):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_the_word_says_what_became_of_the_packages(packed):
    shell, then = packed
    cache = {"ISORUN_CACHE": str(shell.folder / "cache")}
    words = ("replicate", "tiny.isorun", "--yes", "--json", "--folder")
    assert told(shell(*words, "same", env=then))["verdict"] == "repeated"

    made = told(shell(*words, "made", env={**cache, **wheels(shell.folder / "wheels", "1.0", "2.0")}))
    assert (made["verdict"], made["bit_by_bit"]) == ("replicated", True)
    assert {item["kind"] for item in made["replaced"]} == {"environment"}

    other = {**cache, **wheels(shell.folder / "newer", "2.0"), "ISORUN_CACHE": str(shell.folder / "another")}
    done = shell(*words, "none", env=other)
    assert done.returncode == 1
    assert "the environment of the package cannot be made here" in done.stderr
    assert "isotiny==1.0" in done.stderr

    newer = told(shell(*words, "newer-one", "--anyway", env=installed(shell.folder, "2.0")))
    assert newer["verdict"] == "reproduced"
    assert {"kind": "packages", "what": "packages.isotiny", "stored": "1.0", "now": "2.0"} in newer["replaced"]

    done = shell("replay", run_of(shell), env=installed(shell.folder / "again", "2.0"))
    assert done.returncode == 1
    assert "isotiny: 1.0 then, 2.0" in done.stderr


def run_of(shell):
    from isorun.store.folder import FolderStore

    with FolderStore(shell.folder / ".isorun") as store:
        return next(iter(sorted(store.run_ids())))
