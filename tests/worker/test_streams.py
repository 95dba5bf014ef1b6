"""Random streams: each draw is told by where it is made and comes from a generator of its stream, in plain scripts."""

from __future__ import annotations

import os
import random
import sys
import types
from pathlib import Path

import pytest

from isorun.errors import StudyError
from isorun.execution import job_of
from isorun.study.cells import cells_of
from isorun.study.design import document_of, study_from_document
from isorun.worker import frameworks, seeding, streams
from isorun.worker.frameworks import switches, torch_draws
from isorun.worker.frameworks.python import Python
from isorun.worker.frameworks.switches import STREAM_NAMES, StreamRequest, stream_request
from isorun.worker.frameworks.torch_draws import GeneratorStates
from isorun.worker.recorder import Recorder

EACH = STREAM_NAMES[:4]


def parted(*follow, run_seed=2, asked=""):
    asked = asked or "+".join(follow)
    return streams.Streams(StreamRequest(frozenset(follow), 1, asked), run_seed, asked)


def stand_in():
    """A module like `random`, with a hidden generator of its own."""
    module = types.ModuleType("random")
    hidden = random.Random(0)
    module.Random = random.Random
    for name in ("random", "shuffle", "randint", "seed", "getstate", "setstate"):
        setattr(module, name, getattr(hidden, name))
    return module


class Training:
    """A training in pure Python: functions by whose names each draw is told."""

    def __init__(self, *follow, run_seed, asked=""):
        self.random = stand_in()
        self.streams = parted(*follow, run_seed=run_seed, asked=asked)
        Python().part_streams("random", self.random, self.streams)

    def init_weights(self):
        return [self.random.random() for _ in range(3)]

    def shuffled(self):
        order = list(range(20))
        self.random.shuffle(order)
        return order

    def augment(self, image):
        return image + self.random.random() if self.random.random() < 0.5 else image

    def fit(self):
        """What was drawn, by stream; augmentation draws once or twice, so a shared generator would shift the rest."""
        found = {"weights": self.init_weights(), "order": [], "augmentation": [], "other": []}
        for _ in range(3):
            found["order"].append(self.shuffled())
            found["augmentation"].append([self.augment(0.0) for _ in range(5)])
            found["other"].append(self.random.randint(0, 10**9))
        return found


def fitted(*follow, run_seed):
    return Training(*follow, run_seed=run_seed).fit()


def test_with_no_stream_every_seed_gives_the_same():
    assert fitted(run_seed=2) == fitted(run_seed=3) == fitted(run_seed=1)


@pytest.mark.parametrize("stream", ["weights", "order", "augmentation", "other"])
def test_one_stream_follows_the_seed_and_all_others_are_kept_exactly(stream):
    kept, two, three = (fitted(stream, run_seed=seed) for seed in (1, 2, 3))
    assert two[stream] != kept[stream] != three[stream] != two[stream]
    assert {**two, stream: None} == {**three, stream: None} == {**kept, stream: None}


def test_the_seed_that_is_kept_is_the_same_whatever_follows():
    none, some, every = fitted(run_seed=1), fitted("weights", "order", run_seed=1), fitted(*STREAM_NAMES, run_seed=1)
    assert none == some == every


def test_a_stream_is_the_same_alone_and_beside_others():
    alone, beside = fitted("order", run_seed=7), fitted(*STREAM_NAMES, run_seed=7)
    assert alone["order"] == beside["order"]
    assert alone["weights"] != beside["weights"]


def test_seeding_starts_every_stream_anew_from_the_number_that_is_given():
    training = Training("order", run_seed=5)
    draws = []
    for seed in (3, 3, 4):
        training.streams.restarted("random", seed)
        draws.append((training.init_weights(), training.shuffled()))
    assert draws[0] == draws[1] != draws[2]
    other = Training("order", run_seed=6)
    other.streams.restarted("random", 3)
    weights, order = other.init_weights(), other.shuffled()
    assert (weights, order != draws[0][1]) == (draws[0][0], True)


