"""Every run with its value, digest and log, and what the runs come from."""

from dataclasses import replace
from pathlib import Path

from isorun.analysis.studies.study_result import analyse_study
from isorun.report import html, terminal
from isorun.report.churn_tables import churn_tables
from isorun.report.class_tables import class_tables
from isorun.report.run_tables import provenance_tables, run_tables
from record_builder import make_study, packed, trained_records


def every_run(result):
    return next(table for table in run_tables(result) if table.name == "every-run")


def placed(result, folder):
    """The result with all runs in this folder."""
    groups = [
        replace(
            group,
            selections=tuple(
                replace(judged, runs=tuple(replace(run, folder=folder, weights="ab" * 20) for run in judged.runs))
                for judged in group.selections
            ),
        )
        for group in result.groups
    ]
    return replace(result, groups=tuple(groups))


def test_every_finished_run_has_its_seed_value_epoch_digest_and_log(sound):
    table = every_run(placed(sound, "/store/runs/x-1"))
    assert len(table.rows) == sum(group.finished for group in sound.groups)
    row = dict(zip([column.title for column in table.columns], table.rows[0], strict=True))
    run = sound.groups[0].selections[0].runs[0]
    assert row["run"] == run.run_id
    assert float(row["test_acc"]) == round(
        100 * run.selected.values["test_acc"], len(row["test_acc"].partition(".")[2])
    )
    assert float(row["epoch"]) == run.selected.step
    assert (row["weights"], row["log"]) == ("abababababab", "x-1/output.log")


def test_a_page_leads_to_the_logs_that_lie_beside_it(sound):
    page = html.render(placed(sound, "/store/runs/x-1"), beside=Path("/store"))
    assert '<a href="./runs/x-1/output.log">x-1/output.log</a>' in page
    assert "output.log</a>" not in html.render(placed(sound, "/store/runs/x-1"))


def test_a_folder_that_is_no_path_leads_nowhere(sound):
    for folder in ("javascript:alert(1)", "//", "", "runs/x"):
        assert '<a href="javascript' not in html.render(placed(sound, folder), beside=Path("/store"))
    page = html.render(placed(sound, '/store/javascript:alert(1)"><script>'), beside=Path("/store"))
    assert 'href="./javascript%3Aalert' in page
    assert "<script" not in page


def test_what_runs_come_from_is_a_table_of_every_page(sound, troubled):
    for result in (sound, troubled):
        (table,) = provenance_tables(result)
        assert len(table.rows) == len(result.provenance) > 2
        assert "What the runs come from" in html.render(result)


def test_examples_that_flip_are_listed_where_predictions_were_kept(sound, troubled):
    assert not list(churn_tables(sound))
    churn, flipped = churn_tables(troubled)
    assert len(churn.rows) == len(troubled.groups)
    group = troubled.groups[0]
    assert group.churn.flipping == 1
    assert flipped.rows[0][4:6] == ("9", "9")
    assert "Which examples change" in html.render(troubled)


def told_of_answers(result):
    """Whether the notes of test-set noise and of churn say that answers are of the end."""
    text = " ".join(terminal.render(result, colour=False, width=80, full=True).split())
    churn, _ = churn_tables(result)
    return ", by the answers that runs ended with: " in text, any("ended with" in note for note in churn.notes)


def test_answers_of_another_epoch_than_the_one_judged_are_told(troubled):
    assert told_of_answers(troubled) == (True, True)
    study, labels = make_study(), packed(range(10), name="test.labels")
    answers = [[packed([*range(9), place % 10], step=float(step)) for step in range(1, 21)] for place in range(10)]
    records = [
        replace(record, predictions=(*answers[place % 10], labels))
        for place, record in enumerate(trained_records(study))
    ]
    assert told_of_answers(analyse_study(study, records)) == (False, False)


def told_of_classes(result):
    """The tables of classes whose notes say that classes are of the end."""
    return [
        table.name
        for table in class_tables(result, result.primary)
        if any("those that they ended with" in note for note in table.notes)
    ]


def test_classes_of_another_epoch_than_the_one_judged_are_told():
    study = make_study()
    plain = [
        replace(record, series={name: one for name, one in record.series.items() if "[" not in name}, predictions=())
        for record in trained_records(study)
    ]
    ended = [replace(record, per_class={"test_acc": {"0": 0.9, "1": 0.8}}) for record in plain]
    tables = told_of_classes(analyse_study(study, ended))
    assert f"class-{analyse_study(study, ended).primary.name}" in tables
    assert len(tables) > 1
    logged = [
        replace(record, series={**record.series, "test_acc[0]": record.series["test_acc"]}, per_class={})
        for record in plain
    ]
    assert told_of_classes(analyse_study(study, logged)) == []


def test_the_epoch_of_a_run_is_a_plain_number(sound):
    table = every_run(sound)
    place = [column.title for column in table.columns].index("epoch")
    assert all(row[place].isdecimal() for row in table.rows)


def test_where_no_class_varies_no_class_has_values_as_the_one_that_varies_most():
    study = make_study()
    still = replace(trained_records(study)[0], predictions=())
    records = [replace(still, cell=record.cell, attempt=record.attempt) for record in trained_records(study)]
    result = analyse_study(study, records)
    (table,) = (one for one in class_tables(result, result.primary) if one.name == "class-test_acc")
    titles = [column.title for column in table.columns]
    assert len(table.rows) > 1
    for row in table.rows:
        found = dict(zip(titles, row, strict=True))
        assert (found["class"], found["max diff"]) == ("—", "0")
        assert [found[name] for name in titles[-4:]] == ["—"] * 4
