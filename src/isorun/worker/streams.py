"""Random streams: initial weights, data order, dropout and augmentation, each drawn from generators of its own.

A training draws all its numbers from few generators, so that another seed changes everything at once. Here every draw
is told by where it happens, and comes from a generator of its stream: those of the streams that follow start from the
run's seed, the others from the kept one. Streams being apart, one that draws more often does not shift another.

- Where a training seeds a generator itself, its streams start anew, from that number and the seed of each stream. The
  training is told the kept seed in every run, so the number is the same in every run.
- A generator that a training makes of `random` or NumPy belongs to the stream of the place where it is made; one of
  torch to that of each draw.
- What can be told to no stream is `other`: counted, told with its lines, and kept unless everything follows.

Forked children, such as a loader's workers, count into memory that they share with the training.
"""

from __future__ import annotations

import functools
import mmap
import os
import re
import struct
import sys
import threading
from types import CodeType, FrameType, ModuleType
from typing import Any, Callable, Mapping, NamedTuple

from . import frameworks, seeding
from .frameworks.switches import STREAM_NAMES, StreamRequest
from .recorder import Recorder
from .source_lines import source_line
from .usercode import is_users_file

WEIGHTS, ORDER, DROPOUT, AUGMENTATION, OTHER = STREAM_NAMES
# Numbers that a library draws to seed generators with, whose streams are parted themselves: they follow nothing.
SEEDS = "seeds"
PARTED = (*STREAM_NAMES, SEEDS)

# What a place may say beside a stream. A forward pass is dropout's unless an item of a data set is made there; an
# iteration over a stream of data is the order's where it permutes or picks. Where a module is made weights are drawn,
# and where a data set is made the generator of its items is.
FORWARD, ITERATION, MODULE, DATASET = "forward", "iteration", "module", "dataset"

# Calls that put something into an order. In a place that says no stream it is the data's where it is made in a loop;
# one that is made once may as well choose what is trained on and what is tested on.
_PERMUTING = frozenset(("randperm", "shuffle", "permutation", "permuted", "sample"))
_PICKING = _PERMUTING | {"randint", "randrange", "choice", "choices", "random_integers", "getrandbits"}

# Functions by their names, words apart. They are tried in this order.
_WORDS = (
    (OTHER, re.compile(r"(^|_)splits?(_|$)|_split")),
    (WEIGHTS, re.compile(r"(^|_)(re)?(init|initiali[sz]e|reset)_(all_)?(weights?|param|bias|layer|model|net)")),
    (WEIGHTS, re.compile(r"(^|_)(weights?|params?|parameters?|xavier|kaiming)_(init|uniform|normal)")),
    (AUGMENTATION, re.compile(r"(^|_)(augment\w*|aug|transforms?|mixup|cutmix|cutout|collate\w*|jitter)(_|$)")),
    (AUGMENTATION, re.compile(r"(^|_)random_(crop|flip|erasing|rotat|shift|resized|horizontal|vertical|affine)")),
    (AUGMENTATION, re.compile(r"^__getitems?__$")),
    (ORDER, re.compile(r"(^|_)(shuffled?|sampler|permut\w*)(_|$)")),
    (ITERATION, re.compile(r"(^|_)(get|next|sample|make|draw|iterate|random)_(mini)?_?batch|^(mini)?_?batches$")),
    (DROPOUT, re.compile(r"(^|_)drop(out|_?path|_?connect)(_|$)")),
)
# What a class of the training's own is known by as part of a model, whatever it is made with.
_OF_A_MODULE = ("parameters", "forward")
_WORKER = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120  as it stands in code objects
_MOST_PLACES = 200
_PLACES_TOLD = 3  # of the most draws, and as many of the first: initial weights are drawn early and seldom
_SLOTS, _TEXT = 256, 208
_COUNTS = struct.Struct(f"<{len(PARTED)}Q")
_SLOT_BYTES = _COUNTS.size + _TEXT

Place = Callable[[FrameType], str]


class DrawCounts(NamedTuple):
    """How often streams were drawn from, and where the draws were made that are told to none."""

    counts: dict[str, int]
    places: dict[str, int]


