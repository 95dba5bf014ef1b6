"""What of two sets of runs is not alike."""

import copy
from dataclasses import replace

import pytest

from isorun.analysis.comparability import incomparable, unknown_to_compare
from isorun.analysis.evidence.provenance import provenance
from isorun.study.cells import Level
from record_builder import make_cell, make_record, packed

ENVIRONMENT = {
    "requested": {"read_files": [{"path": "data/train.npz", "sha256": "11" * 32}]},
    "effective": {"cpu": {"model": "EPYC"}, "torch": {"version": "2.1", "threads": 2}, "python": {"version": "3.11.7"}},
}
RUN = make_record(
    environment=ENVIRONMENT,
    digests={"data.train": "aa" * 32, "weights.final": "bb" * 32},
    predictions=(packed([1, 2, 0]), packed([1, 2, 2], name="test.labels")),
)


def codes(mine, theirs):
    return [one.code for one in incomparable([mine], [theirs], (provenance([mine]), provenance([theirs])))]


def inside(path, value):
    environment = copy.deepcopy(ENVIRONMENT)
    part, name, *rest = path
    place = environment[part][name] if rest else environment[part]
    place[rest[0] if rest else name] = value
    return replace(RUN, environment=environment)


def test_runs_that_are_alike_are_comparable():
    later = replace(RUN, started_at="2027-01-01T00:00:00Z", digests={**RUN.digests, "weights.final": "cc" * 32})
    assert codes(RUN, later) == []


@pytest.mark.parametrize(
    ("other", "code"),
    [
        (inside(("requested", "read_files"), [{"path": "data/train.npz", "sha256": "22" * 32}]), "other-data"),
        (replace(RUN, digests={"data.train": "dd" * 32}), "other-data"),
        (replace(RUN, predictions=(packed([1, 2, 0, 1]),)), "other-split"),
        (replace(RUN, predictions=(packed([1, 2, 0]), packed([0, 0, 0], name="test.labels"))), "other-split"),
        (replace(RUN, cell=make_cell(Level.FIXED_SEED)), "other-level"),
        (inside(("effective", "torch", "version"), "2.2"), "other-environment"),
        (inside(("effective", "cpu", "model"), "Xeon"), "other-environment"),
        (inside(("effective", "python", "version"), "3.12.1"), "other-environment"),
    ],
)
def test_what_is_not_alike_is_named(other, code):
    assert codes(RUN, other) == [code]
    assert codes(other, RUN) == [code]


def test_other_predictions_and_threads_are_what_is_compared_or_told_elsewhere():
    assert codes(RUN, replace(RUN, predictions=(packed([0, 0, 0]), RUN.predictions[1]))) == []
    assert codes(RUN, inside(("effective", "torch", "threads"), 8)) == []


def test_a_correction_of_pythons_is_no_other_environment():
    """It was refused: with a package from another machine nothing could be compared but by `--anyway`."""
    corrected = inside(("effective", "python", "version"), "3.11.2")
    assert codes(RUN, corrected) == []
    assert provenance([RUN]).machines != provenance([corrected]).machines


def test_what_one_side_did_not_record_is_not_held_against_it_and_told():
    bare = make_record(environment={}, digests={}, predictions=())
    assert codes(RUN, bare) == []
    assert [one.code for one in unknown_to_compare([RUN], [bare], "x.isorun")] == ["data-unknown", "split-unknown"]
    assert [one.code for one in unknown_to_compare([RUN], None, "x.csv")] == ["baseline-unknown"]
    assert list(unknown_to_compare([RUN], [RUN], "x.isorun")) == []
    assert list(unknown_to_compare([bare], [bare], "x.isorun")) == []


def reading(**files):
    listed = [{"path": name.replace("_", "."), "sha256": digest * 32} for name, digest in files.items()]
    return make_record(environment={"requested": {"read_files": listed}}, digests={}, predictions=())


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (reading(names_txt="11"), reading(), "names.txt was read here, no file in x.isorun"),
        (reading(names_txt="11"), reading(faces_npz="22"), "names.txt was read here, faces.npz in x.isorun"),
        (reading(names_txt="11", a_npz="33"), reading(names_txt="22", a_npz="33"), "both read names.txt, with other"),
        (reading(names_txt="11"), reading(words_txt="11"), ""),
        (reading(names_txt="11"), reading(names_txt="11", extra_npz="22"), ""),
        (reading(train_py="11"), reading(other_py="22"), ""),
        (reading(), reading(), ""),
    ],
)
def test_that_nothing_shows_the_data_to_be_the_same_is_told(mine, theirs, said):
    told = list(unknown_to_compare([mine], [theirs], "x.isorun"))
    assert [one.code for one in told] == (["data-unknown"] if said else [])
    assert all(said in one.message for one in told)
    assert codes(mine, theirs) == []


def test_labels_that_cannot_be_unpacked_do_no_harm():
    broken = replace(packed([1], name="test.labels"), data="!!", shape=(3,))
    assert codes(replace(RUN, predictions=(broken,)), RUN) == ["other-split"]
