"""scikit-learn: cross-validation over seeds and splits as separate factors.

    from isorun.frameworks.sklearn import cross_validate

    scores = cross_validate(RandomForestClassifier(), X, y, cv=10, seeds=5)      # 5 seeds x 10 splits, each fitted once
    print(scores)                                                               # mean, and whose the variance is
    isorun.mixed_model(scores, "test_score ~ 1 + (1|seed) + (1|split)")          # a table for every question

Other splits of the data and other seeds of the training are different sources of variation, and one number that mixes
them says nothing of either (Bouthillier et al. 2021, Accounting for Variance in Machine Learning Benchmarks). Every
seed is fitted on every split, and the splits are the same for all seeds. That paper draws its splits by the
out-of-bootstrap, `cv=OutOfBootstrap(20, random_state=0)`: splits of k folds share most of what is trained on.
"""

from __future__ import annotations

import hashlib
import html
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

import isorun
from isorun.frameworks import is_recording, missing

try:
    import numpy as np
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import check_cv
    from sklearn.model_selection import cross_validate as validate
except ModuleNotFoundError as error:
    if error.name not in {"sklearn", "numpy"}:
        raise
    raise missing("scikit-learn", __name__) from None

_SHARED = "splits-share-data"

__all__ = ["CrossValidation", "OutOfBootstrap", "Shares", "cross_validate", "joined"]


class Shares(NamedTuple):
    """Variances of one score, estimated without bias and then not below 0: of splits, of seeds, and of the rest.

    The rest is what a seed does on one split and not on others; with each fitted once it holds all other noise, too.
    """

    split: float
    seed: float
    rest: float


class CrossValidation(Mapping[str, Sequence[Any]]):
    """Scores of every seed on every split: a table with a row a fit, usable wherever isorun takes a table.

    Columns: `seed`, `split`, `fit_time`, `score_time`, and the scores by scikit-learn's names (`test_score`).
    seeds: those that were fitted. sizes: examples trained on and tested on, by split. digests: by split, of which
    examples these were, by their places in the data; empty where that is not known.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        sizes: Sequence[tuple[int, int]] = (),
        digests: Sequence[str] = (),
    ) -> None:
        self._columns = dict(columns)
        self.sizes = tuple(sizes)
        self.digests = tuple(digests)

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def seeds(self) -> tuple[Any, ...]:
        """The seeds, in the order in which they were fitted."""
        return tuple(dict.fromkeys(self["seed"]))

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of the scores on what was not trained on."""
        return tuple(name for name in self if name.startswith("test_"))

    def matrix(self, score: str = "test_score") -> Any:
        """A score as an array, a row a seed and a column a split."""
        if score not in self.scores:
            raise _refused(f"there is no score {score!r}", allowed=", ".join(self.scores))
        return np.asarray(self[score], dtype=np.float64).reshape(len(self.seeds), -1)

    def shares(self, score: str = "test_score") -> Shares:
        """Whose the variance is, by the two-way analysis of variance with random effects.

        Of one seed nothing is known of seeds, and of one split nothing of splits: NaN.
        """
        scores = self.matrix(score)
        seeds, splits = scores.shape
        by_seed, by_split = scores.mean(axis=1), scores.mean(axis=0)
        if min(seeds, splits) < 2:
            known = float(np.var(scores, ddof=1)) if scores.size > 1 else float("nan")
            return Shares(known if seeds == 1 else float("nan"), known if splits == 1 else float("nan"), float("nan"))
        left = scores - by_seed[:, None] - by_split[None, :] + scores.mean()
        rest = float((left**2).sum() / ((seeds - 1) * (splits - 1)))
        of_seeds = max(float(by_seed.var(ddof=1)) - rest / splits, 0.0)
        return Shares(max(float(by_split.var(ddof=1)) - rest / seeds, 0.0), of_seeds, rest)

    def conditions_for(self, counted_by: str | None) -> tuple[Mapping[str, Any], ...]:
        """What weakens an answer by these scores, for the questions of isorun: the parts of its conditions.

        No error rate holds where splits are counted that share what they train on.
        """
        train, test = map(sum, zip(*self.sizes)) if self.sizes else (1, 0)
        part = test / (train + test)
        also = f'also=["bayesian-correlated-t"], correlation={part:.3g}'
        if counted_by == "split":
            said = "all splits are of one data set and share examples: their scores are not independent"
            next_step = f"{also} takes it into account"
            return ({"code": _SHARED, "message": said, "next_step": next_step, "voids": True},)
        said = "all splits are of one data set: an answer counted by seeds is about these splits alone"
        by_split = f'count by splits with unit="split", pair="split", {also}'
        return ({"code": _SHARED, "message": said, "next_step": by_split},)

    def __str__(self) -> str:
        rows = [_told(self, name) for name in self.scores]
        return "\n".join(
            f"{row[0]}: mean {row[1]} of {len(self.seeds)} seeds x {len(self['seed']) // len(self.seeds)} splits; "
            f"sd {row[2]} of splits, {row[3]} of seeds, {row[4]} of the rest"
            for row in rows
        )

    def __repr__(self) -> str:
        return f"<CrossValidation: {str(self).splitlines()[0] if self.scores else 'no score'}>"

    def _repr_html_(self) -> str:
        """For a notebook: no script, no style of its own."""
        heads = ("score", "mean", "sd of splits", "sd of seeds", "sd of the rest")
        rows = [heads, *(_told(self, name) for name in self.scores)]
        cells = ["".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) for tag, row in _tagged(rows)]
        said = f"{len(self.seeds)} seeds x {len(self['seed']) // len(self.seeds)} splits, each fitted once"
        return f"<p>{said}</p><table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


