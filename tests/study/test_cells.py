"""Cells are known by their content: what was run before a key existed must not be run again because it exists."""

from isorun.study.cells import Cell
from isorun.study.design import Study
from isorun.study.document import document_of
from isorun.study.extension import changed
from isorun.study.levels import Level
from isorun.study.plan import cells_of

CELL = Cell("a", ("python", "t.py"), "default", {}, "default", {}, Level.FIXED_SEED, 1, 0)


def declared(**options):
    approaches = {"train": ["python", "train.py", "--lr", "0.1"]}
    return Study("s", approaches=approaches, levels=["default", "deterministic"], **options)


def test_ids_are_those_of_the_first_release():
    assert CELL.id == "e08388ef36aa531e"
    assert [cell.id for cell in cells_of(declared())] == ["3394d34507ad2d58", "3253be064c7c4ce8"]


def test_taking_seeds_over_makes_other_cells_and_says_so_only_then():
    plain, taking = cells_of(declared()), cells_of(declared(take_seeds=True))
    assert {cell.id for cell in plain}.isdisjoint(cell.id for cell in taking)
    assert all("take_seeds" not in cell.to_json() for cell in plain)
    assert all(cell.to_json()["take_seeds"] is True for cell in taking)
    assert [Cell.from_json(cell.to_json()) for cell in (*plain, *taking)] == [*plain, *taking]


def test_a_study_keeps_it_in_its_document_and_when_it_is_extended():
    study = Study("s", approaches={"a": "python t.py"}, take_seeds=True)
    assert document_of(study)["take_seeds"] is True
    assert changed(study, repeats=3).take_seeds
    assert all(cell.take_seeds for cell in cells_of(changed(study, repeats=3)))
    assert "take_seeds" not in document_of(Study("s", approaches={"a": "python t.py"}))
