"""What every paper promises, as tests: subclass `PaperContract`, say which paper it is, and let pytest find it.

class TestMyPaper(PaperContract):
    def paper(self):
        return MyPaper()
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isorun import cli
from isorun.cli.main import main
from isorun.errors import IsorunError
from isorun.study.cells import cells_of
from isorun.zoo.data.catalogue import DATASETS
from isorun.zoo.paper import SCALES, AbstractPaper, Request
from isorun.zoo.papers import check_request, papers_to_json, papers_view, presentation_view

__all__ = ["PaperContract"]

_MOST_SMOKE_RUNS = 100
_FRAMEWORKS = ("torch", "tensorflow", "jax")


class PaperContract:
    """Promises of one paper, kept where none of its data is at hand.

    The smoke run goes through `isorun reproduce NAME`: the paper has to be one of isorun's own, or the entry point of
    an installed distribution.
    """

    def paper(self) -> AbstractPaper:
        """The paper that is held to its promises."""
        raise NotImplementedError

    def tells_of_made_data(self, sentences: Sequence[str]) -> bool:
        """Whether these, all that a smoke run calls less or missing, tell in the paper's words that data were made."""
        return bool(sentences)

    @pytest.fixture(autouse=True)
    def _no_data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "no-data"))
        monkeypatch.chdir(tmp_path)

    def test_it_tells_what_it_has(self) -> None:
        """Name, title, exhibits, and what each scale costs, smoke among them and in the order of all papers."""
        paper = self.paper()
        assert paper.name
        assert paper.title
        assert paper.reference
        assert paper.exhibits
        assert all(item.name and item.title for item in paper.exhibits)
        assert all(item.names and item.reason for item in paper.not_attempted)
        assert "smoke" in paper.scales
        assert tuple(paper.scales) == tuple(name for name in SCALES if name in paper.scales)
        assert all(told.name == name and told.cost for name, told in paper.scales.items())

    def test_it_can_be_listed(self, capsys: pytest.CaptureFixture[str]) -> None:
        """For people and, as plain JSON, for machines."""
        paper = self.paper()
        cli.show(papers_view([paper]))
        assert paper.name in capsys.readouterr().out
        assert json.loads(json.dumps(papers_to_json([paper])))["papers"][0]["name"] == paper.name

    def test_it_is_listed_without_a_framework(self) -> None:
        """Only training scripts may import one."""
        module = type(self.paper()).__module__
        code = (
            f"import sys, importlib; sys.path[:] = {sys.path!r}; importlib.import_module({module!r}); "
            f"print(set({_FRAMEWORKS}) & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "set()"

    def test_its_studies_are_valid_and_have_names_of_their_own(self, tmp_path: Path) -> None:
        """At smoke without any data: few runs, no cell twice, and the same ones whenever it is asked."""
        studies, again = (self.paper().studies(Request("smoke", tmp_path)) for _ in range(2))
        names = [study.name for study in studies]
        assert len(set(names)) == len(names)
        trials = {study.name: sum(design.trials for design in study.searches.values()) for study in studies}
        assert all(0 < (trials[study.name] or len(cells_of(study))) < _MOST_SMOKE_RUNS for study in studies)
        ids = [cell.id for study in studies for cell in cells_of(study)]
        assert len(set(ids)) == len(ids)
        assert ids == [cell.id for study in again for cell in cells_of(study)]

    def test_cells_do_not_depend_on_where_the_studies_live(self, tmp_path: Path) -> None:
        """Records made in one folder serve in another."""
        here, there = (self.paper().studies(Request("smoke", tmp_path / name)) for name in ("here", "there"))
        first, second = ([cell.id for study in found for cell in cells_of(study)] for found in (here, there))
        assert first == second

    @pytest.mark.parametrize("scale", [name for name in SCALES if name != "smoke"])
    def test_missing_data_are_an_error_that_says_how_to_get_them(self, scale: str, tmp_path: Path) -> None:
        """At every scale but smoke, whether it is noticed in planning or in presenting.

        isorun's command is named where it can get them: for data of isorun's own catalogue.
        """
        paper, request = self.paper(), Request(scale, tmp_path)
        if scale not in paper.scales or not paper.data:
            pytest.skip("it needs no data, or has no such scale")
        with pytest.raises(IsorunError) as caught:
            [paper.studies(request), paper.present(request, {})]
        assert caught.value.hint
        if set(paper.data) <= set(DATASETS):
            assert "isorun data get" in caught.value.message()

    @pytest.mark.parametrize("scale", SCALES)
    def test_records_can_be_shown_where_the_data_are_not(self, scale: str, tmp_path: Path) -> None:
        """Who shows records has perhaps got them from another machine."""
        paper = self.paper()
        if scale not in paper.scales or not paper.studies(Request("smoke", tmp_path)):
            pytest.skip("it has no studies, or no such scale")
        assert paper.studies(Request(scale, tmp_path, recorded=True))

    def test_nothing_recorded_is_presented(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Without a crash: a verdict, what is less, and JSON."""
        paper, request = self.paper(), Request("smoke", tmp_path)
        shown = paper.present(request, {study.name: () for study in paper.studies(request)})
        assert shown.verdict
        assert shown.scaled_down or not paper.scales["smoke"].scaled_down
        json.dumps(dict(shown.numbers), allow_nan=False)
        view = presentation_view(shown, paper.not_attempted)
        assert view.listings[0].items == shown.scaled_down
        cli.show(view)
        assert capsys.readouterr().out.startswith(shown.verdict[0].split()[0])

    def test_each_part_can_be_asked_for_alone(self, tmp_path: Path) -> None:
        """Its studies are among those of the whole, or are not at all where it is carried out on request only."""
        paper = self.paper()
        whole = {study.name for study in paper.studies(Request("smoke", tmp_path))}
        assert set(paper.on_request) <= set(paper.parts)
        for part in paper.parts:
            request = Request("smoke", tmp_path, only=(part,))
            check_request(paper, request)
            alone = {study.name for study in paper.studies(request)}
            assert alone.isdisjoint(whole) if part in paper.on_request else alone <= whole

    def test_a_smoke_run_works_from_the_command_to_the_tables(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And the same command again runs nothing and says the same."""
        paper = self.paper()
        told, again = (self._reproduced(tmp_path, capsys) for _ in range(2))
        assert told["runs"]["failed"] == 0
        assert (told["runs"]["finished"] > 0) is bool(paper.studies(Request("smoke", tmp_path)))
        assert told["verdict"]
        assert told["tables"] or told["figures"]
        less = (*told["scaled_down"], *told["not_had"])
        assert not paper.data or self.tells_of_made_data(less)
        assert again["runs"] == told["runs"]
        assert again["numbers"] == told["numbers"]
        page, text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("page.html", "page.md"))
        assert "<html" in page
        assert all(f"{table['title']}" in text for table in told["tables"])

    def _reproduced(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        """What the command prints. Warm: how runs are started is no promise of a paper."""
        words = ["--store", str(folder / "store"), "--jobs", "2", "--launch", "warm", "--json"]
        words += ["--html", str(folder / "page.html"), "--markdown", str(folder / "page.md")]
        code = main(["reproduce", self.paper().name, *words])
        said = capsys.readouterr()
        assert code == 0, said.err[-2000:]
        found: dict[str, Any] = json.loads(said.out)
        return found
