"""The documentation site: every page has its place, links lead somewhere, and what is made from the code is as made."""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from isorun.cli.main import COMMANDS, command_module
from typed_pages import Reader, commands, matches

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md"))
HOW_TOS = [page for page in PAGES if page.startswith("how-to/")]
TYPED = ["index", "tutorial", *HOW_TOS]


def building(name):
    """A script of docs/building, as a module."""
    spec = importlib.util.spec_from_file_location(f"building_{name}", DOCS / "building" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def navigation():
    index = (DOCS / "index.md").read_text()
    trees = re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
    return [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]


def test_the_navigation_names_every_page_once():
    named = navigation()
    assert {page: sum(fnmatch(page, entry) for entry in named) for page in PAGES} == {
        page: int(page != "index") for page in PAGES
    }
    assert [entry for entry in named if not any(fnmatch(page, entry) for page in PAGES)] == []


def slugs(page):
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = []
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


@pytest.mark.parametrize("page", [*PAGES, "../README", "../CONTRIBUTING"])
def test_links_of_a_page_lead_to_a_file_and_to_a_heading_in_it(page):
    path = DOCS / f"{page}.md"
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        found = (path.parent / name).resolve() if name else path
        assert found.exists(), target
        assert not anchor or anchor in slugs(found), target


@pytest.mark.parametrize("page", HOW_TOS)
def test_a_how_to_asks_a_question_and_answers_with_a_command(page):
    text = (DOCS / f"{page}.md").read_text()
    assert re.match(r"# [^\n]+\?\n", text)
    typed = [
        command for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) for command, _ in commands(block)
    ]
    assert any(command.startswith("isorun ") for command in typed)
    assert f"]({page}.md)" in (DOCS / "index.md").read_text()


@pytest.mark.parametrize("name", ["python_reference", "study_reference"])
def test_a_reference_is_what_the_code_says(name):
    made = building(name)
    assert made.PAGE.read_text() == made.markdown(), f"run: python docs/building/{name}.py"


def has_json(command):
    parser = argparse.ArgumentParser()
    command_module(command).declare(parser)
    return "--json" in parser._option_string_actions


def test_the_json_reference_has_every_command_with_json():
    sections = {name.split()[1] for name, keys in building("json_reference").documented().items() if keys}
    assert sections == {command for command in COMMANDS if has_json(command)}


@pytest.mark.long
def test_the_json_reference_has_every_key_that_commands_print():
    pytest.importorskip("fastapi", reason="needs isorun[server]")
    assert building("json_reference").undocumented() == [], "run: python docs/building/json_reference.py"


def test_a_key_that_is_not_on_the_page_would_be_found(tmp_path, monkeypatch):
    made = building("json_reference")
    page = tmp_path / "json.md"
    page.write_text("## `isorun status`\n\n| key | value |\n|---|---|\n| `store` | text |\n| `gone[].x` | text |\n")
    monkeypatch.setattr(made, "PAGE", page)
    monkeypatch.setattr(made, "answers", lambda: [("isorun status", {"store": "s", "new": {"values": {"acc": 1}}})])
    assert made.undocumented() == [
        "isorun status: new.values.{name} is not on the page",
        "isorun status: gone is on the page, and in no answer",
    ]


def test_every_key_of_every_table_is_explained():
    explained = (DOCS / "study-file.md").read_text()
    for table, _, keys in building("study_reference").tables():
        assert len(keys) >= 2, table
        for key in keys:
            assert re.search(rf"`\[?(?:\w+\.)?{key}\b|\b{key} = ", explained), f"{table}: {key}"


@pytest.mark.long
def test_the_figures_are_as_drawn(tmp_path):
    figures = building("figures")
    figures.main(tmp_path)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_text() for path in (DOCS / "figures").glob("explained-*.svg")}
    explained = (DOCS / "statistics-explained.md").read_text()
    assert [name for name in drawn if f"](figures/{name})" not in explained] == []


def test_the_tutorial_shows_the_files_of_its_example():
    text = (DOCS / "tutorial.md").read_text()
    for kind, name in (("python", "train.py"), ("toml", "study.toml")):
        assert f"`{name}`:\n\n```{kind}\n{(ROOT / 'examples' / 'moons' / name).read_text()}```" in text


def section(text, heading):
    """What stands below a heading; of the whole page where none is given."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] if heading else text


@pytest.mark.slow  # numbers of trainings are those of the machine that made the page, and `decide` may need more runs
@pytest.mark.parametrize("page", TYPED)
def test_every_command_of_a_page_prints_what_the_page_says(page, tmp_path):
    if page == "how-to/search-is-stuck":
        pytest.importorskip("optuna")
    for file in (ROOT / "examples" / "moons").iterdir():
        shutil.copy(file, tmp_path)
    text = (DOCS / f"{page}.md").read_text()
    # The rest of that page needs SLURM: tests/engines/test_slurm_page.py.
    reader = Reader(tmp_path)
    reader.follow(section(text, "Any number of machines" if page == "how-to/cluster" else ""))
    assert reader.typed


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a\nb\n", "b\n", False),
        ("a\nb\nc\n", "a\n…\nc\n", True),
        ("a\nb\n", "a\n…\n", True),
        ("sd 0.12 of 8\n", "sd … of 8\n", True),
        ("sd 0.12 of 9\n", "sd … of 8\n", False),
        ("", "", True),
        ("anything\n", "", False),
    ],
)
def test_what_was_printed_is_held_against_the_page_line_by_line(printed, expected, same):
    assert matches(printed, expected) is same


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="gone.html">x</a>', "index.html links to gone.html, which is not there"),
        ('<a href="other.html#gone">x</a>', "index.html links to other.html#gone, which has no such anchor"),
        ('<a href="#gone">x</a>', "index.html links to #gone, which has no such anchor"),
        ('<img src="gone.png">', "index.html links to gone.png, which is not there"),
        ('<script src="https://cdn.example/x.js"></script>', "index.html asks another host: https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', "index.html asks another host: //fonts.example/x.css"),
        ('<a href="../secret.html">x</a>', "index.html links to ../secret.html, which is not there"),
    ],
)
def test_a_dead_link_and_a_request_to_another_host_are_found(tmp_path, page, fault):
    (tmp_path / "secret.html").write_text("")
    site = tmp_path / "site"
    site.mkdir()
    (site / "other.html").write_text('<h1 id="here">other</h1>')
    (site / "index.html").write_text(f'<a href="other.html#here">x</a><a href="https://example.org">y</a>{page}')
    assert list(building("links").faults(site)) == [fault]


def test_style_sheets_ask_no_other_host(tmp_path):
    (tmp_path / "site.css").write_text("@import 'https://a.example/x'; b { background: url(//b.example/y.png) }")
    (tmp_path / "site.js").write_text('/* see https://licence.example */ fetch("https://c.example/z")')
    assert [fault.partition(": ")[2] for fault in building("links").faults(tmp_path)] == [
        "https://a.example/x",
        "//b.example/y.png",
        "https://c.example/z",
    ]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_asks_no_other_host():
    done = subprocess.run(
        ["make", "site", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = ROOT / "build" / "site"
    assert list(building("links").faults(site)) == []
    assert {page.relative_to(site).with_suffix("").as_posix() for page in site.rglob("*.html")} >= set(PAGES)
    assert (site / "searchindex.js").stat().st_size > 100_000
