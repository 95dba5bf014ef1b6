"""The numbers of Crane, "Questionable Answers in Question Answering Research" (TACL 6, 2018), by table.

Scores are kept as printed, because how many decimals a paper prints is part of what it reports (section 4.6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "AGREEMENTS",
    "BASELINE",
    "DATA_SETS",
    "DEVICES",
    "FIXED_SEED",
    "FRAMEWORK_BASELINE",
    "FRAMEWORK_SIGNIFICANT",
    "FRAMEWORK_VERSIONS",
    "MATH_LIBRARIES",
    "RANGES",
    "REIMPLEMENTED",
    "SYSTEMS",
    "THREADS",
    "Score",
    "SplitSizes",
    "System",
    "gains",
]

FIXED_SEED: Final = 1234
REIMPLEMENTED: Final = "Severyn and Moschitti (2015)"
"""The system that the sample model simplifies: the square of Figure 2."""


@dataclass(frozen=True, slots=True)
class Score:
    """AP and RR as printed."""

    ap: str
    rr: str

    def value(self, metric: str) -> float:
        """The number behind "AP" or "RR"."""
        return float(self.text(metric))

    def text(self, metric: str) -> str:
        """The digits behind "AP" or "RR"."""
        return {"AP": self.ap, "RR": self.rr}[metric]

    def decimals(self, metric: str) -> int:
        """How many digits after the point were printed."""
        return len(self.text(metric).partition(".")[2])


@dataclass(frozen=True, slots=True)
class System:
    """A published system and its scores."""

    name: str
    score: Score


@dataclass(frozen=True, slots=True)
class SplitSizes:
    """A row of Table 1."""

    questions: int
    positive: int
    negative: int


DATA_SETS: Final[Mapping[str, Mapping[str, SplitSizes]]] = {
    "TrecQA": {
        "train": SplitSizes(1229, 6403, 47014),
        "dev": SplitSizes(82, 222, 926),
        "test": SplitSizes(100, 284, 1233),
    },
    "WikiQA": {
        "train": SplitSizes(873, 1040, 7632),
        "dev": SplitSizes(126, 140, 990),
        "test": SplitSizes(243, 293, 2058),
    },
}
"""Table 1."""


def _systems(*rows: tuple[str, str, str]) -> tuple[System, ...]:
    return tuple(System(name, Score(ap, rr)) for name, ap, rr in rows)


SYSTEMS: Final[Mapping[str, tuple[System, ...]]] = {
    "TrecQA raw": _systems(
        ("Punyakanok et al. (2004)", "0.419", "0.494"),
        ("Cui et al. (2005)", "0.427", "0.526"),
        ("Wang et al. (2007)", "0.603", "0.685"),
        ("Heilman and Smith (2010)", "0.609", "0.692"),
        ("Wang and Manning (2010)", "0.595", "0.695"),
        ("Yao et al. (2013)", "0.631", "0.748"),
        ("Severyn and Moschitti (2013)", "0.678", "0.736"),
        ("Shnarch (2013)", "0.686", "0.754"),
        ("Yih et al. (2013)", "0.709", "0.770"),
        ("Yu et al. (2014)", "0.711", "0.785"),
        ("Wang and Nyberg (2015)", "0.713", "0.792"),
        ("Feng et al. (2015)", "0.711", "0.800"),
        (REIMPLEMENTED, "0.746", "0.808"),
        ("Yang et al. (2016)", "0.750", "0.811"),
        ("He et al. (2015)", "0.762", "0.830"),
        ("He and Lin (2016)", "0.758", "0.822"),
        ("Rao et al. (2016)", "0.780", "0.834"),
        ("Chen et al. (2017b)", "0.782", "0.837"),
    ),
    "TrecQA clean": _systems(
        ("Wang and Ittycheriah (2015)", "0.746", "0.820"),
        ("Tan et al. (2015)", "0.728", "0.832"),
        ("dos Santos et al. (2016)", "0.753", "0.851"),
        ("Wang et al. (2016b)", "0.771", "0.845"),
        ("He et al. (2015)", "0.777", "0.836"),
        ("He and Lin (2016)", "0.801", "0.877"),
        ("(no name in the paper)", "0.802", "0.875"),
    ),
    "WikiQA": _systems(
        ("Yu et al. (2014)", "0.6190", "0.6281"),
        ("Yang et al. (2015)", "0.6520", "0.6652"),
        ("dos Santos et al. (2016)", "0.6886", "0.6957"),
        ("Miao et al. (2016)", "0.6886", "0.7069"),
        ("Yin et al. (2016)", "0.6921", "0.7108"),
        ("Rao et al. (2016)", "0.701", "0.718"),
        ("Wang et al. (2016b)", "0.7058", "0.7226"),
        ("He and Lin (2016)", "0.7090", "0.7234"),
        ("Yin and Schütze (2017)", "0.7124", "0.7237"),
        ("Chen et al. (2017a)", "0.7212", "0.7312"),
        ("Wang et al. (2016a)", "0.7341", "0.7418"),
        ("Wang and Jiang (2016)", "0.7433", "0.7545"),
    ),
}
"""Tables 2 (both versions of TrecQA) and 3, in their order."""

BASELINE: Final[Mapping[str, Score]] = {"TrecQA raw": Score("0.701", "0.769")}
"""The idf-weighted sum of Table 2; the paper has it for no other data."""

_SAME: Final = {"TrecQA": Score("0.7495", "0.8122"), "WikiQA": Score("0.6732", "0.6953")}
FRAMEWORK_BASELINE: Final = "0.1.12"
FRAMEWORK_VERSIONS: Final[Mapping[str, Mapping[str, Score]]] = {
    "0.2.0": {"TrecQA": Score("0.7234", "0.7866"), "WikiQA": Score("0.6773", "0.6980")},
    **dict.fromkeys(("0.1.12", "0.1.11", "0.1.10", "0.1.9"), _SAME),
}
"""Table 5: versions of PyTorch."""
FRAMEWORK_SIGNIFICANT: Final = frozenset({("0.2.0", "TrecQA", "AP")})
"""What of Table 5 differs from 0.1.12 with p < 0.05, over the questions of the test set."""

MATH_LIBRARIES: Final[Mapping[str, Mapping[str, Score]]] = {
    "Intel MKL on Intel i7-6800K": {"TrecQA": Score("0.7495", "0.8122"), "WikiQA": Score("0.6732", "0.6953")},
    "Intel MKL on AMD FX-8370E": {"TrecQA": Score("0.7487", "0.8136"), "WikiQA": Score("0.6772", "0.6981")},
    "OpenBLAS on either": {"TrecQA": Score("0.7307", "0.8029"), "WikiQA": Score("0.6773", "0.6980")},
}
"""Table 6."""

THREADS: Final[Mapping[int, Mapping[str, Score]]] = {
    1: {"TrecQA": Score("0.7495", "0.8122"), "WikiQA": Score("0.6732", "0.6953")},
    2: {"TrecQA": Score("0.7485", "0.8145"), "WikiQA": Score("0.6802", "0.7022")},
    3: {"TrecQA": Score("0.7495", "0.8122"), "WikiQA": Score("0.6732", "0.6953")},
    4: {"TrecQA": Score("0.7477", "0.8096"), "WikiQA": Score("0.6771", "0.6983")},
    5: {"TrecQA": Score("0.7495", "0.8122"), "WikiQA": Score("0.6732", "0.6953")},
    6: {"TrecQA": Score("0.7489", "0.8162"), "WikiQA": Score("0.6778", "0.6992")},
}
"""Table 7."""

DEVICES: Final[Mapping[str, Mapping[str, Score]]] = {
    "CPU: Intel i7-6800K": {"TrecQA": Score("0.7495", "0.8122"), "WikiQA": Score("0.6732", "0.6953")},
    "GPU: GeForce 1080GTX cuDNN": {"TrecQA": Score("0.7277", "0.7788"), "WikiQA": Score("0.6604", "0.6804")},
    "GPU: GeForce 1080GTX": {"TrecQA": Score("0.7474", "0.8044"), "WikiQA": Score("0.6873", "0.7054")},
    "GPU: Tesla K80 cuDNN": {"TrecQA": Score("0.7527", "0.8115"), "WikiQA": Score("0.6852", "0.7046")},
    "GPU: Tesla K80": {"TrecQA": Score("0.7527", "0.8115"), "WikiQA": Score("0.6852", "0.7046")},
}
"""Table 8."""

RANGES: Final[Mapping[tuple[str, str], Score]] = {
    ("TrecQA", "CPU"): Score("0.0393", "0.0599"),
    ("TrecQA", "GPU"): Score("0.0379", "0.0492"),
    ("WikiQA", "CPU"): Score("0.0705", "0.0755"),
    ("WikiQA", "GPU"): Score("0.0712", "0.0727"),
}
"""Section 4.4: the largest minus the smallest value over the 200 seeds."""

_PAIRS: Final = (
    ("AP CPU", "RR CPU"),
    ("AP CPU", "AP GPU"),
    ("AP CPU", "RR GPU"),
    ("RR CPU", "AP GPU"),
    ("RR CPU", "RR GPU"),
    ("AP GPU", "RR GPU"),
)


def _pairs(*values: float) -> Mapping[tuple[str, str], float]:
    return dict(zip(_PAIRS, values, strict=True))


AGREEMENTS: Final[Mapping[str, Mapping[str, Mapping[tuple[str, str], float]]]] = {
    "TrecQA": {
        "kendall": _pairs(0.5514, 0.2871, 0.2069, 0.2148, 0.2894, 0.5315),
        "spearman": _pairs(0.7409, 0.4125, 0.3304, 0.3126, 0.4205, 0.7171),
    },
    "WikiQA": {
        "kendall": _pairs(0.8842, 0.3238, 0.3358, 0.3096, 0.3330, 0.9068),
        "spearman": _pairs(0.9783, 0.4622, 0.4762, 0.4392, 0.4690, 0.9868),
    },
}
"""Table 9."""


def gains(systems: Sequence[System], metric: str) -> tuple[float | None, ...]:
    """What each system adds to the best before it, as Tables 2 and 3 annotate; None for the first.

    Computed from the scores: for Rao et al. (2016) on WikiQA the paper prints 0.0080 where its scores give 0.0089.
    """
    best: float | None = None
    added: list[float | None] = []
    for system in systems:
        value = system.score.value(metric)
        added.append(None if best is None else round(value - best, 4))
        best = value if best is None else max(best, value)
    return tuple(added)
