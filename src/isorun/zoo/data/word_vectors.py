"""Word vectors, from an npz file (words, vectors) or from GloVe's text files, as text, gzipped or inside their zip."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from isorun.errors import DataError
from isorun.zoo.data.files import DAMAGE, read_npz

__all__ = ["WIDTH", "WordVectors", "load_word_vectors"]

WIDTH: Final = 50
_AGAIN: Final = "remove it and get it again: isorun data get glove"
_FORMS: Final = ("*.npz", f"*{WIDTH}d.txt", f"*{WIDTH}d.txt.gz", "*.zip")


@dataclass(frozen=True, slots=True)
class WordVectors:
    """source: the file. rows: where each word is in matrix (words x width, float32)."""

    source: str
    rows: Mapping[str, int]
    matrix: Any

    @property
    def width(self) -> int:
        """Numbers a word."""
        return int(self.matrix.shape[1])


def load_word_vectors(folder: Path, words: Collection[str], width: int = WIDTH) -> WordVectors:
    """The vectors of those of `words` that the first suitable file of the folder has."""
    for pattern in _FORMS:
        for path in sorted(folder.glob(pattern)):
            found = _from_npz(path, words) if path.suffix == ".npz" else _from_text(path, words, width)
            if found.width != width:
                raise DataError(f"{path}: vectors of another width", found=str(found.width), allowed=str(width))
            return found
    raise DataError(
        f"no word vectors in {folder}",
        found=", ".join(sorted(item.name for item in folder.iterdir())) if folder.is_dir() else "no such folder",
        allowed=", ".join(_FORMS),
        hint="isorun data list",
    )


def _from_npz(path: Path, words: Collection[str]) -> WordVectors:
    import numpy as np  # noqa: PLC0415 - the listing of the papers needs no arrays

    arrays = read_npz(path, ("words", "vectors"), hint=_AGAIN)
    names, vectors = arrays["words"], arrays["vectors"]
    if vectors.ndim != 2 or len(names) != len(vectors):
        shapes = f"words {names.shape}, vectors {vectors.shape}"
        raise DataError(f"{path} does not hold word vectors", found=shapes, allowed="as many vectors as words")
    wanted = set(words)
    kept = [(row, name) for row, name in enumerate(names.tolist()) if name in wanted]
    matrix = vectors[[row for row, _ in kept]].astype(np.float32).reshape(len(kept), vectors.shape[1])
    return WordVectors(path.name, {name: row for row, (_, name) in enumerate(kept)}, matrix)


def _from_text(path: Path, words: Collection[str], width: int) -> WordVectors:
    """One pass; numbers are parsed only in the lines of words that are wanted."""
    import numpy as np  # noqa: PLC0415 - the listing of the papers needs no arrays

    wanted = set(words)
    rows: dict[str, int] = {}
    vectors: list[list[float]] = []
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            word, _, rest = line.rstrip("\n").partition(" ")
            if word not in wanted or word in rows:
                continue
            rows[word] = len(vectors)
            vectors.append(_numbers(rest, width, f"{path}, line {number}"))
    return WordVectors(path.name, rows, np.asarray(vectors, dtype=np.float32).reshape(len(vectors), width))


def _numbers(text: str, width: int, where: str) -> list[float]:
    fields = text.split(" ")
    if len(fields) != width:
        raise DataError(f"{where}: not a vector", found=f"{len(fields)} numbers", allowed=f"{width} numbers")
    try:
        return [float(field) for field in fields]
    except ValueError as error:
        raise DataError(f"{where}: not a vector", found=str(error), allowed=f"{width} numbers") from error


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The lines of a text file, of a gzipped one, or of the member of that width of a zip; nothing is extracted."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_member(archive, path)) as raw:
                yield io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        elif path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
                yield file
        else:
            with path.open(encoding="utf-8", newline="\n") as file:
                yield file
    except DAMAGE as error:
        raise DataError(f"cannot read the word vectors {path}", found=str(error), hint=_AGAIN) from error


def _member(archive: zipfile.ZipFile, path: Path) -> str:
    for name in archive.namelist():
        if name.endswith(f"{WIDTH}d.txt"):
            return name
    found = ", ".join(archive.namelist())
    raise DataError(f"{path} has no vectors of width {WIDTH}", found=found, allowed=f"a member *{WIDTH}d.txt")
