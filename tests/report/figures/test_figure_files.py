"""Figures in files."""

import importlib

import pytest

from isorun.errors import InputError, MissingExtra
from isorun.report.figures.distributions import strip
from isorun.report.figures.files import save_figure

FIGURE = strip({"base": [1.0, 2.0, 4.0], "new": [2.0, 3.0]}, "loss")


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg "), ("pdf", b"%PDF"), ("png", b"\x89PNG"), ("PNG", b"\x89PNG")]
)
def test_the_ending_tells_the_format(tmp_path, ending, start):
    path = save_figure(FIGURE, tmp_path / f"figure.{ending}")
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, ending):
    first, second = (save_figure(FIGURE, tmp_path / f"{name}.{ending}").read_bytes() for name in "ab")
    assert first == second


def test_a_path_may_be_text(tmp_path):
    assert save_figure(FIGURE, str(tmp_path / "a.svg")).exists()


@pytest.mark.parametrize("name", ["figure.docx", "figure", "figure.svg.gz"])
def test_other_endings_are_refused_with_those_allowed(tmp_path, name):
    with pytest.raises(InputError, match=r"\.svg, \.pdf, \.png"):
        save_figure(FIGURE, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_folder_that_is_not_there_is_named(tmp_path, ending):
    with pytest.raises(InputError, match="missing"):
        save_figure(FIGURE, tmp_path / "missing" / f"a.{ending}")


def test_svg_needs_no_matplotlib_and_pdf_says_how_to_get_it(tmp_path, monkeypatch):
    def missing(name, package=None):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    save_figure(FIGURE, tmp_path / "a.svg")
    with pytest.raises(MissingExtra, match=r"isorun\[figures\]"):
        save_figure(FIGURE, tmp_path / "a.pdf")
