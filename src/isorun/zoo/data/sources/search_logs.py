"""The published logs of AutoML searches; their pickles are only downloaded here, and never unpickled anywhere."""

from __future__ import annotations

from typing import Final

from isorun.zoo.data.dataset import Dataset
from isorun.zoo.data.sources.repositories import repository_files

__all__ = ["SEARCH_LOGS"]

_LOGS: Final = (
    ("Case1-poorperformance/bayes/log.pkl", 93216, "880db6109b11b2574f294c883b50772bf38b8efed643eabb634de2a39c98bc08"),
    ("Case1-poorperformance/dream/log.pkl", 32873, "b525fe725b9ff9cd5603167878f359a05267ed475a36429876d205b956702e5a"),
    (
        "Case1-poorperformance/extract_info.pkl",
        8076,
        "705db73806ed13eb01fcedc5e9e4050ee6fc6c7e74e43b171d25bebf30a51806",
    ),
    ("Case1-poorperformance/greedy/log.pkl", 90585, "9c98d83fe81bf6696cf9e712fc3252fcda4c36b54db1c3dd3ef0b294c922e35e"),
    (
        "Case1-poorperformance/hyperband/log.pkl",
        287253,
        "8149d582814c7ce67ba1a4227cf1e4449311f5ce1eb78efae9567bdf4b5555b7",
    ),
    ("Case1-poorperformance/search_log.pkl", 3361, "f6000c854fec3fe7e0ce218fbab9f86cbfe7798b56f0f584fdc3d114a3267feb"),
    (
        "Case2-ineffectiveSearch/c100_bayesian/log.pkl",
        113910,
        "a78708de0efd289051dde7fe2fe73a7c0d4f6b8a6c4f3cce0bf5a308d3092c9d",
    ),
    (
        "Case2-ineffectiveSearch/c100_dream/log.pkl",
        37601,
        "632c3df937805b6feb8671e7ac3baaa315a2649ae9c23d3e493dfa129276ca71",
    ),
    (
        "Case2-ineffectiveSearch/c100_greedy/log.pkl",
        63737,
        "33aa0452440bbc9d9bae364dffe87fe730df26aaca154bc71fc83a6f63138011",
    ),
    (
        "Case2-ineffectiveSearch/c100_hyperband/log.pkl",
        394641,
        "3830c71ccdd77bcba1645d89ff60c8bccbb031a9c8d9e9ab42c5e44269080daf",
    ),
    (
        "Case2-ineffectiveSearch/search_log.pkl",
        3458,
        "2ce3193f00658d2853897b8bee2bb3402106b69347ae5fe1bbc8b0b453ac8305",
    ),
)
DREAM: Final = Dataset(
    name="dream-search-logs",
    title="logs of eight AutoKeras searches, 800 trials",
    licence="none stated",
    citation="X. Zhang et al. DREAM: AutoML search bugs, monitored and repaired (github shiningrain/DREAM).",
    papers=("dream",),
    files=repository_files(
        "shiningrain/DREAM",
        "b617b6c4337b2fb2217ec0a65d8b8cdb739b62fa",
        "Motivation",
        _LOGS,
    ),
    prepared=(("trials.csv", "epochs.csv.gz", "best_so_far.csv"),),
)
SEARCH_LOGS: Final = (DREAM,)
