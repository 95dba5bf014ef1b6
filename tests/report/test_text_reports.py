"""Markdown and LaTeX, and the sentences they begin with."""

import re

import pytest

from isorun.analysis.studies.study_result import analyse_study
from isorun.report import latex, markdown
from isorun.report.study_view import verdict
from isorun.study.cells import Level
from isorun.study.design import Approach, Metric
from isorun.study.records import Note
from record_builder import make_cell, make_record, make_study, trained_records


def test_verdicts_say_what_every_plus_minus_is(any_result):
    for sentence in verdict(any_result):
        for place in re.finditer("±", sentence):
            assert re.match(r"± [\d.,]+ \(sd of \d+", sentence[place.start() :]), sentence


def test_the_verdict_reads_as_people_speak(sound):
    headline, default, fixed, deterministic = verdict(sound)
    assert headline.endswith(
        "between two runs is 2.5 points by default, 1.5 points with the seed fixed and none with deterministic kernels."
    )
    assert default.startswith(
        "LeNet at level default: test_acc 95.98 % ± 0.92 (sd of 8 runs), max difference 2.48 points;"
    )
    assert default.endswith("; 8 runs gave 8 different weights.")
    assert fixed.endswith("; seed fixed, yet 8 runs gave 8 different weights.")
    assert deterministic.endswith("96.52 % in all 8 runs (sd 0); all 8 runs ended with the same weights, bit for bit.")


def test_a_level_where_no_seed_ran_twice_is_in_no_headline():
    study = make_study(seeds=(1, 2, 3, 4), repeats=1, levels=(Level.DEFAULT, Level.FIXED_SEED))
    sentences = verdict(analyse_study(study, trained_records(study)))
    assert [sentence.split(":")[0] for sentence in sentences] == [
        "LeNet at level default",
        "LeNet at level fixed-seed",
    ]
    assert not any("—" in sentence for sentence in sentences)


def test_many_groups_have_headlines_only():
    approaches = {name: Approach(name, ("python", "train.py")) for name in ("a", "b", "c")}
    study = make_study(approaches=approaches)
    sentences = verdict(analyse_study(study, trained_records(study)))
    assert [sentence[:2] for sentence in sentences] == ["a:", "b:", "c:"]


def test_several_seeds_have_their_own_spread_told_apart():
    study = make_study(seeds=(1, 2), repeats=4, levels=(Level.FIXED_SEED,))
    (sentence,) = verdict(analyse_study(study, trained_records(study)))
    assert "; among runs of the same seed sd 0." in sentence
    assert "seed fixed, yet 8 runs of 2 seeds gave 8 different weights; 8 runs of 2 seeds count as 2." in sentence


def tied(**told) -> str:
    """The sentence on three runs of one seed with the same accuracy."""
    study = make_study(repeats=3, levels=(Level.FIXED_SEED,))
    values = {name: [value(place) for place in range(3)] for name, value in told.items()}
    digests = values.pop("digest", ["", "", ""])
    notes = [(Note("no-digest", note),) if note else () for note in values.pop("why", ["", "", ""])]
    records = [
        make_record(
            make_cell(Level.FIXED_SEED, place),
            results={"test_acc": 0.9375, **{name: given[place] for name, given in values.items()}},
            digests={"weights.final": digests[place]} if digests[place] else {},
            notes=notes[place],
        )
        for place in range(3)
    ]
    return verdict(analyse_study(study, records))[-1]


def test_equal_values_alone_are_not_called_identical():
    unproven = "same values; weights were not seen, so that they are identical is not proven"
    assert unproven in tied()
    assert unproven not in tied(digest=lambda _: "ab")
    assert unproven not in tied(test_loss=float)
    assert "all 2 runs whose weights were seen ended with the same weights" in tied(
        digest=lambda place: "ab" * (place > 0)
    )


def test_why_weights_were_not_seen_is_said_where_a_run_noted_it():
    sentence = tied(why=lambda _: "weights.final: /3 is a Generator")
    assert "same values; weights were not seen (/3 is a Generator), so that they are identical" in sentence


