"""Searches as parts of a study: what is understood, what is refused, and what they leave as it was."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import StudyError
from isorun.study.cells import cells_of
from isorun.study.design import Study, document_of, load_study, study_from_document, with_proposed
from isorun.study.searches import Parameter, Proposed, search_id, seed_of_repeat

SPACE = {"lr": {"float": [1e-4, 1.0], "log": True}, "layers": {"int": [1, 8]}, "act": ["relu", "tanh"]}
COMMAND = "python train.py {config.lr} {config.layers} {config.act}"


def search_study(search=None, **changes):
    given = {
        "approaches": {"toy": COMMAND},
        "metrics": {"accuracy": "higher", "loss": "lower"},
        "search": {"space": SPACE, "metric": "accuracy", **(search or {})},
    }
    return Study("found", **{**given, **changes})


def test_a_search_is_read_with_its_defaults():
    (design,) = search_study().searches.values()
    assert design.space[0] == Parameter("lr", "float", low=1e-4, high=1.0, log=True)
    assert design.space[1] == Parameter("layers", "int", low=1, high=8)
    assert design.space[2] == Parameter("act", "category", ("relu", "tanh"))
    assert (design.metric, design.direction, design.trials, design.engine) == ("accuracy", "higher", 25, "optuna:tpe")
    assert (design.begin, design.repeats, design.prior) == ("bug", 1, "shipped")
    assert search_study({"metric": "loss"}).searches[""].direction == "lower"


def test_a_file_and_the_document_give_the_same_study(tmp_path):
    text = f"""