class Streams:
    """The streams of one process: which follow, where draws belong, and how many there were.

    rules: what frameworks say of a place; the first that knows it is believed, names of functions after them.
    parted_at_draws: kinds of generators of the training's own of which every draw is seen. out_of_sight: what is asked
    at the end, each for what was drawn where nobody saw it ("" for nothing).
    """

    def __init__(self, request: StreamRequest, run_seed: int, asked: str = "") -> None:
        self.request = request
        self.asked = asked
        self.rules: list[Place] = []
        self.lock = threading.RLock()
        self.parted_at_draws: set[str] = set()
        self.out_of_sight: list[Callable[[], str]] = []
        self._run_seed = run_seed
        # By identity, with the code itself so that no other gets its number: to hash a code takes as long as a draw.
        self._known: dict[int, tuple[CodeType, str]] = {}
        self._restarts: dict[str, list[Callable[[], None]]] = {}
        self._values: dict[str, Any] = {}
        self._places: dict[str, int] = {}
        self._shared = mmap.mmap(-1, _SLOTS * _SLOT_BYTES)
        self._slot, self._next_slot = 0, 0
        self._counted = [0] * len(PARTED)

    def share_with_children(self) -> None:
        """From now on forked children count beside this process, each in a place of its own."""
        os.register_at_fork(before=self._before_fork, after_in_child=self._become_child)

    def _before_fork(self) -> None:
        self._next_slot = self._next_slot % (_SLOTS - 1) + 1

    def _become_child(self) -> None:
        self.lock = threading.RLock()
        self._slot, self._places = self._next_slot, {}
        self._counted = list(_COUNTS.unpack_from(self._shared, self._slot * _SLOT_BYTES))
        self._next_slot = os.getpid() % (_SLOTS - 1)  # its own children must not all count where its siblings' do

    def seed_of(self, stream: str, family: str, value: Any) -> int:
        """What a generator of a stream starts from, where the training's own starts from `value`: 63 bits."""
        from hashlib import sha256

        base = self._run_seed if stream in self.request.follow else self.request.kept_seed
        text = "\0".join((str(base), stream, family, repr(value)))
        return int.from_bytes(sha256(text.encode("utf-8", "backslashreplace")).digest()[:8], "big") >> 1

    def value_of(self, family: str) -> Any:
        """What the training, or the level, seeded a family of generators with last."""
        return self._values.get(family, self.request.kept_seed)

    def at_restart(self, family: str, forget: Callable[[], None]) -> None:
        """Call `forget` whenever the generator of this family is seeded anew."""
        self._restarts.setdefault(family, []).append(forget)

    def restarted(self, family: str, value: Any) -> None:
        """The generator of a family was seeded: its streams start anew."""
        self._values[family] = value
        for forget in self._restarts.get(family, ()):
            forget()

    def stream_at(self, call: str, frame: FrameType | None) -> str:
        """The stream of a draw that is made in this frame, which is told by the innermost place that says one.

        call: the function that draws; empty where a generator is made that will draw later.
        """
        found, drawing = "", frame
        while frame is not None:
            code = frame.f_code
            known = self._known.get(id(code))
            if known is None:
                known = self._known[id(code)] = (code, self._place(frame))
            place = known[1]
            if place == FORWARD:
                found = DROPOUT
            elif place == ITERATION:
                return ORDER if call in _PICKING else AUGMENTATION
            elif place in (MODULE, DATASET):
                if (place == MODULE) == bool(call) and not found:
                    return WEIGHTS if call else AUGMENTATION
            elif place and (not found or place == AUGMENTATION):
                return place
            frame = frame.f_back
        return found or _stream_by_source(call, drawing)

    def _place(self, frame: FrameType) -> str:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file.startswith(_WORKER):
            return ""
        known = next((place for rule in self.rules for place in [rule(frame)] if place), "")
        known = known or next((stream for stream, words in _WORDS if words.search(name)), "")
        return known or (MODULE if name == "__init__" and _is_module(owner_of(frame)) else "")

    def count(self, stream: str, call: str) -> None:
        """A draw was made."""
        if stream == OTHER and not self._count_place(call):
            return
        self._counted[PARTED.index(stream)] += 1
        if self._slot:
            _COUNTS.pack_into(self._shared, self._slot * _SLOT_BYTES, *self._counted)

    def _count_place(self, call: str) -> bool:
        """Whether it counts: what a library draws while it is imported is no part of the training."""
        caller = seeding.calling()
        if caller.importing:
            return False
        place = f"{call} at {caller.where}"
        if place in self._places or len(self._places) < _MOST_PLACES:
            self._places[place] = self._places.get(place, 0) + 1
        if self._slot and self._places.get(place, 0) & (self._places.get(place, 0) - 1) == 0:  # at 1, 2, 4, 8, …
            text = f"{self._places.get(place, 0)} {place}".encode("utf-8", "replace")[:_TEXT]
            start = self._slot * _SLOT_BYTES + _COUNTS.size
            self._shared[start : start + _TEXT] = text.ljust(_TEXT, b"\0")
        return True

    def drawn(self) -> DrawCounts:
        """What this process and its children drew, as far as it was seen."""
        counts, places = list(self._counted), dict(self._places)
        for slot in range(1, _SLOTS):
            start = slot * _SLOT_BYTES
            counts = [a + b for a, b in zip(counts, _COUNTS.unpack_from(self._shared, start))]
            text = self._shared[start + _COUNTS.size : start + _SLOT_BYTES].rstrip(b"\0").decode("utf-8", "replace")
            number, _, place = text.partition(" ")
            if place:
                places[place] = places.get(place, 0) + int(number)
        return DrawCounts(dict(zip(PARTED, counts)), places)

    def answer(self) -> str:
        """What came about, in the words of the switch: of the streams that were named those that drew anything."""
        counts = self.drawn().counts
        if self.request.words in ("all", "none") or all(counts[name] for name in self.request.follow):
            return self.asked
        return "+".join(name for name in STREAM_NAMES if name in self.request.follow and counts[name]) or "none"

    def told(self) -> dict[str, Any]:
        """What goes into the record."""
        drawn = self.drawn()
        largest = sorted(drawn.places.items(), key=lambda item: (-item[1], item[0]))
        first = dict(list(drawn.places.items())[:_PLACES_TOLD])
        largest = [item for number, item in enumerate(largest) if number < _PLACES_TOLD or item[0] in first]
        unseen = [text for look in self.out_of_sight for text in [look()] if text]
        return {
            "follow": [name for name in STREAM_NAMES if name in self.request.follow],
            "kept_seed": self.request.kept_seed,
            "draws": {name: drawn.counts[name] for name in STREAM_NAMES},
            "unclassified": [{"where": where, "draws": number} for where, number in largest],
            "out_of_sight": unseen,
        }


