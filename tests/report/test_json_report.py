"""The JSON report: strict, complete, and described key by key."""

import json
import math
import re
from pathlib import Path

import pytest

from isorun.analysis.evidence import judged, shared_files
from isorun.analysis.studies import conditions, group_conditions
from isorun.analysis.studies.study_result import analyse_study
from isorun.report import json_report
from isorun.report.study_view import study_view
from isorun.study.cells import cells_of
from isorun.study.records import Series
from record_builder import make_record, make_study

DESCRIPTION = (Path(__file__).parents[2] / "docs" / "report-json.md").read_text()
NAMED_BY_USERS = {"metrics", "classes", "values", "per_class", "digests", "unjudged", "within_seed_sd"}
TWO_DEEP = {"per_class": "values"}


def keys_of(value, parent=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            if parent not in NAMED_BY_USERS:
                yield key
            yield from keys_of(inner, TWO_DEEP.get(parent, "") if parent in NAMED_BY_USERS else key)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_the_report_is_strict_json(any_result):
    text = json.dumps(json_report.to_json(any_result), allow_nan=False)
    assert json.loads(text) == json_report.to_json(any_result)


def test_every_key_is_described(troubled):
    described = set(re.findall(r"`([a-z0-9_-]+)`", DESCRIPTION))
    assert set(keys_of(json_report.to_json(troubled))) <= described


@pytest.mark.parametrize("module", [conditions, group_conditions, judged, shared_files])
def test_every_warning_code_is_described(module):
    codes = re.findall(r'(?:Condition|_of_notes)\(\s*"([a-z-]+)"', Path(module.__file__).read_text())
    assert len(codes) > 1
    for code in codes:
        assert f"| `{code}` |" in DESCRIPTION


def test_numbers_are_as_logged_and_complete(troubled):
    group = json_report.to_json(troubled)["groups"][0]
    rule = group["selections"][0]
    overall = rule["all"]["metrics"]["test_acc"]["overall"]
    assert overall["n"] == len(rule["runs"]) == 7
    assert overall["max"] == max(run["values"]["test_acc"] for run in rule["runs"]) < 1.0
    assert rule["without_weak"]["metrics"]["test_acc"]["overall"]["n"] == 5
    assert len(rule["all"]["metrics"]["test_acc"]["classes"]) == 10
    assert group["runs"]["failed"] == 1


def test_one_run_has_null_for_its_spread(single):
    overall = json_report.to_json(single)["groups"][0]["selections"][0]["all"]["metrics"]["perplexity"]["overall"]
    assert (overall["sd"], overall["sd_ci90"], overall["max_diff"]) == (None, None, None)


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_steps_that_are_not_finite_as_an_older_isorun_kept_them_are_left_out_everywhere(odd):
    study = make_study(repeats=2)
    series = Series((0.0, 1.0, odd), (0.0, 1.0, 2.0), (0.1, 0.2, 0.9))
    result = analyse_study(study, [make_record(cell, series={"test_acc": series}) for cell in cells_of(study)])
    json.dumps(json_report.to_json(result), allow_nan=False)
    for figure in study_view(result, figures=True).figures:
        assert not any(math.isnan(x) or math.isinf(x) for line in figure.lines for x, _ in line.points)
