"""Tables as data."""

import math

import pytest

from isorun.analysis.studies.group_result import GroupKey
from isorun.analysis.studies.study_result import analyse_study
from isorun.report import (
    MOST_ROWS,
    Column,
    Table,
    html,
    html_parts,
    json_report,
    latex,
    markdown,
    terminal,
    without_constant_columns,
)
from isorun.report.run_tables import run_tables
from isorun.report.study_tables import GROUP_COLUMNS, identical_tables, named_rows, spread_tables
from isorun.study.cells import Level
from isorun.study.design import Metric, Selection
from isorun.study.records import RunState
from record_builder import make_cell, make_record, make_series, make_study

KEYS = [GroupKey("a", "default", "default", Level.DEFAULT), GroupKey("b", "default", "default", Level.DEFAULT)]


def table(*rows):
    return Table("t", "T", (*GROUP_COLUMNS, Column("n")), rows)


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table("t", "T", (Column("a"),), (("1", "2"),))


def test_columns_that_say_nothing_go():
    shorter = named_rows(
        table(("a", "default", "default", "default", "1"), ("b", "default", "default", "default", "2")), KEYS
    )
    assert [column.title for column in shorter.columns] == ["approach", "n"]
    assert shorter.notes == ()


def test_what_holds_for_this_table_alone_is_said_below_it():
    shorter = named_rows(
        table(("a", "default", "default", "default", "1"), ("a", "default", "default", "fixed", "2")), KEYS
    )
    assert [column.title for column in shorter.columns] == ["level", "n"]
    assert shorter.notes == ("All rows: approach a.",)


def test_one_key_column_always_stays():
    shorter = without_constant_columns(table(("a", "b", "c", "d", "1")), ("approach", "config", "environment", "level"))
    assert [column.title for column in shorter.columns] == ["level", "n"]


def test_neighbouring_columns_share_their_heading():
    columns = (Column("k", key=True), Column("x", group="g"), Column("y", group="g"), Column("z"))
    assert Table("t", "T", columns, ()).heading_groups() == [("", 1), ("g", 2), ("", 1)]


def test_a_long_table_is_shortened_on_pages_with_a_note_on_where_the_rest_is():
    rows = tuple((str(number),) for number in range(MOST_ROWS + 1))
    table = Table("long", "Long", (Column("n", key=True),), rows, notes=("a note",))
    for render in (html_parts.render_table, markdown.render_table, latex.render_table):
        text = render(table)
        assert "The first 1,000 of 1,001 rows" in text
        assert "a note" in text
        assert "999" in text
        assert str(MOST_ROWS) not in text
    assert len(table.to_json()["rows"]) == MOST_ROWS + 1


@pytest.mark.parametrize(
    ("digests", "told"),
    [
        ({"weights.initial": "aa", "weights.final": "bb"}, False),
        ({"weights.initial": "aa"}, True),
        ({}, True),
    ],
)
def test_a_missing_digest_is_explained_and_a_missing_metric_is_not_taken_for_one(digests, told):
    runs = [make_record(make_cell(Level.FIXED_SEED, repeat), digests=digests) for repeat in range(5)]
    identical = next(identical_tables(analyse_study(make_study(levels=(Level.FIXED_SEED,), repeats=5), runs)))
    assert [column.title for column in identical.columns][-3:] == ["runs", "initial", "final"], "there is no metric"
    assert [cells[-1] for cells in identical.rows] == ["1" if "weights.final" in digests else "—"]
    assert any("no run left such a digest" in note for note in identical.notes) is told


def seeds_run(*counts):
    """A study in which the first seed ran so many times, the second so many, and so on."""
    cells = [
        make_cell(Level.FIXED_SEED, repeat, seed=seed) for seed, runs in enumerate(counts) for repeat in range(runs)
    ]
    runs = [make_record(cell, results={"test_acc": 0.9 + place / 1000}) for place, cell in enumerate(cells)]
    study = make_study(levels=(Level.FIXED_SEED,), seeds=tuple(range(len(counts))), repeats=max(counts))
    return analyse_study(study, runs)


