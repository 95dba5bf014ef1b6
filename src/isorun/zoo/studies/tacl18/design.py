"""The paper's experiments as studies: one a table, the same model everywhere, one factor varied in each.

And what is less than published, and by how much: of a scale as a whole, and of what was asked for and run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.study.cells import Level
from isorun.study.design import Approach, Config, Study
from isorun.zoo.carried import carried
from isorun.zoo.data.answers import train_all_folder
from isorun.zoo.data.presence import at_hand, require
from isorun.zoo.machines import gpu_at_hand
from isorun.zoo.paper import Request, Scale
from isorun.zoo.studies.tacl18.published import FIXED_SEED
from isorun.zoo.studies.tacl18.scales import (
    AMOUNTS,
    COSTS,
    JAX_BASELINE,
    JAX_BESIDE,
    JAX_SCRIPT,
    JAX_VERSIONS,
    MOST_THREADS,
    ONE_THREAD,
    PUBLISHED_SEEDS,
    Amount,
    cpu_environments,
    cpu_paths,
    qa_seeds,
    thread_counts,
    thread_environments,
)

__all__ = [
    "NEEDED",
    "ON_REQUEST",
    "OWN_MASKS",
    "PARTS",
    "SCALES",
    "SIDES",
    "WORKLOADS",
    "Workload",
    "asked_parts",
    "carried_data",
    "has_train_all",
    "planned_studies",
    "scaled_down",
    "stand_in_for",
    "study_names",
]

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "trecqa-raw": ("trecqa", "glove"),
    "trecqa-clean": ("trecqa", "glove"),
    "wikiqa": ("wikiqa", "glove"),
}
"""The data sets, as `isorun data list` names them, that each choice of the training command reads."""


def stand_in_for(data: str, scale: str) -> bool:
    """Whether made data stands in: at scale "smoke" only; at the others missing data is an error with a next step."""
    needed = NEEDED[data]
    if scale == "smoke":
        return not all(at_hand(name) for name in needed)
    for name in needed:
        require(name)
    return False


def has_train_all() -> bool:
    """Whether TRAIN-ALL of TrecQA is there; prepared copies may come without it."""
    return at_hand("trecqa") and train_all_folder(require("trecqa")) is not None


PARTS: Final = ("baseline", "data", "versions", "threads", "cpu-paths", "devices", "seeds", "masks", "rounding")
ON_REQUEST: Final = ("versions",)
"""Parts that are carried out only when they are named: packages are installed for them."""
WHOLE: Final = tuple(part for part in PARTS if part not in ON_REQUEST)
_STUDIES: Final[Mapping[str, tuple[str, ...]]] = {
    **{part: (part,) for part in PARTS},
    "cpu-paths": ("cpu-paths", "onednn-off"),
    "rounding": (),
}
"""The studies of each part; rounding asks the records of the others and the published scores."""

TRAIN: Final = "isorun.zoo.studies.tacl18.train"
IDF_RUN: Final = "isorun.zoo.studies.tacl18.idf_run"
SEED_DECIDES: Final = "weights"
"""As in the code of the paper, where all that is drawn after the initial weights came from one seed."""
CPU: Final = Config("CPU", {"device": "cpu", "onednn": "on", "cudnn": "on"})
CPU_OFF: Final = Config("CPU without oneDNN", {"device": "cpu", "onednn": "off", "cudnn": "on"})
GPU: Final = Config("GPU", {"device": "cuda", "onednn": "on", "cudnn": "on"})
GPU_OFF: Final = Config("GPU without cuDNN", {"device": "cuda", "onednn": "on", "cudnn": "off"})
OWN_MASKS: Final = ", own masks"
"""What the name of a side ends with where its device draws dropout's masks, as in the code of the paper."""
SIDES: Final = tuple(config.name for config in (CPU, CPU_OFF, GPU, GPU_OFF))


@dataclass(frozen=True, slots=True)
class Workload:
    """A data set with one of its training sets; train "" stands for the one of the scale."""

    name: str
    data: str
    train: str = ""


