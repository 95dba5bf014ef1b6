"""What every paper promises, held against each of them."""

import re
import subprocess
import sys
from typing import ClassVar

import pytest

from isorun.cli.main import main
from isorun.errors import InputError, UsageError
from isorun.testing import paper_contract
from isorun.testing.paper_contract import PaperContract
from isorun.zoo.paper import SCALES, Request
from isorun.zoo.papers import NAMES, check_request, paper, papers, papers_to_json, papers_view

PAPERS = [pytest.param(name, id=name) for name in NAMES]


class OwnPaperContract(PaperContract):
    """isorun's own papers say it in the same words, all four. Trained whole they are slow; parts stand for them."""

    parts: ClassVar[tuple[str, ...]] = ()

    @pytest.mark.long
    @pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["parts", "whole"])
    def test_a_smoke_run_works_from_the_command_to_the_tables(self, whole, tmp_path, capsys, monkeypatch):
        asked = [] if whole else [word for part in self.parts for word in ("--only", part)]
        monkeypatch.setattr(paper_contract, "main", lambda words: main([*words, *asked]))
        super().test_a_smoke_run_works_from_the_command_to_the_tables(tmp_path, capsys)

    def tells_of_made_data(self, sentences):
        return any("made on the spot" in sentence for sentence in sentences)


class TestAse20(OwnPaperContract):
    parts = ("lenet4",)

    def paper(self):
        return paper("ase20")


class TestTacl18(OwnPaperContract):
    parts = ("baseline", "masks")

    def paper(self):
        return paper("tacl18")


class TestFewshot(OwnPaperContract):
    parts = ("matching-adam", "prototypical-sgd", "control")

    def paper(self):
        return paper("fewshot")


class TestDream(OwnPaperContract):
    parts = ("case-1", "priorities", "feedback")

    def paper(self):
        return paper("dream")


def test_the_contract_is_held_to_by_every_paper():
    assert [test().paper().name for test in (TestAse20, TestTacl18, TestFewshot, TestDream)] == list(NAMES)


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "no-data"))


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_tells_what_it_has(name):
    found = paper(name)
    assert found.name == name
    assert found.title
    assert found.reference
    assert found.exhibits
    assert tuple(found.scales) == SCALES
    for scale, told in found.scales.items():
        assert told.name == scale
        assert told.cost
        assert told.scaled_down or scale == "paper"


def test_papers_are_listed_without_loading_a_framework():
    code = "import sys; from isorun.zoo.papers import papers; papers(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_list_has_every_paper_with_its_networks_and_scales():
    listed = papers_to_json(papers())["papers"]
    assert [item["name"] for item in listed] == list(NAMES)
    assert all([scale["name"] for scale in item["scales"]] == list(SCALES) for item in listed)
    networks = {item["name"]: item["parameters"] for item in listed[0]["networks"]}
    assert sorted(networks.values()) == [7206, 69362, 107786, 565386, 857706, 36536884]
    assert [table.name for table in papers_view(papers()).tables] == ["exhibits", "networks", "scales"]


def test_an_unknown_paper_names_the_known_ones():
    with pytest.raises(InputError, match="ase20"):
        paper("ase21")


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"scale": "huge"}, "smoke"),
        ({"scale": "smoke", "only": ("lenet6",)}, "lenet5"),
        ({"scale": "smoke", "device": "tpu"}, "cuda"),
        ({"scale": "smoke", "runs": 0}, "1 or more"),
    ],
)
def test_a_request_that_no_paper_can_meet_is_refused(request_, named, tmp_path):
    with pytest.raises(UsageError, match=named):
        check_request(paper("ase20"), Request(folder=tmp_path, **request_))


EXHIBITS = {"ase20": (3, 7), "tacl18": (9, 3), "fewshot": (6, 0), "dream": (4, 10)}
"""How many tables and figures each paper has."""


def numbered(texts, word):
    """The numbers after a word and its plural: "Tables 2 to 4, Figures 5 and 7" has tables 2, 3, 4."""
    found = set()
    for text in texts:
        for run in re.findall(rf"{word}s? ((?:\d+(?:, | to | and )?)+)", text):
            numbers = [int(number) for number in re.findall(r"\d+", run)]
            found.update(range(numbers[0], numbers[-1] + 1) if " to " in run else numbers)
    return found


@pytest.mark.parametrize("name", PAPERS)
def test_every_table_and_figure_is_shown_or_said_not_to_be_attempted(name):
    found = paper(name)
    texts = [*(item.name for item in found.exhibits), *(item.names for item in found.not_attempted)]
    tables, figures = EXHIBITS[name]
    assert numbered(texts, "Table") == set(range(1, tables + 1))
    assert numbered(texts, "Figure") == set(range(1, figures + 1))
    assert all(item.reason for item in found.not_attempted)
