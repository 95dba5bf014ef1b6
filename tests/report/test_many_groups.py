"""Of ten times as many groups, metrics or approaches a report does about ten times as much, not a hundred times."""

from counted_calls import calls_of
from isorun.analysis.studies.study_provenance import study_provenance
from isorun.analysis.studies.study_result import analyse_recorded
from isorun.report.study_view import study_view
from isorun.study.cells import Level
from isorun.study.design import Metric
from isorun.study.records import Series
from record_builder import make_cell, make_record

STEPS = [1.0, 2.0]


def groups(number):
    return [
        make_record(
            make_cell(Level.DEFAULT, repeat, approach=f"approach {place}"),
            results={"acc": 0.5 + (place * 7 + repeat) % 101 / 300},
            per_class={"acc": {"cat": 0.5 + repeat / 10, "dog": 0.4}},
        )
        for place in range(number)
        for repeat in range(2)
    ]


def metrics(number):
    names = [f"m{place}" for place in range(number)]
    series = {name: Series(STEPS, STEPS, [0.1, 0.2]) for name in names}
    return [make_record(make_cell(Level.DEFAULT, 0), results=dict.fromkeys(names, 0.2), series=series)]


def analysed(records, names):
    return analyse_recorded("large", records, {name: Metric(name, "higher") for name in names}, {})


def test_the_tables_of_classes_ask_each_group_once():
    few, many = analysed(groups(30), ["acc"]), analysed(groups(300), ["acc"])
    study_view(few)  # what is imported and kept when it is first needed
    assert calls_of(lambda: study_view(many)) < 16 * calls_of(lambda: study_view(few))


def test_provenance_asks_each_run_once():
    few, many = Asked.of(30), Asked.of(300)
    for asked in (few, many):
        study_provenance(asked)
    assert many.handed < 16 * few.handed


class Asked(list):
    """Records that count how often one of them is handed out."""

    handed = 0

    @classmethod
    def of(cls, number):
        return cls(groups(number))

    def __iter__(self):
        for record in super().__iter__():
            self.handed += 1
            yield record


def test_an_analysis_of_many_metrics_looks_through_the_series_of_a_run_once():
    few, many = metrics(20), metrics(200)
    names = {id(records): list(records[0].results) for records in (few, many)}
    analysed(few, names[id(few)])
    of_few = calls_of(lambda: analysed(few, names[id(few)]))
    assert calls_of(lambda: analysed(many, names[id(many)])) < 20 * of_few
