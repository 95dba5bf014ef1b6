"""Train SM-CNN once: `python -m isorun.zoo.studies.tacl18.train --data trecqa-raw --train train --seed 1234`.

Logs the training loss and the MAP and MRR of the development and test sets after each epoch. Its results are the test
set's MAP and MRR at the epoch with the best development MAP, beside those of the idf sum on the same pairs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import isorun
from isorun.errors import IsorunError, UsageError
from isorun.zoo.data.answers import DATA, TRAINS, AnswerData, load_answers
from isorun.zoo.data.made import made_answers, made_vectors
from isorun.zoo.data.presence import require
from isorun.zoo.data.word_vectors import WordVectors, load_word_vectors
from isorun.zoo.machines import training_device
from isorun.zoo.studies.tacl18.training.options import PUBLISHED_SEED, Options

if TYPE_CHECKING:
    from isorun.zoo.studies.tacl18.ranking import Effectiveness
    from isorun.zoo.studies.tacl18.training.loop import TrainedEpoch, TrainedSmCnn

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Train with the arguments of a command line; 0, or 1 after a message to stderr."""
    options = _parser().parse_args(argv)
    try:
        _run(options)
    except IsorunError as error:
        sys.stderr.write(f"{error}\n")
        return 2 if isinstance(error, UsageError) else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    defaults = Options()
    parser = argparse.ArgumentParser(prog="python -m isorun.zoo.studies.tacl18.train", description=__doc__)
    add = parser.add_argument
    add("--data", choices=DATA, default="trecqa-raw")
    add("--train", choices=TRAINS, default="train", help="the training set of TrecQA; WikiQA has one")
    add("--made-data", action="store_true", help="small data made on the spot instead")
    add("--train-questions", type=_positive, metavar="N", help="only the first N questions of the training set")
    add("--seed", type=int, default=PUBLISHED_SEED)
    add("--vary", choices=("all", "weights"), default="all", help="what the seed decides; the paper's code: weights")
    add("--epochs", type=_positive, default=defaults.epochs, metavar="N", help="at most so many (default %(default)s)")
    add("--batch-size", type=_positive, default=defaults.batch_size, metavar="N", help="the paper's code: 1")
    add("--order", choices=("shuffled", "file"), default="shuffled", help="of the pairs; the paper's code: file")
    add("--dropout", choices=("shared", "device"), default="shared", help="who draws it; the paper's code: the device")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--onednn", choices=("on", "off"), default="on", help="whether CPU convolutions go through oneDNN")
    add("--cudnn", choices=("on", "off"), default="on", help="whether GPU convolutions go through cuDNN")
    add(
        "--tf32",
        choices=("on", "off"),
        default="off",
        help="whether cuDNN may round to TF32, unknown to the paper's GPUs",
    )
    add("--threads", type=_positive, metavar="N", help="recorded beside the number of threads that torch uses")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _run(options: argparse.Namespace) -> None:
    device = training_device(options.device, "training SM-CNN")
    import torch  # noqa: PLC0415 - there, as the device says

    torch.backends.mkldnn.enabled = options.onednn == "on"
    torch.backends.cudnn.enabled = options.cudnn == "on"
    torch.backends.cudnn.allow_tf32 = options.tf32 == "on"
    from isorun.zoo.studies.tacl18.training.loop import train  # noqa: PLC0415 - needs torch
    from isorun.zoo.studies.tacl18.training.tensors import prepare  # noqa: PLC0415 - needs torch

    settings = Options(options.seed, options.epochs, options.batch_size, options.order, options.vary, options.dropout)
    prepared = prepare(_loaded(options), made_vectors if options.made_data else _vectors, settings, device)
    finished = train(prepared.material, settings, _started, _report)
    _finish(finished, prepared.idf, {"threads": torch.get_num_threads(), "threads_requested": options.threads})


def _loaded(options: argparse.Namespace) -> AnswerData:
    if options.made_data:
        data = made_answers()
    else:
        data = load_answers(options.data, options.train, require(options.data.split("-")[0]))
    if options.train_questions is None:
        return data
    return replace(data, train=data.train.first_questions(options.train_questions))


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


def _finish(finished: TrainedSmCnn, idf: Effectiveness, threads: dict[str, int | None]) -> None:
    best = finished.best
    scores = {"map": best.test.mean_ap, "mrr": best.test.mean_rr, "best_dev_map": best.dev.mean_ap}
    epochs = {"best_epoch": best.number, "epochs": finished.epochs}
    baseline = {"idf_map": idf.mean_ap, "idf_mrr": idf.mean_rr}
    counted = {name: number for name, number in threads.items() if number is not None}
    isorun.result(**scores, **epochs, **baseline, **counted, predictions=best.scores, weights=finished.network)
    sys.stdout.write(f"map {scores['map']:.4f}  mrr {scores['mrr']:.4f}  at epoch {best.number} of {finished.epochs}\n")


if __name__ == "__main__":
    sys.exit(main())
