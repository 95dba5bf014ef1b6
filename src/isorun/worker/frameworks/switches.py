"""Switches: how libraries are asked to compute, one row each, and what they answer.

A request is made before the training starts, by variables, and in it, where a framework takes it only there
(`Framework.switch`). Libraries clamp and ignore requests silently, so each is asked at the end what it has, in the
words of these rows (`Framework.answers`): those go into the record, beside what was requested.
"""

from __future__ import annotations

from typing import Any, FrozenSet, Mapping, NamedTuple

from ..levels import THREAD_COUNTS
from . import every, imported

NATIVE = "native"

# The random streams of a training (`worker/streams.py`), the last for draws that could be told to none of the others;
# the seed that a stream keeps where nobody says another.
STREAM_NAMES = ("weights", "order", "dropout", "augmentation", "other")
_BASELINE_SEED = 1


class Switch(NamedTuple):
    """One row. values: the words it takes; other words are `other`, a pattern with what is said of it.

    noun: what its value stands behind in a sentence. variables: by value, what asks libraries that several frameworks
    stand on; frameworks say their own. asked_by: variables that ask for it where a study sets them by itself, each with
    those of its words (in small letters) that the switch calls otherwise. only_on: of the variables those that a
    library obeys on processors of its own maker alone, by a word of the processor's name. of_a_gpu: on the CPU it is
    neither on nor off, and asking for it asks for nothing.
    """

    name: str
    noun: str
    values: tuple[str, ...]
    meaning: str
    variables: Mapping[str, Mapping[str, str]] = {}
    other: tuple[str, str] = ("", "")
    asked_by: Mapping[str, Mapping[str, str]] = {}
    only_on: Mapping[str, str] = {}
    of_a_gpu: bool = False

    @property
    def allowed(self) -> str:
        """The values for people."""
        return ", ".join([*self.values, *([self.other[1]] if self.other[1] else [])])


def _widest(onednn: str, mkl: str, openblas: str) -> dict[str, str]:
    return {"ONEDNN_MAX_CPU_ISA": onednn, "MKL_ENABLE_INSTRUCTIONS": mkl, "OPENBLAS_CORETYPE": openblas}


_NAME = f"({'|'.join(STREAM_NAMES)})"
_NO_DEVICE = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
_BRANCHES = ("auto", "compatible", "avx2", "avx2-strict", "avx512", "avx512-strict")

SWITCHES: Mapping[str, Switch] = {
    row.name: row
    for row in (
        Switch(
            "onednn",
            "oneDNN",
            ("on", "off"),
            "whether oneDNN's kernels are used on the CPU",
            asked_by={"TF_ENABLE_ONEDNN_OPTS": {"0": "off", "1": "on"}},
        ),
        Switch(
            "cpu",
            "instructions up to",
            (NATIVE, "avx512", "avx2", "baseline"),
            "the widest instructions that libraries may use: another CPU",
            {
                "avx512": _widest("AVX512_CORE", "AVX512", "SkylakeX"),
                "avx2": _widest("AVX2", "AVX2", "Haswell"),
                "baseline": _widest("SSE41", "SSE4_2", "Nehalem"),
            },
            asked_by={"ATEN_CPU_CAPABILITY": {"default": "baseline"}},
            only_on={"MKL_ENABLE_INSTRUCTIONS": "Intel"},
        ),
        Switch(
            "mkl",
            "MKL's conditional reproducibility",
            ("off", *_BRANCHES),
            "MKL's conditional reproducibility",
            {branch: {"MKL_CBWR": branch.upper().replace("-", ",")} for branch in _BRANCHES},
            asked_by={"MKL_CBWR": {}},
        ),
        Switch(
            "device",
            "computed on",
            ("cpu", "cuda"),
            "where it computes",
            {"cpu": _NO_DEVICE},
            (r"cuda:\d+", "cuda:N"),
        ),
        Switch(
            "tf32",
            "TF32",
            ("on", "off"),
            "whether float32 products on NVIDIA's devices may be rounded to TF32",
            {"off": {"NVIDIA_TF32_OVERRIDE": "0"}},
            of_a_gpu=True,
        ),
        Switch(
            "cudnn",
            "cuDNN",
            ("on", "off", "benchmark"),
            "whether cuDNN is used, and chooses its kernels by time",
            of_a_gpu=True,
        ),
        Switch(
            "kernels",
            "kernels",
            ("free", "deterministic"),
            "whether kernels are asked for that give the same bits again",
        ),
        Switch(
            "streams",
            "random streams that follow the seed",
            ("all", "none", *STREAM_NAMES),
            "which random streams follow the run's seed; the others keep the baseline's",
            other=(
                rf"(all|none|{_NAME}(\+{_NAME})*)(@\d{{1,18}})?",
                "several joined by + (weights+order), each with @SEED for the seed that the others keep",
            ),
        ),
    )
}

