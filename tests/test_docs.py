"""The documentation keeps up with the product."""

import argparse
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import isorun
from isorun.cli import reference
from isorun.cli.main import COMMANDS, command_module
from isorun.study import searches
from isorun.study.design import KEYS

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_a_study_file_has_a_heading(key):
    assert f"\n## `{key}`\n" in (DOCS / "study-file.md").read_text()


def test_the_command_line_reference_is_what_the_commands_say():
    written = (DOCS / "command-line.md").read_text()
    assert written == reference.markdown(), "run: python -m isorun.cli.reference > docs/command-line.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_help_text(command):
    parser = argparse.ArgumentParser()
    command_module(command).declare(parser)
    assert [action.dest for action in parser._actions if not action.help] == []


def test_links_between_pages_lead_somewhere():
    root = DOCS.parent
    for page in [root / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


SOURCES = Path(isorun.__file__).parent
CODES = sorted(
    {
        code
        for path in SOURCES.rglob("*.py")
        if "zoo" not in path.parts and path.name != "reproducing.py"
        for code in re.findall(r'Condition\(\s*"([a-z-]+)"', path.read_text())
    }
    - {"note", "not-finite", "model", "no-model", "images-to-bring"}
)


@pytest.mark.parametrize("code", CODES)
def test_every_condition_has_its_place_in_the_docs(code):
    pages = (
        DOCS / f"{name}.md"
        for name in (
            "statistics",
            "report-json",
            "repair",
            "factors",
            "claims",
            "price",
            "frameworks",
            "ci",
            "trackers",
            "replication",
            "pages",
        )
    )
    assert any(f"`{code}`" in page.read_text() for page in pages)


def test_decisions_are_numbered_one_by_one():
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for number, page in enumerate(pages, start=1):
        assert page.read_text().startswith(f"# {number}. "), page.name


@pytest.mark.parametrize("paper", [path.parent for path in sorted((SOURCES / "zoo" / "studies").glob("*/paper.py"))])
def test_every_file_of_a_paper_has_its_place_in_the_design(paper):
    page = (DOCS / "design" / "zoo.md").read_text()
    files = {path.name for path in paper.glob("*.py")} - {"__init__.py"}
    assert [name for name in sorted(files) if not re.search(rf"[`/]{re.escape(name)}`", page)] == []


def test_the_design_lists_every_key_and_engine_of_a_search():
    text = (DOCS / "design" / "repair.md").read_text().partition("**A search as a study.**")[2].partition("\n- ")[0]
    assert [word for word in (*searches._KEYS, *searches.ENGINES) if f"`{word}`" not in text] == []


def test_the_readme_names_every_command_extra_and_page():
    text = (DOCS.parent / "README.md").read_text()
    answers = text.partition("## What it answers")[2].partition("\n## ")[0]
    assert [command for command in COMMANDS if f"`isorun {command}" not in answers] == []
    extras = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    install = text.partition("## Install")[2].partition("\n## ")[0]
    assert [extra for extra in extras if extra not in {"dev", "docs"} and f"`isorun[{extra}]`" not in install] == []
    assert [page.name for page in DOCS.glob("*.md") if f"](docs/{page.name})" not in text] == []


def test_a_benchmark_without_a_target_has_met_none():
    script = DOCS.parent / "benchmarks" / "run.py"
    spec = importlib.util.spec_from_file_location("benchmarks_run", script)
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    row = {"name": "reading", "measured": 3.0, "unit": "s", "target": "", "ok": True, "detail": "once"}
    assert run._table_row(row) == "| reading | 3 s |  |  | once |"
    assert run._table_row({**row, "target": 0}) == "| reading | 3 s | 0 | met | once |"
    assert run._table_row({**row, "target": "≤ 2", "ok": False}) == "| reading | 3 s | ≤ 2 | **missed** | once |"
    written = [line.split(" | ") for line in (script.parent / "RESULTS.md").read_text().splitlines()]
    assert not [cells[0] for cells in written if len(cells) > 4 and cells[2:4] == ["", "met"]]
