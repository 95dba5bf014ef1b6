"""Figures: what they describe, and both renderers."""

import importlib
import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.leaderboards.across_tasks import PerformanceProfile
from isorun.analysis.planning.power import runs_needed
from isorun.analysis.studies.study_result import analyse_study
from isorun.errors import InputError, MissingExtra
from isorun.report.figures import files, svg
from isorun.report.figures.axes import side_by_side, value_axis
from isorun.report.figures.curves import curve_figures, run_curve
from isorun.report.figures.description import Shape
from isorun.report.figures.distributions import strip
from isorun.report.figures.leaderboards import performance_profiles
from isorun.report.figures.power_curves import power_figure
from isorun.report.figures.study_figures import class_figure
from isorun.report.study_view import study_view
from isorun.study.cells import Level
from isorun.study.design import Metric
from record_builder import make_cell, make_record, make_series, make_study

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


@pytest.mark.long
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


def test_curves_have_a_panel_a_level_with_its_own_number_of_runs_and_its_end_beside_it(sound):
    figure = next(one for one in study_view(sound, figures=True).figures if one.name.startswith("curves-"))
    assert "24" not in figure.sentence
    titles = [panel.title for panel in figure.panels]
    assert titles[::2] == ["default (n = 8)", "fixed-seed (n = 8)", "deterministic (n = 8)"]
    assert all("from epoch" in title for title in titles[1::2])
    assert len({panel.y for panel in figure.panels[::2]}) == 1
    last = figure.panels[1]
    assert (last.y.high - last.y.low) < (figure.panels[0].y.high - figure.panels[0].y.low)


def test_a_figure_of_curves_says_which_runs_lack_values():
    sound, diverged, short = [0.9, 0.6, 0.5, 0.4], [0.9, 0.6, math.nan, math.inf], [0.9, 0.7, 0.5]
    left_out = "Values that are not finite (NaN or infinite), which {}, are left out."
    partly = "Where not all runs have a value, median and band are those of the runs that do, at least half of them."
    for runs, said, not_said in (
        ([sound, sound], [], [left_out[:20], partly]),
        ([sound, sound, diverged], [left_out.format("1 of 3 runs has"), partly], []),
        ([sound, diverged, diverged], [left_out.format("2 of 3 runs have")], [partly]),
        ([sound, sound, short], [partly], [left_out[:20]]),
        ([diverged], [left_out.format("the run has")], [partly]),
    ):
        study = make_study(metrics={"val_loss": Metric("val_loss")})
        records = [
            make_record(make_cell(Level.DEFAULT, place), series={"val_loss": make_series(values)})
            for place, values in enumerate(runs)
        ]
        result = analyse_study(study, records)
        (figure,) = curve_figures(result)
        curves = result.groups[0].curves[0]
        own = run_curve("a-1", curves.runs[0], result.metrics[0], curves)
        for sentence in (figure.sentence, own.sentence):
            assert all(part in sentence for part in said)
            assert not any(part in sentence for part in not_said)


def test_few_values_have_no_box(sound):
    few = strip({"two": [1.0, 2.0], "five": [1.0, 2.0, 3.0, 4.0, 5.0]})
    assert [box.y for box in few.boxes] == [1.0]
    assert not strip({"two": [1.0, 2.0]}).boxes
    assert all("box" not in entry.label for entry in strip({"two": [1.0, 2.0]}).legend)


def test_what_chance_gives_a_class_lies_behind_its_dots(troubled):
    figure = next(one for one in study_view(troubled, figures=True).figures if one.name.endswith("-classes"))
    bounds = {
        (f"class {gap.name}", str(group.key.level)): 100 * gap.chance_gap_95
        for group in troubled.groups
        for gap in group.gaps
    }
    shades = {tuple(tile.title.split(":")[0].split(", ")): tile for tile in figure.tiles}
    assert {named: tile.x for named, tile in shades.items()} == {
        named: (0.0, pytest.approx(bound)) for named, bound in bounds.items() if bound
    }
    for dot in figure.dots:  # the mark of a group lies in the shade of its own
        low, high = shades[tuple(dot.title.split(":")[0].split(", "))].y
        assert low < dot.y < high
    assert any("chance" in entry.label for entry in figure.legend)


