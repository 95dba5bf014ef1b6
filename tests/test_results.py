"""The kept results are whole, and every number on the page about them is computed from them."""

import ast
import importlib.util
import json
import re
from pathlib import Path

import pytest

from isorun.report import escaped, html, html_parts, latex, markdown
from isorun.reproducing import kept_reproduction

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "results").glob("*.json"))
PAGE = ROOT / "docs" / "results.md"
LEVELS = ROOT / "docs" / "levels.md"
MAKER = ROOT / "results" / "make_page.py"
CODE = (MAKER, *sorted((ROOT / "results" / "page").glob("*.py")))

NAMES = (
    *("LeNet1", "LeNet4", "LeNet5", "ResNet14", "ResNet38", "ResNet56", "WRN-28-10"),
    *("ase20", "tacl18", "H1", "H2", "H3"),
    # what an interval is an interval of, and the definition of the bar for gains
    *("95 % interval", "90 % interval", "1.96 √2 sd", "below 0.001"),
)
"""All that may have a digit in it and is no result."""


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("make_page", MAKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_result_names_its_machine_its_scale_and_what_was_less(path):
    told = json.loads(path.read_text())
    assert f"`{path.name}`" in (ROOT / "results" / "README.md").read_text()
    stopped = sum("stopped on request" in item["message"] for item in told["warnings"])
    assert told["runs"]["failed"] == 0 or stopped == 1
    assert told["verdict"]
    assert told["numbers"]
    assert bool(told["machines"]) is (path.stem != "dream")  # the published logs: nothing is trained
    assert told["scaled_down"] or told["scale"] == "paper"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_page_is_made_of_a_result_without_a_run(path):
    told = json.loads(path.read_text())
    kept = kept_reproduction(path)
    page = html.render_view(*kept.heading, kept.view(figures=True))
    for table in told["tables"]:
        assert escaped(table["title"]) in page
        assert all(escaped(cell) in page for row in table["rows"] for cell in row)
    assert all(html_parts.unbroken(sentence) in page for sentence in told["verdict"])
    assert r"\begin{tabular}" in latex.render_view(kept.heading[0], kept.view())
    assert all(
        f"| {table['rows'][0][0]} |" in markdown.render_view(kept.heading[0], kept.view()) for table in told["tables"]
    )


UNDRAWN = {
    "ase20-cpu": ["factors-lenet5", "factors-resnet38"],
    "ase20-gpu": ["factors-lenet5"],
    "dream-cpu": ["time-shares"],
    "dream-gpu": ["time-shares"],
}
"""What files that were stored before runs of factors, or the time of watching, were kept cannot draw."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_page_has_every_figure_that_the_numbers_draw_and_says_which_it_has_not(path, tmp_path):
    told = json.loads(path.read_text())
    told.pop("page", None)
    without_page = tmp_path / path.name
    without_page.write_text(json.dumps(told))
    kept = kept_reproduction(without_page)
    view = kept.view(figures=True)
    drawn, undrawn = [figure.name for figure in view.figures], UNDRAWN.get(path.stem, [])
    sentences = {figure["name"]: figure["sentence"] for figure in told["figures"]}
    assert drawn == [name for name in sentences if name not in undrawn]
    assert all(figure.sentence == sentences[figure.name] for figure in view.figures)
    page = html.render_view(*kept.heading, view)
    assert page.count("<figure") == len(drawn)
    [said] = [listing.items for listing in view.listings if "cannot be drawn" in listing.title]
    assert [item.partition(":")[0] for item in said] == undrawn
    assert all("the file lacks" in item and f"isorun reproduce {told['paper']} --scale" in item for item in said)
    assert all(html_parts.unbroken(item) in page for item in said)


def test_a_page_that_was_kept_is_the_one_that_the_numbers_draw(tmp_path):
    told = json.loads((ROOT / "results" / "dream.json").read_text())
    kept = kept_reproduction(ROOT / "results" / "dream.json").view(figures=True)
    without_page = tmp_path / "dream.json"
    without_page.write_text(json.dumps({key: value for key, value in told.items() if key != "page"}))
    drawn = kept_reproduction(without_page).view(figures=True)
    assert [figure.name for figure in drawn.figures] == ["best-by-time", "best-by-trial"]
    assert drawn.figures == kept.figures


def test_the_figures_of_the_page_are_drawn_from_the_results(maker, tmp_path):
    maker.write_figures(tmp_path)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    stored = {path.name: path.read_bytes() for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert drawn == {name: held for name, held in stored.items() if not name.startswith("explained-")}
    assert sorted(re.findall(r"\]\(figures/(.+?)\)", PAGE.read_text())) == sorted(drawn)


def test_every_listed_result_is_there():
    listed = re.findall(r"`([a-z0-9-]+\.json)`", (ROOT / "results" / "README.md").read_text())
    assert sorted(listed) == [path.name for path in FILES]


def test_the_page_is_what_the_results_make_of_it(maker):
    assert PAGE.read_text() == maker.page(), "python results/make_page.py writes it"


def test_our_measurements_on_levels_are_what_the_results_make_of_them(maker):
    assert LEVELS.read_text() == maker.with_levels(LEVELS.read_text()), "python results/make_page.py writes them"


def literals(code):
    """Every piece of text in the code that can reach the page: strings and what stands between braces of f-strings."""
    tree = ast.parse(code)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.FunctionDef)) and isinstance(node.body[0], ast.Expr)
    }
    formats = {id(part) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) for part in ast.walk(node)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings and id(node) not in formats:
            yield node.lineno, node.value


def uncovered(text):
    """The text without what may have digits: code, links, names."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    for name in NAMES:
        text = text.replace(name, "")
    return text


def test_no_digit_of_the_page_is_written_by_hand():
    found = [(path.name, *found) for path in CODE for found in literals(path.read_text())]
    written = [(name, line, text) for name, line, text in found if re.search(r"\d", uncovered(text))]
    # keys of the JSON files, names of findings, a plain zero for no difference, and a pattern
    keys = re.compile(r"(?=.*[a-z])[a-z0-9_-]+|5\.[12] \w+|[01]|\(\\d\+\) of \\d\+ epochs")
    assert [item for item in written if not keys.fullmatch(item[2])] == []


def test_no_number_is_written_between_the_braces():
    """f"{13} of 14" has no digit in its text."""
    for path in CODE:
        braces = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FormattedValue)]
        assert not [node.lineno for node in braces if isinstance(node.value, ast.Constant)]


