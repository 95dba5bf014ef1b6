"""Results to render: a sound study, one with weak and failed runs, and one full of hostile names."""

from dataclasses import replace

import pytest

from isorun.analysis.studies.study_result import analyse_study
from isorun.study.cells import Level
from isorun.study.design import Metric
from isorun.study.records import RunState, Seeded
from record_builder import make_cell, make_record, make_study, packed, trained_records

HOSTILE = "<script>alert('x')</script>&\"|_#%$\\{}~^\x1b[31m"


@pytest.fixture(scope="session")
def sound():
    study = make_study(metrics={"test_acc": Metric("test_acc")})
    return analyse_study(study, trained_records(study))


@pytest.fixture(scope="session")
def troubled():
    study = make_study()
    records = trained_records(study, weak=2)
    labels = packed(range(10), name="test.labels")
    records = [
        replace(record, predictions=(packed([0, 1, 2, 3, 4, 5, 6, 7, 8, place % 10]), labels))
        for place, record in enumerate(records)
    ]
    records[9] = replace(records[9], state=RunState.FAILED, reason="exit code 3", log_tail="CUDA out of memory")
    records[0] = replace(records[0], seeded=(Seeded("random.seed", "1", "train.py:3"),))
    return analyse_study(study, records)


@pytest.fixture(scope="session")
def hostile():
    """Names that no study file may declare still arrive with records: from logs, classes and other tools."""
    metric = f"acc {HOSTILE}"
    records = [
        make_record(
            make_cell(level, place, approach=HOSTILE),
            results={metric: 0.5 + 0.01 * place},
            per_class={metric: {HOSTILE: 0.1 * place, "b": 0.5}},
            origins={metric: f"stdout: {HOSTILE}"},
            seeded=(Seeded(HOSTILE, HOSTILE, HOSTILE),),
        )
        for level in Level
        for place in range(5)
    ]
    failed = make_record(make_cell(repeat=9, approach=HOSTILE), state=RunState.FAILED, reason=HOSTILE, log_tail=HOSTILE)
    return replace(analyse_study(make_study(), [*records, failed]), study=HOSTILE)


@pytest.fixture(scope="session")
def single():
    study = make_study(levels=(Level.DEFAULT,), repeats=1)
    return analyse_study(study, [make_record(results={"perplexity": 12.345678})])


@pytest.fixture(scope="session")
def nothing_finished():
    failed = make_record(state=RunState.TIMED_OUT, reason="time limit of 10 s")
    return analyse_study(make_study(), [failed])


@pytest.fixture(params=["sound", "troubled", "hostile", "single", "nothing_finished"])
def any_result(request):
    return request.getfixturevalue(request.param)
