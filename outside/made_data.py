"""Tiny data in the forms that programs look for: `python made_data.py KIND FOLDER [WORD …]`.

It is run by the program's own interpreter. Everything is made from a constant seed and learnable in a few steps;
nothing comes from the network.
"""

from __future__ import annotations

import gzip
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

SEED: Final = 20
WORDS: Final = "the a small large red old cat dog bird tree sees likes finds in under near house river"


def _digit(label: int, size: int, draw: random.Random) -> bytes:
    """A picture of a class: noise, and a bright bar whose place tells the class."""
    rows = []
    for row in range(size):
        bar = row * 10 // size == label
        rows.append(bytes(draw.randrange(150, 255) if bar else draw.randrange(0, 90) for _ in range(size)))
    return b"".join(rows)


def mnist(folder: Path, train: str = "640", test: str = "200", form: str = "plain") -> None:
    """The four files of MNIST in IDX form; form: plain, gzip, or both."""
    draw = random.Random(SEED)
    for name, count in (("train", int(train)), ("t10k", int(test))):
        labels = bytes(index % 10 for index in range(count))
        pictures = b"".join(_digit(label, 28, draw) for label in labels)
        files = {
            f"{name}-images-idx3-ubyte": struct.pack(">IIII", 2051, count, 28, 28) + pictures,
            f"{name}-labels-idx1-ubyte": struct.pack(">II", 2049, count) + labels,
        }
        for file, content in files.items():
            if form in ("plain", "both"):
                (folder / file).write_bytes(content)
            if form in ("gzip", "both"):
                (folder / f"{file}.gz").write_bytes(gzip.compress(content, mtime=0))


def _png(pixels: bytes, size: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(
        b"\0" + bytes(value for pixel in pixels[start : start + size] for value in (pixel, pixel, 255 - pixel))
        for start in range(0, size * size, size)
    )
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pictures(folder: Path, classes: str = "2", each: str = "8", size: str = "32", *splits: str) -> None:
    """A folder a split, in it a folder a class, in it PNG pictures; without classes the pictures lie side by side."""
    draw = random.Random(SEED)
    for split in splits or (".",):
        for label in range(max(int(classes), 1)):
            place = folder / split / (f"class_{label}" if int(classes) else "")
            place.mkdir(parents=True, exist_ok=True)
            for index in range(int(each)):
                (place / f"{label}_{index:03}.png").write_bytes(_png(_digit(label, int(size), draw), int(size)))


def _sentences(count: int) -> list[str]:
    draw = random.Random(SEED)
    words = WORDS.split()
    return [" ".join(draw.choice(words) for _ in range(draw.randrange(6, 14))) + " ." for _ in range(count)]


def text(file: Path, lines: str = "400") -> None:
    """A text of short sentences, one a line."""
    file.write_text("\n".join(_sentences(int(lines))) + "\n")


def corpus(folder: Path, lines: str = "200") -> None:
    """train.txt, valid.txt and test.txt."""
    for name in ("train", "valid", "test"):
        text(folder / f"{name}.txt", lines)


def names(file: Path, count: str = "300") -> None:
    """Made first names, one a line."""
    draw = random.Random(SEED)
    made = {
        "".join(draw.choice("bdklmnrs") + draw.choice("aeiou") for _ in range(draw.randrange(2, 5)))
        for _ in range(int(count))
    }
    file.write_text("\n".join(sorted(made)) + "\n")


def planetoid(folder: Path, nodes: str = "300") -> None:
    """The raw files of a citation graph in the form of Planetoid."""
    import pickle  # noqa: PLC0415  written, never read: the form is that of the data set

    import numpy as np  # noqa: PLC0415
    from scipy import sparse  # noqa: PLC0415

    draw = np.random.default_rng(SEED)
    count, classes, features = int(nodes), 3, 20
    labels = np.arange(count) % classes
    content = sparse.csr_matrix(
        (draw.random((count, features)) < 0.1 + 0.5 * (np.arange(features) % classes == labels[:, None])).astype(
            "float32"
        )
    )
    one_hot = np.eye(classes, dtype="int32")[labels]
    graph = {
        node: [int(other) for other in draw.integers(count, size=4) if labels[other] == labels[node]]
        for node in range(count)
    }
    test = range(count - 60, count)
    parts = {
        "x": content[:60],
        "tx": content[-60:],
        "allx": content[:-60],
        "y": one_hot[:60],
        "ty": one_hot[-60:],
        "ally": one_hot[:-60],
        "graph": graph,
    }
    for name, part in parts.items():
        (folder / f"ind.cora.{name}").write_bytes(pickle.dumps(part))
    (folder / "ind.cora.test.index").write_text("\n".join(map(str, test)) + "\n")


def cora(folder: Path, nodes: str = "300") -> None:
    """A citation graph as cora.content and cora.cites."""
    draw = random.Random(SEED)
    topics = ("Theory", "Neural_Networks", "Genetic_Algorithms")
    count = int(nodes)
    rows = []
    for node in range(count):
        words = [str(int(draw.random() < 0.1 + 0.5 * (word % 3 == node % 3))) for word in range(20)]
        rows.append("\t".join([str(node), *words, topics[node % 3]]))
    cites = [f"{node}\t{(node + 3 * draw.randrange(1, 9)) % count}" for node in range(count) for _ in range(2)]
    (folder / "cora.content").write_text("\n".join(rows) + "\n")
    (folder / "cora.cites").write_text("\n".join(cites) + "\n")


def line(file: Path, *words: str) -> None:
    """A file with these words: a setting that people write once."""
    file.write_text(" ".join(words).replace("\\n", "\n").replace("\\t", "\t") + "\n")


def script(_: Path, *words: str) -> None:
    """A script of the program's own that makes its data, run once."""
    subprocess.run([sys.executable, *words], check=True)


KINDS: Final[dict[str, Callable[..., None]]] = {
    each.__name__: each for each in (mnist, pictures, text, corpus, names, planetoid, cora, line, script)
}
FILES: Final = ("text", "names", "line", "script")
"""Kinds that make one file: only its folder is made before."""


def main(words: list[str]) -> int:
    """Make what is asked for."""
    kind, target, *more = words
    place = Path(target)
    (place.parent if kind in FILES else place).mkdir(parents=True, exist_ok=True)
    KINDS[kind](place, *more)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
