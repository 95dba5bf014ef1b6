"""Small data made on the spot, with the sizes of real data and something to learn, the same wherever it is made.

It stands in where a workload is only tried out (scale "smoke") and the real data is not at hand. A made question asks
who, where or when about a topic; its answer names the topic together with a person, a place or a date. Other candidates
name the topic with the wrong kind of word, or another topic with the right one: overlap alone does not tell.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isorun.errors import DataError, known_names
from isorun.zoo.data.answers import AnswerData, AnswerPair, AnswerSplit
from isorun.zoo.data.class_images import ClassImages, ClassSplits, by_class
from isorun.zoo.data.images import CIFAR10_CLASSES, DIGITS_CLASSES, IDX_CLASSES, Images
from isorun.zoo.data.word_vectors import WIDTH, WordVectors
from isorun.zoo.generators import hashed_generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["made_answers", "made_class_splits", "made_classes", "made_images", "made_vectors"]

_SHAPES: Final = {
    "mnist": (28, 28, 1),
    "fashion-mnist": (28, 28, 1),
    "digits": (8, 8, 1),
    "cifar10": (32, 32, 3),
    "cifar100": (32, 32, 3),
}
_CLASSES: Final = {
    **IDX_CLASSES,
    "digits": DIGITS_CLASSES,
    "cifar10": CIFAR10_CLASSES,
    "cifar100": tuple(f"class {number}" for number in range(100)),
}
_COARSE: Final = 4
_NOISE: Final = 32.0


def made_images(name: str, *, train: int = 512, test: int = 128, seed: int = 0) -> Images:
    """Images of `name`'s size: each class has a coarse pattern of its own, seen through noise; the seed decides all."""
    if name not in _SHAPES:
        raise DataError(f"no images like {name!r} can be made", allowed=known_names(name, _SHAPES))
    if train < 1 or test < 1:
        raise DataError("images can only be made in positive numbers", found=f"train={train}, test={test}")
    generator = np.random.default_rng([seed, *name.encode()])
    patterns = _patterns(generator, len(_CLASSES[name]), _SHAPES[name])
    train_images, train_labels = _noisy(generator, patterns, train)
    test_images, test_labels = _noisy(generator, patterns, test)
    origin = f"made on the spot like {name}: {train:,} + {test:,} images, seed {seed} (not real data)"
    return Images(train_images, train_labels, test_images, test_labels, _CLASSES[name], origin)


def _patterns(generator: np.random.Generator, classes: int, shape: tuple[int, int, int]) -> NDArray[np.float64]:
    """A pattern of 4 x 4 patches for each class, at full size."""
    height, width, channels = shape
    coarse = generator.uniform(40.0, 215.0, (classes, _COARSE, _COARSE, channels))
    rows = np.arange(height) * _COARSE // height
    columns = np.arange(width) * _COARSE // width
    return coarse[:, rows][:, :, columns]


