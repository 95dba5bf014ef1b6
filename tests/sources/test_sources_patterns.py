from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import StudyError
from isorun.sources import Found, patterns
from isorun.sources.lines import LineMetrics, scan_text
from isorun.sources.patterns import has_nested_repeat, proposed_pattern
from isorun.study.design import Sources


def scanned(text: str, *written: str, stdout: bool = True) -> Found:
    return scan_text(text, Sources(stdout=stdout, patterns=written))


def test_a_named_group_is_a_metric() -> None:
    found = scanned("acc now 0.5\nacc now 97%", r"now (?P<val_acc>[\d.]+%?)", stdout=False)
    assert found.series["val_acc"].values == (0.5, 0.97)
    assert found.origins["val_acc"] == r"pattern now (?P<val_acc>[\d.]+%?): group"


@pytest.mark.parametrize("group", ["metric", "name"])
def test_a_pattern_can_read_the_name_too(group: str) -> None:
    found = scanned("a->1 b->2", rf"(?P<{group}>\w+)->(?P<value>\d+)", stdout=False)
    assert {name: series.values for name, series in found.series.items()} == {"a": (1.0,), "b": (2.0,)}


def test_epoch_and_step_groups_place_the_values() -> None:
    pattern = r"E(?P<epoch>\d+) q(?P<q>[\d.]+)"
    assert scanned("E1 q0.5\nE2 q0.25", pattern, stdout=False).series["q"].steps == (1.0, 2.0)
    stepped = pattern.replace("epoch", "step")
    assert scanned("E10 q0.5\nE20 q0.25", stepped, stdout=False).series["q"].steps == (10.0, 20.0)


def test_a_name_the_user_reads_is_not_read_by_itself_as_well() -> None:
    found = scanned("loss: 0.9\nloss: 0.8 real=0.3\nloss: 0.7", r"real=(?P<loss>[\d.]+)")
    assert found.series["loss"].values == (0.3,)


def test_what_is_no_number_is_counted_and_noted() -> None:
    found = scanned("acc 1.2.3\nacc x", r"acc (?P<acc>\S+)", stdout=False)
    assert found.series == {}
    assert found.notes[0].code == "pattern.not-a-number"
    assert "2 times" in found.notes[0].message
    assert "1.2.3" in found.notes[0].message


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("(", "no regular expression"),
        (r"acc (\d+)", "names no metric"),
        (r"(?P<epoch>\d+)", "names no metric"),
        (r"(?P<value>\d+)", "names no metric"),
        (r"(?P<a>(\d+)+)$", "longer than the training"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_named(pattern: str, word: str) -> None:
    with pytest.raises(StudyError, match=word) as caught:
        LineMetrics(Sources(patterns=(pattern,)))
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+", r"(a*)*b", r"(?:\d+\.?)+x", r"((a+)b?)*", r"([ab]+|c)+", r"(\w+\s*){2,}", r"(?:(?:a+))*"]
)
def test_a_repetition_inside_a_repeated_group_is_seen(pattern: str) -> None:
    assert has_nested_repeat(pattern)


@pytest.mark.parametrize(
    "pattern", [r"a+b*", r"(a+)?", r"[(+]+(a)", r"\(a+\)+", r"(a++)+", r"(?>a+)+", r"(?:ab)+", r"(a{1,3})+", r"([+*])+"]
)
def test_harmless_repetitions_are_let_through(pattern: str) -> None:
    assert not has_nested_repeat(pattern)


def test_a_slow_pattern_is_switched_off_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(patterns, "SECONDS_A_LINE", 0.0)
    found = scanned("q=1\nq=2", r"q=(?P<q>\d)", stdout=False)
    assert found.series["q"].values == (1.0,)
    assert [note.code for note in found.notes] == ["pattern.slow"]


def test_a_pattern_sees_only_the_start_of_a_long_line() -> None:
    found = scanned("x" * 100_000 + "q=1", r".*q=(?P<q>\d)", stdout=False)
    assert found.series == {}
    assert [note.code for note in found.notes] == ["stdout.long-lines"]


@given(st.text(alphabet="()[]{}ab+*?\\|P<>=:.,0d^$-", max_size=12))
def test_any_text_as_a_pattern_is_refused_clearly_or_works(written: str) -> None:
    try:
        metrics = LineMetrics(Sources(patterns=(written,)))
    except StudyError:
        return
    assert re.compile(written).groupindex
    metrics.feed("a=0.5 b", 0.0)


def test_what_is_listed_under_parameters_is_not_proposed() -> None:
    trial = "Trial 5 finished with value: 0.9 and parameters: {'lambda_l1': 0.1}. Best is trial 0 with value: 0.993."
    listed = ["Best trial:", "  Value: 0.993", "  Params: ", "    lambda_l1: 0.1", "    bagging_fraction: 0.5"]
    assert proposed_pattern([trial, *listed]).startswith("Best is trial")
    assert proposed_pattern([trial, *listed, "Homogeneity: 0.953"]).startswith("Homogeneity")


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("Separation: 0.953", "separation", 0.953),
        ("2026-11-16 19:31:44,122 INFO Separation (mean) = -1.5e-05", "separation_mean", -1.5e-05),
        (
            "Trial 9 finished with value: 0.5 and parameters: {'c': 1.5}. Best is trial 3 with value: 0.96.",
            "best_value",
            0.96,
        ),
        ("Found in class 1: 97.5%", "found_class", 0.975),
    ],
)
def test_a_proposed_pattern_reads_the_line_that_it_is_made_from_and_no_other_number(
    line: str, name: str, value: float
) -> None:
    pattern = proposed_pattern(["seed: 1.5", line, "0.25", "took 3.5 s"])
    found = scanned(f"anything 12.5\n{line}\n0.75\n", pattern, stdout=False)
    assert {name: tuple(series.values) for name, series in found.series.items()} == {name: (value,)}


@pytest.mark.parametrize(
    "line", ["time: 0.5", "lr: 0.1", "value: 0.5", "clusters: 3", "0.5", "", "Low(high=2.5, low=0.5)"]
)
def test_no_pattern_is_proposed_for_what_is_no_result(line: str) -> None:
    assert proposed_pattern([line]) == ""