def owner_of(frame: FrameType) -> Any:
    """What a method belongs to."""
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if names and frame.f_code.co_argcount else None


def _is_module(owner: Any) -> bool:
    return any(callable(getattr(type(owner), name, None)) for name in _OF_A_MODULE)


def _stream_by_source(call: str, frame: FrameType | None) -> str:
    """By the statement that draws, and the loops around it and around its callers: those of the training's own code."""
    lines = []
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users_file(file) or (frame.f_globals.get("__name__") == "__main__" and not file.startswith(_WORKER)):
            lines.append(source_line(file, frame.f_lineno))
        frame = frame.f_back
    repeated = any(line.repeated for line in lines)
    if call in _PERMUTING:
        return ORDER if repeated else OTHER
    is_weights = call and lines and (lines[0].makes_parameter or (lines[0].looks_like_weights and not repeated))
    return WEIGHTS if is_weights else OTHER


class StreamTaker(seeding.SeedTaker):
    """Is asked wherever a generator is seeded: it starts the streams of that generator anew, or gives it to one."""

    def __init__(self, streams: Streams, recorder: Recorder) -> None:
        super().__init__(streams.request.kept_seed, recorder, takes_constants=True, answers_fresh=True)
        self._streams = streams
        self._told = "+".join(sorted(streams.request.follow)) or "none"

    def take(self, kind: seeding.Kind, call: str, value: Any) -> Any:
        """The value itself for a generator whose draws are parted; for another a number of the stream it is made in."""
        constant = kind.constant(value)
        caller = seeding.calling()
        if constant is None or caller.importing:
            return value
        self._places.add(caller.where)
        if not caller.library:
            self._recorder.seeded(call, seeding.shown_seed(value), caller.where, f"streams {self._told}")
        return self._given_to_stream(kind, call, constant, value)

    def fresh(self, kind: seeding.Kind, call: str) -> int | None:
        """A number that is the same in every run, and the streams of each follow from there."""
        new = super().fresh(kind, call)
        return None if new is None else int(self._given_to_stream(kind, call, new, new))

    def _given_to_stream(self, kind: seeding.Kind, call: str, constant: Any, value: Any) -> Any:
        streams = self._streams
        if call in frameworks.global_seed_calls() or kind.name in streams.parted_at_draws:
            streams.restarted(kind.name, constant)
            return value
        stream = streams.stream_at("", sys._getframe(1))  # noqa: SLF001
        streams.count(stream, call)
        return streams.seed_of(stream, kind.name, constant) >> 32  # 31 bits, which every library takes


_active: Streams | None = None


def active() -> Streams | None:
    """The streams of this process; None where nobody asked."""
    return _active


def begin(request: StreamRequest, asked: str, run_seed: int, recorder: Recorder) -> StreamTaker:
    """Part streams from now on; frameworks do so when they are imported (`Framework.part_streams`)."""
    global _active  # noqa: PLW0603  one a process
    _active = Streams(request, run_seed, asked)
    _active.share_with_children()
    return StreamTaker(_active, recorder)


def part_functions(
    streams: Streams, module: ModuleType, methods: Mapping[str, str], family: str, made: Callable[[int], Any]
) -> None:
    """Let functions of a module, which are methods of one hidden generator, draw from a generator of their stream.

    methods: by function, what the method is called. made: a generator with these methods, from 63 bits.
    """
    generators: dict[str, Any] = {}
    streams.at_restart(family, generators.clear)

    def generator_of(stream: str) -> Any:
        if stream not in generators:
            with seeding.suspended():
                generators[stream] = made(streams.seed_of(stream, family, streams.value_of(family)))
        return generators[stream]

    def parted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        call, method = f"{module.__name__}.{name}", methods[name]

        @functools.wraps(original)
        def draw(*args: Any, **kwargs: Any) -> Any:
            stream = streams.stream_at(name, sys._getframe(1))  # noqa: SLF001
            streams.count(stream, call)
            return getattr(generator_of(stream), method)(*args, **kwargs)

        return draw

    for name in methods:
        setattr(module, name, parted(name, getattr(module, name)))