def test_draws_are_counted_and_the_lines_of_those_that_belong_to_no_stream_are_told(tmp_path):
    training = Training("weights", run_seed=2)
    training.fit()
    told = training.streams.told()
    assert told["draws"]["weights"] == 3
    assert told["draws"]["order"] == 3
    assert told["draws"]["augmentation"] >= 15
    assert told["draws"]["dropout"] == 0
    assert told["draws"]["other"] == 3
    (place,) = told["unclassified"]
    assert place["draws"] == 3
    assert place["where"].startswith(f"random.randint at {__file__}:")
    assert told["follow"] == ["weights"]
    assert told["out_of_sight"] == []


def test_the_first_lines_are_told_beside_those_of_the_most_draws():
    streams = Training("weights", run_seed=2).streams
    for place, draws in {"embedding": 1, "a": 5, "b": 6, "c": 7, "d": 8, "e": 9}.items():
        streams._places[place] = draws
    assert [item["where"] for item in streams.told()["unclassified"]] == ["e", "d", "c", "b", "a", "embedding"]
    streams._places["f"] = 4
    assert "f" not in {item["where"] for item in streams.told()["unclassified"]}


def test_a_function_that_a_part_of_torch_has_by_its_name_is_reached(monkeypatch):
    def randperm(number):
        return number

    torch = types.SimpleNamespace(
        randperm=randperm, Generator=types.SimpleNamespace(set_state=None), device=str, _C=None, default_generator=None
    )
    holder = types.SimpleNamespace(randperm=randperm, randint=max)
    stranger = types.SimpleNamespace(randperm=randperm)
    monkeypatch.setitem(sys.modules, "torch.utils.data.isorun_test", holder)
    monkeypatch.setitem(sys.modules, "isorun_test_stranger", stranger)
    monkeypatch.setattr(torch_draws, "_know_to_compiler", lambda *_: None)
    torch_draws.TorchDraws(torch, Training("other", run_seed=2).streams)._part_everywhere("randperm")
    assert torch.randperm is holder.randperm is not randperm
    assert stranger.randperm is randperm
    assert holder.randint is max


def test_what_draws_from_the_hidden_generator_itself_is_told():
    training = Training("weights", run_seed=2)
    training.random.seed.__self__.random()
    assert training.streams.told()["out_of_sight"] == ["random"]


def test_a_stream_that_drew_nothing_is_missing_from_the_answer():
    training = Training("weights", "dropout", run_seed=2, asked="weights+dropout")
    assert training.streams.answer() == "none"
    training.fit()
    assert training.streams.answer() == "weights"
    asked = {"streams": "weights+dropout"}
    assert switches.without_effect(asked, {"torch": {"streams": "weights"}}) == {"streams": {"torch": "weights"}}
    assert switches.without_effect(asked, {"torch": {"streams": "weights+dropout"}}) == {}
    assert Training(*STREAM_NAMES, run_seed=2, asked="all").streams.answer() == "all"
    assert Training(run_seed=2, asked="none@7").streams.answer() == "none@7"


def test_without_a_framework_that_draws_python_says_what_follows(monkeypatch):
    training = Training("weights", run_seed=2, asked="weights")
    training.fit()
    monkeypatch.setattr(streams, "_active", training.streams)
    monkeypatch.setattr(frameworks, "imported", lambda: iter(()))
    assert Python().answers(random) == {"streams": "weights"}
    monkeypatch.setattr(frameworks, "imported", lambda: iter([(types.SimpleNamespace(has_generators=True), None)]))
    assert Python().answers(random) == {}
    monkeypatch.setattr(streams, "_active", None)
    assert Python().answers(random) == {}


def test_children_count_beside_their_parent():
    training = Training("weights", run_seed=2)
    training.streams._before_fork()
    child = os.fork()
    if child == 0:
        training.streams._become_child()
        training.fit()
        os._exit(0)
    os.waitpid(child, 0)
    told = training.streams.told()
    assert (told["draws"]["weights"], told["draws"]["other"]) == (3, 3)
    assert told["unclassified"][0]["where"].startswith("random.randint at ")


