"""The paper's comparison as searches: by which method, from which initial model, in which space.

A study holds the searches of one data set and one seed; all of them start from the same initial model of their family,
which is drawn from the original space. A trial is an ordinary run of `train.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from isorun.study.cells import Level
from isorun.study.design import Study
from isorun.zoo.paper import PRELOAD, Request
from isorun.zoo.studies.dream.scales import CLASSES, PUBLISHED_TARGET, SIZES, Size
from isorun.zoo.studies.dream.space import ADDED, ORIGINAL, Value

__all__ = [
    "CASES",
    "COMPARED",
    "DATA",
    "GROUPS",
    "METHODS",
    "METRIC",
    "PARTS",
    "Method",
    "PlannedSearch",
    "PlannedStudy",
    "cases_of",
    "initial_model",
    "planned_studies",
    "scaled_down",
    "study_of",
]

METRIC: Final = "val_accuracy"
FAMILY: Final = "block_type"
OFFERED: Final = "isorun."
"""Before the name of what is added to a space for repairing alone: an engine's own trials have its first choice."""
CASES: Final = {"case-1": "I", "case-2": "II"}
DATA: Final = tuple(CLASSES)
_TRAIN: Final = ("python", "-m", "isorun.zoo.studies.dream.train")
_PRELOAD: Final = (*PRELOAD, "isorun.zoo.studies.dream.training", "isorun.zoo.data.images")
_BEGIN: Final = 1
"""The paper's thresholds are zero: its own search begins at once, with the initial model."""


@dataclass(frozen=True, slots=True)
class Method:
    """A way to search. space: "original", "expanded" (the engine searches all of it) or "offered" (repairing does).

    engine: who proposes before `begin`, or always where that is "never". prior: "held-out" (counts from all data sets
    but the one searched), "shuffled" or "none". stands_for: the strategy of the paper in whose place it is.
    """

    name: str
    label: str
    group: str
    engine: str
    space: str
    begin: str | int = "never"
    prior: str = "held-out"
    stands_for: str = ""

    @property
    def is_repaired(self) -> bool:
        """Whether isorun proposes trials of it."""
        return self.begin != "never"


GROUPS: Final = ("searches", "expansion", "priorities", "feedback", "attached")
"""The parts of the comparison: Table 2 and Figures 5 and 6; Table 4; Figure 10; Figure 9; Figure 7."""
_TPE, _RANDOM, _EDITS = "optuna:tpe", "random", "edits"

METHODS: Final = {
    method.name: method
    for method in (
        Method("edits", "uniform edits", "searches", _EDITS, "original", stands_for="AKG"),
        Method("tpe", "TPE", "searches", _TPE, "original", stands_for="AKB"),
        Method("random", "random", "searches", _RANDOM, "original", stands_for="AKH"),
        Method("repair", "repair", "searches", _TPE, "offered", _BEGIN, stands_for="DREAM"),
        Method("edits-expanded", "uniform edits, expanded", "expansion", _EDITS, "expanded", stands_for="AKG"),
        Method("tpe-expanded", "TPE, expanded", "expansion", _TPE, "expanded", stands_for="AKB"),
        Method("random-expanded", "random, expanded", "expansion", _RANDOM, "expanded", stands_for="AKH"),
        Method("shuffled", "shuffled prior", "priorities", _TPE, "offered", _BEGIN, "shuffled"),
        Method("no-prior", "no prior", "priorities", _TPE, "offered", _BEGIN, "none"),
        Method("repair-original", "repair, original space", "feedback", _TPE, "original", _BEGIN),
        Method("edits-attached", "uniform edits, then repair", "attached", _EDITS, "offered", "attached"),
        Method("tpe-attached", "TPE, then repair", "attached", _TPE, "offered", "attached"),
        Method("random-attached", "random, then repair", "attached", _RANDOM, "offered", "attached"),
    )
}
COMPARED: Final = tuple(method for method in METHODS.values() if method.group == "searches")
"""The columns of Table 2, in the paper's order."""
_CONTROLS: Final = frozenset({"edits-expanded", "tpe-expanded", "random-expanded", "shuffled"})
_TABLE_2: Final = frozenset(method.name for method in COMPARED)
PARTS: Final = (*CASES, *GROUPS, *DATA)


@dataclass(frozen=True, slots=True)
class PlannedSearch:
    """One search: a method in one family of networks."""

    family: str
    method: Method

    @property
    def name(self) -> str:
        """As the records of its trials have it."""
        return f"{self.family} {self.method.name}"


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """The searches of one data set from the initial models of one seed."""

    name: str
    data: str
    seed: int
    size: Size
    searches: tuple[PlannedSearch, ...]


def cases_of(request: Request) -> tuple[str, ...]:
    """The motivating cases that were asked for: all of them where nothing is named."""
    return tuple(case for part, case in CASES.items() if not request.only or part in request.only)


def planned_studies(request: Request) -> tuple[PlannedStudy, ...]:
    """What was asked for, whether or not its data is at hand. First seeds come first: an end in between hurts least."""
    named = set(request.only)
    groups = [group for group in GROUPS if group in named] or (GROUPS if not named or named & {*DATA} else ())
    sizes = {data: _with_runs(size, request.runs) for data, size in SIZES[request.scale].items()}
    wanted = {data: size for data, size in sizes.items() if not named & {*DATA} or data in named}
    last = max((size.seeds for size in wanted.values()), default=0)
    planned = [
        PlannedStudy(f"dream-{request.scale}-{data}-{seed}", data, seed, size, _searches(size, seed, groups))
        for seed in range(1, last + 1)
        for data, size in wanted.items()
        if seed <= size.seeds
    ]
    return tuple(study for study in planned if study.searches)


