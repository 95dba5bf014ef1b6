"""Data that cannot be used are named, counted and placed; nothing is guessed."""

import numpy as np
import pytest

from isorun.analysis.mixed.model import mixed_model
from isorun.errors import InputError

FORMULA = "y ~ a + (1|g)"


def table(**changes):
    rng = np.random.default_rng(1)
    columns = {
        "y": rng.normal(size=24),
        "a": np.array(["p", "q"] * 12),
        "g": np.repeat([f"g{place}" for place in range(6)], 4),
        "x": rng.normal(size=24),
    }
    return {**columns, **changes}


def with_cell(values, place, cell):
    cells = list(values)
    cells[place] = cell
    return cells


def refused(data, formula=FORMULA, **options):
    with pytest.raises(InputError) as caught:
        mixed_model(data, formula, **options)
    return str(caught.value)


def test_a_missing_column_lists_the_columns_there_are():
    message = refused(table(), "y ~ b + (1|g)")
    assert "'b'" in message
    assert "y, a, g, x" in message


@pytest.mark.parametrize(
    ("cell", "says"), [(np.nan, "y: 1 missing (row 4)"), (np.inf, "y: 1 infinite (row 4)"), (None, "y: 1 missing")]
)
def test_missing_and_infinite_values_are_counted_and_placed(cell, says):
    assert says in refused(table(y=with_cell(table()["y"], 3, cell)))


def test_missing_text_is_counted_in_grouping_columns_too():
    assert "g: 2 missing (row 1, 24)" in refused(table(g=with_cell(with_cell(table()["g"], 0, ""), 23, "")))


def test_incomplete_rows_are_dropped_only_on_purpose_and_with_a_note():
    data = table(y=with_cell(table()["y"], 3, np.nan))
    result = mixed_model(data, FORMULA, missing="drop")
    assert result.rows == 23
    assert "dropped 1 of 24 rows: y: 1 missing (row 4)" in result.notes
    complete = {name: np.delete(np.asarray(column), 3) for name, column in table().items()}
    assert result.fixed == mixed_model(complete, FORMULA).fixed


def test_gaps_in_columns_that_the_formula_does_not_use_do_not_matter():
    data = table(x=np.full(24, np.nan))
    assert mixed_model(data, FORMULA).fixed == mixed_model(table(), FORMULA).fixed


@pytest.mark.parametrize(
    ("changes", "formula", "says"),
    [
        ({"y": np.full(24, 3.0)}, FORMULA, "constant"),
        ({"y": np.array(["1.5", "n/a"] * 12)}, FORMULA, "n/a in row 2"),
        ({"x": [*range(23), "many"]}, "y ~ x + (1|g)", "mixes text and numbers"),
        ({"x": [*range(23), [1]]}, "y ~ x + (1|g)", "list in row 24"),
        ({"y": np.ones((24, 2))}, FORMULA, "one-dimensional"),
        ({"y": np.ones(23)}, FORMULA, "y has 23 rows"),
        ({"g": np.array(["g"] * 24)}, FORMULA, "only one level"),
        ({"g": np.arange(24)}, FORMULA, "as many levels as there are rows"),
        ({"a": np.array(["p"] * 24)}, FORMULA, "'a' has only one level"),
        ({"y": np.array([0.25, 0.5] * 12)}, FORMULA, "explain the response 'y' exactly"),
        ({"y": np.repeat([0.1, 0.7, 0.2, 0.9, 0.4, 0.3], 4)}, "y ~ 1 + (1|g)", "no residual variance"),
    ],
)
def test_what_cannot_be_fitted_is_said(changes, formula, says):
    assert says in refused(table(**changes), formula)


def test_more_parameters_than_rows_is_said():
    data = {"y": [1.0, 2.0, 4.0, 3.0], "a": ["p", "q", "r", "r"], "g": ["u", "v", "u", "v"]}
    assert "5 parameters, 4 rows" in refused(data)


def test_an_empty_table_is_said():
    assert "no rows" in refused({"y": [], "a": [], "g": []})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ddf": "satterthwait"}, "did you mean 'satterthwaite'"),
        ({"adjust": "hol"}, "did you mean 'holm'"),
        ({"level": 95}, "between 0 and 1"),
        ({"missing": "ignore"}, "error, drop"),
        ({"differences": ["b"]}, "no factor of the fixed effects"),
    ],
)
def test_wrong_options_list_what_is_allowed(options, says):
    assert says in refused(table(), **options)


def test_dependent_columns_are_left_out_with_a_note_as_in_r():
    data = table(x=np.arange(24.0), z=2.0 * np.arange(24.0) + 1.0)
    result = mixed_model(data, "y ~ x + z + a + (1|g)")
    assert [row.name for row in result.fixed] == ["(Intercept)", "x", "aq"]
    assert any("rank-deficient" in note and note.endswith(": z") for note in result.notes)
    assert [row.term for row in result.anova] == ["x", "a"]