WORKLOADS: Final[Mapping[str, Workload]] = {
    "TrecQA": Workload("TrecQA", "trecqa-raw"),
    "WikiQA": Workload("WikiQA", "wikiqa", "train"),
}
_VERSIONS: Final = tuple(
    Workload(f"TrecQA {version} {train.upper()}", f"trecqa-{version}", train)
    for version in ("raw", "clean")
    for train in ("train", "train-all")
)


def study_names(part: str, scale: str) -> tuple[str, ...]:
    """The names of a part's studies: the scale is in them, so that a report by name means one thing."""
    return tuple(f"tacl18-{scale}-{name}" for name in _STUDIES[part])


def asked_parts(request: Request) -> tuple[str, ...]:
    """The parts that were asked for, in the order of the paper; where none were, the whole."""
    return tuple(part for part in PARTS if part in (request.only or WHOLE))


def planned_studies(request: Request) -> tuple[Study, ...]:
    """The studies of the parts that were asked for, in the order of the paper."""
    return tuple(study for part in asked_parts(request) for study in _BUILDERS[part](request, AMOUNTS[request.scale]))


def _baseline(request: Request, amount: Amount) -> Iterator[Study]:
    train = "train-all" if has_train_all() and request.scale != "smoke" else "train"
    versions = [Workload(f"TrecQA {version}", f"trecqa-{version}", train) for version in ("raw", "clean")]
    versions.append(WORKLOADS["WikiQA"])
    command = {item.name: ("python", "-m", IDF_RUN, *_data_words(item, amount, request)) for item in versions}
    approaches = {name: Approach(name, words) for name, words in command.items()}
    yield _study(request, "baseline", 0, approaches=approaches, environments={"default": {"threads": 1}})


def _data(request: Request, amount: Amount) -> Iterator[Study]:
    """All data: TRAIN and TRAIN-ALL of both versions of TrecQA, and WikiQA; none comparable to another."""
    both = request.scale in {"gpu", "paper"} and has_train_all()
    versions = [item for item in _VERSIONS if both or item.train == "train"]
    yield _training(
        request,
        "data",
        approaches=_approaches([*versions, Workload("WikiQA TRAIN", "wikiqa", "train")], "data", request),
        configs=_named(GPU if gpu_at_hand(request.device) else CPU),
        seeds=qa_seeds(request.runs or amount.data_seeds),
    )


def _versions(request: Request, amount: Amount) -> Iterator[Study]:
    """The sample model written for JAX, in an environment for each version, with shared masks and with JAX's own."""
    table = {version: [f"jax=={version}", f"jaxlib=={version}", *JAX_BESIDE] for version in JAX_VERSIONS}
    workloads = [WORKLOADS[name] for name in amount.version_data]
    approaches = {
        f"{item.name}{ending}": Approach(f"{item.name}{ending}", _jax_command(item, dropout, request))
        for item in workloads
        for dropout, ending in (("shared", ""), ("own", OWN_MASKS))
    }
    yield _study(
        request,
        "versions",
        0,
        approaches=approaches,
        environments={"default": {"threads": 1}},
        factors={"design": "one-at-a-time", "baseline": {"jax": JAX_BASELINE}, "jax": table},
        seeds=qa_seeds(request.runs or amount.version_seeds),
        sources={"stdout": False},
    )


def _jax_command(workload: Workload, dropout: str, request: Request) -> tuple[str, ...]:
    epochs = AMOUNTS[request.scale].most_epochs("versions", workload.name)
    arrays, made = carried_data(workload, request)
    words = ["python", carried("tacl18", JAX_SCRIPT), "--data", carried("tacl18", arrays), "--seed", "{seed}"]
    words += ["--epochs", str(epochs)] if epochs else []
    return (*words, "--dropout", dropout, *(("--made-data",) if made else ()))


def carried_data(workload: Workload, request: Request) -> tuple[str, bool]:
    """The name of the file with a data set's arrays, and whether data made on the spot are in it."""
    amount = AMOUNTS[request.scale]
    made = "--made-data" in _data_words(workload, amount, request)
    questions = amount.questions.get(_data_set(workload))
    parts = [workload.data, workload.train or amount.trecqa_train, *([str(questions)] if questions else [])]
    return "-".join([*parts, *(["made"] if made else [])]) + ".npz", made


