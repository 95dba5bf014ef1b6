"""What the runs of a study come from, told once for all of them."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.studies.study_provenance import study_provenance
from isorun.analysis.studies.study_result import analyse_study
from isorun.study.cells import Level
from isorun.study.design import Approach
from record_builder import make_cell, make_record, make_study

INSIDE = {
    "cpu": {"model": "AMD  EPYC", "logical": 4, "affinity": 2},
    "platform": {"os": "Debian 12", "kernel": "Linux 6.1", "machine": "x86_64"},
    "python": {"implementation": "CPython", "version": "3.11.7"},
    "frameworks": ["torch"],
    "torch": {"version": "2.13.0", "threads": 2},
}


def runs(number=3, level=Level.FIXED_SEED, **fields):
    seeds = range(1, number + 1)
    return [
        replace(
            make_record(make_cell(level, repeat, seed=seed if level.fixes_seed else None)),
            seed_used=seed,
            started_at=f"2026-11-17T10:0{repeat}:00+00:00",
            wall_seconds=90.0,
            environment={"requested": {}, "made": {}, "effective": INSIDE},
            code={"commit": "0123456789abcdef0123", "dirty": True},
            where={"host": "lab1", "folder": "/runs/a"},
            **fields,
        )
        for repeat, seed in enumerate(seeds)
    ]


def told(records):
    return {fact.what: fact for fact in study_provenance(records)}


def test_machine_software_code_command_seeds_and_dates_are_told():
    facts = told(runs())
    assert facts["machine"].value == "lab1: AMD EPYC (2 of 4 CPUs used)"
    assert facts["system"].value == "Debian 12 (Linux 6.1)"
    assert facts["software"].value == "CPython 3.11.7, torch 2.13.0"
    assert facts["computed with"].value == "threads: torch 2"
    assert facts["code"].value == "commit 0123456789ab with changes that are not committed"
    assert facts["seeds at fixed-seed"].value == "1, 2, 3"
    assert facts["made"].value == "2026-11-17 10:00 to 2026-11-17 10:03 UTC"
    assert {fact.runs for fact in facts.values()} == {3}
    assert "made by" not in facts


def test_what_differs_between_runs_is_told_with_how_many_have_it():
    records = runs(4)
    records[3] = replace(records[3], where={"host": "lab2", "executor": "slurm"})
    facts = study_provenance(records)
    machines = [(fact.value.partition(":")[0], fact.runs) for fact in facts if fact.what == "machine"]
    assert machines == [("lab1", 3), ("lab2", 1)]
    assert [(fact.value, fact.runs) for fact in facts if fact.what == "made by"] == [("slurm", 1)]


def test_no_secret_of_a_command_is_told():
    cell = replace(make_cell(), command=("python", "train.py", "--api-key", "sk-abcdef0123456789abcdef"))
    assert "sk-abcdef" not in str(study_provenance([make_record(cell)]))


def test_of_imported_runs_the_tracker_is_told_once_and_no_command():
    cells = [replace(make_cell(), command=("imported", "mlflow", key)) for key in ("a1", "b2")]
    facts = told([make_record(cell) for cell in cells])
    assert (facts["command"].value, facts["command"].runs) == ("not known: imported from mlflow", 2)


def test_nothing_finished_comes_from_nothing():
    assert study_provenance([]) == ()


LEFT = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(INSIDE)), inner, max_size=3),
    max_leaves=8,
)


@given(LEFT, LEFT, st.text(max_size=30))
def test_whatever_a_training_left_can_be_told(inside, code, started):
    record = replace(
        make_record(),
        environment={"effective": inside},
        code=code if isinstance(code, dict) else {},
        started_at=started,
    )
    assert all(isinstance(fact.value, str) and fact.runs == 1 for fact in study_provenance([record]))


def test_commands_are_told_in_the_order_of_the_study_however_runs_are_kept():
    study = make_study(
        approaches={name: Approach(name, ("python", f"{name}.py")) for name in ("zebra", "lion", "adam")}
    )
    records = [
        make_record(make_cell(approach=name, command=("python", f"{name}.py"))) for name in ("lion", "adam", "zebra")
    ]
    facts = analyse_study(study, records).provenance
    assert [fact.of for fact in facts if fact.what == "command"] == ["zebra", "lion", "adam"]
