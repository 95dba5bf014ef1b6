"""Cross-validation over seeds and splits, beside scikit-learn's own and beside known variances."""

import numpy as np
import pytest

import isorun

pytest.importorskip("sklearn")
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.model_selection import cross_validate as theirs
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from isorun.frameworks.sklearn import CrossValidation, OutOfBootstrap, cross_validate, joined

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def forest():
    return cross_validate(RandomForestClassifier(4), X, Y, cv=4, seeds=[7, 8, 9])


def made(scores):
    """A table from a matrix, a row a seed and a column a split."""
    seeds, splits = scores.shape
    columns = {"seed": np.repeat(range(seeds), splits).tolist(), "split": [*range(splits)] * seeds}
    return CrossValidation({**columns, "test_score": scores.ravel().tolist()}, [(90, 10)] * splits)


def test_every_seed_has_the_scores_that_scikit_learn_gives_on_the_same_splits(forest):
    for place, seed in enumerate((7, 8, 9)):
        own = theirs(RandomForestClassifier(4, random_state=seed), X, Y, cv=4)["test_score"]
        assert forest.matrix()[place].tolist() == own.tolist()


def test_seeds_reach_every_estimator_inside_another_and_leave_the_given_one_alone():
    given = make_pipeline(PCA(2, svd_solver="randomized"), SGDClassifier(max_iter=20, tol=None))
    found = cross_validate(given, X, Y, cv=3, seeds=[5])
    assert [step.random_state for step in (given[0], given[1])] == [None, None]
    seeded = given.set_params(pca__random_state=5, sgdclassifier__random_state=5)
    assert found.matrix()[0].tolist() == theirs(seeded, X, Y, cv=3)["test_score"].tolist()


def test_splits_drawn_at_random_are_the_same_for_all_seeds():
    found = cross_validate(DecisionTreeClassifier(), X, Y, cv=ShuffleSplit(3), seeds=2)
    again = cross_validate(DecisionTreeClassifier(), X, Y, cv=OutOfBootstrap(3), seeds=2)
    for scores in (found, again):
        assert scores["split"] == [0, 1, 2, 0, 1, 2]
        assert scores["seed"] == [0, 0, 0, 1, 1, 1]


def test_the_out_of_bootstrap_tests_on_all_that_was_not_drawn_and_on_nothing_else():
    for train, test in OutOfBootstrap(5, random_state=0).split(X):
        assert len(train) == len(X)
        assert sorted({*train.tolist(), *test.tolist()}) == list(range(len(X)))
        assert not set(train.tolist()) & set(test.tolist())


def test_shares_are_those_of_the_mixed_model_where_no_variance_is_zero():
    drawn = np.random.default_rng(3)
    scores = made(drawn.normal(0, 2, (6, 1)) + drawn.normal(0, 3, (1, 8)) + drawn.normal(0, 1, (6, 8)))
    model = isorun.mixed_model(scores, "test_score ~ 1 + (1|seed) + (1|split)")
    sds = {str(effect.group): effect.sd for effect in model.random}
    shares = scores.shares()
    assert shares.seed**0.5 == pytest.approx(sds["seed"], rel=1e-4)
    assert shares.split**0.5 == pytest.approx(sds["split"], rel=1e-4)
    assert shares.rest**0.5 == pytest.approx(model.residual_sd, rel=1e-4)


def test_known_variances_come_out_on_average():
    drawn = np.random.default_rng(1)
    found = [
        made(drawn.normal(0, 2, (8, 1)) + drawn.normal(0, 3, (1, 8)) + drawn.normal(0, 1, (8, 8))).shares()
        for _ in range(400)
    ]
    # Variances 9 of splits, 4 of seeds, 1 of the rest; that of a mean of 400 such estimates is small beside them.
    assert np.mean([one.split for one in found]) == pytest.approx(9.0, abs=0.8)
    assert np.mean([one.seed for one in found]) == pytest.approx(4.0, abs=0.4)
    assert np.mean([one.rest for one in found]) == pytest.approx(1.0, abs=0.03)


def test_of_one_seed_nothing_is_said_of_seeds():
    shares = made(np.array([[0.1, 0.3, 0.2]])).shares()
    assert shares.split == pytest.approx(0.01)
    assert np.isnan(shares.seed)
    assert np.isnan(shares.rest)