def _threads(request: Request, amount: Amount) -> Iterator[Study]:
    environments = thread_environments(thread_counts(amount.threads))
    yield _training(request, "threads", environments=environments, repeats=request.runs or amount.repeats)


def _cpu_paths(request: Request, amount: Amount) -> Iterator[Study]:
    paths = tuple(path for path in cpu_paths() if amount.paths is None or path.name in amount.paths)
    repeats = request.runs or amount.path_repeats
    yield _training(request, "cpu-paths", environments=cpu_environments(paths), repeats=repeats)
    yield _training(request, "cpu-paths", 1, configs=_named(CPU_OFF), repeats=repeats)


def _devices(request: Request, amount: Amount) -> Iterator[Study]:
    if gpu_at_hand(request.device):
        repeats = request.runs or amount.repeats
        yield _training(request, "devices", configs=_named(CPU, GPU, GPU_OFF), repeats=repeats)


def _seeds(request: Request, amount: Amount) -> Iterator[Study]:
    """The same seeds on two sides: CPU and GPU, or two CPU paths where there is no GPU."""
    second = GPU if gpu_at_hand(request.device) else CPU_OFF
    yield _training(request, "seeds", configs=_named(CPU, second), seeds=qa_seeds(request.runs or amount.seeds))


def _masks(request: Request, amount: Amount) -> Iterator[Study]:
    """The same seeds on two sides, with each side's own masks and with masks that both share.

    Two CPU paths draw the same masks: without a GPU this shows that it works and no more: smoke, or when asked for.
    """
    is_wanted = request.scale == "smoke" or "masks" in request.only
    if not gpu_at_hand(request.device) and not is_wanted:
        return
    second = GPU if gpu_at_hand(request.device) else CPU_OFF
    sides = [_dropping(side, dropout) for dropout in ("device", "shared") for side in (CPU, second)]
    seeds = qa_seeds(request.runs or amount.mask_seeds)
    yield _training(request, "masks", configs=_named(*sides), seeds=seeds)


def _dropping(side: Config, dropout: str) -> Config:
    name = side.name if dropout == "shared" else f"{side.name}{OWN_MASKS}"
    return Config(name, {**side.values, "dropout": dropout})


def _none(_request: Request, _amount: Amount) -> Iterator[Study]:
    yield from ()


_BUILDERS: Final[Mapping[str, Callable[[Request, Amount], Iterator[Study]]]] = {
    "baseline": _baseline,
    "data": _data,
    "versions": _versions,
    "threads": _threads,
    "cpu-paths": _cpu_paths,
    "devices": _devices,
    "seeds": _seeds,
    "masks": _masks,
    "rounding": _none,
}


def _training(request: Request, part: str, number: int = 0, **parts: Any) -> Study:
    """The sample model on both data sets, on one CPU with the paper's seed, unless told otherwise."""
    amount = AMOUNTS[request.scale]
    given: dict[str, Any] = {
        "approaches": _approaches([WORKLOADS[name] for name in amount.data], part, request),
        "configs": _named(CPU),
        "environments": {ONE_THREAD.name: ONE_THREAD},
        "seeds": (FIXED_SEED,),
    }
    return _study(request, part, number, **(given | parts))


def _study(request: Request, part: str, number: int, **parts: Any) -> Study:
    given: dict[str, Any] = {
        "levels": (Level.FIXED_SEED,),
        "metrics": {"map": {"direction": "higher"}, "mrr": {"direction": "higher"}},
        "folder": request.folder,
    }
    return Study(study_names(part, request.scale)[number], **(given | parts))


def _named(*configs: Config) -> dict[str, Config]:
    return {config.name: config for config in configs}


def _approaches(workloads: list[Workload], part: str, request: Request) -> dict[str, Approach]:
    return {item.name: Approach(item.name, _train_command(item, part, request)) for item in workloads}