THREADS = "threads"
AUTOTUNE = "cudnn"
"""The switch that says whether kernels are chosen by time."""
_ASKED_BY = {variable: row for row in SWITCHES.values() for variable in row.asked_by}
ONLY_ON = {variable: maker for row in SWITCHES.values() for variable, maker in row.only_on.items()}


def variables(asked: Mapping[str, str]) -> dict[str, str]:
    """The variables that ask for these switches, to be set before the training starts."""
    wanted: dict[str, str] = {}
    for name, value in asked.items():
        wanted.update(SWITCHES[name].variables.get(value, {}))
        if name == "device" and value.startswith("cuda:"):
            wanted.update({"CUDA_VISIBLE_DEVICES": value.partition(":")[2], "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    for framework in every():
        wanted.update(framework.switch_variables(asked))
    return wanted


class StreamRequest(NamedTuple):
    """Which random streams follow the run's seed, the seed that the others keep, and the words that say which."""

    follow: FrozenSet[str]
    kept_seed: int
    words: str

    @classmethod
    def of(cls, text: str) -> StreamRequest:
        """What a value of the switch `streams` asks for."""
        words, _, seed = text.partition("@")
        follow = {"all": STREAM_NAMES, "none": ()}.get(words, tuple(words.split("+")))
        return cls(frozenset(follow), int(seed) if seed else _BASELINE_SEED, words)


def stream_request(asked: Mapping[str, str]) -> StreamRequest | None:
    """What the switch `streams` asks for; None where it is not asked for."""
    return StreamRequest.of(asked["streams"]) if "streams" in asked else None


def given_seed(asked: Mapping[str, str], seed: int) -> int:
    """The seed that a training is told: where its streams are parted the kept one in every run.

    Whatever it computes from that is then the same in every run, and what follows the run's seed does so where numbers
    are drawn.
    """
    request = stream_request(asked)
    return seed if request is None else request.kept_seed


def asked_by(environment: Mapping[str, str]) -> dict[str, str]:
    """The switches that variables of a study ask for by themselves, as far as an answer to them can be read."""
    asked: dict[str, str] = {}
    for name, value in environment.items():
        if value.isdigit() and _counts_threads(name):
            asked[THREADS] = max(value, asked.get(THREADS, ""), key=lambda text: int(text or 0))
        elif name in _ASKED_BY:
            row = _ASKED_BY[name]
            asked[row.name] = row.asked_by[name].get(value.lower(), value.lower().replace(",", "-"))
    return asked


def _counts_threads(name: str) -> bool:
    """Whether a variable says how many threads an operation has; frameworks are asked about what might be theirs."""
    if name in THREAD_COUNTS or not name.endswith(("_THREADS", "_NPROC")):
        return name in THREAD_COUNTS
    return any(name in framework.thread_variables[:1] for framework in every())


def asked_of(content: Mapping[str, Any]) -> dict[str, str]:
    """All switches that an environment asks for, by what a cell says of it: as such, by threads, or by variables."""
    threads = {} if content.get(THREADS) is None else {THREADS: str(content[THREADS])}
    return {**asked_by(content.get("env", {})), **threads, **content.get("switches", {})}


def written(asked: Mapping[str, str]) -> str:
    """The switches as one text, for the worker."""
    return ",".join(f"{name}={value}" for name, value in sorted(asked.items()))


def answers() -> dict[str, dict[str, str]] | None:
    """What each imported framework has, switch by switch; None where none answers."""
    found: dict[str, dict[str, str]] = {}
    for framework, module in imported():
        try:
            answered = framework.answers(module)
        except Exception as error:  # one that cannot be asked must not cost the others
            answered = {"unreadable": f"{type(error).__name__}: {error}"}
        if answered:
            found[framework.name] = answered
    return found or None


def without_effect(asked: Mapping[str, str], answered: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """The requests that did not come about, each with what those have that answer; nothing where nobody answers."""
    missed: dict[str, dict[str, str]] = {}
    for name, value in asked.items():
        is_nothing = name in SWITCHES and SWITCHES[name].of_a_gpu and asked.get("device") == "cpu"
        if value == NATIVE or is_nothing:
            continue
        heard = {who: str(items[name]) for who, items in answered.items() if name in items}
        other = {who: has for who, has in heard.items() if has != value.partition(":")[0]}
        if other or not (heard or name == THREADS):
            missed[name] = other
    return missed
