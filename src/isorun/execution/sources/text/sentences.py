"""Metrics told in a sentence, with words or numbers between the name and the value.

Accuracy of the network on the 10000 test images: 54 %     test_accuracy
Accuracy for class: plane is 55.4 %                        accuracy[plane]
8.0 perplexity estimate based on a held-out corpus         perplexity
"""

from __future__ import annotations

import re

from isorun.execution.sources.text.names import split_in
from isorun.execution.sources.text.numbers import read_number
from isorun.execution.sources.text.rows import Row, Value

__all__ = ["may_be_a_sentence", "read_sentence"]

_METRIC = r"(?P<metric>accuracy|loss|error|precision|recall|f1|perplexity|auc)"
_VALUE = r"(?P<value>[-+]?[\d.]+(?:[eE][-+]?\d+)?\s?%?|nan|inf)\s*\.?\s*$"
_CLASS = re.compile(
    rf"^\s*{_METRIC} (?:for|of) class\s*:?\s*(?P<class>\w[\w\-]*)\s*(?:is|:|=)\s*{_VALUE}", re.IGNORECASE
)
_ABOUT = re.compile(
    rf"^\s*(?P<before>[\w ]{{0,40}}?)\b{_METRIC} (?:of|on|for|over)\b(?P<about>[^:=]*)(?:[:=]|\bis\b)\s*{_VALUE}",
    re.IGNORECASE,
)
_ESTIMATE = re.compile(rf"(?P<value>[-+]?[\d.]+) {_METRIC} estimate based on ", re.IGNORECASE)


def may_be_a_sentence(line: str) -> bool:
    """Whether it is worth trying `read_sentence`; cheap."""
    return " of " in line or " on " in line or " for " in line


def read_sentence(line: str) -> Row | None:
    """The value told in a sentence; None for any other line."""
    if (found := _CLASS.match(line)) is not None:
        name = f"{found['metric'].lower()}[{found['class']}]"
    elif (found := _ABOUT.match(line)) is not None:
        split = split_in(found["before"]) or split_in(found["about"])
        name = "_".join(filter(None, [split, found["metric"].lower()]))
    elif (found := _ESTIMATE.search(line)) is not None:
        name = found["metric"].lower()
    else:
        return None
    value = read_number(found["value"])
    if value is None:
        return None
    is_percent = "%" in found["value"]
    return Row([Value(name, value, "sentence" + ("%" if is_percent else ""), is_percent)], final="test" in name)
