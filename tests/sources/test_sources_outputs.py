"""Outputs of real programs, each with its known answers: what is read, what is missed, and what must never be read.

`outputs/` holds each output as it was printed, with its escapes and carriage returns, trimmed to what matters, and
beside it the answers: `values` are the metrics that it prints, with all their values; `also` may be read but need not
be, since they say how the training was set or went along (a learning rate, a norm): read, they must be right; `missed`
names metrics that are known not to be read. Any other name is a false one, those of `never` above all. `index.toml`
says which program printed it, and how that was run; a few were not run but made from a program's own format strings,
and it says so. These answers were taken from the text by hand, by a pattern made for that text alone, or from the
numbers that were filled in, never by the reader.

`steps` are the epochs or steps of the values that are read: where folds or runs begin again, so do they, and where the
output names none they are running numbers. They were written down as the reader gives them, and then held against the
text by a loose search, which found most of them on the line of their value or nearest to it; of the rest about half
were looked at. So they hold what is read today, and are no independent answers as the values are.

`python tests/sources/test_sources_outputs.py` prints the figures, by halves of the programs.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from isorun.sources.lines import scan_text
from isorun.study.records import Series

OUTPUTS = Path(__file__).parent / "outputs"
INDEX: dict[str, dict[str, str]] = tomllib.loads((OUTPUTS / "index.toml").read_text(encoding="utf-8"))


@cache
def answers_to(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((OUTPUTS / f"{name}.json").read_text(encoding="utf-8"))
    return answers


@cache
def scanned(name: str) -> Mapping[str, Series]:
    with (OUTPUTS / f"{name}.txt").open(encoding="utf-8", newline="") as file:
        return scan_text(file.read()).series


@cache
def judged(name: str) -> dict[str, str]:
    """For every metric that the output has or the reader names: found, missed, wrong or false."""
    read = {metric: list(points.values) for metric, points in scanned(name).items()}
    answers = answers_to(name)
    also = {metric: values for metric, values in answers["also"].items() if metric in read}
    known = answers["values"] | also
    words = {metric: _word(read.get(metric), values) for metric, values in known.items()}
    return words | {metric: "false" for metric in read if metric not in known}


def _word(read: list[float] | None, values: list[float | str]) -> str:
    if read is None:
        return "missed"
    numbers = [float(value) for value in values]
    same = len(read) == len(numbers) and all(map(_equal, read, numbers))
    return "found" if same else "wrong"


def _equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6) or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("name", INDEX)
def test_every_value_that_is_read_is_right_and_all_are_read_but_those_known_to_be_missed(name: str) -> None:
    words = judged(name)
    not_found = {metric: word for metric, word in words.items() if word != "found"}
    assert not_found == dict.fromkeys(answers_to(name)["missed"], "missed")


MISPLACED = {  # one value an epoch, below a table, and no epoch said
    "ultralytics_classify": {"top1_acc", "top5_acc"},
    "ultralytics_segment": {"box_mAP50", "box_mAP50-95", "mask_mAP50", "mask_mAP50-95"},
}


@pytest.mark.parametrize("name", INDEX)
def test_every_value_has_the_epoch_or_step_that_the_output_gives_it(name: str) -> None:
    answers, series = answers_to(name), scanned(name)
    read = set(answers["values"]) & set(series)
    assert read - set(answers["steps"]) == MISPLACED.get(name, set())
    assert {metric: list(series[metric].steps) for metric in answers["steps"]} == answers["steps"]


@pytest.mark.parametrize("name", [name for name in INDEX if answers_to(name)["never"]])
def test_what_must_never_be_read_is_not_read(name: str) -> None:
    assert not set(judged(name)) & set(answers_to(name)["never"])


def test_the_corpus_is_whole_and_says_where_each_output_comes_from() -> None:
    assert {path.stem for path in OUTPUTS.glob("*.txt")} == {path.stem for path in OUTPUTS.glob("*.json")} == set(INDEX)
    assert all(set(entry) == {"program", "version", "command", "half"} for entry in INDEX.values())
    assert len(INDEX) >= 100
    assert len({entry["program"] for entry in INDEX.values()}) >= 40


def test_a_program_is_in_one_half_only() -> None:
    halves = {(entry["program"], entry["half"]) for entry in INDEX.values()}
    assert len(halves) == len({program for program, _ in halves})


def figures(half: str) -> str:
    names = [name for name, entry in INDEX.items() if entry["half"] == half]
    words = Counter(word for name in names for word in judged(name).values())
    wrong = sum("wrong" in judged(name).values() for name in names)
    whole = sum(set(judged(name).values()) <= {"found"} for name in names)
    counted = ", ".join(f"{words[word]} {word}" for word in ("found", "missed", "wrong", "false"))
    return f"{len(names)} outputs, {whole} all right, {wrong} with a wrong value; metrics: {counted}"


if __name__ == "__main__":
    for half in ("improved", "held-out"):
        print(f"{half}: {figures(half)}")
    for name in INDEX:
        for metric, word in judged(name).items():
            if word != "found":
                print(f"  {name} [{INDEX[name]['half']}]: {metric} is {word}")
