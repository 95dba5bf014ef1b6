"""How much of the paper each scale carries out, and in words what is less than in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from isorun.zoo.paper import Scale
from isorun.zoo.studies.fewshot.experiments import CONTROLS, EXPERIMENTS, SPACES

__all__ = ["PLANS", "SEEDS", "ScalePlan", "less_than_paper", "scale_of"]

SEEDS: Final = (12345, 34567, 54321, 5678, 8765)
"""Seeds that the paper's Table 6 names; which five its main design used is not said."""


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """The numbers of one scale.

    data: names in order of preference, the first one at hand is used; made: small made data when none is.
    steps: training steps by method. most_queries, most_images: bounds of drawn numbers that need many images.
    threads: CPUs of a run, all when None; tiny networks wait for each other's threads longer than they compute.
    """

    name: str
    cost: str
    data: tuple[str, ...]
    configs: int
    seeds: int
    repeats: int
    control_repeats: int
    steps: Mapping[str, int]
    rounds: int | None
    test_episodes: int | None
    val_episodes: int
    width: int = 64
    image_size: int = 0
    classes_limit: int = 0
    most_queries: int | None = None
    most_images: int | None = None
    most_ways: int = 20
    experiments: tuple[str, ...] = tuple(item.name for item in EXPERIMENTS)
    controls: tuple[str, ...] = field(default=tuple(item.name for item in CONTROLS))
    made: bool = False
    test_queries: int = 15
    threads: int | None = None


PLANS: Final[Mapping[str, ScalePlan]] = {
    plan.name: plan
    for plan in (
        ScalePlan(
            "smoke",
            "seconds, one core: 32 trainings of 6 steps",
            ("omniglot",),
            configs=1,
            seeds=2,
            repeats=1,
            control_repeats=2,
            steps={"matching": 6, "prototypical": 6, "tadam": 6},
            rounds=3,
            test_episodes=10,
            val_episodes=5,
            width=4,
            image_size=16,
            classes_limit=20,
            most_queries=5,
            most_images=16,
            most_ways=5,
            made=True,
            test_queries=5,
            threads=1,
        ),
        ScalePlan(
            "cpu",
            "about 15 minutes, 2 cores: 150 trainings of 150 steps",
            ("omniglot", "cifar-fs"),
            configs=3,
            seeds=3,
            repeats=2,
            control_repeats=3,
            steps={"matching": 150, "prototypical": 150, "tadam": 60},
            rounds=50,
            test_episodes=100,
            val_episodes=40,
            width=16,
            most_queries=10,
            most_images=32,
            most_ways=10,
            experiments=("matching-adam", "matching-sgd", "prototypical-adam", "prototypical-sgd"),
            controls=("matching", "prototypical"),
        ),
        ScalePlan(
            "gpu",
            "about 30 minutes, one data-centre GPU with 4 jobs at a time: 256 trainings of 300 to 600 steps",
            ("cifar-fs", "omniglot"),
            configs=3,
            seeds=3,
            repeats=2,
            control_repeats=10,
            steps={"matching": 600, "prototypical": 600, "tadam": 300},
            rounds=100,
            test_episodes=500,
            val_episodes=100,
            most_queries=15,
        ),
        ScalePlan(
            "paper",
            "weeks on one data-centre GPU: 1,540 trainings of 10,000 to 75,000 steps",
            ("miniimagenet",),
            configs=5,
            seeds=5,
            repeats=5,
            control_repeats=10,
            steps={method: space.steps for method, space in SPACES.items()},
            rounds=None,
            test_episodes=None,
            val_episodes=100,
        ),
    )
}


def scale_of(plan: ScalePlan) -> Scale:
    """The scale as users see it."""
    return Scale(plan.name, plan.cost, less_than_paper(plan))


def less_than_paper(plan: ScalePlan) -> tuple[str, ...]:
    """Each thing that is less than in the paper, and by how much."""
    return (*_less_data(plan), *_fewer_runs(plan), *_shorter_training(plan))


def _less_data(plan: ScalePlan) -> Iterator[str]:
    if plan.data != PLANS["paper"].data:
        chosen = " or ".join(plan.data) + (" (small made images when it is not at hand)" if plan.made else "")
        yield f"data: {chosen} instead of miniImageNet"
    if plan.image_size:
        yield f"images: {plan.image_size} pixels a side"
    if plan.classes_limit:
        yield f"classes: at most {plan.classes_limit} for training, validation and test each"
    if plan.most_queries is not None:
        what = "16 to 64 (TADAM), 15 (prototypical) and 5 to 30 (matching)"
        yield f"query images a class in training: at most {plan.most_queries} instead of {what}"
    if plan.most_images is not None and any("tadam" in name for name in (*plan.experiments, *plan.controls)):
        yield f"images an auxiliary batch of TADAM: at most {plan.most_images} instead of 32 to 64"


def _fewer_runs(plan: ScalePlan) -> Iterator[str]:
    paper = PLANS["paper"]
    for what, ours, theirs in (
        ("experiments", plan.experiments, paper.experiments),
        ("controls", plan.controls, paper.controls),
    ):
        left_out = [name for name in theirs if name not in ours]
        if left_out:
            yield f"{what} left out: {', '.join(left_out)}"
    for name, number, published, used in (
        ("drawn configs", plan.configs, paper.configs, plan.experiments),
        ("seeds", plan.seeds, paper.seeds, plan.experiments),
        ("repeats", plan.repeats, paper.repeats, plan.experiments),
        ("control runs", plan.control_repeats, paper.control_repeats, plan.controls),
    ):
        if used and number != published:
            yield f"{name}: {number} of {published}"


def _shorter_training(plan: ScalePlan) -> Iterator[str]:
    paper = PLANS["paper"]
    used = {name.split("-")[0] for name in (*plan.experiments, *plan.controls)}
    shorter = [
        f"{method} {plan.steps[method]:,} of {steps:,}"
        for method, steps in paper.steps.items()
        if method in used and plan.steps[method] != steps
    ]
    if shorter:
        yield f"training steps: {', '.join(shorter)}; the decay of the learning rate is shortened alike"
    if plan.test_episodes is not None:
        yield f"test episodes: {plan.test_episodes} instead of 500 (TADAM) or 600"
    if plan.test_queries != paper.test_queries:
        yield f"query images a class in a test episode: {plan.test_queries} of {paper.test_queries}"
    if plan.width != paper.width:
        yield f"filters of the first layer: {plan.width} of {paper.width}"
