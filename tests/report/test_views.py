"""A view shows itself: as text, and as a part of a page that is not ours."""

from html.parser import HTMLParser

import pytest

from isorun.analysis.evidence import Condition
from isorun.analysis.studies.study_result import analyse_study
from isorun.report import Column, Listing, Table, View
from isorun.report.study_view import study_view
from record_builder import make_study, trained_records

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def view():
    table = Table(HOSTILE, HOSTILE, (Column(HOSTILE, key=True), Column("n")), ((HOSTILE, "1"),), (HOSTILE,))
    return View((HOSTILE,), (table,), (Condition("code", HOSTILE, HOSTILE),), listings=(Listing(HOSTILE, (HOSTILE,)),))


class Balance(HTMLParser):
    """Counts open elements, and keeps ids."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_hostile_text_is_harmless_in_both_forms(view):
    assert not {"\x1b", "\u202e"} & set(view.text() + view.html_fragment())
    assert "<script" not in view.html_fragment()


def test_a_fragment_stresses_the_verdict_without_a_style_sheet(sound):
    view = study_view(sound)
    assert "<strong>" in view.html_fragment()
    assert view.html_fragment().index("<strong>") < view.html_fragment().index("<table")


def test_a_fragment_is_balanced_and_runs_nothing(view, sound):
    for shown in (view, study_view(sound, figures=True)):
        parser = Balance()
        parser.feed(shown.html_fragment())
        assert parser.open == []
        assert not {"script", "iframe", "link"} & parser.tags


def test_a_study_is_a_view_with_its_verdict_tables_and_warnings(sound):
    view = study_view(sound)
    assert view.verdict[0] in " ".join(view.text(width=10_000).split("\n"))
    assert view.figures == ()
    drawn = [figure.name for figure in study_view(sound, figures=True).figures]
    assert drawn == ["test_acc", "test_acc-classes", "time", "curves-LeNet"]


def test_text_has_colour_only_when_asked(view):
    assert "\x1b[" in view.text(colour=True)
    assert "\x1b[" not in view.text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"approaches": {"a": "python a.py"}, "levels": ["default"]}, []),
        (
            {"approaches": {"a": "python a.py", "b": "python b.py"}, "levels": ["default"]},
            ["Which approach is better: isorun compare STUDY --by approach."],
        ),
        (
            {"approaches": {name: f"python {name}.py" for name in "abc"}},
            ["Which approach is better: isorun rank STUDY --by approach --where level=LEVEL."],
        ),
        (
            {"approaches": {"a": "python a.py {config.x}"}, "configs": {"p": {"x": 1}, "q": {"x": 2}}},
            ["Which config is better: isorun compare STUDY --by config --where level=LEVEL."],
        ),
    ],
)
def test_a_report_names_the_command_that_says_which_is_better(changes, said):
    study = make_study(repeats=2, **changes)
    result = analyse_study(study, trained_records(study))
    assert [item for listing in study_view(result).listings for item in listing.items] == said
    assert all(item in " ".join(study_view(result).text().split()) for item in said)
