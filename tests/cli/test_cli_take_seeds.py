"""Seeds taken over: runs of a training that seeds itself differ, and its files do not change."""

import json

import isorun

SELF_SEEDED = "import random\nrandom.seed(1337)\nprint('test_acc:', random.random())\n"
STUDY = "repeats = 3\ntake_seeds = {}\nmetrics.test_acc = 'higher'\napproaches.train.command = 'python train.py'\n"


def test_copies_become_runs_of_their_own_and_nothing_on_disk_changes(shell):
    script = shell.write("train.py", SELF_SEEDED)
    found = {}
    for taking in ("false", "true"):
        study = shell.write(f"{taking}.toml", STUDY.format(taking))
        done = shell("run", study)
        assert done.returncode == 0, done.stderr
        found[taking] = isorun.records(study)
    assert len({record.results["test_acc"] for record in found["false"]}) == 1
    assert len({record.results["test_acc"] for record in found["true"]}) == 3
    seeds = [item for record in found["true"] for item in record.seeded]
    assert {(item.call, item.value, item.where) for item in seeds} == {("random.seed", "1337", f"{script}:2")}
    assert len({item.replaced for item in seeds}) == len({record.seed_used for record in found["true"]}) == 3
    assert script.read_text() == SELF_SEEDED


def test_a_command_has_the_option_and_a_study_file_the_key(shell):
    shell.write("study.toml", STUDY.format("true"))
    for words in (["study.toml"], ["-n", "3", "--take-seeds", "--", "python", "train.py"]):
        planned = json.loads(shell("run", "--dry-run", "--json", *words).stdout)
        assert [cell["take_seeds"] for cell in planned] == [True] * 3
    refused = shell("run", "study.toml", "--take-seeds")
    assert refused.returncode == 2
    assert "--take-seeds belongs to a command" in refused.stderr