def _with_runs(size: Size, runs: int | None) -> Size:
    if runs is None:
        return size
    return replace(size, seeds=runs, controls=min(size.controls, runs), ablations=min(size.ablations, runs))


def _searches(size: Size, seed: int, groups: Iterable[str]) -> tuple[PlannedSearch, ...]:
    wanted = [method for method in METHODS.values() if method.group in groups and seed <= _seeds(method, size)]
    return tuple(PlannedSearch(family, method) for method in wanted for family in size.families)


def _seeds(method: Method, size: Size) -> int:
    if method.name in _TABLE_2:
        return size.seeds
    return size.controls if method.name in _CONTROLS else size.ablations


def initial_model(data: str, family: str, seed: int, size: Size) -> dict[str, Value]:
    """What a search starts from: each value of the original space as likely as the others, by a hash of its name."""
    found: dict[str, Value] = {}
    for name in ORIGINAL:
        if name != FAMILY:
            choices = size.choices(name)
            drawn = hashlib.sha256(f"{data}/{family}/{seed}/{name}".encode()).digest()
            found[name] = choices[int.from_bytes(drawn[:8], "big") % len(choices)]
    return found


def study_of(planned: PlannedStudy, request: Request, is_made: Callable[[str], bool]) -> Study:
    """The study. is_made: whether data made on the spot stands in for the data set of this name."""
    made = ("--made-data",) if is_made(planned.data) else ()
    spaces = dict.fromkeys(search.method.space for search in planned.searches)
    families = dict.fromkeys(search.family for search in planned.searches)
    return Study(
        planned.name,
        approaches={space: {"command": _command(planned, request.device, made, space)} for space in spaces},
        configs={family: {FAMILY: family} for family in families},
        environments={"default": {"preload": list(_PRELOAD), "threads": 1}},
        levels=(Level.FIXED_SEED,),
        seeds=[planned.seed],
        metrics={METRIC: {"direction": "higher", "chance": 1.0 / CLASSES[planned.data]}},
        searches={search.name: _design(search, planned) for search in planned.searches},
        sources={"stdout": False},
        folder=request.folder,
    )


def _command(planned: PlannedStudy, device: str, made: Sequence[str], space: str) -> tuple[str, ...]:
    size = planned.size
    images = ("--train-images", str(size.train_images), "--judged-images", str(size.judged_images))
    shrunk = ("--shrink", str(size.shrink)) if size.shrink > 1 else ()
    given = [word for name in _names(space) for word in (f"--{_plain(name).replace('_', '-')}", f"{{config.{name}}}")]
    fixed = (*_TRAIN, "--data", planned.data, *made, *images, *shrunk, "--epochs", str(size.epochs))
    return (
        *fixed,
        "--device",
        device,
        "--seed",
        "{seed}",
        f"--{FAMILY.replace('_', '-')}",
        f"{{config.{FAMILY}}}",
        *given,
    )


def _names(space: str) -> tuple[str, ...]:
    """What is searched; what isorun offers has its mark before the name."""
    original = tuple(name for name in ORIGINAL if name != FAMILY)
    if space == "original":
        return original
    return (*original, *(f"{OFFERED}{name}" if space == "offered" else name for name in ADDED))


def _plain(name: str) -> str:
    return name.removeprefix(OFFERED)


def _design(search: PlannedSearch, planned: PlannedStudy) -> dict[str, Any]:
    method, size = search.method, planned.size
    names = _names(method.space)
    initial = initial_model(planned.data, search.family, planned.seed, size)
    start = {name: initial.get(_plain(name), size.choices(_plain(name))[0]) for name in names}
    return {
        "approach": method.space,
        "config": search.family,
        "space": {name: list(size.choices(_plain(name))) for name in names},
        "metric": METRIC,
        "trials": size.trials,
        "engine": method.engine,
        "seed": planned.seed,
        "begin": size.attached_after if method.begin == "attached" else method.begin,
        "prior": _prior(method, planned),
        "at_once": 1,
        "start": start,
    }


def _prior(method: Method, planned: PlannedStudy) -> str:
    """Counts from the very data that is searched would be the answers to the questions."""
    if method.prior == "none":
        return "none"
    shuffled = f", shuffled {planned.seed}" if method.prior == "shuffled" else ""
    return f"shipped, without {planned.data}{shuffled}"


def scaled_down(sizes: Mapping[str, Size]) -> tuple[str, ...]:
    """How the searches differ from the published ones, a sentence a data set."""
    return tuple(_less(data, size) for data, size in sizes.items())


def _less(data: str, size: Size) -> str:
    images = f"{size.train_images:,} training images" if size.train_images else "all training images"
    shrunk = f" averaged over {size.shrink} x {size.shrink} pixels" if size.shrink > 1 else ""
    limits = ", ".join(f"{name} at most {value}" for name, value in size.largest.items())
    return (
        f"{data}: {size.seeds} searches a method and family ({', '.join(size.families)}), {size.trials} trials of "
        f"{size.epochs} epochs on {images}{shrunk}, target {100 * size.target:g} % "
        f"(published: AutoKeras with pretrained networks, up to 200 epochs, target {100 * PUBLISHED_TARGET:g} %)"
        f"{f'; {limits}' if limits else ''}"
    )
