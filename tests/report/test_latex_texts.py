"""Texts in LaTeX: whatever a host, path or version holds, a paper compiles and its lines wrap."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from isorun.analysis.descriptions import CheckedItem, EnvironmentDescription
from isorun.analysis.studies.study_result import analyse_study
from isorun.report import Column, Table
from isorun.report.environments import description_latex
from isorun.report.latex import latex_text, render, render_table
from isorun.study.design import Approach
from record_builder import make_study, trained_records

HOSTILE = r"C:\tmp\x_y^2 ~ 50% & #1 {a} $HOME <b> \input{/etc/passwd} 漢字 → ſ é \write18{ls}"


def test_what_fonts_do_not_have_is_told_by_its_number():
    assert latex_text("é 漢 ſ → −") == r"é [U+6F22] [U+017F] $\rightarrow$ $-$"


def test_what_begins_with_a_bracket_or_a_star_is_no_option_of_the_row_above():
    assert [latex_text(text) for text in ("漢 a", "[x]", "*best", "a [x] *")] == [
        "{}[U+6F22] a",
        "{}[x]",
        "{}*best",
        "a [x] *",
    ]
    table = Table(
        "t", "t", (Column("what", key=True), Column("n")), (("a", "1"), ("漢", "2"), ("[b]", "3"), ("*c", "4"))
    )
    rows = render_table(table).splitlines()
    assert not [row for row in rows if row.lstrip().startswith(("[", "*"))]


def test_options_of_a_command_keep_both_hyphens_and_ranges_their_dash():
    assert latex_text("--lr 0.1 -n '' ---") == "-{}-lr 0.1 -n '{}' -{}-{}-"
    assert latex_text("0.7–1.9 — x-y") == "0.7--1.9 --- x-y"


def test_long_texts_wrap_also_within_paths():
    columns = (Column("what", key=True), Column("detail", key=True), Column("n"))
    table = Table("t", "t", columns, (("a", "/home/some/where/" + "x" * 90, "1"), ("b", HOSTILE, "2")))
    text = render_table(table)
    assert r"\begin{tabular}{@{}lp{0.60\linewidth}r@{}}" in text
    assert r"/\allowbreak{}home/\allowbreak{}some/\allowbreak{}where/" in text
    assert r"xxx\allowbreak{}xxx" in text
    assert text.count(r"\tabularnewline") == 2
    assert r"\input" not in text
    assert r"\write" not in text


def compiled(text, folder, options=""):
    """The log of pdflatex; the text must compile."""
    packages = r"\usepackage[T1]{fontenc}\usepackage{booktabs}\usepackage{graphicx}"
    (folder / "t.tex").write_text(
        f"\\documentclass[{options}]{{article}}{packages}\\begin{{document}}\n{text}\\end{{document}}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    return done.stdout.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not here")
def test_a_checklist_of_hostile_texts_compiles(tmp_path):
    item = CheckedItem("code version", "recorded", HOSTILE + "/home/" + "a" * 300)
    found = EnvironmentDescription("run", f"Trained on {HOSTILE}.", (item,))
    assert "Output written" in compiled(description_latex(found), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not here")
@pytest.mark.parametrize("options", ["", "twocolumn"])
@pytest.mark.parametrize(("name", "most"), [("sound", 1.0), ("troubled", 1.0), ("single", 1.0), ("hostile", 60.0)])
def test_every_table_of_a_report_fits_its_column(request, tmp_path, options, name, most):
    """A name without a space may stand out by a part of a word."""
    log = compiled(render(request.getfixturevalue(name)), tmp_path, options)
    assert "Output written" in log
    assert all(float(points) <= most for points in re.findall(r"Overfull .hbox \(([.\d]+)pt too wide\)", log))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not here")
@pytest.mark.parametrize("options", ["", "twocolumn"])
def test_long_names_fit_the_column_too(tmp_path, options):
    name = "an_approach_with_a_very_long_name_that_nobody_would_type_twice"
    declared = make_study(approaches={key: Approach(key, ("python", "train.py")) for key in (name, "short")})
    result = replace(analyse_study(declared, trained_records(declared)), study=f"{name}/of a study")
    log = compiled(render(result), tmp_path, options)
    assert "Overfull" not in log


def test_a_table_that_is_longer_than_a_page_is_continued_under_the_same_number():
    columns = (Column("name", key=True), Column("n"))
    table = Table("t", "Runs", columns, tuple((f"run {number}", str(number)) for number in range(90)), ("A note.",))
    floats = render_table(table).split("\n\n")
    assert len(floats) == 3
    assert [text.count(r"\addtocounter{table}{-1}\caption{Runs (continued)}") for text in floats] == [0, 1, 1]
    assert [text.count(r"\label{") for text in floats] == [1, 0, 0]
    assert [text.count("A note.") for text in floats] == [0, 0, 1]
    assert re.findall(r"run (\d+) &", "".join(floats)) == [str(number) for number in range(90)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not here")
@pytest.mark.parametrize("options", ["", "twocolumn"])
def test_long_tables_and_long_texts_fit_the_page(tmp_path, options):
    texts = (Column("claim", key=True), Column("published", key=True), Column("ours", key=True), Column("n"))
    claim = "networks such as (ResNet56, cifar10) differ by up to 9.1 points " * 2
    long_texts = Table("a", "Texts", texts, ((claim, claim[:60], claim[:50], "1"),) * 25, (claim, claim))
    wide = (Column("name", key=True), *(Column(f"column {number}", "s") for number in range(12)))
    long_and_wide = Table("b", "Numbers", wide, (("x", *("1.00",) * 12),) * 90)
    log = compiled("\n\n".join(map(render_table, (long_texts, long_and_wide))), tmp_path, options)
    assert "Overfull" not in log
    assert "Float too large" not in log


def test_a_wide_table_is_continued_below_with_its_keys():
    columns = (Column("name", key=True), *(Column(f"column {number}", "s") for number in range(12)))
    text = render_table(Table("wide", "Wide", columns, (("row", *("123456",) * 12),)))
    assert text.count(r"\begin{tabular}") == text.count("row &") > 1
    assert text.count("123456") == 12
    assert text.count(r"\begin{table}") == 1