@pytest.mark.parametrize(
    ("function", "call", "stream"),
    [
        ("init_weights", "rand", "weights"),
        ("_init_weights", "normal_", "weights"),
        ("weights_init", "normal_", "weights"),
        ("reset_parameters", "uniform_", "weights"),
        ("get_batch", "randint", "order"),
        ("shuffle_data", "random", "order"),
        ("anything", "randperm", "other"),
        ("make_batch", "random", "augmentation"),
        ("dropout", "rand", "dropout"),
        ("drop_last", "rand", "other"),
        ("train_test_split", "shuffle", "other"),
        ("split", "randperm", "other"),
        ("__getitem__", "randperm", "augmentation"),
        ("mixup", "randperm", "augmentation"),
        ("collate_fn", "random", "augmentation"),
        ("train_transformer", "randn", "other"),
        ("train_batch", "randn", "other"),
        ("main", "randn", "other"),
    ],
)
def test_functions_are_told_by_the_words_of_their_names(function, call, stream):
    found = {}
    scope = {"look": lambda: found.update(it=parted().stream_at(call, sys._getframe(1))), "__name__": "script"}
    code = compile(f"def {function}():\n    look()\n{function}()", "script.py", "exec")
    types.FunctionType(code, scope)()
    assert found["it"] == stream


class Neuron:
    """Part of a model that no framework knows."""

    def __init__(self, draw):
        self.w = [draw("uniform") for _ in range(2)]

    def parameters(self):
        return self.w


class Holder:
    """No part of a model."""

    def __init__(self, draw):
        self.w = [draw("uniform") for _ in range(2)]


def test_where_an_object_with_parameters_is_made_weights_are_drawn():
    def draw(call):
        return parted().stream_at(call, sys._getframe(1))

    assert Neuron(draw).w == ["weights"] * 2
    assert Holder(draw).w == ["other"] * 2


ONCE = "rows = draw('randperm')\ntrain, test = rows, rows\n"
PLACES = {
    "a permutation that is made once may be a split": (ONCE, "other"),
    "one a round is an order": ("for epoch in range(1):\n    draw('randperm')\n", "order"),
    "also by a function that is called each round": (
        "def step():\n    return draw('permutation')\nwhile True:\n    step()\n    break\n",
        "order",
    ),
    "a loop over whole trainings makes it once in each": (
        "def main(seed):\n    return draw('randperm')\nfor seed in range(1):\n    main(seed)\n",
        "other",
    ),
    "what a loop goes through is drawn once": ("for row in [draw('sample')]:\n    pass\n", "other"),
    "a function that is made in a loop": (
        "for _ in range(1):\n    def made():\n        draw('randperm')\nmade()\n",
        "other",
    ),
    "a parameter": ("w = Parameter(\n    draw('rand')\n)\n", "weights"),
    "gradients": ("w = requires_grad_ = Made(draw('randn')).requires_grad_()\n", "weights"),
    "gradients later": ("w = Made(draw('randn'))\nw.requires_grad = True\n", "weights"),
    "gradients by an argument": ("w = Made(draw('randn'), requires_grad=True)\n", "weights"),
    "gradients of a sample": ("for x in [1]:\n    fake = Made(draw('rand'), requires_grad=True)\n", "other"),
    "no gradients": ("w = Made(draw('randn'), requires_grad=False)\n", "other"),
    "the name of weights": ("weights = draw('randn')\n", "weights"),
    "the name of something else": ("sample_weights = draw('rand')\n", "other"),
    "nothing is said": ("x = draw('rand')\n", "other"),
}


