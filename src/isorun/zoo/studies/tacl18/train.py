"""Train SM-CNN once: `python -m isorun.zoo.studies.tacl18.train --data trecqa-raw --train train --seed 1234`.

Logs the training loss and the MAP and MRR of the development and test sets after each epoch. Its results are the test
set's MAP and MRR at the epoch with the best development MAP, of all questions and of each, beside those of the idf sum
on the same pairs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import isorun
from isorun.zoo.data.answers import AnswerData, load_answers
from isorun.zoo.data.made import made_answers, made_vectors
from isorun.zoo.data.presence import require
from isorun.zoo.data.word_vectors import WordVectors, load_word_vectors
from isorun.zoo.studies.tacl18.training.options import Options, training_parser
from isorun.zoo.training import exit_code, training_device

if TYPE_CHECKING:
    from isorun.zoo.studies.tacl18.ranking import Effectiveness
    from isorun.zoo.studies.tacl18.training.loop import TrainedEpoch, TrainedSmCnn
    from isorun.zoo.studies.tacl18.training.tensors import PreparedPairs

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Train with the arguments of a command line, and return the exit code."""
    given = training_parser(str(__doc__)).parse_args(argv)
    return exit_code(lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    device = training_device(given.device, "training SM-CNN")
    import torch  # noqa: PLC0415 - there, as the device says

    torch.backends.mkldnn.enabled = given.onednn == "on"
    torch.backends.cudnn.enabled = given.cudnn == "on"
    torch.backends.cudnn.allow_tf32 = given.tf32 == "on"
    from isorun.zoo.studies.tacl18.training.loop import train  # noqa: PLC0415 - needs torch
    from isorun.zoo.studies.tacl18.training.tensors import prepare  # noqa: PLC0415 - needs torch

    options = Options(given.seed, given.epochs, given.batch_size, given.order, given.vary, given.dropout)
    prepared = prepare(_loaded(given), made_vectors if given.made_data else _vectors, options, device)
    finished = train(prepared.material, options, _started, _report)
    _finish(finished, prepared, {"threads": torch.get_num_threads(), "threads_requested": given.threads})


def _loaded(given: argparse.Namespace) -> AnswerData:
    if given.made_data:
        data = made_answers()
    else:
        data = load_answers(given.data, given.train, require(given.data.split("-")[0]))
    if given.train_questions is None:
        return data
    return replace(data, train=data.train.first_questions(given.train_questions))


def _vectors(words: Collection[str]) -> WordVectors:
    return load_word_vectors(require("glove"), words)


def _started(network: Any) -> None:
    isorun.digest("weights.initial", network)


def _report(epoch: TrainedEpoch) -> None:
    values = {
        "train_loss": epoch.train_loss,
        "dev_map": epoch.dev.mean_ap,
        "dev_mrr": epoch.dev.mean_rr,
        "test_map": epoch.test.mean_ap,
        "test_mrr": epoch.test.mean_rr,
    }
    isorun.log(epoch=epoch.number, **values)
    sys.stdout.write(
        f"epoch {epoch.number:2d}  " + "  ".join(f"{name} {value:.4f}" for name, value in values.items()) + "\n"
    )
    sys.stdout.flush()


def _finish(finished: TrainedSmCnn, prepared: PreparedPairs, threads: dict[str, int | None]) -> None:
    best, idf = finished.best, prepared.idf
    scores = {"map": best.test.mean_ap, "mrr": best.test.mean_rr, "best_dev_map": best.dev.mean_ap}
    epochs = {"best_epoch": best.number, "epochs": finished.epochs}
    baseline = {"idf_map": idf.mean_ap, "idf_mrr": idf.mean_rr}
    counted = {name: number for name, number in threads.items() if number is not None}
    isorun.result(
        **scores,
        **epochs,
        **baseline,
        **counted,
        per_class=_by_question(best.test, prepared.material.test.judged.qids),
        predictions=best.scores,
        weights=finished.network,
    )
    sys.stdout.write(f"map {scores['map']:.4f}  mrr {scores['mrr']:.4f}  at epoch {best.number} of {finished.epochs}\n")


def _by_question(test: Effectiveness, qids: Sequence[str]) -> dict[str, dict[str, float]]:
    """What every test question got: `isorun factors --unit question` compares settings over them."""
    values = {"map": test.ap, "mrr": test.rr}
    return {name: dict(zip(qids, found.tolist(), strict=True)) for name, found in values.items()}


if __name__ == "__main__":
    sys.exit(main())
