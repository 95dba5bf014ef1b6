"""What people and libraries print: each style gives exactly these values, and says what it leaves out.

`printed_styles.txt` is the table: a style, the metrics that must be read from it with all their values, and the names
that must be told as left out. A wrong value is the worst answer; where the text does not say whose number it is, the
expectation is nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.sources import Found, scan_text

STYLES = {
    part.partition("\n")[0]: part.partition("\n")[2]
    for part in (Path(__file__).parent / "printed_styles.txt").read_text(encoding="utf-8").split("=== ")[1:]
}


def parts_of(style: str) -> tuple[str, dict[str, list[float]], set[str]]:
    text, *expected = STYLES[style].split("\n--- ")
    values = {name: [float(value) for value in given] for name, given in json.loads(expected[0]).items()}
    left_out = expected[1].removeprefix("left out: ").strip().split(", ") if len(expected) > 1 else []
    return text, values, set(left_out)


def told_as_left_out(found: Found) -> set[str]:
    messages = [note.message for note in found.notes if note.code in ("stdout.left-out", "stdout.not-taken")]
    return {name for message in messages for name in message.split(": ")[1].split(" (first")[0].split(", ")}


@pytest.mark.parametrize("style", STYLES)
def test_a_printed_style_gives_its_metrics_and_no_others(style: str) -> None:
    text, expected, _ = parts_of(style)
    found = {name: list(series.values) for name, series in scan_text(text).series.items()}
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, nan_ok=True), name


@pytest.mark.parametrize("style", STYLES)
def test_what_a_style_leaves_out_is_told(style: str) -> None:
    text, _, left_out = parts_of(style)
    assert told_as_left_out(scan_text(text)) == left_out


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_before_and_after_a_style_change_nothing(style: str, ending: str) -> None:
    text, expected, _ = parts_of(style)
    around = ending.join(["starting", "", *text.split("\n"), "", "done", ""])
    assert set(scan_text(around).series) == set(expected)


def test_there_are_many_styles() -> None:
    assert len(STYLES) >= 80


ALL_LINES = sorted({line for style in STYLES for line in parts_of(style)[0].split("\n")})


@given(st.lists(st.sampled_from(ALL_LINES) | st.text(max_size=30), max_size=30))
def test_no_mixture_of_lines_makes_reading_fail(lines: list[str]) -> None:
    found = scan_text("\n".join(lines))
    assert set(found.results) <= set(found.series) == set(found.origins) == set(found.examples)


@given(st.text(alphabet="{}[]()'\",: \n0.5lossacepoch|│-", max_size=200))
def test_no_torn_object_or_table_makes_reading_fail(text: str) -> None:
    scan_text(text)
