"""Figures: what they describe, and both renderers."""

import importlib
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import InputError, MissingExtra
from isorun.report.figures import files, svg
from isorun.report.figures.axes import side_by_side, value_axis
from isorun.report.figures.description import Shape
from isorun.report.study_view import study_view

FINITE = st.floats(min_value=-1e9, max_value=1e9)


@pytest.fixture(scope="module")
def figures(troubled):
    return {figure.name: figure for figure in study_view(troubled, figures=True).figures}


def test_a_study_has_its_figures(figures):
    assert list(figures) == ["test_acc", "test_acc-without-weak", "test_acc-classes", "time", "curves-LeNet"]


def test_every_figure_has_a_sentence_and_its_data(figures):
    for figure in figures.values():
        assert figure.sentence.endswith(".")
        assert figure.data.rows


def test_every_run_is_a_dot_weak_ones_crosses_and_means_triangles(figures):
    shapes = [dot.shape for dot in figures["test_acc"].dots]
    assert (shapes.count(Shape.CIRCLE), shapes.count(Shape.CROSS), shapes.count(Shape.TRIANGLE)) == (21, 2, 3)
    without = [dot.shape for dot in figures["test_acc-without-weak"].dots]
    assert (without.count(Shape.CIRCLE), without.count(Shape.CROSS)) == (21, 0)


def test_boxes_are_the_quartiles_in_percent(figures, troubled):
    overall = troubled.groups[1].selections[0].every.metrics["test_acc"].overall
    box = figures["test_acc"].boxes[1]
    assert (box.low, box.median, box.high) == pytest.approx(
        (100 * overall.quartile_low, 100 * overall.median, 100 * overall.quartile_high)
    )


def test_all_classes_are_rows_the_last_one_too(figures):
    assert [tick.label for tick in figures["test_acc-classes"].y.ticks] == [f"class {name}" for name in range(10)]


def test_marks_lie_within_their_axes(figures):
    for figure in figures.values():
        for dot in figure.dots:
            assert figure.x.low <= dot.x <= figure.x.high
            assert figure.y.low <= dot.y <= figure.y.high
        for line in figure.lines:
            assert all(
                figure.x.low <= x <= figure.x.high and figure.y.low <= y <= figure.y.high for x, y in line.points
            )


def test_svg_is_well_formed_named_and_the_same_every_time(any_result):
    for figure in study_view(any_result, figures=True).figures:
        text = svg.render(figure, standalone=True)
        root = ET.fromstring(text)
        assert root.find("{http://www.w3.org/2000/svg}title").text
        assert root.find("{http://www.w3.org/2000/svg}desc").text.strip().endswith(".")
        assert "<script" not in text
        assert text == svg.render(figure, standalone=True)


def test_svg_has_a_mark_for_every_run(figures):
    root = ET.fromstring(svg.render(figures["test_acc"], standalone=True))
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum(title.startswith("run ") for title in titles) == 23


def test_matplotlib_draws_every_figure(figures, tmp_path):
    for figure in figures.values():
        files.save_by_matplotlib(figure, tmp_path / f"{figure.name}.png")
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())
    files.save_by_matplotlib(figures["test_acc"], tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


def test_matplotlib_gives_axes_to_style_on(figures):
    axes = files.draw(figures["test_acc"])
    assert axes.get_xlabel() == "test_acc (%)"
    assert files.draw(figures["time"], axes) is axes


def test_the_same_figure_gives_the_same_pdf(figures, tmp_path):
    for name in ("a.pdf", "b.pdf"):
        files.save_by_matplotlib(figures["test_acc"], tmp_path / name)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_an_unknown_format_is_refused_with_those_that_are_known(figures, tmp_path):
    with pytest.raises(InputError, match="pdf, png, svg, eps"):
        files.save_by_matplotlib(figures["test_acc"], tmp_path / "a.docx")


def test_a_missing_matplotlib_names_the_extra(figures, monkeypatch):
    def missing(name, package=None):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"isorun\[figures\]"):
        files.draw(figures["test_acc"])


@given(st.lists(FINITE, min_size=1, max_size=30))
def test_axes_hold_all_values_with_a_few_round_ticks(values):
    axis = value_axis("x", values)
    assert axis.low <= min(values) <= max(values) <= axis.high
    assert 1 <= len(axis.ticks) <= 16
    assert all(axis.low - 1e-6 <= tick.at <= axis.high + 1e-6 * abs(axis.high) for tick in axis.ticks)


@given(st.lists(FINITE, min_size=1, max_size=60))
def test_dots_stay_in_their_row_and_do_not_cover_each_other(values):
    offsets = side_by_side(values, value_axis("x", values))
    assert all(abs(offset) <= 0.34 + 1e-9 for offset in offsets)
    assert len(set(zip(values, offsets, strict=True))) == len(values)
