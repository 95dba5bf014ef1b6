"""Environments of runs as facts, and what differs between two of them: the most suspicious first.

A fact is a dotted name and a text: `torch.threads` is what a library had in the process that trained, and what begins
with `requested.` is what it was asked for, with `made.` what was made and found for it. Which facts can change numbers
is said by one table, RULES.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from isorun.analysis import Told
from isorun.analysis.evidence.provenance import effective, files_of, made, requested
from isorun.analysis.evidence.surroundings import library_name
from isorun.study.records import RunRecord
from isorun.worker.frameworks import DISTRIBUTIONS, PACKAGES
from isorun.worker.redaction import REDACTED, holds_secret, without_secrets

__all__ = [
    "COSMETIC",
    "NUMERICS",
    "RULES",
    "SPEED",
    "EnvironmentDiff",
    "FactDifference",
    "FactRule",
    "difference_of",
    "facts_of",
    "rule_for",
]

NUMERICS: Final = "numerics"
SPEED: Final = "speed"
COSMETIC: Final = "cosmetic"
_KINDS: Final = (NUMERICS, SPEED, COSMETIC)


class FactRule(NamedTuple):
    """Facts whose whole name the pattern matches, what a difference in them can change, and why."""

    pattern: str
    kind: str
    reason: str


_FRAMEWORKS: Final = "|".join(
    (
        *(rf"{re.escape(name)}(-cpu)?" for name in (*PACKAGES, *DISTRIBUTIONS.values())),
        "mkl",
        "intel-openmp",
        "nvidia-.*",
    )
)
_BYSTANDERS: Final = (
    "isorun|pip|setuptools|wheel|packaging|tqdm|rich|colorama|pytest|pluggy|iniconfig|ipython|ipykernel|jupyter.*|"
    "typing-extensions|certifi|urllib3|requests|idna|charset-normalizer|tensorboard.*|wandb|mlflow|pygments|psutil"
)
_PATIENCE: Final = (
    "GOMP_SPINCOUNT|GOMP_STACKSIZE|OMP_STACKSIZE|OMP_WAIT_POLICY|KMP_BLOCKTIME|KMP_SETTINGS|MALLOC_ARENA_MAX|MKL_VERBOSE|"
    "CUDA_MODULE_LOADING|CUDA_LAUNCH_BLOCKING|PYTORCH_CUDA_ALLOC_CONF|TF_FORCE_GPU_ALLOW_GROWTH|TF_GPU_ALLOCATOR|"
    "TF_GPU_THREAD_MODE|ONEDNN_PRIMITIVE_CACHE_CAPACITY|TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT"
)
RULES: Final = (
    FactRule(r"effective", NUMERICS, "of one run nobody knows how it computed"),
    FactRule(r"(requested\.)?level", NUMERICS, "the level decides which seeds and kernels are fixed"),
    FactRule(r"(requested\.|switches\.).*streams|streams(\..*)?", NUMERICS, "other random streams follow the seed"),
    FactRule(r"requested\.take_seeds", NUMERICS, "constants that the training seeds with follow the run's seed or not"),
    FactRule(r"code\.(sources|script)", NUMERICS, "the training itself is another"),
    FactRule(r"file .*", NUMERICS, "a file that the run was made of has another content"),
    FactRule(r"requested\.(stdin|variables_read)(\..*)?", NUMERICS, "the training read something else"),
    FactRule(r"study variable .*", NUMERICS, "the study gave the training another value"),
    FactRule(r"(requested|made)\.code\..*|code\.(commit|diff)", NUMERICS, "another version of the code"),
    FactRule(r"switches\.[^.]+\.device|gpu\.devices|requested\.(switches\.device|devices)", NUMERICS,
             "another device adds in another order"),
    FactRule(rf"[^.]+\.(build|blas)|({_FRAMEWORKS})\.version|packages\.({_FRAMEWORKS})|frameworks", NUMERICS,
             "frameworks change kernels, defaults and random streams between versions"),
    FactRule(r"math library .*", NUMERICS, "another file of the library computes: versions do not tell them apart"),
    FactRule(r"switches\.[^.]+\.cpu|[^.]+\.cpu_capability|requested\.switches\.cpu", NUMERICS,
             "sums are divided by the width of the instructions"),
    FactRule(r"(.*\.)?(interop_)?threads|.*op_parallelism|variables\..*THREADS.*", NUMERICS,
             "sums are divided by the number of threads"),
    FactRule(r"(requested\.)?switches\..*\.?(onednn|mkl|tf32|cudnn)|gpu\.(cuda|cudnn|tf32_matmul)", NUMERICS,
             "other kernels, or products rounded otherwise"),
    FactRule(r"switches\..*", NUMERICS, "libraries answer that they compute otherwise"),
    FactRule(r"ranks\.(world_size|backend)", NUMERICS, "gradients are summed over other processes"),
    FactRule(r"ranks\..*", SPEED, "which machine each rank was on"),
    FactRule(r"[^.]+\.(deterministic_algorithms|cudnn_.*|float32_matmul_precision|default_dtype|mkl|mkldnn)", NUMERICS,
             "a setting that chooses kernels or precision"),
    FactRule(r"cpu\.(model|vector)|platform\.machine", NUMERICS, "libraries choose kernels by the processor"),
    FactRule(r"made\.(packages|lock|requirements|image|image_id|image_digest)(\..*)?", NUMERICS,
             "another environment was made"),
    FactRule(r"python\.(version|implementation|hash_randomization|optimize)|variables\.PYTHON.*", NUMERICS,
             "Python's own streams, hashes and assertions"),
    FactRule(rf"packages\.({_BYSTANDERS})", COSMETIC, "a package that computes nothing of the training"),
    FactRule(r"packages\..*", NUMERICS, "a package that the training imports may compute or read data otherwise"),
    FactRule(r"platform\.libc", NUMERICS, "exp, log and their like are the C library's"),
    FactRule(r"gpu\.driver", NUMERICS, "a driver compiles and chooses kernels"),
    FactRule(rf"variables\.({_PATIENCE})", SPEED, "how memory and waiting threads are handled"),
    FactRule(r"(requested\.level_)?variables\..*", NUMERICS, "libraries read it before the training starts"),
    FactRule(r"cpu\.affinity|requested\.cpus", NUMERICS, "libraries that choose by themselves take as many threads"),
    FactRule(r"cpu\.logical|requested\.memory_bytes|launch", SPEED, "how fast it goes"),
    FactRule(r"platform\.kernel|python\.compiler|made\.engine", SPEED,
             "schedules, compiles or starts, and computes no number"),
    FactRule(r"platform\.os", COSMETIC, "a name: the libraries in it are told apart by themselves"),
    FactRule(r"python\.executable|made\.(python|packages_made_by)|where\..*|environment", COSMETIC,
             "a path or a name"),
    FactRule(r"requested\.isolated\..*", COSMETIC, "how a copy of the folder was made; its files have digests"),
    FactRule(r"withheld values", COSMETIC, "secrets are told apart by a key of their store: two stores differ always"),
    FactRule(r"started", COSMETIC, "the time"),
    FactRule(r"work\.(first_step\.)?(cpu_)?seconds", COSMETIC, "a time that was measured, and no cause of one"),
    FactRule(r"requested\.study_variables", COSMETIC, "names of variables; their values are compared by themselves"),
)  # fmt: skip
"""The table: the first rule that fits says the kind; its rank, how suspicious a difference is."""
_UNKNOWN: Final = FactRule(r".*", NUMERICS, "isorun does not know what it changes")
_PATTERNS: Final = tuple(re.compile(rule.pattern) for rule in RULES)

_LEFT_OUT: Final = frozenset(
    ("sources", "sources_sha256", "script", "libraries", "audit", "seed_option", "variables_read", "open")
)
_SAID_ELSEWHERE: Final = frozenset(("given_files", "read_files", "level"))
_OF_THE_RUN: Final = re.compile(r"variables\.ISORUN_.*")
_SHORT: Final = 12
_SHOWN: Final = 200


def rule_for(name: str) -> tuple[int, FactRule]:
    """The rank of the rule that a fact falls under, and the rule."""
    for rank, pattern in enumerate(_PATTERNS):
        if pattern.fullmatch(name):
            return rank, RULES[rank]
    return len(RULES), _UNKNOWN


@dataclass(frozen=True, slots=True)
class FactDifference:
    """One fact that differs. first, second: None where it was not recorded of that run."""

    what: str
    first: str | None
    second: str | None
    kind: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {name: getattr(self, name) for name in ("what", "first", "second", "kind", "reason")}


@dataclass(frozen=True, slots=True)
class EnvironmentDiff(Told):
    """What differs between the environments of two runs, the most suspicious first. same: how many facts do not.

    seeds: of the runs; a difference in them is none of the environment, and moves results all the same.
    """

    told_as: ClassVar[str] = "environment-diff"

    first: str
    second: str
    differences: tuple[FactDifference, ...]
    same: int
    seeds: tuple[int | None, int | None]

    def of_kind(self, kind: str) -> tuple[FactDifference, ...]:
        """The differences that can change numbers (NUMERICS), only the time it takes, or neither."""
        return tuple(item for item in self.differences if item.kind == kind)

    @property
    def is_numeric(self) -> bool:
        """Whether anything differs that can change numbers."""
        return bool(self.of_kind(NUMERICS))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "first": self.first,
            "second": self.second,
            "differences": [item.to_json() for item in self.differences],
            "same": self.same,
            "seeds": list(self.seeds),
        }


def difference_of(first: RunRecord, second: RunRecord) -> EnvironmentDiff:
    """What differs between the environments of two runs: requested, made and effective."""
    a, b = facts_of(first), facts_of(second)
    if bool(effective(first)) != bool(effective(second)):  # one unknown side makes every fact of the other a difference
        inside = {name for record in (first, second) for name in _effective_facts(record)}
        a, b = (
            {"effective": "recorded" if effective(record) else "not recorded"}
            | {name: value for name, value in facts.items() if name not in inside}
            for record, facts in ((first, a), (second, b))
        )
    names = dict.fromkeys((*a, *b))
    differing = [name for name in names if a.get(name) != b.get(name) and not _is_said_by_the_study(name, a, b)]
    found = sorted(_differences(differing, a, b))
    return EnvironmentDiff(
        first.run_id,
        second.run_id,
        tuple(item for *_, item in found),
        len(names) - len(differing),
        (first.seed_used, second.seed_used),
    )


def _is_said_by_the_study(name: str, a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    """A variable that the study sets is in force with the same value: one difference, not two."""
    own = f"study variable {name.removeprefix('variables.')}"
    return name.startswith("variables.") and (a.get(own), b.get(own)) == (a.get(name), b.get(name))


def _differences(
    names: Iterable[str], a: Mapping[str, str], b: Mapping[str, str]
) -> Iterator[tuple[int, int, str, FactDifference]]:
    for name in names:
        rank, rule = rule_for(name)
        item = FactDifference(name, _safe(name, a.get(name)), _safe(name, b.get(name)), rule.kind, rule.reason)
        yield _KINDS.index(rule.kind), rank, name, item


def _safe(name: str, value: str | None) -> str | None:
    """A value as it may be shown: what its name or shape tells to be a secret is not."""
    if value is None:
        return None
    if name == "withheld values" or holds_secret(re.split(r"[. ]", name)[-1], value):
        return REDACTED
    shown = without_secrets(value)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


def facts_of(record: RunRecord) -> dict[str, str]:
    """All that is recorded of a run's environment, as texts by dotted names; secrets are still in it."""
    asked = {name: value for name, value in requested(record).items() if name not in _SAID_ELSEWHERE}
    variables = record.cell.environment_content.get("env") or {}
    files = (
        (path if not path.startswith("/") else path.rpartition("/")[2], digest) for path, digest in files_of(record)
    )
    return {
        "level": str(record.cell.level),
        "environment": record.cell.environment,
        "launch": record.launch,
        "started": record.started_at,
        **{f"where.{name}": str(value) for name, value in record.where.items() if name != "python"},
        **_code_facts(record),
        **{f"file {path}": digest[:_SHORT] for path, digest in files},
        **{f"study variable {name}": str(value) for name, value in variables.items()},
        **({"withheld values": record.cell.withheld} if record.cell.withheld else {}),
        **dict(_flat("requested.", asked)),
        **dict(_flat("made.", made(record))),
        **_effective_facts(record),
    }


def _code_facts(record: RunRecord) -> dict[str, str]:
    names = {"commit": "commit", "diff_sha256": "diff", "sources_sha256": "sources", "script_sha256": "script"}
    found = {f"code.{name}": str(record.code[key])[:_SHORT] for key, name in names.items() if record.code.get(key)}
    if "code.sources" in found:
        found.pop("code.script", None)
    return found


def _effective_facts(record: RunRecord) -> dict[str, str]:
    inside = effective(record)
    facts = dict(_flat("", {name: value for name, value in inside.items() if name not in _LEFT_OUT}))
    libraries: dict[str, list[str]] = {}
    for item in inside.get("libraries") or () if isinstance(inside.get("libraries"), list | tuple) else ():
        if isinstance(item, Mapping):
            digest = str(item.get("sha256", ""))[:_SHORT]
            libraries.setdefault(library_name(str(item.get("name", ""))), []).append(digest)
    by_library = {f"math library {name}": ", ".join(sorted(digests)) for name, digests in libraries.items()}
    return {name: value for name, value in facts.items() if not _OF_THE_RUN.fullmatch(name)} | by_library


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        elif value is not None:
            yield f"{prefix}{name}", _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
