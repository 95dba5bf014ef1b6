"""Texts in LaTeX: whatever a host, path or version holds, a paper compiles and its lines wrap."""

import shutil
import subprocess

import pytest

from isorun.analysis.descriptions import CheckedItem, EnvironmentDescription
from isorun.report import Column, Table
from isorun.report.environments import description_latex
from isorun.report.latex import latex_text, render_table

HOSTILE = r"C:\tmp\x_y^2 ~ 50% & #1 {a} $HOME <b> \input{/etc/passwd} 漢字 → ſ é \write18{ls}"


def test_what_fonts_do_not_have_is_told_by_its_number():
    assert latex_text("é 漢 ſ → −") == r"é [U+6F22] [U+017F] $\rightarrow$ $-$"


def test_long_texts_wrap_also_within_paths():
    columns = (Column("what", key=True), Column("detail", key=True), Column("n"))
    table = Table("t", "t", columns, (("a", "/home/some/where/" + "x" * 90, "1"), ("b", HOSTILE, "2")))
    text = render_table(table)
    assert r"\begin{tabular}{lp{0.60\linewidth}r}" in text
    assert r"/\allowbreak{}home/\allowbreak{}some/\allowbreak{}where/" in text
    assert r"xxx\allowbreak{}xxx" in text
    assert text.count(r"\tabularnewline") == 2
    assert r"\input" not in text
    assert r"\write" not in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not here")
def test_a_checklist_of_hostile_texts_compiles(tmp_path):
    item = CheckedItem("code version", "recorded", HOSTILE + "/home/" + "a" * 300)
    found = EnvironmentDescription("run", f"Trained on {HOSTILE}.", (item,))
    packages = r"\usepackage[T1]{fontenc}\usepackage{booktabs}"
    text = f"\\documentclass{{article}}{packages}\\begin{{document}}\n{description_latex(found)}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(text)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