def test_where_no_seed_ran_twice_one_sentence_says_so_in_every_format():
    result = seeds_run(1, 1, 1, 1, 1, 1)
    said = "No seed ran twice, so nothing is known about identical runs; next: set repeats to 8 or more in the study"
    texts = (
        *(terminal.render(result, colour=False, width=80, full=full) for full in (False, True)),
        html.render(result),
        markdown.render(result),
        latex.render(result),
    )
    for text in texts:
        assert " ".join(text.split()).count(said) == 1
        assert "distinct weights" not in text
    (group,) = json_report.to_json(result)["groups"]
    assert [(one["seed"], one["runs"]) for one in group["identical"]] == [(seed, 1) for seed in range(6)]


def test_seeds_that_ran_once_beside_repeated_ones_share_a_row():
    identical = next(identical_tables(seeds_run(3, 1, 1, 2)))
    seed = [column.title for column in identical.columns].index("seed")
    assert [row[seed : seed + 2] for row in identical.rows] == [("0", "3"), ("3", "2"), ("each of 2", "1")]
    assert identical.rows[-1][seed + 2 :] == ("—",) * 4
    assert identical.instead == ""


def test_where_nothing_finished_there_is_no_table_of_identical_runs(nothing_finished):
    assert "Identical runs" not in terminal.render(nothing_finished, colour=False, width=80, full=True)


def test_a_table_has_rows_or_a_sentence_in_their_place():
    with pytest.raises(ValueError, match="in place of rows"):
        Table("t", "T", (Column("a"),), (("1",),), instead="nothing")


@pytest.mark.parametrize(("end", "shown"), [("", None), ("\nbye", "ValueError: no data … bye")])
def test_the_end_of_a_log_is_shown_where_the_reason_does_not_say_it(end, shown):
    log = f"Traceback (most recent call last):\n  f\nValueError: no data{end}"
    failed = {"state": RunState.FAILED, "reason": "exit code 1: ValueError: no data", "log_tail": log}
    records = [make_record(make_cell(Level.FIXED_SEED, place), **failed) for place in range(2)]
    result = analyse_study(make_study(levels=(Level.FIXED_SEED,), repeats=2), records)
    table = next(table for table in run_tables(result) if table.name == "failures")
    assert [column.title for column in table.columns][-1] == ("what its log ends with" if shown else "reason")
    assert {row[-1] for row in table.rows} == {shown or failed["reason"]}


def spread_notes(values, **declared):
    """The notes below the table of spreads. values: of runs of one group; declared: parts of the study."""
    records = [
        make_record(make_cell(Level.DEFAULT, place), results={"acc": value}, series={"acc": make_series([0.1, value])})
        for place, value in enumerate(values)
    ]
    result = analyse_study(make_study(metrics={"acc": Metric("acc")}, **declared), records)
    [found] = spread_tables(result, result.primary)
    return found.notes


def test_values_that_are_left_out_are_counted_below_the_table():
    assert "2 values not finite (NaN or infinite) and left out." in spread_notes([0.5, 0.6, math.nan, math.inf, 0.7])
    assert not any("finite" in note for note in spread_notes([0.5, 0.6, 0.7]))


def test_which_epoch_is_judged_is_said_below_the_table():
    best = {"best": Selection("best", "acc", "higher")}
    notes = spread_notes([0.5, 0.6, 0.7], selections=best)
    assert "Selection: best judges the epoch with the best acc." in notes


def test_a_table_says_what_intervals_rest_on_where_that_is_less_than_the_runs():
    def overall(seeds, repeats):
        cells = [make_cell(Level.FIXED_SEED, repeat, seed=seed) for seed in seeds for repeat in range(repeats)]
        records = [make_record(cell, results={"acc": 0.1234 * cell.seed + 0.0017 * cell.repeat}) for cell in cells]
        study = make_study(levels=(Level.FIXED_SEED,), seeds=seeds, repeats=repeats, metrics={"acc": Metric("acc")})
        result = analyse_study(study, records)
        table = next(spread_tables(result, result.primary))
        titles = [column.title for column in table.columns]
        return dict(zip(titles, table.rows[0], strict=True)), table.notes

    row, notes = overall((1, 2, 3, 4), 3)
    assert (row["n"], row["interval from"]) == ("12", "4 draws")
    assert any(note.startswith("interval from: repeats of a seed") for note in notes)
    row, notes = overall((1, 2, 3, 4), 1)
    assert "interval from" not in row
    assert not any(note.startswith("interval from") for note in notes)
