"""Trainings with known answers: what the audit finds, misses and makes up, without running anything."""

import re
from pathlib import Path

import pytest

from isorun.diagnose.audit import examine_source, read_program

CORPUS = Path(__file__).parent / "audit_corpus"
TRAININGS = sorted(path for path in CORPUS.glob("*/*") if path.is_dir())
OF_EVERY_SCRIPT = {"thread-count", "unpinned-packages"}


def script_of(folder):
    """The file that no other imports."""
    texts = {path.stem: path.read_text() for path in folder.glob("*.py")}
    imported = {
        name for name in texts if any(re.search(rf"^(import|from) {name}\b", text, re.M) for text in texts.values())
    }
    (script,) = set(texts) - imported
    return f"{script}.py"


def answers(folder):
    """What a training leaves open: kind, file and line."""
    return {
        (kind.strip(), path.name, number)
        for path in sorted([*folder.glob("*.py"), *folder.glob("*.txt")])
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if "# open:" in line
        for kind in line.partition("# open:")[2].split(",")
    }


def findings(folder, environ=()):
    program = read_program(["python", script_of(folder)], folder, dict(environ))
    return {(item.kind, item.file, item.line) for item in examine_source(program)}


def counted(half):
    found = missed = false = 0
    for folder in (path for path in TRAININGS if path.parent.name == half):
        known, told = answers(folder), findings(folder)
        found, missed, false = found + len(known & told), missed + len(known - told), false + len(told - known)
    return found, missed, false


def test_there_are_enough_trainings_and_half_of_them_are_held_out():
    halves = [path.parent.name for path in TRAININGS]
    assert len(TRAININGS) >= 20
    assert halves.count("seen") == halves.count("held_out")


def test_what_is_found_missed_and_false_in_the_half_that_was_looked_at():
    assert counted("seen") == (39, 0, 0)


@pytest.mark.parametrize("name", ["seen/deterministic_torch", "held_out/deterministic_sklearn"])
def test_a_training_that_holds_everything_has_no_finding(name):
    assert findings(CORPUS / name) == set()
