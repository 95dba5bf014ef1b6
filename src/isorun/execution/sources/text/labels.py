"""The text before a number: what it says the number is.

A label ends where the number starts and begins where the number before it ended. Labels repeat from line to line
(" - accuracy: "), so that each is parsed once and remembered.
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass

from isorun.execution.sources.text.names import (
    SPLITS,
    VOCABULARY,
    is_metric,
    is_never,
    name_of,
    split_in,
    word_set,
)

__all__ = ["Label", "Role", "label_of"]

_EPOCH = re.compile(r"(?:^|[^a-z])(?:epoch|ep)(?:\s*\([a-z]+\))?[\s:=#\[('\"]*$")
_EPOCHS = re.compile(r"(?:^|[^a-z])epochs?\s*:?\s*$")
_STEP = re.compile(r"(?:^|[^a-z])(?:global_step|step|iteration|iter|round|episode)[\s:=#\[('\"]*$")
_SEPARATOR = re.compile(r"\s*(?P<sign>[:=]|->|=>|\bis\b)?(?P<space>\s*)[\"']?$")
_AVERAGE = re.compile(r"\s*\((micro|macro|weighted|samples)(?: avg)?\)\s*$", re.IGNORECASE)
_PERCENT_UNIT = re.compile(r"\s*[(\[]\s*(?:%|in %|percent)\s*[)\]]\s*$")
_BREAK = re.compile(r"[,;|(){}\[\]\"'<>│┃┆•·*#\t!?]|\s[-–—]+\s|^[-–—]+\s|[:=]|\s{2,}|\.\s|[━─█▏▎▍▌▋▊▉╸╺]+")
_STOP_WORDS = word_set(
    """with at of the is was got reached and to in on for from by after before than over improved decreased increased
    saved saving until since per into achieved had has"""
)
_MOST_WORDS = 4


class Role(enum.Enum):
    """What a number is, going by the text before it."""

    NOTHING = "nothing"
    EPOCH = "epoch"
    STEP = "step"
    METRIC = "metric"
    DOUBTFUL = "doubtful"
    IN_BRACKETS = "in brackets"
    OPENING = "opening"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class Label:
    """role and name of the number; form: how the two were written; split: the part of the data the text names.

    percent: the text says that the number is a percentage. tight: a colon stands right before the number ("gpu:0").
    plural_epochs: the text is a bar's description that counts epochs ("Epochs: 40%|").
    """

    role: Role
    name: str = ""
    form: str = ""
    split: str = ""
    percent: bool = False
    tight: bool = False
    plural_epochs: bool = False


@functools.lru_cache(maxsize=4096)
def label_of(text: str) -> Label:
    """What the text says about the number that follows it."""
    lowered = text.lower()
    split = split_in(lowered)
    stripped = lowered.strip()
    if stripped in {"(", "["}:
        return Label(Role.IN_BRACKETS if stripped == "(" else Role.OPENING, split=split)
    if "ep" in lowered and _EPOCH.search(lowered):
        return Label(Role.NOTHING if "best" in lowered else Role.EPOCH, split=split, plural_epochs=True)
    if _STEP.search(lowered):
        return Label(Role.NOTHING if "best" in lowered else Role.STEP, split=split)
    return _named(text, split)


def _named(text: str, split: str) -> Label:
    separator = _SEPARATOR.search(text)
    assert separator is not None
    sign = separator["sign"] or ""
    body = text[: separator.start()].replace("'s ", " ").replace("Adj. ", "Adj ")
    without_unit = _PERCENT_UNIT.sub("", body)
    average = _AVERAGE.search(without_unit)
    without_unit = without_unit[: average.start()] if average else without_unit
    words = _words(_BREAK.split(without_unit.strip().strip("\"'"))[-1], separated=bool(sign))
    if not words or all(word.lower() in SPLITS for word in words):
        counts_epochs = _EPOCHS.search(text.lower()) is not None
        return Label(Role.SPLIT if words else Role.NOTHING, split=split, plural_epochs=counts_epochs)
    name = name_of(words) + (f"_{average[1].lower()}" if average else "")
    return Label(
        role=_role(name, sign),
        name=name,
        form=_form(sign),
        split=split,
        percent=average is None and without_unit != body,
        tight=sign == ":" and not separator["space"],
        plural_epochs=_EPOCHS.search(text.lower()) is not None,
    )


def _role(name: str, sign: str) -> Role:
    if is_metric(name):
        return Role.METRIC
    return Role.DOUBTFUL if sign and sign != "is" and not is_never(name) else Role.NOTHING


def _form(sign: str) -> str:
    return {"": "name value", ":": "name: value", "=": "name=value"}.get(sign, f"name {sign} value")


def _words(chunk: str, *, separated: bool) -> list[str]:
    """The words at the end of the chunk that make a name: without a separator only words known from metrics.

    "from score 0.69" tells where something began, which is no result.
    """
    words: list[str] = []
    for word in reversed(chunk.split()):
        cleaned = word.strip(".~+-&^`")
        lowered = cleaned.lower()
        if lowered == "from" and not separated:
            return []
        if not lowered or lowered in _STOP_WORDS or not _starts_a_name(lowered):
            break
        if not separated and lowered not in VOCABULARY and not is_metric(lowered):
            break
        words.insert(0, cleaned)
    return words[-_MOST_WORDS:]


def _starts_a_name(word: str) -> bool:
    return (word[0].isalpha() or word[0] == "_") and not word.endswith((".py", ".log", ".txt", ".json", ".csv", ".pt"))
