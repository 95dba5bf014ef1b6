"""What is less than published, and by how much: of a scale as a whole, and of what was asked for and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from isorun.zoo.paper import Scale
from isorun.zoo.studies.tacl18.amounts import AMOUNTS, COSTS, PUBLISHED_SEEDS, Amount
from isorun.zoo.studies.tacl18.design import PARTS
from isorun.zoo.studies.tacl18.environments import MOST_THREADS

__all__ = ["SCALES", "scaled_down"]

_TRAINED: Final = frozenset({"data", "threads", "cpu-paths", "devices", "seeds", "masks"})
_TABLES: Final = _TRAINED - {"data"}
_QUESTIONS: Final = {"trecqa": "of TrecQA's 93", "wikiqa": "of WikiQA's 873"}
_UNTIL: Final = "instead of training until the development score stops rising (at most 25)"
_SMALL: Final = "TRAIN (93 questions, 4,718 pairs) instead of TRAIN-ALL (1,229 questions, 53,417 pairs) for TrecQA"
_BATCHES: Final = "batches of 32 pairs in shuffled order instead of single pairs in the order of the file"


def scaled_down(
    scale: str, parts: Sequence[str] = PARTS, runs: int | None = None, recorded: int | None = None
) -> tuple[str, ...]:
    """A sentence for each way in which these parts have less than the paper.

    runs: the number of seeds that was asked for, the scale's own when None. recorded: how many of them every side and
    data set has, None where it does not matter.
    """
    amount = AMOUNTS[scale]
    trained = _training(amount, parts) if _TRAINED & set(parts) else ()
    return (*trained, *_breadth(amount, parts), *_seeds(amount, parts, runs, recorded))


def _training(amount: Amount, parts: Sequence[str]) -> Iterator[str]:
    if amount.epochs:
        yield f"{_epochs(amount.epochs)} {_UNTIL}"
    for data, number in amount.questions.items():
        yield f"{number} {_QUESTIONS[data]} training questions"
    if "seeds" in parts:
        for workload, number in amount.seed_epochs.items():
            yield f"{_epochs(number)} for the seeds on {workload} {_UNTIL}"
    if amount.trecqa_train == "train":
        yield _SMALL
    if not amount.options:
        yield _BATCHES


def _breadth(amount: Amount, parts: Sequence[str]) -> Iterator[str]:
    if "WikiQA" not in amount.data and _TABLES & set(parts):
        yield "TrecQA only in Tables 6 to 9 and the figures"
    if amount.paths is not None and "cpu-paths" in parts:
        yield f"{len(amount.paths)} CPU paths besides oneDNN off"
    if amount.threads < MOST_THREADS and "threads" in parts:
        yield f"at most {amount.threads} threads"


def _seeds(amount: Amount, parts: Sequence[str], runs: int | None, recorded: int | None) -> Iterator[str]:
    planned = runs or amount.seeds
    if "seeds" not in parts:
        return
    if recorded is not None and recorded < planned:
        yield f"{recorded} seeds instead of {PUBLISHED_SEEDS}, of {planned} planned"
    elif planned < PUBLISHED_SEEDS:
        yield f"{planned} {'seed' if planned == 1 else 'seeds'} instead of {PUBLISHED_SEEDS}"


def _epochs(number: int) -> str:
    return "1 epoch" if number == 1 else f"{number} epochs"


def _scale(name: str) -> Scale:
    made = ("small data made on the spot where a data set is not at hand",) if name == "smoke" else ()
    return Scale(name, COSTS[name], (*scaled_down(name), *made))


SCALES: Final[Mapping[str, Scale]] = {name: _scale(name) for name in AMOUNTS}
