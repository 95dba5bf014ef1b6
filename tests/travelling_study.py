"""One study that begins on this machine, goes on wherever runs can be carried out, and comes back: every cell once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import isorun
from isorun.session import open_store
from isorun.store import AbstractStore
from isorun.study.cells import cells_of
from isorun.study.records import record_digest
from typed_commands import typed

STUDY = """
name = "travelling"
levels = ["fixed-seed"]
seeds = [1, 2]
repeats = {repeats}
[approaches.a]
command = "sh train.sh {{seed}} {{repeat}}"
[approaches.b]
command = "sh train.sh {{seed}} {{repeat}} --more"
[metrics.accuracy]
direction = "higher"
"""
TRAIN = 'echo "$@" >> ../trainings\necho "accuracy: 0.$1$2"\n'


def made_project(folder: Path) -> Path:
    """A folder with the study and its training."""
    folder.mkdir()
    (folder / "train.sh").write_text(TRAIN)
    declare(folder, 6)
    return folder


def declare(folder: Path, repeats: int) -> None:
    (folder / "study.toml").write_text(STUDY.format(repeats=repeats))


def typed_json(*words: object, cwd: Path) -> dict:
    done = typed(*words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def digests(place: str | Path) -> dict[str, bytes]:
    with open_store(str(place), create=False) as store:
        return {record.run_id: record_digest(record) for record in store.records()}


def executors(store: AbstractStore) -> dict[int, set[str]]:
    """Who made the runs of each repeat."""
    found: dict[int, set[str]] = {}
    for record in store.records():
        found.setdefault(record.cell.repeat, set()).add(record.where.get("executor", "local"))
    return found


def travel(database: str, tmp_path: Path, engines: Sequence[str] = ()) -> None:
    """From a folder here to a database, to each engine with a part of it, to a worker with another folder, and back."""
    project = made_project(tmp_path / "project")
    study = isorun.Study.load(project / "study.toml")
    there, elsewhere = project / ".isorun", tmp_path / "elsewhere"
    # Begun here, in a folder.
    assert isorun.run(study, only=lambda cell: cell.repeat == 0).count("finished") == 4
    assert typed_json("store", "copy", there, database, cwd=project)["records"]["copied"] == 4
    # Goes on where there is an engine, each with a part of it.
    visited = {0: {"local"}}
    for repeat, engine in enumerate(engines, start=1):
        made = isorun.run(
            study, store=database, executor=engine, only=lambda cell, repeat=repeat: cell.repeat == repeat
        )
        assert made.count("finished") == 4, made
        visited[repeat] = {engine}
    # By this machine's own executor in the same store, and then by a worker that has the folder in another place.
    later = len(visited)
    made = isorun.run(study, store=database, only=lambda cell: cell.repeat == later)
    assert made.count("finished") == 4
    visited[later] = {"local"}
    project.rename(elsewhere)
    taken = typed_json("worker", database, "--folder", f"travelling={elsewhere}", cwd=tmp_path)
    left = 4 * (6 - len(visited))
    assert (taken["finished"], [one["code"] for one in taken["warnings"]]) == (left, [])
    visited |= {repeat: {"worker"} for repeat in range(len(visited), 6)}
    # And back: all of it is in the folder, nothing is made again, and what is declared now goes on here.
    back = typed_json("store", "copy", database, elsewhere / ".isorun", cwd=elsewhere)
    assert (back["records"], back["conflicts"]) == ({"copied": 20, "there_already": 4}, [])
    assert digests(database) == digests(elsewhere / ".isorun")
    again = typed_json("run", "study.toml", cwd=elsewhere)
    assert (again["finished"], again["reused"]) == (0, 24)
    declare(elsewhere, 7)
    more = typed_json("run", "study.toml", cwd=elsewhere)
    assert (more["finished"], more["reused"]) == (4, 24)
    visited[6] = {"local"}
    with open_store(str(elsewhere / ".isorun")) as store:
        assert executors(store) == visited
        whole = isorun.Study.load(elsewhere / "study.toml")
        runs = sorted(record.run_id for record in store.records())
        assert runs == sorted(f"{cell.id}-1" for cell in cells_of(whole))
    begun = (tmp_path / "trainings").read_text().splitlines()
    assert len(begun) == len(set(begun)) == 28
    report = typed_json("report", "study.toml", cwd=elsewhere)
    told = [warning for warning in report["warnings"] if warning["code"] == "made-in-several-places"]
    assert bool(told) == bool(engines)  # a worker is this machine's own executor