@pytest.mark.parametrize("case", PLACES)
def test_where_no_place_says_it_the_statement_and_its_loops_do(case, tmp_path):
    source, stream = PLACES[case]
    (tmp_path / "script.py").write_text(source)
    found = []

    class Made:
        def __init__(self, _value, requires_grad=False):
            self.requires_grad = requires_grad

        def requires_grad_(self):
            return self

    def draw(call):
        found.append(parted().stream_at(call, sys._getframe(1)))

    scope = {"draw": draw, "Parameter": lambda value: value, "Made": Made, "__name__": "script"}
    types.FunctionType(compile(source, str(tmp_path / "script.py"), "exec"), scope)()
    assert found == [stream]


def test_generators_of_ones_own_belong_to_the_stream_of_the_place_where_they_are_made(tmp_path):
    def seeds(follow, run_seed):
        taker = streams.StreamTaker(parted(*follow, run_seed=run_seed), Recorder(tmp_path))
        kind = seeding.Kind("numpy.random", lambda value: value)

        def augment():
            return taker.take(kind, "numpy.random.default_rng", 5)

        def init_weights():
            return taker.take(kind, "numpy.random.default_rng", 5)

        return augment(), init_weights(), taker.take(kind, "numpy.random.seed", 5)

    kept, followed = seeds(["augmentation"], 1), seeds(["augmentation"], 2)
    assert kept[0] != followed[0]
    assert kept[1:] == followed[1:]
    assert kept[0] != kept[1]
    assert kept[2] == 5


def study(**environment):
    document = {
        "approaches": {"a": {"command": "python t.py --seed {seed}"}},
        "environments": {"e": environment},
        "levels": ["fixed-seed"],
        "seeds": [4],
    }
    return study_from_document(document, Path(), "s")


def test_streams_are_asked_for_by_words_in_one_order_and_read_back():
    asked = study(streams=["order", "weights"])
    assert asked.environments["e"].switches == {"streams": "weights+order"}
    assert study(streams="order+weights@9").environments["e"].switches == {"streams": "weights+order@9"}
    assert study_from_document(document_of(asked), Path(), "s") == asked
    assert stream_request({"streams": "weights+order@9"}) == (frozenset({"weights", "order"}), 9, "weights+order")
    assert stream_request({"streams": "all"}) == (frozenset(STREAM_NAMES), 1, "all")
    assert stream_request({"streams": "none"}) == (frozenset(), 1, "none")
    assert stream_request({}) is None
    for wrong in ("weight", ["weights", "all"], "weights,order", "weights@x"):
        with pytest.raises(StudyError, match="streams"):
            study(streams=wrong)


def test_the_training_is_told_the_kept_seed_in_every_run(tmp_path):
    for keys, told in (({}, "4"), ({"streams": "weights"}, "1"), ({"streams": "all@8"}, "8")):
        declared = study(**keys)
        (cell,) = cells_of(declared)
        job = job_of(declared, cell, 0, 4)
        assert job.filled(tmp_path).command[-1] == told
        assert job.seed == 4


def test_streams_are_values_of_a_factor():
    document = {
        "approaches": {"a": {"command": "python t.py"}},
        "levels": ["fixed-seed"],
        "factors": {"streams": ["none", "weights", ["weights", "order"], "all"]},
    }
    declared = study_from_document(document, Path(), "s")
    named = {name: environment.switches["streams"] for name, environment in declared.environments.items()}
    assert named == {
        "baseline": "none",
        "streams=weights": "weights",
        "streams=weights+order": "weights+order",
        "streams=all": "all",
    }


class HeldOnly:
    """A generator as torch before 2.12 has them: nothing can refer to it weakly."""

    __slots__ = ()


@pytest.mark.parametrize("kind", [HeldOnly, type("Referable", (), {})])
def test_states_of_generators_last_as_long_as_the_training_has_them(kind):
    states, kept = GeneratorStates(), [kind() for _ in range(5)]
    for number, generator in enumerate(kept):
        states.of(generator)["order"] = number
    for _ in range(1_000):
        states.of(kind())["order"] = -1
    assert [states.of(generator)["order"] for generator in kept] == list(range(5))
    assert len(states) < 200
    states.forget(kept[0])
    assert states.of(kept[0]) == {}
