"""Answer selection: TrecQA and WikiQA as records, from either of the two forms in which they are found.

A split's folder holds `pairs.tsv` (qid, docid, label, question, answer; also gzipped), or the originals of
castorini/NCE-CNN-Torch: `a.toks` (questions), `b.toks` (answers), `id.txt`, `sim.txt` (labels), a line for each pair.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from isorun.errors import DataError, known_names
from isorun.zoo.data.files import DAMAGE

__all__ = [
    "DATA",
    "TRAINS",
    "AnswerData",
    "AnswerPair",
    "AnswerSplit",
    "load_answers",
    "load_split",
    "train_all_folder",
    "with_both_labels",
]

DATA: Final = ("trecqa-raw", "trecqa-clean", "wikiqa")
TRAINS: Final = ("train", "train-all")
_TRAIN_ALL_FOLDERS: Final = ("train-all", "train-all-rebuilt")
_TABBED: Final = (("pairs.tsv",), ("pairs.tsv.gz",))
_ORIGINALS: Final = ("id.txt", "sim.txt", "a.toks", "b.toks")


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """A question with one of its candidate answers, tokenised and in lower case. label: 1 when it answers, else 0."""

    qid: str
    docid: str
    label: int
    question: tuple[str, ...]
    answer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerSplit:
    """Pairs in the order of the file, which is also the order of their document numbers in the paper's evaluation."""

    name: str
    pairs: tuple[AnswerPair, ...]

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return len({pair.qid for pair in self.pairs})

    @property
    def positives(self) -> int:
        """How many pairs answer."""
        return sum(pair.label for pair in self.pairs)

    def first_questions(self, count: int) -> AnswerSplit:
        """The pairs of the first `count` questions."""
        kept = set(list(dict.fromkeys(pair.qid for pair in self.pairs))[:count])
        return replace(self, pairs=tuple(pair for pair in self.pairs if pair.qid in kept))


@dataclass(frozen=True, slots=True)
class AnswerData:
    """What a training needs: three splits of a data set."""

    name: str
    train: AnswerSplit
    dev: AnswerSplit
    test: AnswerSplit


def load_answers(data: str, train: str, folder: Path) -> AnswerData:
    """TrecQA or WikiQA out of the data set's folder. WikiQA has one training set, which serves for both names."""
    if data not in DATA:
        raise DataError(f"there is no answer selection data {data!r}", allowed=known_names(data, DATA))
    if train not in TRAINS:
        raise DataError(f"there is no training set {train!r}", allowed=known_names(train, TRAINS))
    if data == "wikiqa":
        return AnswerData(data, *(load_split(folder / name) for name in ("train", "dev", "test")))
    dev, test = (_trec_split(folder, data.removeprefix("trecqa-"), part) for part in ("dev", "test"))
    chosen = folder / "train" if train == "train" else train_all_folder(folder) or folder / _TRAIN_ALL_FOLDERS[0]
    return AnswerData(data, load_split(chosen), dev, test)


def train_all_folder(folder: Path) -> Path | None:
    """Where TRAIN-ALL of TrecQA lies, the original before the rebuilt copy; None where neither is complete."""
    return next((folder / name for name in _TRAIN_ALL_FOLDERS if _files_of(folder / name)), None)


def load_split(folder: Path) -> AnswerSplit:
    """A split from its folder, in whichever form it lies there."""
    files = _files_of(folder)
    if files:
        pairs = _tabbed(folder / files[0]) if files in _TABBED else _originals(folder)
        return AnswerSplit(folder.name, tuple(pairs))
    raise DataError(
        f"no question and answer pairs in {folder}",
        found=", ".join(sorted(item.name for item in folder.iterdir())) if folder.is_dir() else "no such folder",
        allowed=f"pairs.tsv, pairs.tsv.gz, or {', '.join(_ORIGINALS)}",
        hint="isorun data list",
    )


def with_both_labels(split: AnswerSplit) -> AnswerSplit:
    """Only the questions that have a positive and a negative answer: what makes the clean form out of the raw one."""
    labels: dict[str, set[int]] = {}
    for pair in split.pairs:
        labels.setdefault(pair.qid, set()).add(pair.label)
    return replace(split, pairs=tuple(pair for pair in split.pairs if len(labels[pair.qid]) == 2))


def _trec_split(folder: Path, form: str, part: str) -> AnswerSplit:
    """The clean form is made from the raw one where it is not there."""
    if form == "raw" or (folder / f"clean-{part}").is_dir():
        return load_split(folder / f"{form}-{part}")
    return replace(with_both_labels(load_split(folder / f"raw-{part}")), name=f"clean-{part}")


def _files_of(folder: Path) -> tuple[str, ...]:
    """The files of the first form that is complete there; none where none is."""
    forms = (*_TABBED, _ORIGINALS)
    return next((form for form in forms if all((folder / name).is_file() for name in form)), ())


def _lines(path: Path) -> list[str]:
    """Lines as the tools that wrote them count them: only a newline ends one."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except DAMAGE as error:
        raise DataError(f"cannot read {path}", found=str(error)) from error
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _tabbed(path: Path) -> list[AnswerPair]:
    pairs = []
    for number, line in enumerate(_lines(path), start=1):
        fields = line.split("\t")
        if len(fields) != 5:
            expected = "5: qid, docid, label, question, answer"
            raise DataError(f"{path}, line {number}: wrong number of fields", found=str(len(fields)), allowed=expected)
        label = _label(fields[2], path, number)
        pairs.append(AnswerPair(fields[0], fields[1], label, tuple(fields[3].split()), tuple(fields[4].split())))
    return _unless_empty(pairs, path)


def _originals(folder: Path) -> list[AnswerPair]:
    columns = [_lines(folder / name) for name in _ORIGINALS]
    if len({len(column) for column in columns}) != 1:
        found = ", ".join(f"{name} {len(column)}" for name, column in zip(_ORIGINALS, columns, strict=True))
        raise DataError(
            f"the files of {folder} do not belong together", found=f"lines: {found}", allowed="equally many"
        )
    pairs, seen = [], dict[str, int]()
    for number, (ident, label, question, answer) in enumerate(zip(*columns, strict=True), start=1):
        qid = ident.strip().split("-")[0]
        seen[qid] = seen.get(qid, -1) + 1
        truth = _label(label.strip(), folder / "sim.txt", number)
        pairs.append(AnswerPair(qid, str(seen[qid]), truth, tuple(question.split()), tuple(answer.split())))
    return _unless_empty(pairs, folder)


def _label(text: str, path: Path, number: int) -> int:
    if text not in ("0", "1"):
        raise DataError(f"{path}, line {number}: not a label", found=repr(text), allowed="0 or 1")
    return int(text)


def _unless_empty(pairs: list[AnswerPair], path: Path) -> list[AnswerPair]:
    if not pairs:
        raise DataError(f"{path} has no pairs", hint="get the data again: isorun data list")
    return pairs
