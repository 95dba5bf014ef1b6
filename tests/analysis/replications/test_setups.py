"""What was replaced, and the word that follows from it."""

import copy
from dataclasses import replace

import pytest

from isorun.analysis.replications.groups import same_bits, stored_groups, without_result
from isorun.analysis.replications.setups import replaced_between, word_for
from isorun.study.cells import Level
from isorun.study.records import RunState
from record_builder import make_cell, make_record

SOURCE = {"path": "train.py", "sha256": "11" * 32}
DATA = {"path": "data/train.csv", "sha256": "22" * 32}
ENVIRONMENT = {
    "requested": {"given_files": [SOURCE], "read_files": [DATA], "cpus": 2},
    "made": {"python": "/usr/bin/python3"},
    "effective": {
        "cpu": {"model": "EPYC", "affinity": 2},
        "packages": {"numpy": "2.1.0", "tqdm": "4.0"},
        "python": {"version": "3.11.7", "implementation": "CPython"},
        "torch": {"version": "2.1", "threads": 2},
        "gpu": {"devices": ["H200"], "driver": "550"},
        "sources": [SOURCE],
    },
}
CODE = {"commit": "ab" * 20, "dirty": False, "diff_sha256": "", "sources_sha256": "33" * 32}
STORED = make_record(environment=ENVIRONMENT, code=CODE, where={"host": "lab1"})


def after(path, value):
    environment = copy.deepcopy(ENVIRONMENT)
    place = environment
    *folders, last = path
    for name in folders:
        place = place[name]
    place[last] = value
    return replace(STORED, environment=environment)


def word(new):
    return word_for(replaced_between([STORED], [new]))


def test_nothing_replaced_is_a_repeat():
    assert replaced_between([STORED], [STORED]) == ()
    assert word(STORED) == "repeated"
    assert word(replace(STORED, launch="fresh", started_at="2027-01-01T00:00:00Z")) == "repeated"


def test_a_copy_of_the_folder_that_is_made_of_other_links_is_no_other_machine():
    there = after(("requested", "isolated"), {"linked": [".git", ".isorun"]})
    here = after(("requested", "isolated"), {"linked": [".git"]})
    assert word_for(replaced_between([there], [here])) == "repeated"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("effective", "cpu", "model"), "Xeon"),
        (("effective", "torch", "threads"), 4),
        (("effective", "gpu", "driver"), "560"),
        (("made", "python"), "/home/bob/venv/bin/python"),
    ],
)
def test_another_machine_or_interpreter_is_a_replication(path, value):
    assert word(after(path, value)) == "replicated"


def test_another_host_is_a_replication():
    assert word(replace(STORED, where={"host": "lab2"})) == "replicated"


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        (("effective", "packages", "numpy"), "2.2.0", "packages"),
        (("effective", "torch", "version"), "2.2", "packages"),
        (("effective", "python", "version"), "3.12.0", "packages"),
        (("effective", "gpu", "devices"), ["A100"], "device"),
        (("requested", "read_files"), [{"path": "data/train.csv", "sha256": "44" * 32}], "data"),
    ],
)
def test_what_is_of_the_setup_makes_it_a_reproduction(path, value, kind):
    found = replaced_between([STORED], [after(path, value)])
    assert found[0].kind == kind
    assert word_for(found) == "reproduced"


def test_other_sources_are_other_code_and_another_commit_of_the_same_sources_is_not():
    assert word(replace(STORED, code={**CODE, "commit": "cd" * 20})) == "repeated"
    assert word(replace(STORED, code={"sources_sha256": CODE["sources_sha256"]})) == "repeated"
    assert replaced_between([STORED], [replace(STORED, code={**CODE, "sources_sha256": "55" * 32})])[0].kind == "code"


def test_bystanders_and_what_one_side_did_not_record_replace_nothing():
    assert word(after(("effective", "packages", "tqdm"), "5.0")) == "repeated"
    assert word(after(("effective", "tomorrow"), {"fact": 1})) == "repeated"


def test_what_any_new_run_had_otherwise_is_told_whichever_came_first():
    later = after(("effective", "packages", "numpy"), "2.2.0")
    assert word_for(replaced_between([STORED], [STORED, later])) == "reproduced"
    assert word_for(replaced_between([STORED], [later, STORED])) == "reproduced"


def test_of_stored_runs_that_were_made_in_several_ways_the_nearest_is_held_against():
    elsewhere = replace(STORED, where={"host": "lab2"})
    assert word_for(replaced_between([STORED, elsewhere], [elsewhere])) == "repeated"
    assert word_for(replaced_between([elsewhere, STORED], [replace(STORED, where={"host": "lab3"})])) == "replicated"


def test_stored_runs_without_a_result_are_told_by_group():
    records = [run(1, ""), replace(run(2, ""), state=RunState.FAILED, reason="out of memory")]
    records += [make_record(make_cell(Level.DEFAULT), state=RunState.FAILED, reason="lost")]
    some_failed, all_failed = without_result(records)
    assert "1 of 2 stored runs" in some_failed.message
    assert "(out of memory): they are in no mean" in some_failed.message
    assert "1 of 1 stored run" in all_failed.message
    assert all_failed.message.endswith("(lost): it was not made again")
    assert list(without_result([replace(run(1, ""), state=RunState.FAILED), run(1, "")])) == []


def test_groups_say_which_cells_are_run_again():
    records = [make_record(make_cell(Level.FIXED_SEED, repeat, seed=seed)) for seed in (7, 3, 5) for repeat in (0, 1)]
    records += [make_record(make_cell(Level.DEFAULT, repeat)) for repeat in range(3)]
    records += [make_record(make_cell(Level.DETERMINISTIC, repeat)) for repeat in range(2)]
    several, default, one = stored_groups(records)
    assert [seed for _, seed, _ in several.same_seeds(2)] == [3, 5]
    assert [(seed, repeat) for _, seed, repeat in several.new_draws(3)] == [(8, 0), (9, 0), (10, 0)]
    assert default.same_seeds(5) == []
    assert [repeat for *_, repeat in default.new_draws(4)] == [0, 1, 2, 3]
    assert [(seed, repeat) for _, seed, repeat in one.new_draws(2)] == [(1, 0), (1, 1)]


def run(seed, digest, repeat=0, **fields):
    digests = {"weights.final": digest} if digest else {}
    return make_record(make_cell(Level.FIXED_SEED, repeat, seed=seed), digests=digests, **fields)


def test_bits_are_those_of_the_same_seed_and_a_seed_that_disagrees_with_itself_agrees_with_nothing():
    stored = [run(1, "a"), run(2, "b"), run(3, "c"), run(3, "d", repeat=1)]
    found = same_bits(stored, [run(1, "a"), run(2, "x"), run(3, "c"), run(9, "a")])
    assert (found.compared, found.same) == (3, 1)


def test_the_same_weights_with_another_result_are_not_the_same_bits():
    stored, new = run(1, "a", results={"acc": 0.9, "loss": 1.0}), run(1, "a", results={"acc": 0.8, "loss": 1.0})
    assert same_bits([stored], [new], "acc").same == 0
    assert same_bits([stored], [new], "loss").same == 1


def test_without_digests_all_logged_numbers_are_the_bits():
    stored = [run(1, "", results={"acc": 0.5}), run(2, "", results={"acc": 0.6})]
    found = same_bits(stored, [run(1, "", results={"acc": 0.5}), run(2, "", results={"acc": 0.61})])
    assert (found.compared, found.same) == (2, 1)
    assert same_bits([run(1, "")], [run(1, "")]).compared == 0
