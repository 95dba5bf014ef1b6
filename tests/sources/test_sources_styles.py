"""What people and libraries print: each style gives exactly these values, and says what it leaves out.

`printed_styles.txt` is the table: a style, the metrics that must be read from it with all their values, and the names
that must be told as left out. A wrong value is the worst answer; where the text does not say whose number it is, the
expectation is nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.sources import Found
from isorun.sources.lines import LineMetrics, scan_text
from isorun.study import Sources

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


SHAPES = [line for line in ALL_LINES if any(character.isdigit() for character in line)]


def read_line_by_line(lines: list[str], *, learns: bool) -> Found:
    """What is found, with or without what was learned from the lines before."""
    metrics = LineMetrics(Sources())
    for number, line in enumerate(lines):
        if not learns:
            metrics._shapes.clear()
        metrics.feed(line, float(number))
    return metrics.finish()


@given(st.data())
def test_what_was_learned_from_lines_of_one_shape_changes_nothing(data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
    digits = st.sampled_from("0123456789")
    lines = [
        "".join(data.draw(digits) if character.isdigit() else character for character in line)
        for line in data.draw(st.lists(st.sampled_from(shapes), min_size=3, max_size=12))
    ]
    learned, alone = (read_line_by_line(lines, learns=learns) for learns in (True, False))
    assert repr(learned.series) == repr(alone.series)
    assert repr(learned.results) == repr(alone.results)
    assert learned.origins == alone.origins


@pytest.mark.parametrize(
    "lines",
    [
        ["validation_0-loss: 0.1", "validation_1-loss: 0.2"],
        ["acc@1 0.5 acc@5 0.6", "acc@2 0.5 acc@5 0.6"],
        ['{"1": 0.5, "loss": 0.1}', '{"2": 0.5, "loss": 0.2}'],
        ["correct: 9/8", "correct: 5/8"],
        ["epoch 1e300 loss 0.5", "epoch 1e999 loss 0.5"],
        ["epoch 1 loss 0.5", "epoch  loss", "1  0.5", "2  0.4"],
        [
            "loss: 0.5: 100%|##| 0/0 [00:01<00:00]",
            "loss: 0.5: 100%|##| 0/1 [00:01<00:00]",
            "loss: 0.4: 100%|##| 0/0 [00:01<00:00]",
        ],
        ["Theta(2) MAE: 0.5", "Theta(3) MAE: 0.4"],
        ["{'model': 'm1', 'acc': 0.5}", "{'model': 'm2', 'acc': 0.4}"],
    ],
)
def test_digits_that_are_part_of_a_name_or_of_a_decision_are_not_taken_for_others(lines: list[str]) -> None:
    learned, alone = (read_line_by_line(lines * 4, learns=learns) for learns in (True, False))
    assert repr(learned.series) == repr(alone.series)


def tqdm_bar(text: str, count: int, total: int, width: int = 10) -> str:
    """A bar as tqdm draws it."""
    eighths = 8 * width * count // total
    filled = "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]
    return text.format(bar=f"|{filled:{width}}|", count=count, total=total, percent=100 * count // total, x=1 / count)


def keras_bar(text: str, count: int, total: int) -> str:
    """A bar as Keras draws it: the colours are part of the line, and it is taken back by backspaces."""
    filled = 20 * count // total
    bar = f"\x1b[32m{'━' * filled}\x1b[0m\x1b[37m{'━' * (20 - filled)}\x1b[0m"
    return text.format(bar=bar, count=count, total=total, x=1 / count) + "\b" * 70


TQDM_BARS = [
    "Epoch 0: {percent:3d}%{bar} {count}/{total} [01:21<00:00,  3.63it/s, v_num=1]",
    "Epoch 3: {percent:3d}%{bar} {count}/{total} [01:21<00:00,  3.63it/s, loss={x:.3f}, val_acc={x:.2f}]",
    "{percent:3d}%{bar} {count}/{total} [00:01<00:02, 54.26it/s, loss={x:.4f}]",
    "train loss: {x:.4f} acc 97.{count}%: {percent:3d}%{bar} {count}/{total} [00:01<00:02, 1.2s/it]",
    "loss {x:.3f} {bar} acc {x:.3f}",
    "Validation: {percent:3d}%{bar} {count}/{total}",
    "| loss {x:.2f} {bar} {x:.2f} |",
]
KERAS_BARS = [
    "\x1b[1m{count}/{total}\x1b[0m {bar} \x1b[1m0s\x1b[0m 249ms/step - accuracy: {x:.4f} - loss: {x:.3f}",
    "\x1b[1m{count}/{total}\x1b[0m {bar} \x1b[1m0s\x1b[0m 9ms/step",
    "\x1b[1mval_loss\x1b[0m: {x:.4f}",
    "\x1b[1;31mstep {count}\x1b[0m {x:.4f}",
]
LINES_BETWEEN = [
    "",
    "Epoch 1/3",
    "Epoch 2/3",
    "Validation:",
    "loss: 0.5",
    "\x1b[1mloss: 0.5\x1b[0m",
    "\x1b[2K",
    "val 0.3",
]


@given(st.data())
def test_how_far_a_bar_is_filled_or_coloured_changes_nothing(data: st.DataObject) -> None:
    total = data.draw(st.sampled_from([7, 80, 300]))
    bars = data.draw(st.lists(st.sampled_from([*TQDM_BARS, *KERAS_BARS]), min_size=1, max_size=2))
    lines: list[str] = []
    for count in sorted(data.draw(st.lists(st.integers(1, total), min_size=4, max_size=30))):
        text = data.draw(st.sampled_from(bars))
        lines.append((keras_bar if text in KERAS_BARS else tqdm_bar)(text, count, total))
        lines += data.draw(st.lists(st.sampled_from(LINES_BETWEEN), max_size=1))
    learned, alone = (read_line_by_line(lines, learns=learns) for learns in (True, False))
    assert repr(learned) == repr(alone)


@pytest.mark.parametrize("draw", [tqdm_bar, keras_bar])
def test_values_that_stand_in_bars_alone_are_found(draw: Callable[[str, int, int], str]) -> None:
    text = TQDM_BARS[1] if draw is tqdm_bar else KERAS_BARS[0]
    found = read_line_by_line([draw(text, count, 300) for count in range(1, 301)], learns=True)
    assert found.series["loss"].values[-1] == 0.003
    assert draw is keras_bar or found.series["val_acc"].values[-1] == 0.0


@pytest.mark.parametrize(("draw", "text"), [(tqdm_bar, TQDM_BARS[1]), (keras_bar, KERAS_BARS[0])])
def test_bars_are_read_fast(draw: Callable[[str, int, int], str], text: str) -> None:
    lines = [draw(text, count, 900) for count in range(100, 900)] * 5
    alone = processor_seconds(lines[:400], learns=False) * 10
    assert processor_seconds(lines, learns=True) < alone / 1.5


def test_lines_of_a_known_shape_are_read_fast() -> None:
    lines = [f"step {number}: loss {1 / (number + 1):.6f}, acc {number % 100 / 100:.4f}" for number in range(20_000)]
    alone = processor_seconds(lines[:2_000], learns=False) * 10
    assert processor_seconds(lines, learns=True) < alone / 1.5


def processor_seconds(lines: list[str], *, learns: bool) -> float:
    began = time.process_time()
    read_line_by_line(lines, learns=learns)
    return time.process_time() - began
