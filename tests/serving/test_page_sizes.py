"""Pages stay small: of very many runs, groups, epochs and long texts they show what can be read, and say so."""

import pytest
from read_pages import sound

from counted_calls import calls_of
from isorun.analysis.studies.study_result import analyse_recorded
from isorun.serving.kept import AnalysedStudy
from isorun.serving.pages.comparing import compare_page
from isorun.serving.pages.ranking import leaderboard_page
from isorun.serving.pages.rendering import as_csv, as_html
from isorun.serving.pages.runs import run_page, runs_page
from isorun.serving.pages.study import study_page
from isorun.serving.shelves import OpenedStudy, ShelfEntry
from isorun.study.cells import Level
from isorun.study.design import Metric
from isorun.study.records import RunState, Series
from record_builder import make_cell, make_record, make_study

LARGEST = 300_000


def shown(approaches, repeats, epochs, letters):
    steps = [float(step) for step in range(1, epochs + 1)]
    records = []
    for number in range(approaches):
        for level in Level:
            for repeat in range(repeats):
                value = 0.5 + (number * 7 + repeat * 13 + len(level)) % 101 / 300
                values = [value - 0.3 / step + (step * repeat) % 7 / 500 for step in steps]
                cell = make_cell(level, repeat, approach=f"{'name ' * (letters // 5)}{number}")
                failed = repeat == 0
                records.append(
                    make_record(
                        cell,
                        state=RunState.FAILED if failed else RunState.FINISHED,
                        reason="because " * letters if failed else "",
                        log_tail="line of output\n" * letters,
                        results={"acc": value, "loss": 1 - value},
                        series={"acc": Series(steps, steps, values), "val_loss": Series(steps, steps, values[::-1])},
                        per_class={"acc": {f"class {place}": value - place / 1000 for place in range(60)}},
                    )
                )
    result = analyse_recorded("large", records, {"acc": Metric("acc", "higher")}, {})
    entry = ShelfEntry("large", len(records))
    return AnalysedStudy("lab", OpenedStudy(entry, "r", make_study(), tuple(records), result.conditions), result)


@pytest.mark.long
@pytest.mark.parametrize(
    ("approaches", "repeats", "epochs", "letters"),
    [(1, 120, 20, 5), (30, 3, 5, 60), (2, 12, 500, 5), (2, 3, 4, 4_000)],
    ids=["runs", "groups", "epochs", "texts"],
)
def test_no_page_is_larger_than_it_may_be(approaches, repeats, epochs, letters):
    found = shown(approaches, repeats, epochs, letters)
    run = found.study.records[-1].run_id
    pages = [
        study_page(found, {}),
        study_page(found, {"level": "default"}),
        runs_page(found, {}),
        run_page(found, run, {}),
        run_page(found, found.study.records[0].run_id, {}),
        compare_page(found, {}),
        leaderboard_page([found], {}),
    ]
    sizes = {page.kicker: len(as_html(page)) for page in pages}
    assert max(sizes.values()) <= LARGEST, sizes
    for page in pages:
        sound(as_html(page).decode())


def test_pages_of_many_groups_take_as_much_longer_as_there_are_more_of_them():
    few, many = shown(25, 2, 2, 5), shown(100, 2, 2, 5)
    for page in (study_page, lambda found, query: leaderboard_page([found], query)):
        page(few, {})  # what is imported and kept when it is first needed
        assert calls_of(lambda page=page: page(many, {})) < 6 * calls_of(lambda page=page: page(few, {}))


@pytest.mark.long
def test_what_a_page_leaves_out_is_in_its_csv():
    found = shown(40, 2, 3, 5)
    page = study_page(found, {})
    spread = next(table for name, table in page.tables().items() if name.startswith("overall"))
    assert len(spread.rows) == 120
    assert "All 120 rows as CSV" in sound(as_html(page).decode()).shown
    assert as_csv(page, spread.name).count(b"\r\n") == 121