class OutOfBootstrap:
    """Splits that draw as many examples as there are, with replacement, and test on those that were not drawn."""

    def __init__(self, n_splits: int = 10, random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: N803, ARG002
        """How many."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:  # noqa: N803, ARG002
        """Indices to train on and to test on."""
        drawing = np.random.default_rng(self.random_state)
        size = X.shape[0] if hasattr(X, "shape") else len(X)
        for _ in range(self.n_splits):
            drawn = drawing.integers(size, size=size)
            yield drawn, np.setdiff1d(np.arange(size), drawn)


def cross_validate(
    estimator: Any,
    X: Any,  # noqa: N803 - as scikit-learn has it
    y: Any = None,
    *,
    cv: Any = None,
    seeds: int | Sequence[int] = 5,
    groups: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    params: Mapping[str, Any] | None = None,
    return_train_score: bool = False,
    error_score: Any = "raise",
    seed_parameter: str = "random_state",
) -> CrossValidation:
    """Fit every seed on every split; for each seed what scikit-learn's own `cross_validate` gives on these splits.

    cv: as there. seeds: how many (0, 1, …), or which. seed_parameter: every parameter of the estimator and of those
    inside it that is called so gets the seed. Inside a run of isorun's the mean is its result, and by split, too.
    """
    numbers = _seeds(seeds)
    named = [name for name in estimator.get_params() if name.rpartition("__")[2] == seed_parameter]
    if not named and len(numbers) > 1:
        raise _refused(
            f"seeds change nothing in {type(estimator).__name__}: it has no parameter {seed_parameter!r}",
            allowed='seeds=1, or the name of its seed: seed_parameter="…"',
        )
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups))
    found: dict[str, list[Any]] = {"seed": [], "split": []}
    for seed in numbers:
        seeded = clone(estimator).set_params(**dict.fromkeys(named, seed))
        scored = validate(
            seeded,
            X,
            y,
            cv=splits,
            scoring=scoring,
            n_jobs=n_jobs,
            params=None if params is None else dict(params),
            return_train_score=return_train_score,
            error_score=error_score,
        )
        found["seed"] += [seed] * len(splits)
        found["split"] += range(len(splits))
        for name, values in scored.items():
            found.setdefault(name, []).extend(np.asarray(values).tolist())
    chosen = [(_places(train), _places(test)) for train, test in splits]
    sizes = [(len(train), len(test)) for train, test in chosen]
    made = CrossValidation(found, sizes, [_digest(train, test) for train, test in chosen])
    if is_recording():
        _record(made)
    return made


def joined(parts: Mapping[str, CrossValidation], by: str = "model") -> CrossValidation:
    """Several of them as one table, with a column that says which; for `isorun.compare(…, by="model")`.

    They must have been made with the same splits of the same data, or a split of one is not that of another; of
    tables that `cross_validate` made it is known which examples each split has, and others are refused.
    """
    if not parts:
        raise _refused("nothing is to be joined", allowed='{"forest": scores, "network": scores}')
    _refuse_other_splits(parts)
    names = [name for name in next(iter(parts.values())) if all(name in part for part in parts.values())]
    columns: dict[str, list[Any]] = {by: [label for label, part in parts.items() for _ in part["seed"]]}
    columns.update({name: [value for part in parts.values() for value in part[name]] for name in names})
    first = next(iter(parts.values()))
    known = all(part.digests for part in parts.values())
    return CrossValidation(columns, first.sizes, first.digests if known else ())


def _refuse_other_splits(parts: Mapping[str, CrossValidation]) -> None:
    """A split of one part is that of another only where both hold the same examples: equal sizes do not say so."""
    (name, first), *others = parts.items()
    for other, part in others:
        differs = next(
            (
                place
                for place in range(max(len(first.sizes), len(part.sizes)))
                if first.sizes[place : place + 1] != part.sizes[place : place + 1]
                or (first.digests and part.digests and first.digests[place] != part.digests[place])
            ),
            None,
        )
        if differs is not None:
            raise _refused(
                f"the parts have different splits: split {differs} of {name!r} holds other examples than that of "
                f"{other!r}",
                allowed="scores made on the same data with the same splits, as of one cv= with a random_state: "
                "cv=OutOfBootstrap(20, random_state=0), cv=KFold(10, shuffle=True, random_state=0), "
                "or a list of splits",
            )


def _places(chosen: Any) -> Any:
    """The places of examples in the data, in order, as scikit-learn may be given them: indices, or a mask."""
    given = np.asarray(chosen)
    return np.flatnonzero(given) if given.dtype == np.bool_ else np.sort(given)


def _digest(train: Any, test: Any) -> str:
    """Of which examples a split trains on and tests on."""
    told = hashlib.sha256()
    for places in (train, test):
        told.update(b"%d:" % len(places) + places.astype("<i8").tobytes())
    return told.hexdigest()[:16]


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise _refused(f"seeds: found {seeds!r}", allowed="a number from 1 on, or different seeds")
    return numbers


def _record(made: CrossValidation) -> None:
    names = made.scores
    by_split = {
        name: {f"split {place}": float(value) for place, value in enumerate(made.matrix(name).mean(axis=0))}
        for name in names
    }
    isorun.result(**{name: float(made.matrix(name).mean()) for name in names}, per_class=by_split)


def _told(made: CrossValidation, score: str) -> tuple[str, ...]:
    shares = made.shares(score)
    spreads = ("?" if value != value else f"{value**0.5:.2g}" for value in shares)  # noqa: PLR0124  NaN
    return score, f"{made.matrix(score).mean():.4g}", *spreads


def _tagged(rows: Sequence[Sequence[str]]) -> Iterator[tuple[str, Sequence[str]]]:
    for place, row in enumerate(rows):
        yield ("td" if place else "th"), row


def _refused(what: str, *, allowed: str) -> Exception:
    try:
        from isorun.errors import InputError
    except ImportError:  # an interpreter without isorun, where the worker stands in for it
        return ValueError(f"{what}; allowed: {allowed}")
    return InputError(what, allowed=allowed)