def test_a_digit_by_hand_would_be_found():
    assert re.search(r"\d", uncovered("about 13 of 14 gains"))
    assert not re.search(r"\d", uncovered("ResNet38 with `-j 8`, see [data](a1.md), 95 % interval"))
    assert [text for _, text in literals('x = f"a 1 {y:.2f} b"')] == ["a 1 ", " b"]


def numbers_changed(value, factor):
    if isinstance(value, dict):
        return {key: numbers_changed(item, factor) for key, item in value.items()}
    if isinstance(value, list):
        return [numbers_changed(item, factor) for item in value]
    return value * factor if isinstance(value, float) else value


def test_the_page_changes_with_the_results(maker, monkeypatch):
    """Other numbers in the files are other numbers on the page: nothing is kept from an earlier one."""
    load = maker.nested.load
    for part in (maker.nested, maker.answers, maker.levels, maker.others):
        monkeypatch.setattr(part, "load", lambda name: numbers_changed(load(name), 1.01))
    assert maker.page() != PAGE.read_text()


def test_published_gains_are_held_against_what_two_seeds_differ_by(maker):
    rows = [row for row in maker.page().splitlines() if re.match(r"\| (TrecQA|WikiQA) \| (CPU|GPU) \| 50 ", row)]
    assert [re.search(r"\d+ of \d+", row)[0] for row in rows] == ["11 of 14", "11 of 14", "8 of 10", "8 of 10"]