def test_it_is_a_table_for_every_question(forest):
    [summary] = isorun.summarize(forest, value="test_score")
    assert summary.n == 12
    both = joined({"forest": forest, "again": forest})
    by_seed = isorun.compare(both, value="test_score", by="model", direction="higher")
    told = {condition.code: condition for condition in by_seed.conditions}
    assert not told["splits-share-data"].voids
    assert isorun.agree(both, value="test_score", by="model", pair="split").to_json()


def test_counting_splits_of_one_data_set_claims_nothing_however_clear_it_looks():
    drawn = np.random.default_rng(1)
    clear = {"a": made(drawn.normal(0.9, 0.01, (2, 20))), "b": made(drawn.normal(0.5, 0.01, (2, 20)))}
    asked = {"value": "test_score", "by": "model", "direction": "higher"}
    assert isorun.compare(joined(clear), **asked, pair="split", unit="split").verdict == "undecided"


def test_what_cannot_be_asked_is_refused_by_name(forest):
    with pytest.raises(isorun.IsorunError, match="no parameter 'random_state'"):
        cross_validate(KNeighborsClassifier(), X, Y)
    assert len(cross_validate(KNeighborsClassifier(), X, Y, cv=3, seeds=1)["seed"]) == 3
    with pytest.raises(isorun.IsorunError, match="seeds: found 0"):
        cross_validate(DecisionTreeClassifier(), X, Y, seeds=0)
    with pytest.raises(isorun.IsorunError, match="different seeds"):
        cross_validate(DecisionTreeClassifier(), X, Y, seeds=[1, 1])
    with pytest.raises(isorun.IsorunError, match="different splits"):
        joined({"a": forest, "b": made(np.zeros((3, 4)))})
    with pytest.raises(isorun.IsorunError, match="test_score"):
        forest.matrix("accuracy")


def test_splits_of_the_same_sizes_with_other_examples_are_not_joined():
    drawn = [cross_validate(DecisionTreeClassifier(), X, Y, cv=ShuffleSplit(3), seeds=2) for _ in range(2)]
    assert drawn[0].sizes == drawn[1].sizes
    with pytest.raises(isorun.IsorunError, match="split 0 of 'a' holds other examples than that of 'b'"):
        joined(dict(zip("ab", drawn, strict=True)))
    cv = [(train, test) for train, test in ShuffleSplit(3).split(X)]
    masks = [(np.isin(range(len(X)), train), np.isin(range(len(X)), test)) for train, test in cv]
    same = [cross_validate(DecisionTreeClassifier(), X, Y, cv=one, seeds=2) for one in (cv, masks)]
    assert joined(dict(zip("ab", same, strict=True))).digests == same[0].digests


def test_it_tells_itself_as_text_and_as_html(forest):
    assert str(forest).startswith("test_score: mean 0.")
    assert "3 seeds x 4 splits" in str(forest)
    assert "<table>" in forest._repr_html_()
    assert "<script" not in forest._repr_html_()


def test_in_a_run_it_tells_the_mean_and_each_split(monkeypatch):
    import isorun.frameworks.sklearn as member

    told = []
    monkeypatch.setattr(member, "is_recording", lambda: True)
    monkeypatch.setattr(isorun, "result", lambda **values: told.append(values))
    found = cross_validate(DecisionTreeClassifier(), X, Y, cv=3, seeds=2)
    [values] = told
    assert values["test_score"] == pytest.approx(found.matrix().mean())
    assert values["per_class"]["test_score"]["split 2"] == pytest.approx(found.matrix()[:, 2].mean())


@pytest.mark.slow
def test_inside_a_run_the_mean_is_its_result_and_each_split_is_kept(trained):
    script = """
        from sklearn.datasets import load_iris
        from sklearn.tree import DecisionTreeClassifier
        from isorun.frameworks.sklearn import cross_validate
        found = cross_validate(DecisionTreeClassifier(), *load_iris(return_X_y=True), cv=3, seeds=2)
        print("test_score", found.matrix().mean())
    """
    record = trained(script, "sklearn")
    by_split = record.per_class["test_score"]
    assert set(by_split) == {"split 0", "split 1", "split 2"}
    assert record.results == {"test_score": pytest.approx(sum(by_split.values()) / 3)}
    assert record.origins == {"test_score": "log"}
