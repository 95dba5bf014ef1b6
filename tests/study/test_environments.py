"""The keys of an environment: resources, and what is part of a cell's identity."""

from pathlib import Path

import pytest

from isorun.errors import StudyError
from isorun.study import Environment
from isorun.study.cells import cells_of
from isorun.study.design import document_of, study_from_document


def study(**environment):
    document = {"approaches": {"a": {"command": "python t.py"}}, "environments": {"e": environment}}
    return study_from_document(document, Path(), "s")


def test_keys_that_are_not_set_are_in_no_identity():
    assert Environment("e").content() == {"python": "", "env": {}, "threads": None}
    assert cells_of(study())[0].id == "6bd9531730f59a03"


def test_the_number_of_devices_is_part_of_the_identity_and_memory_is_not():
    plain, devices, memory = (
        cells_of(study(**keys))[0].id for keys in ({}, {"devices_per_run": 1}, {"memory": "1 GB"})
    )
    assert plain == memory != devices


@pytest.mark.parametrize(
    ("written", "found"),
    [(1, 1), ("8 GB", 8 * 10**9), ("512 MiB", 512 * 2**20), ("1.5 kB", 1500), ("2TB", 2 * 10**12), (" 1 gib ", 2**30)],
)
def test_sizes_are_read(written, found):
    assert study(memory=written).environments["e"].memory_bytes == found


@pytest.mark.parametrize("wrong", [0, -1, "8", "8 XB", "GB", True, 1.5, [], "1e400 GB", 2**63])
def test_what_is_no_size_is_refused(wrong):
    with pytest.raises(StudyError, match=r"environments\.e\.memory"):
        study(memory=wrong)


@pytest.mark.parametrize("wrong", [-1, 5000, "1", True, 1.5])
def test_what_is_no_number_of_devices_is_refused(wrong):
    with pytest.raises(StudyError, match=r"environments\.e\.devices_per_run"):
        study(devices_per_run=wrong)


def test_a_kept_study_keeps_its_resources():
    kept = study(devices_per_run=2, memory="8 GB", threads=1, preload=["numpy"], env={"A": "1"}, python="/p")
    again = study_from_document(document_of(kept), Path(), "s")
    assert again.environments == kept.environments
    assert [cell.id for cell in cells_of(again)] == [cell.id for cell in cells_of(kept)]
    environment = kept.environments["e"]
    assert Environment.from_json({"name": "e", **environment.to_json()}) == environment
