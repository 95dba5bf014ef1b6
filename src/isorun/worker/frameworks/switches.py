"""Switches: how libraries are asked to compute, one row each, and what they answer.

A request is made before the training starts, by variables, and in it, where a framework takes it only there
(`Framework.switch`). Libraries clamp and ignore requests silently, so each is asked at the end what it has, in the
words of these rows (`Framework.answers`): those go into the record, beside what was requested.
"""

from __future__ import annotations

from typing import Any, FrozenSet, Mapping, NamedTuple

from . import every, imported

NATIVE = "native"

# The random streams of a training (`worker/streams.py`), the last for draws that could be told to none of the others;
# the seed that a stream keeps where nobody says another.
STREAM_NAMES = ("weights", "order", "dropout", "augmentation", "other")
_BASELINE_SEED = 1


_TOLD = {
    "onednn": "oneDNN",
    "cpu": "instructions up to",
    "mkl": "MKL's conditional reproducibility",
    "device": "computed on",
    "tf32": "TF32",
    "cudnn": "cuDNN",
    "kernels": "kernels",
    "streams": "random streams that follow the seed",
}


class Switch(NamedTuple):
    """One row. values: the words it takes; other words are `other`, a pattern with what is said of it.

    variables: by value, what asks libraries that several frameworks stand on; frameworks say their own.
    """

    name: str
    values: tuple[str, ...]
    meaning: str
    variables: Mapping[str, Mapping[str, str]] = {}
    other: tuple[str, str] = ("", "")

    @property
    def told(self) -> str:
        """What its value stands behind in a sentence."""
        return _TOLD.get(self.name, self.name)

    @property
    def allowed(self) -> str:
        """The values for people."""
        return ", ".join([*self.values, *([self.other[1]] if self.other[1] else [])])


def _widest(openmp: str, mkl: str, openblas: str) -> dict[str, str]:
    return {"ONEDNN_MAX_CPU_ISA": openmp, "MKL_ENABLE_INSTRUCTIONS": mkl, "OPENBLAS_CORETYPE": openblas}


_NAME = f"({'|'.join(STREAM_NAMES)})"
_NO_DEVICE = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
_BRANCHES = ("auto", "compatible", "avx2", "avx2-strict", "avx512", "avx512-strict")

SWITCHES: Mapping[str, Switch] = {
    row.name: row
    for row in (
        Switch("onednn", ("on", "off"), "whether oneDNN's kernels are used on the CPU"),
        Switch(
            "cpu",
            (NATIVE, "avx512", "avx2", "baseline"),
            "the widest instructions that libraries may use: another CPU",
            {
                "avx512": _widest("AVX512_CORE", "AVX512", "SkylakeX"),
                "avx2": _widest("AVX2", "AVX2", "Haswell"),
                "baseline": _widest("SSE41", "SSE4_2", "Nehalem"),
            },
        ),
        Switch(
            "mkl",
            ("off", *_BRANCHES),
            "MKL's conditional reproducibility",
            {branch: {"MKL_CBWR": branch.upper().replace("-", ",")} for branch in _BRANCHES},
        ),
        Switch(
            "device",
            ("cpu", "cuda"),
            "where it computes",
            {"cpu": _NO_DEVICE},
            (r"cuda:\d+", "cuda:N"),
        ),
        Switch(
            "tf32",
            ("on", "off"),
            "whether float32 products on NVIDIA's devices may be rounded to TF32",
            {"off": {"NVIDIA_TF32_OVERRIDE": "0"}},
        ),
        Switch("cudnn", ("on", "off", "benchmark"), "whether cuDNN is used, and chooses its kernels by time"),
        Switch("kernels", ("free", "deterministic"), "whether kernels are asked for that give the same bits again"),
        Switch(
            "streams",
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
_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
_NAMED_AFTER = {"ATEN_CPU_CAPABILITY": {"default": "baseline"}, "TF_ENABLE_ONEDNN_OPTS": {"0": "off", "1": "on"}}
_ASKED_BY = {"ATEN_CPU_CAPABILITY": "cpu", "TF_ENABLE_ONEDNN_OPTS": "onednn"}

# What only a GPU does: on the CPU it is neither on nor off, and asking for it there asks for nothing.
_OF_A_GPU = frozenset(("tf32", "cudnn"))

# A variable that a library obeys only on processors of its own maker, by a word of the processor's name.
ONLY_ON = {"MKL_ENABLE_INSTRUCTIONS": "Intel"}


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
    """Which random streams follow the run's seed, and the seed that the others keep."""

    follow: FrozenSet[str]
    kept_seed: int


def stream_request(asked: Mapping[str, str]) -> StreamRequest | None:
    """What the switch `streams` asks for; None where it is not asked for."""
    if "streams" not in asked:
        return None
    words, _, seed = asked["streams"].partition("@")
    follow = {"all": STREAM_NAMES, "none": ()}.get(words, tuple(words.split("+")))
    return StreamRequest(frozenset(follow), int(seed) if seed else _BASELINE_SEED)


def told_seed(asked: Mapping[str, str], seed: int) -> int:
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
        if name in _COUNTS and value.isdigit():
            asked[THREADS] = max(value, asked.get(THREADS, ""), key=lambda text: int(text or 0))
        elif name in _ASKED_BY:
            asked[_ASKED_BY[name]] = _NAMED_AFTER[name].get(value.lower(), value.lower())
        elif name == "MKL_CBWR":
            asked["mkl"] = value.lower().replace(",", "-")
    return asked


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
        if value == NATIVE or (name in _OF_A_GPU and asked.get("device") == "cpu"):
            continue
        heard = {who: str(items[name]) for who, items in answered.items() if name in items}
        other = {who: has for who, has in heard.items() if has != value.partition(":")[0]}
        if other or not (heard or name == THREADS):
            missed[name] = other
    return missed
