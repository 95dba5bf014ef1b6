"""200 texts in every text field of a study: they come out as text on every page, and nowhere as anything else."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hostile_texts import PAYLOADS
from read_pages import sound

from isorun.analysis.studies.study_result import analyse_recorded
from isorun.errors import harmless
from isorun.registry.index import ReplicatingPackage
from isorun.report import Column, Table
from isorun.serving.kept import AnalysedStudy
from isorun.serving.pages import Page
from isorun.serving.pages.comparing import compare_page
from isorun.serving.pages.home import home_page
from isorun.serving.pages.ranking import leaderboard_page
from isorun.serving.pages.rendering import as_csv, as_html, as_json
from isorun.serving.pages.runs import run_page, runs_page
from isorun.serving.pages.study import study_page
from isorun.serving.pages.surroundings import environments_page
from isorun.serving.shelves import OpenedStudy, ShelfEntry
from isorun.study.cells import Level
from isorun.study.design import Metric
from isorun.study.records import Note, RunState, Seeded, Series
from record_builder import make_cell, make_record, make_study


def hostile_record(text, level, repeat, approach, **changes):
    """A record with the text in every field that holds one, and in every name."""
    cell = make_cell(
        level,
        repeat,
        approach=approach,
        command=("python", text, "train.py"),
        config=text,
        config_values={text: text},
        environment=text,
        environment_content={"env": {text: text}},
    )
    value = 0.5 + 0.01 * repeat + (0.2 if approach == text else 0)
    given = {
        "reason": text,
        "signal": text,
        "launch": text,
        "results": {text: value, "acc": value},
        "per_class": {"acc": {text: value}},
        "series": {"acc": Series((1, 2, 3), (1, 2, 3), (0.1, 0.2, value))},
        "digests": {text: text, "weights.final": text},
        "environment": {
            "requested": {"read_files": [{"path": text, "sha256": text}], text: text},
            "effective": {text: {text: text}, "packages": {text: f"{text}{repeat}"}, "python": {"version": text}},
        },
        "code": {"commit": text, "script": text},
        "origins": {"acc": text, text: text},
        "seeded": (Seeded(text, text, text),),
        "notes": (Note(text, text),),
        "log_tail": f"{text}\n{text}",
        "where": {"host": text, "folder": text},
        "devices": (text,),
        "started_at": text,
    }
    return make_record(cell, **(given | changes))


def hostile_study(text):
    """A study of two approaches at two levels, all of whose names are the text, or begin with it."""
    records = [
        hostile_record(text, level, repeat, approach)
        for level in (Level.DEFAULT, Level.FIXED_SEED)
        for approach in (text, f"{text} b")
        for repeat in range(2)
    ]
    records.append(hostile_record(text, Level.DEFAULT, 9, text, state=RunState.FAILED))
    metrics = {name: Metric(name, "higher") for name in ("acc", text)}
    result = analyse_recorded(text, records, metrics, {})
    entry = ShelfEntry(text, len(records), text, text, text, (ReplicatingPackage(text, text, text),), (text,))
    return AnalysedStudy(
        "lab", OpenedStudy(entry, "r", make_study(), tuple(records), result.conditions, text, text), result
    )


class Shelf:
    """A shelf whose title is the text."""

    name = "lab"
    is_registry = False

    def __init__(self, title):
        self.title = title


def pages_of(text):
    found = hostile_study(text)
    entry = found.study.entry
    yield home_page([(Shelf(text), entry), (Shelf(text), replace(entry, problem=text, remedy=text))], {"q": text})
    yield study_page(found, {})
    yield study_page(found, {"metric": text})
    yield runs_page(found, {})
    yield run_page(found, found.study.records[0].run_id, {})
    yield run_page(found, found.study.records[-1].run_id, {})
    yield compare_page(found, {"metric": "acc"})
    yield compare_page(found, {"with": text}, replace(found, shelf="other"))
    yield leaderboard_page([found], {"metric": "acc"})
    yield leaderboard_page([found], {}, of=(text,))
    yield environments_page(found, {})


def check(text):
    for page in pages_of(text):
        read = sound(as_html(page).decode())
        json.loads(as_json(page))
        if page.tables():
            as_csv(page)
    return read


@pytest.mark.parametrize("text", PAYLOADS[::41], ids=range(0, 200, 41))
def test_a_hostile_text_comes_out_as_text_on_every_page(text):
    check(text)


@pytest.mark.slow
@pytest.mark.parametrize("text", PAYLOADS, ids=range(200))
def test_every_hostile_text_comes_out_as_text_on_every_page(text):
    check(text)


def test_what_is_shown_is_the_text_itself():
    text = PAYLOADS[0]
    found = hostile_study(text)
    read = sound(as_html(run_page(found, found.study.records[0].run_id, {})).decode())
    assert harmless(text) in read.shown


def test_what_looks_like_a_template_is_not_filled():
    text = "{{ 7 * 7 }}{% if 1 %}yes{% endif %}"
    found = hostile_study(text)
    shown = sound(as_html(study_page(found, {})).decode()).shown
    assert text in shown
    assert "{{ 49" not in shown


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1+cmd|x!A", "-2+3+cmd|x!A", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_of_a_table_is_a_formula(cell):
    assert list(csv.reader(io.StringIO(as_csv(a_table(cell)).decode(), newline="")))[1] == [f"'{cell}"]


def test_no_heading_of_a_table_is_a_formula():
    table = Table("t", "t", (Column("=cmd|' /C calc'!A0"),), (("x",),))
    told = as_csv(Page("t", "t", "/t", further=(table,))).decode()
    assert next(csv.reader(io.StringIO(told, newline=""))) == ["'=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("cell", ["-0.5", "+1.25 %", "-1e-05", "-0.5 to 0.3", "-1 to -0.5", "a=b", "lenet", "—", ""])
def test_numbers_and_names_are_what_they_are(cell):
    assert list(csv.reader(io.StringIO(as_csv(a_table(cell)).decode(), newline="")))[1] == [cell]


def a_table(cell):
    return Page("t", "t", "/t", further=(Table("t", "t", (Column("name"),), ((cell,),)),))