def _noisy(
    generator: np.random.Generator, patterns: NDArray[np.float64], count: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    labels = generator.permutation(np.arange(count, dtype=np.int64) % len(patterns))
    noisy = patterns[labels] + generator.normal(0.0, _NOISE, (count, *patterns.shape[1:]))
    return noisy.clip(0, 255).astype(np.uint8), labels


WAVES: Final = 4
SHIFT: Final = 0.06
NOISE: Final = 60.0


def made_class_splits(seed: int = 0, *, side: int = 28, channels: int = 1) -> ClassSplits:
    """40 classes to learn from, 12 to select by and 12 to test on, 20 images each."""
    return ClassSplits(
        *(
            made_classes(seed + part, names=tuple(f"{split}-{k}" for k in range(classes)), side=side, channels=channels)
            for part, (split, classes) in enumerate((("train", 40), ("val", 12), ("test", 12)))
        )
    )


def made_classes(
    seed: int, *, names: tuple[str, ...], each: int = 20, side: int = 28, channels: int = 1
) -> ClassImages:
    """Each class is a sum of slow waves of its own; each image moves it a little and adds noise."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, side, channels])))
    groups = [(name, _one_class(generator, each, side, channels)) for name in names]
    return by_class(groups, f"made on the spot (seed {seed}): {len(names)} classes, {each} images each")


def _one_class(generator: np.random.Generator, each: int, side: int, channels: int) -> NDArray[np.uint8]:
    frequency = generator.uniform(-2.5, 2.5, size=(2, WAVES, channels))
    phase = generator.uniform(0, 1, size=(WAVES, channels))
    shift = generator.normal(0, SHIFT, size=(2, each, 1, 1))
    down, right = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side), indexing="ij")
    place = np.stack([down + shift[0], right + shift[1]])
    angle = np.einsum("aeij,awc->eijwc", place, frequency) + phase
    waves = np.sin(2 * np.pi * angle).sum(axis=3) * (100 / np.sqrt(WAVES))
    noisy = 128 + waves + generator.normal(0, NOISE, size=waves.shape)
    return np.asarray(np.clip(noisy, 0, 255), dtype=np.uint8)


_KINDS: Final = {"who": "person", "where": "place", "when": "date"}
_QUESTIONS: Final = {"train": 150, "dev": 30, "test": 30}
_CANDIDATES: Final = 6
_WRONG_KIND: Final = 0.2
_FILLERS: Final = tuple(f"filler{number}" for number in range(40))


def made_answers(seed: int = 0) -> AnswerData:
    """150 training questions, 30 for development and 30 for tests, each with one answer among six candidates."""
    draws = hashed_generator(seed, "made answers")
    splits = {name: AnswerSplit(name, tuple(_pairs(name, count, draws))) for name, count in _QUESTIONS.items()}
    return AnswerData("made", splits["train"], splits["dev"], splits["test"])


def made_vectors(words: Collection[str], seed: int = 0) -> WordVectors:
    """Vectors in which persons, places and dates are alike among themselves; words with an odd topic have none."""
    known = sorted(word for word in words if not (word.startswith("topic") and int(word[5:]) % 2))
    centres = {kind: hashed_generator(seed, kind).normal(0, 1, WIDTH) for kind in _KINDS.values()}
    rows = [
        centres.get(word.rstrip("0123456789"), np.zeros(WIDTH)) + hashed_generator(seed, word).normal(0, 0.3, WIDTH)
        for word in known
    ]
    matrix = np.array(rows, dtype=np.float32).reshape(len(known), WIDTH)
    return WordVectors("made", {word: row for row, word in enumerate(known)}, matrix)


def _pairs(split: str, count: int, draws: Any) -> list[AnswerPair]:
    pairs = []
    for number in range(count):
        asked = str(draws.choice(list(_KINDS)))
        topic = int(draws.integers(0, 200))
        question = (asked, "is", f"topic{topic}", "?")
        place = int(draws.integers(0, _CANDIDATES))
        for candidate in range(_CANDIDATES):
            answer = _candidate(asked, topic, candidate == place, draws)
            pairs.append(AnswerPair(f"{split}{number}", str(candidate), int(candidate == place), question, answer))
    return pairs


def _candidate(asked: str, topic: int, answers: bool, draws: Any) -> tuple[str, ...]:
    """The answer, or a sentence that has only the topic, or only the kind of word, that was asked for."""
    kind = _KINDS[asked]
    if not answers:
        if draws.random() < _WRONG_KIND:
            kind = str(draws.choice([other for other in _KINDS.values() if other != kind]))
        else:
            topic = (topic + int(draws.integers(1, 200))) % 200
    fillers = [str(word) for word in draws.choice(_FILLERS, int(draws.integers(2, 10)))]
    words = [f"topic{topic}", f"{kind}{draws.integers(0, 30)}", *fillers]
    return tuple(words[row] for row in draws.permutation(len(words)))
