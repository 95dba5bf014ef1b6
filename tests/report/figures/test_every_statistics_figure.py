"""What holds for every figure, whatever it shows: of one group or twelve, long names or hostile ones."""

import functools
import itertools
from xml.etree import ElementTree as ET

import pytest
from figure_examples import EXAMPLES, HOSTILE

from isorun.report.figures import files, svg

SVG = "{http://www.w3.org/2000/svg}"
pytestmark = pytest.mark.parametrize("name", EXAMPLES)


@functools.cache
def figure_of(name):
    return EXAMPLES[name]()


@functools.cache
def drawn(name):
    return svg.render(figure_of(name), standalone=True)


def test_it_says_in_a_sentence_what_it_shows_and_has_its_numbers(name):
    figure = figure_of(name)
    assert figure.title
    assert figure.sentence.endswith(".")
    assert figure.data.rows


def test_all_marks_lie_within_the_axes(name):
    figure = figure_of(name)
    points = [(dot.x, dot.y) for dot in figure.dots]
    points += [point for line in figure.lines for point in line.points]
    points += [(x, y) for band in figure.bands for x, low, high in band.points for y in (low, high)]
    points += [(x, y) for tile in figure.tiles for x in tile.x for y in tile.y]
    points += [(x, box.y) for box in figure.boxes for x in (box.low_whisker, box.low, box.high, box.high_whisker)]
    assert points
    assert all(figure.x.low - 1e-9 <= x <= figure.x.high + 1e-9 for x, _ in points)
    assert all(figure.y.low - 1e-9 <= y <= figure.y.high + 1e-9 for _, y in points)


def test_tick_labels_of_values_differ_and_name_their_place(name):
    figure = figure_of(name)
    for axis in (figure.x, figure.y):
        if not axis.rows:
            assert len({tick.label for tick in axis.ticks}) == len(axis.ticks) >= 1
            assert all(_number(tick.label) == pytest.approx(tick.at, abs=1e-9) for tick in axis.ticks)


def _number(label):
    return float(label.removesuffix(" %")) / 100 if label.endswith("%") else float(label.replace(",", ""))


def test_svg_is_well_formed_and_described_for_readers_of_screens(name):
    root = ET.fromstring(drawn(name))
    described = {root.find(f"{SVG}title").get("id"), root.find(f"{SVG}desc").get("id")}
    assert set(root.get("aria-labelledby").split()) == described
    assert root.find(f"{SVG}desc").text.endswith(".")


def test_svg_is_the_same_every_time(name):
    assert svg.render(EXAMPLES[name](), standalone=True) == drawn(name)


def test_svg_runs_nothing_that_a_name_brings(name):
    root = ET.fromstring(drawn(name))
    assert not list(root.iter(f"{SVG}script"))
    assert not [key for item in root.iter() for key in item.attrib if key.startswith("on")]
    assert "\x1b" not in drawn(name)
    if name.endswith("hostile"):
        assert "&lt;script&gt;" in drawn(name)
        assert HOSTILE not in drawn(name)


def test_svg_text_stays_inside_the_picture(name):
    root = ET.fromstring(drawn(name))
    _, _, width, height = map(float, root.get("viewBox").split())
    for text in root.iter(f"{SVG}text"):
        if text.get("transform") is None:
            assert 0 <= float(text.get("x")) <= width
            assert 0 <= float(text.get("y")) <= height


def test_labels_of_the_y_axis_do_not_overlap(name):
    root = ET.fromstring(drawn(name))
    places = sorted(float(text.get("y")) for text in root.iter(f"{SVG}text") if text.get("text-anchor") == "end")
    assert all(after - before >= 13 for before, after in itertools.pairwise(places))


def test_matplotlib_draws_it_without_a_warning_and_no_name_becomes_a_formula(name, tmp_path):
    figure = figure_of(name)
    axes = files.draw(figure)
    axes.figure.savefig(tmp_path / "a.png", dpi=40, bbox_inches="tight")
    assert axes.get_ylim() == ((figure.y.high, figure.y.low) if figure.y.rows else (figure.y.low, figure.y.high))
    texts = [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts, axes.xaxis.label, axes.yaxis.label]
    texts += axes.get_legend().get_texts() if figure.legend else []
    assert not any(text._preprocess_math(text.get_text())[1] for text in texts)