def _train_command(workload: Workload, part: str, request: Request) -> tuple[str, ...]:
    amount = AMOUNTS[request.scale]
    epochs, questions = amount.most_epochs(part, workload.name), amount.questions.get(_data_set(workload))
    words = ["python", "-m", TRAIN, *_data_words(workload, amount, request), "--seed", "{seed}"]
    words += ["--epochs", str(epochs)] if epochs else []
    words += ["--train-questions", str(questions)] if questions else []
    words += ["--device", "{config.device}", "--onednn", "{config.onednn}", "--cudnn", "{config.cudnn}"]
    words += ["--dropout", "{config.dropout}"] if part == "masks" else []
    return (*words, "--vary", SEED_DECIDES, *amount.options)


def _data_set(workload: Workload) -> str:
    """As `isorun data list` names it."""
    return workload.data.partition("-")[0]


def _data_words(workload: Workload, amount: Amount, request: Request) -> tuple[str, ...]:
    words = ("--data", workload.data, "--train", workload.train or amount.trecqa_train)
    is_shown_only = request.recorded and request.scale != "smoke"
    return (*words, "--made-data") if not is_shown_only and stand_in_for(workload.data, request.scale) else words


_TRAINED: Final = frozenset({"data", "versions", "threads", "cpu-paths", "devices", "seeds", "masks"})
_TABLES: Final = _TRAINED - {"data", "versions"}
_QUESTIONS: Final = {"trecqa": "of TrecQA's 93", "wikiqa": "of WikiQA's 873"}
_UNTIL: Final = "instead of training until the development score stops rising (at most 25)"
_SMALL: Final = "TRAIN (93 questions, 4,718 pairs) instead of TRAIN-ALL (1,229 questions, 53,417 pairs) for TrecQA"
_BATCHES: Final = "batches of 32 pairs in shuffled order instead of single pairs in the order of the file"


def scaled_down(
    scale: str, parts: Sequence[str] = WHOLE, runs: int | None = None, recorded: int | None = None
) -> tuple[str, ...]:
    """A sentence for each way in which these parts have less than the paper.

    runs: the number of seeds that was asked for, the scale's own when None. recorded: how many of them every side and
    data set has, None where it does not matter.
    """
    amount = AMOUNTS[scale]
    trained = _less_training(amount, parts) if _TRAINED & set(parts) else ()
    return (*trained, *_breadth(amount, parts), *_fewer_seeds(amount, parts, runs, recorded))


def _less_training(amount: Amount, parts: Sequence[str]) -> Iterator[str]:
    if amount.epochs:
        yield f"{_epochs(amount.epochs)} {_UNTIL}"
    used = {_data_set(WORKLOADS[name]) for name in (amount.version_data if set(parts) == {"versions"} else WORKLOADS)}
    for data, number in amount.questions.items():
        if data in used:
            yield f"{number} {_QUESTIONS[data]} training questions"
    if "seeds" in parts:
        for workload, number in amount.seed_epochs.items():
            yield f"{_epochs(number)} for the seeds on {workload} {_UNTIL}"
    if "versions" in parts and amount.version_epochs:
        yield f"{_epochs(amount.version_epochs)} for the versions {_UNTIL}"
    if amount.trecqa_train == "train":
        yield _SMALL
    if not amount.options or "versions" in parts:
        yield f"{_BATCHES}{' for the versions' if amount.options else ''}"


def _breadth(amount: Amount, parts: Sequence[str]) -> Iterator[str]:
    if "WikiQA" not in amount.data and _TABLES & set(parts):
        yield "TrecQA only in Tables 6 to 9 and the figures"
    if "WikiQA" not in amount.version_data and "versions" in parts:
        yield "TrecQA only in Table 5"
    if amount.paths is not None and "cpu-paths" in parts:
        yield f"{len(amount.paths)} CPU paths besides oneDNN off"
    if amount.threads < MOST_THREADS and "threads" in parts:
        yield f"at most {amount.threads} threads"


def _fewer_seeds(amount: Amount, parts: Sequence[str], runs: int | None, recorded: int | None) -> Iterator[str]:
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
