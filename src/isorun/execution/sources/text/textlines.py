"""A free-form line of output: every number in it, judged by the text before it.

Rules, in the order they are applied to a number:
- "Epoch 3/50", "epoch=3", "Epoch: [3]" give the epoch, "step 500", "iter: 10", "[10] " give the step; a line about the
  best epoch does not ("best val acc 0.9 at epoch 7").
- "97.4%" and "Accuracy (%): 97.4" are 0.974; "Accuracy: 9908/10000 (99%)" is 0.9908. Other counts ("100/390") are
  progress.
- On a progress line the average of "Loss: 0.5 (0.6)" is taken, 0.6; on any other line the number before the brackets.
- A word for a split of the data prefixes the names after it: "Test set: Average loss: 0.03, Accuracy: 97%" gives
  `test_loss` and `test_accuracy`; a name that has a split of its own is left alone.
"""

from __future__ import annotations

import re

from isorun.execution.sources.text.labels import Label, Role, label_of
from isorun.execution.sources.text.names import has_split, keeps_no_prefix
from isorun.execution.sources.text.numbers import TOKEN, count_of, percentage, written_number
from isorun.execution.sources.text.rows import Row, Value

__all__ = ["read_text"]

_LEADING_PAIR = re.compile(r"\s*\[\s*(\d+)\s*,\s+(\d+)\s*\]")
_LEADING_STEP = re.compile(r"\s*\[(\d{1,3}(?:,\d{3})+|\d+)\]")
_FINAL = re.compile(r"\b(?:final|test|best)")


def read_text(line: str, *, split: str = "", epochs_are_named: bool = False) -> Row:
    """The values of a line. split: the split that a heading above the line named.

    epochs_are_named: the output has said "epoch" before, so that "[12/50]" at the start of a line is progress.
    """
    reader = _Reader(line, split, epochs_are_named)
    end = 0
    for token in TOKEN.finditer(line):
        reader.take(token, label_of(line[end : token.start()]))
        end = token.end()
    return reader.finished()


class _Reader:
    """Goes through the numbers of a line from left to right; `split` is the last one that was named."""

    def __init__(self, line: str, split: str, epochs_are_named: bool) -> None:
        self._line = line
        self._split = split
        self._epochs_are_named = epochs_are_named
        self._row = Row()
        self._bar_counts_epochs = False
        self._averages: dict[int, float] = {}
        self._last_was_value = False

    def take(self, token: re.Match[str], label: Label) -> None:
        if label.split:
            self._split = label.split
        after_value, self._last_was_value = self._last_was_value, False
        kind = token.lastgroup
        if kind == "total":
            self._take_count(token, label)
        elif kind == "percent" and token["bar"] is not None:
            self._bar_counts_epochs = label.plural_epochs
        elif label.role is Role.IN_BRACKETS:
            self._take_average(token, after_value)
        elif kind != "junk" and label.role is not Role.NOTHING:
            self._take_number(token, label)

    def finished(self) -> Row:
        row = self._row
        self._take_leading_brackets()
        if row.total and self._averages:
            row.values = [self._averaged(index, value) for index, value in enumerate(row.values)]
        row.split = self._split
        row.final = self._split == "test" or _says_final(self._line.lower())
        row.settle()
        return row

    def _take_count(self, token: re.Match[str], label: Label) -> None:
        count, total = count_of(token)
        if label.role is Role.METRIC and total and count <= total:
            self._add(label, count / total, "name: count/total", fraction=True)
        elif label.role is Role.EPOCH or self._bar_counts_epochs or self._opens_with_epoch(token, label):
            self._row.epoch = float(count)
        else:
            self._row.count, self._row.total = count, total

    def _opens_with_epoch(self, token: re.Match[str], label: Label) -> bool:
        opens = label.role is Role.OPENING and not self._line[: token.start()].strip(" \t[")
        return opens and self._row.epoch is None and not self._epochs_are_named

    def _take_average(self, token: re.Match[str], after_value: bool) -> None:
        if after_value and token["number"] is not None and not token["percent"]:
            self._averages[len(self._row.values) - 1] = float(written_number(token))

    def _take_number(self, token: re.Match[str], label: Label) -> None:
        written = written_number(token)
        if label.role is Role.EPOCH:
            self._take_epoch(written)
        elif label.role is Role.STEP:
            self._row.step = float(written)
        elif label.role is Role.SPLIT:
            self._take_epoch_after_split(token, written)
        elif label.role in {Role.METRIC, Role.DOUBTFUL}:
            self._take_value(token, label, written)

    def _take_epoch(self, written: str) -> None:
        looks_back = self._row.values and "best" in self._line.lower()
        if self._row.epoch is None and not looks_back:
            self._row.epoch = float(written)

    def _take_epoch_after_split(self, token: re.Match[str], written: str) -> None:
        """The form "Train: 3 [ 100/390 ( 26%)]", where the word epoch is left out."""
        if written.isdigit() and self._line[token.end() :].lstrip().startswith("["):
            self._take_epoch(written)

    def _take_value(self, token: re.Match[str], label: Label, written: str) -> None:
        is_percent = token["percent"] is not None or label.percent
        whole = written.lstrip("+-").isdigit() and not is_percent
        if whole and (label.name.endswith("error") or (label.tight and label.role is Role.DOUBTFUL)):
            return
        value = percentage(written) if is_percent else float(written)
        self._add(label, value, label.form + ("%" if is_percent else ""), fraction=is_percent)

    def _add(self, label: Label, value: float, form: str, *, fraction: bool) -> None:
        found = Value(self._prefixed(label.name), value, form, fraction)
        if label.role is Role.METRIC:
            self._row.values.append(found)
            self._last_was_value = True
        else:
            self._row.doubtful.append(found)

    def _prefixed(self, name: str) -> str:
        if not self._split or keeps_no_prefix(name) or has_split(name):
            return name
        return f"{self._split}_{name}"

    def _take_leading_brackets(self) -> None:
        """The forms "[1,  2000] loss: 2.2" (epoch and batch) and "[10] valid-logloss:0.2" (round, also "[1,200]")."""
        if self._row.has_clock or not self._line.lstrip().startswith("["):
            return
        if pair := _LEADING_PAIR.match(self._line):
            self._row.epoch = float(pair[1])
        elif lone := _LEADING_STEP.match(self._line):
            self._row.step = float(lone[1].replace(",", ""))

    def _averaged(self, index: int, value: Value) -> Value:
        average = self._averages.get(index)
        if average is None:
            return value
        return Value(value.name, average, "name: value (average)", value.fraction)


def _says_final(lowered: str) -> bool:
    """Whether a word of the line starts with final, test or best; looked at closely only if one could."""
    return ("est" in lowered or "final" in lowered) and _FINAL.search(lowered) is not None