name = "found"
[approaches.toy]
command = "{COMMAND}"
[metrics]
accuracy = "higher"
[search]
trials = 12
engine = "random"
begin = 10
target = 0.9
time_limit = "2m"
patience = 7
repeats = 5
[search.space]
lr = {{ float = [1e-4, 1.0], log = true }}
layers = {{ int = [2, 8], step = 2 }}
act = ["relu", "tanh"]
"""
    (tmp_path / "search.toml").write_text(text)
    study = load_study(tmp_path / "search.toml")
    design = study.searches[""]
    assert (design.begin, design.target, design.time_limit, design.patience) == (10, 0.9, 120.0, 7)
    assert design.space[1].step == 2
    assert study_from_document(document_of(study), tmp_path, "found") == study


def test_a_study_without_a_search_says_nothing_of_one():
    study = Study("plain", approaches={"toy": "python train.py"})
    assert not {"search", "searches"} & set(document_of(study))
    assert [cell.id for cell in cells_of(study)] == ["f148fe62a408d64e"]


def several(tables):
    return Study("found", approaches={"toy": COMMAND}, metrics={"accuracy": "higher"}, searches=tables)


def test_several_searches_have_names():
    tables = {name: {"space": SPACE, "metric": "accuracy", "seed": seed} for seed, name in enumerate(("a 1", "b 1"))}
    study = several(tables)
    assert list(study.searches) == ["a 1", "b 1"]
    assert study.searches["b 1"].label(3) == "b 1 trial-3"
    assert study_from_document(document_of(study), Path(), "found") == study
    assert len({search_id(study, design) for design in study.searches.values()}) == 2


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"space": {}}, "nothing to search"),
        ({"space": 3}, "must be a table"),
        ({"space": {"lr": {"float": [1.0, 0.1]}}}, "low must be below high"),
        ({"space": {"lr": {"float": [0.0, 1.0], "log": True}}}, "above 0"),
        ({"space": {"lr": {"float": [float("nan"), 1.0]}}}, "finite number"),
        ({"space": {"lr": {"float": [0.1]}}}, "two numbers"),
        ({"space": {"lr": {"int": [0.5, 3]}}}, "whole number"),
        ({"space": {"lr": {"int": [1, 3], "float": [1, 3]}}}, "not a parameter"),
        ({"space": {"lr": {"uniform": [1, 3]}}}, "no key 'uniform'"),
        ({"space": {"lr": {"float": [0, 1], "step": 2}}}, "within the range"),
        ({"space": {"lr": {"float": [0, 1], "step": -0.1}}}, "within the range"),
        ({"space": {"act": []}}, "no choices"),
        ({"space": {"act": ["relu", "relu"]}}, "more than once"),
        ({"space": {"act": [["relu"]]}}, "a text, a number"),
        ({"space": {"a b": ["x", "y"]}}, "cannot be the name"),
        ({"metric": "acuracy"}, "not among the metrics"),
        ({"metric": None}, "which metric"),
        ({"trials": 0}, "whole number"),
        ({"trials": True}, "whole number"),
        ({"engine": "optuna:tpee"}, "not known"),
        ({"begin": -1}, "not understood"),
        ({"begin": "later"}, "not known"),
        ({"target": float("inf")}, "finite number"),
        ({"patience": 0}, "whole number"),
        ({"repeats": 0}, "whole number"),
        ({"time_limit": "soon"}, "not a duration"),
        ({"triels": 3}, "no key 'triels'"),
        ({"approach": "other"}, "not known"),
        ({"space": {**SPACE, "width": ["a", "b"]}}, "does not use it"),
        ({"space": {"lr": SPACE["lr"]}}, "the search lacks"),
        ({"space": {**SPACE, "isorun.lr": {"float": [1e-4, 1.0]}}}, "first choice is as it was"),
        ({"space": {**SPACE, "isorun.depth": {"int": [1, 3]}}}, "first choice is as it was"),
        ({"space": {**SPACE, "isorun.act": ["keep", "relu"]}}, "does not use it"),
    ],
)
def test_what_is_wrong_is_said(search, said):
    with pytest.raises(StudyError, match=said):
        search_study(search)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"levels": ["default", "fixed-seed"]}, "a study with a search has one"),
        ({"metrics": {"accuracy": {}}}, "whether more"),
        ({"metrics": {}}, "not among the metrics"),
        ({"searches": {"a": {}}}, "either one"),
        ({"approaches": {"toy": COMMAND, "other": COMMAND}}, "trains with one"),
        ({"configs": {"base": {"lr": 0.1}}}, "has a value in configs.base already"),
        ({"configs": {"base": {"momentum": {"uniform": [0, 1]}}}}, "drawn by the search"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(changes, said):
    with pytest.raises(StudyError, match=said):
        search_study(**changes)


def test_no_search_among_several_is_refused():
    with pytest.raises(StudyError, match="there is none"):
        several({})


def test_the_cells_are_those_that_were_proposed():
    study = search_study(levels=["fixed-seed"], seeds=[4, 9])
    assert cells_of(study) == ()
    values = {"lr": 0.1, "layers": 2, "act": "relu"}
    proposed = [Proposed("", 3, values), Proposed("", 3, values, repeat=1), Proposed("", 3, values, repeat=2)]
    cells = cells_of(with_proposed(study, proposed))
    assert [(cell.config, cell.seed) for cell in cells] == [("trial-3", 4), ("trial-3", 9), ("trial-3", 10)]
    assert cells[0].config_values == values
    assert [seed_of_repeat(study, repeat) for repeat in range(4)] == [4, 9, 10, 11]


def test_a_search_is_the_same_with_more_trials_and_another_with_another_space():
    one, more = search_study(), search_study({"trials": 50, "engine": "random", "target": 0.5, "repeats": 3})
    other, seed = search_study({"space": {**SPACE, "act": ["relu", "elu"]}}), search_study({"seed": 1})
    ids = [search_id(study, study.searches[""]) for study in (one, more, other, seed)]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


VALUES = st.dictionaries(st.text(min_size=1), st.one_of(st.text(), st.integers(-99, 99), st.booleans()), max_size=4)


@given(st.integers(0, 99), VALUES, st.integers(0, 9), st.none() | st.integers(0, 9))
def test_a_proposal_comes_back_as_it_was_kept(number, values, repeat, origin):
    one = Proposed("name", number, values, repeat, "isorun", origin, 0.5)
    assert Proposed.from_json("name", one.to_json()) == one
