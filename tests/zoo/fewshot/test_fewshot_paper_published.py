"""The published numbers against the paper's own text, and against each other."""

import pytest
from fewshot_records import SHARED_DATA
from scipy import stats

from isorun.zoo.studies.fewshot.findings import published_judgements
from isorun.zoo.studies.fewshot.published import TABLE_1, TABLE_2, TABLE_4, TABLE_5


@pytest.fixture(scope="module")
def text():
    papers = sorted((SHARED_DATA.parent / "papers").glob("004*.txt"))
    if not papers:
        pytest.skip("the paper's text is not at hand")
    return papers[0].read_text(encoding="utf-8")


def rows_of(text, heading):
    """The cells of the lines of a table, as text."""
    lines = text[text.index(heading) :].splitlines()[2:]
    return [[cell.strip() for cell in line.split("\t")] for line in lines[: lines.index("")]]


def test_table_1_is_as_printed(text):
    printed = [row[1:] for row in rows_of(text, "Table 1:")[1:]]
    ours = [(row.parameters, row.loglik, row.aic, row.lrt, row.df, row.p) for row in TABLE_1]
    assert [[None if cell == "NA" else float(cell) for cell in row] for row in printed] == [list(row) for row in ours]


def test_table_2_is_as_printed(text):
    printed = {label: [float(cell) for cell in cells] for label, *cells in rows_of(text, "Table 2:")[1:]}
    ours = {row.label: [row.estimate, row.se, row.lower, row.upper, row.p] for row in TABLE_2.values()}
    assert ours == printed


def test_table_4_is_as_printed(text):
    printed = [float(cell) for cell in rows_of(text, "Table 4:")[1][1:]]
    assert printed == [TABLE_4.sum_sq, TABLE_4.mean_sq, TABLE_4.num_df, TABLE_4.den_df, TABLE_4.f, TABLE_4.p]


def test_table_5_is_as_printed(text):
    labels, cells = (row[1:] for row in rows_of(text, "Table 5:"))
    ours = {row.label: f"{row.mean:.2f} (± {row.plus_minus:.2f})" for row in TABLE_5.values()}
    assert {
        label: cell.replace("±", "± ").replace("±  ", "± ") for label, cell in zip(labels, cells, strict=True)
    } == ours


@pytest.mark.parametrize("name", TABLE_2)
def test_the_intervals_of_table_2_are_those_of_their_estimates_with_the_residual_degrees_of_freedom(name):
    row = TABLE_2[name]
    half = stats.t.ppf(0.975, 1074 - 12) * row.se
    assert row.estimate - half == pytest.approx(row.lower, abs=6e-6)
    assert row.estimate + half == pytest.approx(row.upper, abs=6e-6)
    assert 2 * stats.t.sf(abs(row.estimate) / row.se, 1074 - 12) == pytest.approx(row.p, abs=2e-4)


def test_the_numbers_of_tables_1_and_4_fit_together():
    for row in TABLE_1:
        assert row.aic == pytest.approx(2 * row.parameters - 2 * row.loglik, abs=1e-9)
    assert TABLE_4.sum_sq / TABLE_4.num_df == pytest.approx(TABLE_4.mean_sq, rel=1e-6)
    assert stats.f.sf(TABLE_4.f, TABLE_4.num_df, TABLE_4.den_df) == pytest.approx(TABLE_4.p, rel=1e-5)


def test_the_papers_own_numbers_reject_only_h3_and_not_after_correction():
    assert [(row.name, row.rejected, row.rejected_corrected) for row in published_judgements()] == [
        ("H1", False, False),
        ("H2", False, False),
        ("H3", True, False),
    ]
    assert published_judgements()[2].p_corrected == pytest.approx(6 * 2.048393e-02)
