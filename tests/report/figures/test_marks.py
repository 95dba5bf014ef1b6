"""A mark means one thing in all figures, as the table in `isorun.report.figures.marks` says."""

import re
from pathlib import Path

import pytest
from figure_examples import EXAMPLES

import isorun
from isorun.analysis.studies.study_result import analyse_study
from isorun.report import Table
from isorun.report.figures import marks, svg
from isorun.report.figures.axes import value_axis
from isorun.report.figures.curves import run_curve
from isorun.report.figures.description import Shape
from isorun.report.figures.power_curves import power_figure
from isorun.report.figures.rank_intervals import rank_figure
from isorun.report.figures.searches import BestCurve, best_so_far
from isorun.report.study_view import study_sections
from record_builder import make_study, trained_records

SOURCE = Path(isorun.__file__).parent
DOCS = Path(__file__).parents[3] / "docs"
SAID = {
    marks.RUN: r"\brun|\btrial",
    marks.UNFINISHED: r"without a score",
    marks.DOUBTFUL: r"weak|without a score",
    marks.PROPOSED: r"isorun",
    marks.PROPOSED_IN_VAIN: r"not improved",
    marks.MEAN: r"mean",
    marks.ESTIMATE: r"estimate|interval leaves|rank|look|runs: \d+%|best of",
    marks.OPEN_ESTIMATE: r"interval holds|no interval",
    marks.PUBLISHED: r"published",
    marks.ABOVE: r"beyond",
    marks.BELOW: r"beyond",
}
"""What a legend has to say of a shape; groups are called as they are called."""


@pytest.fixture(scope="session")
def study():
    declared = make_study()
    return analyse_study(declared, trained_records(declared, weak=2))


@pytest.fixture(scope="session")
def drawn(study):
    """Every kind of figure, by its name."""
    figures = {name: make() for name, make in EXAMPLES.items()}
    figures |= {f"study-{figure.name}": figure for section in study_sections(study) for figure in section.figures}
    figures["power"] = power_figure(isorun.power([0.1, 0.4, 0.2, 0.35, 0.3], difference=0.2))
    runs = {"score": [1.0, 2.0, 3.0, 1.5, 2.5, 3.5, 9.0, 9.5, 9.2], "model": [*"aaabbbccc"]}
    figures["places"] = rank_figure(
        isorun.rank(runs, value="score", by="model", direction="higher", repetitions=100), ["single"]
    )
    curves = [BestCurve(f"search {place}", ((0.0, 0.1, "trial 0"), (2.0, 0.3, "trial 2")), 4.0) for place in range(7)]
    axes = value_axis("trial", [0.0, 4.0]), value_axis("score", [0.0, 1.0])
    told = ("best", "Best", "The best so far.")
    figures["bests"] = best_so_far(told, curves, *axes, data=Table("d", "D", (), ()), target=0.9)
    group = study.groups[0]
    curves = group.curves[0]
    metric = next(one for one in study.metrics if one.name == study.primary.name)
    figures["run"] = run_curve("a-1", curves.runs[0], metric, curves)
    return {name: figure for name, figure in figures.items() if figure is not None}


def plots(figure):
    return figure.panels or (figure,)


def test_every_shape_has_one_meaning_and_an_outline():
    named = [value for name, value in vars(marks).items() if isinstance(value, Shape) and name in marks.__all__]
    assert sorted([*named, *marks.GROUPS]) == sorted(Shape)
    assert set(svg.OUTLINES) | {Shape.CIRCLE, Shape.RING, Shape.CROSS} == set(Shape)
    drawn = {svg.shape_mark(shape, 0, 0, 0) for shape in Shape}
    assert len(drawn) == len(Shape)


def test_figures_choose_marks_by_what_they_mean():
    """Nothing but the table of marks, and what draws them, names a shape."""
    allowed = {SOURCE / "report" / "figures" / f"{name}.py" for name in ("description", "marks", "svg", "files")}
    files = [*SOURCE.rglob("*.py"), *(DOCS / "building").glob("*.py")]
    assert [path.name for path in files if path not in allowed and re.search(r"\bShape\.", path.read_text())] == []


def test_the_table_of_marks_is_the_one_of_the_docs():
    table = re.findall(r"^\|.*\|$", marks.__doc__, re.MULTILINE)
    assert len(table) > 12
    assert "\n".join(table) in (DOCS / "pages.md").read_text()


def test_every_shape_that_is_drawn_is_explained_as_what_it_means(drawn):
    for name, figure in drawn.items():
        shapes = {dot.shape for plot in plots(figure) for dot in plot.dots}
        explained = {}
        for entry in figure.legend:
            explained.setdefault(entry.shape, []).append(entry.label)
        assert shapes <= explained.keys(), name
        for shape in shapes - set(marks.GROUPS):
            assert all(re.search(SAID[shape], label) for label in explained[shape]), (name, explained[shape])


def test_dashed_lines_are_references_and_explained(drawn):
    for name, figure in drawn.items():
        dashed = [line for plot in plots(figure) for line in plot.lines if line.dashed and line.points]
        assert not dashed or any(entry.dashed for entry in figure.legend), name
        assert not any(line.dotted or line.thin for line in dashed), name
        # no result lies on it: a straight line, or a boundary whose region is shaded
        for line in dashed:
            straight = len({x for x, _ in line.points}) == 1 or len({y for _, y in line.points}) == 1
            assert straight or any(band.zone and band.series == line.series for band in figure.bands), name


def test_a_shade_lies_around_a_line_or_is_a_region_that_the_legend_names(drawn):
    for name, figure in drawn.items():
        for plot in plots(figure):
            for band in (band for band in plot.bands if band.points):
                if band.zone:
                    assert any(entry.area and entry.series == band.series for entry in figure.legend), name
                else:
                    assert any(line.series == band.series and not line.faint for line in plot.lines), name


def test_shades_and_boxes_have_shaded_entries_in_the_legend_and_lines_have_lines(drawn):
    for name, figure in drawn.items():
        areas = [*figure.boxes, *(band for band in figure.bands if band.points), *figure.tiles]
        assert not any(entry.area for entry in figure.legend) or areas, name
        lines = [entry for entry in figure.legend if entry.shape is None and not entry.area]
        for entry in lines:
            alike = [line for line in figure.lines if line.dashed is entry.dashed and line.series == entry.series]
            assert alike, (name, entry.label)
            assert any((line.dotted, line.thin) == (entry.dotted, entry.thin) for line in alike), (name, entry.label)


def test_thin_lines_are_single_runs_or_pairs(drawn):
    thin = {name for name, figure in drawn.items() for plot in plots(figure) for line in plot.lines if line.thin}
    faint = {
        name
        for name, figure in drawn.items()
        for plot in plots(figure)
        for line in plot.lines
        if line.faint and not line.dashed
    }
    assert {name.partition("-")[0] for name in thin} == {"run", "paired", "actions"}
    assert all(name.startswith(("paired", "study-curves")) for name in faint)
    assert faint


def test_grey_is_no_group(drawn):
    for name, figure in drawn.items():
        named = [entry for entry in figure.legend if entry.series % 6 == marks.GREY and entry.shape in marks.GROUPS]
        assert not named, name
    boxes = [box for name, figure in drawn.items() if name.startswith(("strip", "study")) for box in figure.boxes]
    assert boxes
    assert all(box.series % 6 != marks.GREY for box in boxes)