def test_no_group_s_mark_stands_before_what_chance_does_in_another(troubled):
    groups = list(troubled.groups)
    apart = replace(groups[0], gaps=tuple(replace(gap, chance_gap_95=gap.chance_gap_95 / 4) for gap in groups[0].gaps))
    figure = class_figure(replace(troubled, groups=(apart, *groups[1:])), troubled.metrics[0])
    widths = {tile.title.split(":")[0]: tile.x[1] for tile in figure.tiles if tile.title.startswith("class 0,")}
    assert min(widths.values()) == pytest.approx(max(widths.values()) / 4)


def test_groups_with_the_same_difference_in_a_class_do_not_hide_each_other(figures):
    figure = figures["test_acc-classes"]
    heights = {dot.series: dot.y for dot in figure.dots if round(dot.y) == 3}
    assert len(heights) == 3
    assert len(set(heights.values())) == 3
    assert all(abs(height - 3) < 0.4 for height in heights.values())  # within the shade of chance of the class


@pytest.mark.parametrize("width", [svg.NARROW, svg.WIDE])
def test_every_word_of_a_figure_is_within_its_picture(any_result, width):
    for figure in study_view(any_result, figures=True).figures:
        root = ET.fromstring(svg.render(figure, standalone=True, width=width))
        for text, left in _texts(root, 0.0):
            shown = svg.text_width(text.text or "")
            if text.get("transform"):
                continue
            x = left + float(text.get("x"))
            begin = {"middle": x - shown / 2, "end": x - shown}.get(text.get("text-anchor"), x)
            assert begin > -0.12 * width, (figure.name, text.text)
            assert begin + 0.8 * shown < 1.12 * width, (figure.name, text.text)


def _texts(element, left):
    """Texts with the offset of the groups around them."""
    for child in element:
        if child.tag.endswith("}g"):
            inner = float(child.get("transform").removeprefix("translate(").split()[0])
            yield from _texts(child, left + inner)
        elif child.tag.endswith("}text"):
            yield child, left


def test_the_chance_grows_with_the_runs_and_the_answer_is_on_its_curve():
    asked = runs_needed(effect_size=1.0, test="welch")
    figure = power_figure(asked)
    (line,) = figure.lines
    chances = [chance for _, chance in line.points]
    assert chances == sorted(chances)
    assert (float(asked.runs), asked.power) in line.points
    assert line.points[-1][0] == 2 * asked.runs
    assert not figure.bands
    assert "question" not in asked.to_json()
    assert len(figure.data.rows) == len(line.points)


def test_a_profile_is_a_line_of_steps_and_so_is_its_band():
    profile = PerformanceProfile((0.0, 1.0, 2.0), (1.0, 0.5, 0.0), (0.8, 0.3, 0.0), (1.0, 0.7, 0.2))
    figure = performance_profiles({"a": profile})
    assert figure.lines[0].points == ((0.0, 1.0), (1.0, 1.0), (1.0, 0.5), (2.0, 0.5), (2.0, 0.0))
    assert figure.bands[0].points[1:3] == ((1.0, 0.8, 1.0), (1.0, 0.3, 0.7))


def sentence_of(spreads):
    """What the figure of every run says of a study whose levels spread so: results by level."""
    study = make_study(metrics={"test_acc": Metric("test_acc")})
    records = [
        make_record(make_cell(level, place), results={"test_acc": 0.9 + one}, series={}, per_class={})
        for level, ones in spreads.items()
        for place, one in enumerate(ones)
    ]
    return study_view(analyse_study(study, records), figures=True).figures[0].sentence


def test_all_groups_that_vary_least_are_named():
    vary = [0.0, 0.01, 0.02]
    sentence = sentence_of({Level.DEFAULT: vary, Level.FIXED_SEED: [0.0] * 3, Level.DETERMINISTIC: [0.05] * 3})
    assert "varies most in default" in sentence
    assert "least in fixed-seed, deterministic: all runs are equal." in sentence
    assert "varies most in default, deterministic, where" in sentence_of(
        {Level.DEFAULT: vary, Level.FIXED_SEED: [0.0] * 3, Level.DETERMINISTIC: vary}
    )
    assert "varies alike in all rows: two runs differ by up to 2.0" in sentence_of(dict.fromkeys(Level, vary))
