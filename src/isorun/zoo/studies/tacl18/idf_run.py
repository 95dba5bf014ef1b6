"""The idf-sum baseline as a run: `python -m isorun.zoo.studies.tacl18.idf_run --data wikiqa`.

It learns nothing and takes seconds; as a run it has a record like every other, with the sizes of the splits (Table 1).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence

import isorun
from isorun.zoo.data.answers import DATA, TRAINS, AnswerData, AnswerSplit, load_answers
from isorun.zoo.data.presence import require
from isorun.zoo.studies.tacl18.ranking import effectiveness, judgements
from isorun.zoo.studies.tacl18.training.words import STOP_WORDS, idf_sums, inverse_frequencies
from isorun.zoo.training import exit_code

__all__ = ["main"]

MADE_SEED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Score the test split; 0, or 1 with a message where the data cannot be read."""
    given = _parser().parse_args(argv)
    return exit_code(lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    answers = _answers(given.data, given.train, made=given.made_data)
    scores = {"map": _scores(answers, ()), "stop_map": _scores(answers, STOP_WORDS)}
    values = {**_sizes(answers), "map": scores["map"][0], "mrr": scores["map"][1]}
    values |= {"map_without_stop_words": scores["stop_map"][0], "mrr_without_stop_words": scores["stop_map"][1]}
    isorun.result(**values)
    print(f"{given.data}: idf sum, MAP {values['map']:.4f}, MRR {values['mrr']:.4f}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="idf_run", description="The idf-sum baseline of answer selection.")
    parser.add_argument("--data", choices=DATA, required=True, help="the data set")
    parser.add_argument("--train", choices=TRAINS, default="train", help="the training set, whose sentences count too")
    parser.add_argument("--made-data", action="store_true", help="small data made on the spot")
    return parser


def _answers(data: str, train: str, *, made: bool) -> AnswerData:
    if made:
        from isorun.zoo.data.made import made_answers  # noqa: PLC0415 - only when asked for

        return made_answers(MADE_SEED)
    return load_answers(data, train, require(data.partition("-")[0]))


def _scores(answers: AnswerData, without: Collection[str]) -> tuple[float, float]:
    pairs = answers.test.pairs
    judged = judgements([pair.qid for pair in pairs], [pair.label for pair in pairs])
    idf = inverse_frequencies((answers.train, answers.dev, answers.test))
    found = effectiveness(judged, idf_sums(answers.test, idf, without))
    return found.mean_ap, found.mean_rr


def _sizes(answers: AnswerData) -> dict[str, float]:
    """The rows of Table 1: questions, positive and negative answers of each split."""
    splits: dict[str, AnswerSplit] = {"train": answers.train, "dev": answers.dev, "test": answers.test}
    sizes: dict[str, float] = {}
    for name, split in splits.items():
        positives = split.positives
        sizes |= {f"{name}_questions": float(split.questions), f"{name}_positive": float(positives)}
        sizes[f"{name}_negative"] = float(len(split.pairs) - positives)
    return sizes


if __name__ == "__main__":
    sys.exit(main())