@pytest.mark.parametrize(
    ("digests", "said"),
    [
        ("aaa", "LeNet at level fixed-seed: all 3 runs ended with the same weights, bit for bit."),
        ("aab", "LeNet at level fixed-seed: seed fixed, yet 3 runs gave 2 different weights."),
        ("", ""),
    ],
)
def test_without_a_metric_it_is_said_what_the_weights_say(digests, said):
    records = [
        make_record(make_cell(Level.FIXED_SEED, place), digests={"weights.final": digests[place]} if digests else {})
        for place in range(3)
    ]
    told = verdict(analyse_study(make_study(levels=(Level.FIXED_SEED,), repeats=3), records))
    nothing = "3 runs finished, but none logged a metric, so there is nothing to judge them by."
    assert told == ((nothing, said) if said else (nothing,))


def test_what_differs_where_the_metric_ties_is_named():
    assert "yet they differ in test_loss, train_loss;" in tied(
        test_loss=float, train_loss=lambda place: 1 / (3 + place), seconds=float, other=lambda _: 1.0, digest=str
    )
    assert "differ in" not in tied(seconds=float, test_loss=lambda _: float("nan"))


def test_one_run_says_nothing_about_spread(single):
    assert verdict(single) == (
        "LeNet at level default: perplexity 12.35 in its only run, which says nothing about spread.",
    )


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        (1, "test_acc 90.00 % in the only run of 3 that could be judged, which says nothing about spread"),
        (2, "test_acc 90.00 % in the 2 runs of 3 that could be judged (sd 0)"),
        (3, "test_acc 90.00 % in all 3 runs (sd 0)"),
    ],
)
def test_runs_without_a_value_are_counted_beside_those_that_have_one(judged, said):
    records = [
        make_record(make_cell(Level.FIXED_SEED, place), results={"test_acc" if place < judged else "other": 0.9})
        for place in range(3)
    ]
    study = make_study(levels=(Level.FIXED_SEED,), repeats=3, metrics={"test_acc": Metric("test_acc", "higher")})
    assert said in verdict(analyse_study(study, records))[-1]


def test_a_study_without_a_finished_run_says_so(nothing_finished):
    assert verdict(nothing_finished) == (
        "No run of the study digits finished, so there is nothing to say about its spread.",
    )


def test_markdown_tables_have_equally_many_cells_in_every_row(any_result):
    for block in markdown.render(any_result).split("\n\n"):
        rows = [re.sub(r"\\.", "", line) for line in block.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1, block


def test_markdown_escapes_what_would_be_markup(hostile):
    text = markdown.render(hostile)
    assert "<script" not in re.sub(r"\\.", "", text)
    assert "\\<script\\>" in text
    assert "\\|" in text


def test_markdown_has_every_warning(troubled):
    text = markdown.render(troubled)
    assert [f"{number}. **{warning.code}**" in text for number, warning in enumerate(troubled.conditions, 1)] == [
        True
    ] * len(troubled.conditions)


def test_latex_rows_fit_their_columns(any_result):
    bodies = re.findall(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}(.*?)\\end\{tabular\}", latex.render(any_result), re.S)
    assert bodies
    for alignment, rows in bodies:
        for row in re.findall(r"^(.*) \\\\$", rows, re.M):
            cells = len(re.split(r"(?<!\\)&", row))
            spans = sum(int(number) - 1 for number in re.findall(r"\\multicolumn\{(\d+)\}", row))
            assert cells + spans == len(alignment), row


def test_latex_escapes_what_would_be_commands(hostile):
    text = latex.render(hostile)
    assert r"\textless{}script\textgreater{}" in text
    assert r"\&" in text
    own = text.replace(r"\ifdim\wd0>\linewidth", "")
    unescaped = re.sub(r"\\[a-zA-Z]+(?:\[[^]]*\])?|\\[&%$#_{}\\]", "", own)
    body = unescaped.split("\n", 1)[1]
    assert not set(body) & set("%#_~^<>±—–"), sorted(set(body) & set("%#_~^<>±—–"))
    assert text.count(r"\begin{") == text.count(r"\end{")


def test_latex_groups_have_rules_below_them(sound):
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in latex.render(sound)
