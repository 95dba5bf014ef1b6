"""Papers that other distributions bring: found by entry point, listed, run, and no trouble to anybody when broken."""

import json

import pytest

from isorun.cli.main import main
from isorun.errors import InputError, PluginError
from isorun.testing.paper_contract import PaperContract
from isorun.zoo.papers import NAMES, brought_papers, paper

MODULE = """
from dataclasses import replace
from pathlib import Path

from isorun.errors import DataError
from isorun.study.design import Study
from isorun.zoo.paper import AbstractPaper, Exhibit, Presentation, Scale, smoke_verdict
from isorun.report import Column, Table

SCRIPT = str(Path(__file__).with_name("shelf_train.py"))


class Shelf(AbstractPaper):
    name = "shelf"
    title = "On Shelves"
    reference = "nobody, 2020"
    exhibits = (Exhibit("Table 1", "a number"),)
    not_attempted = ()
    networks = ()
    data = ()
    parts = ()
    scales = {"smoke": Scale("smoke", "a second")}

    def studies(self, request):
        approaches = {"one": {"command": ("python", SCRIPT, "--seed", "{seed}")}}
        metrics = {"acc": {"direction": "higher"}}
        return (Study("shelf-smoke", approaches=approaches, repeats=2, metrics=metrics, folder=request.folder),)

    def present(self, request, records):
        found = [record.results["acc"] for kept in records.values() for record in kept]
        table = Table("table-1", "Table 1", (Column("acc"),), tuple((str(value),) for value in found))
        return Presentation(smoke_verdict(len(found)), (table,), numbers={"acc": found})


class Archive(Shelf):
    name = "archive"
    data = ("letters of a private archive",)
    scales = {name: Scale(name, "a second") for name in ("smoke", "cpu")}

    def studies(self, request):
        if request.scale != "smoke" and not request.recorded:
            raise DataError("the letters are not at hand", hint="ask the archive for a copy")
        return super().studies(request)

    def present(self, request, records):
        return replace(super().present(request, records), scaled_down=("invented letters instead of the archive's",))


PAPER = Shelf()
NO_PAPER = "a text"


class Unfinished(Shelf):
    name = "unfinished"
    title = "kept in a drawer"


class Silent(AbstractPaper):
    name = "silent"
    studies = Shelf.studies
    present = Shelf.present


class Refusing(Shelf):
    name = "refusing"

    def __init__(self):
        raise RuntimeError("not today")
"""
POINTS = """
[isorun.papers]
shelf = shelf_papers:PAPER
archive = shelf_papers:Archive
unfinished = shelf_papers:Unfinished
text = shelf_papers:NO_PAPER
silent = shelf_papers:Silent
refusing = shelf_papers:Refusing
other-name = shelf_papers:PAPER
dream = shelf_papers:PAPER
absent = no_such_package:PAPER
"""
BROKEN = ("absent", "dream", "other-name", "refusing", "silent", "text")


@pytest.fixture(autouse=True)
def shelf(installed):
    """Three papers that work, and six that do not."""
    installed(POINTS, shelf_papers=MODULE, shelf_train="import isorun\n\nisorun.result(acc=0.5)\n")


class TestBrought(PaperContract):
    """It keeps the promises that isorun's own papers keep, a smoke run through the command line among them."""

    def paper(self):
        return paper("shelf")


class TestBroughtWithOtherData(PaperContract):
    """Its data are not in isorun's catalogue, so that no command of isorun gets them."""

    def paper(self):
        return paper("archive")

    def tells_of_made_data(self, sentences):
        return any("invented letters" in sentence for sentence in sentences)


def test_a_class_serves_as_well_as_a_paper():
    assert paper("unfinished").title == "kept in a drawer"


def test_it_is_listed_beside_isoruns_own_and_broken_ones_are_named(capsys):
    assert main(["reproduce", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in told["papers"]] == [*NAMES, "archive", "shelf", "unfinished"]
    assert len(told["broken"]) == len(BROKEN)
    assert main(["reproduce"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "7 papers can be reproduced" in shown
    assert all(f"'{name}'" in shown for name in BROKEN)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("text", "str"),
        ("silent", "no title, reference"),
        ("refusing", "not today"),
        ("other-name", "a paper named shelf"),
        ("absent", "no_such_package"),
    ],
)
def test_a_broken_paper_says_what_is_wrong_with_it(name, why, capsys):
    with pytest.raises(PluginError, match=why):
        paper(name)
    assert main(["reproduce", name]) == 1
    assert f"'{name}'" in capsys.readouterr().err


def test_isoruns_own_paper_is_never_replaced():
    assert type(paper("dream")).__module__ == "isorun.zoo.studies.dream.paper"
    assert [found.name for found in brought_papers()[0]] == ["archive", "shelf", "unfinished"]


def test_an_unknown_paper_lists_those_that_were_brought():
    with pytest.raises(InputError, match="did you mean 'shelf'"):
        paper("shelv")
