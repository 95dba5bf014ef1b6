"""Seeds taken over: constants follow the run's seed; equal streams stay equal, different ones different."""

from __future__ import annotations

import pickle
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worker_trainings import Trained, read_run

from isorun.worker import levels, seeding
from isorun.worker.frameworks import numpy as numpy_framework
from isorun.worker.frameworks import python as python_framework
from isorun.worker.recorder import MAX_SEEDS_A_PLACE, Recorder

SEEDS = st.integers(0, 2**70)
WORDS = st.lists(st.integers(0, 2**40), max_size=3)


def taking_from(seed: int) -> dict[str, str]:
    return levels.seed_environment(seed, take_seeds=True)


def seeds_told(trained: Trained) -> list[tuple[str, str, str, str]]:
    events = trained.of_kind("seeded")
    return [(item["call"], item["value"], item["where"], item.get("replaced", "")) for item in events]


@given(st.integers(0, 2**63), st.sampled_from(["random", "torch"]), SEEDS)
def test_a_replacement_follows_seed_kind_and_constant_and_suits_every_library(seed, kind, constant):
    new = seeding.replacement(seed, kind, constant)
    assert 0 <= new < 2**31
    assert new == seeding.replacement(seed, kind, constant)
    others = [(seed + 1, kind, constant), (seed, kind + "x", constant), (seed, kind, constant + 1)]
    assert new not in {seeding.replacement(*other) for other in others}


def test_replacements_of_small_constants_and_seeds_spread_over_their_range():
    drawn = [seeding.replacement(seed, "torch", constant) for seed in range(300) for constant in range(30)]
    counts = np.bincount(np.array(drawn) >> 27, minlength=16)
    assert len(set(drawn)) == len(drawn)
    assert ((counts - len(drawn) / 16) ** 2 / (len(drawn) / 16)).sum() < 44.3  # chi-squared, 15 df, p = .0001


@given(SEEDS | WORDS, SEEDS | WORDS)
def test_entropy_is_the_same_constant_exactly_where_numpy_makes_the_same_stream(one, other):
    streams = [tuple(np.random.SeedSequence(entropy).generate_state(4)) for entropy in (one, other) if entropy != []]
    constants = [numpy_framework.entropy(entropy) for entropy in (one, other)]
    assert [constant is None for constant in constants] == [entropy == [] for entropy in (one, other)]
    if len(streams) == 2:
        assert (streams[0] == streams[1]) == (constants[0] == constants[1])


@given(st.integers(0, 3) | st.lists(st.integers(0, 2), min_size=1, max_size=2), st.integers(0, 3))
def test_legacy_seeds_are_the_same_constant_exactly_where_numpy_makes_the_same_stream(one, other):
    same = np.random.RandomState(one).rand() == np.random.RandomState(other).rand()
    assert same == (numpy_framework.legacy(one) == numpy_framework.legacy(other))


SCALARS = st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5, True, "1", b"1", "x", bytearray(b"x")])


@given(SCALARS, SCALARS)
def test_pythons_seeds_are_the_same_constant_exactly_where_python_makes_the_same_stream(one, other):
    same = random.Random(one).random() == random.Random(other).random()
    assert same == (python_framework.constant(one) == python_framework.constant(other))


STREAMS = """
import random
import numpy as np
from numpy.random import default_rng, RandomState

def split():
    return default_rng(42).permutation(5).tolist()

random.seed(0); print("py", random.random(), random.Random(0).random(), random.Random(1).random())
np.random.seed(0); print("legacy", np.random.rand(), RandomState(0).rand(), RandomState(1).rand())
again = RandomState(); again.seed(0); print("reseeded", again.rand())
print("modern", default_rng(0).random(), np.random.Generator(np.random.PCG64(0)).random(),
      default_rng(np.random.SeedSequence([0])).random(), default_rng(seed=1).random())
print("others", *(kind(0).random_raw() for kind in (np.random.MT19937, np.random.Philox, np.random.SFC64)))
print("split", split(), split())
children = np.random.SeedSequence(5).spawn(2)
print("spawned", children[0].generate_state(1) == np.random.SeedSequence(5, spawn_key=(0,)).generate_state(1),
      children[0].generate_state(1) == children[1].generate_state(1))
print("epochs", *(random.Random(epoch).random() for epoch in (1, 2, 1)))
"""


def streams(trained: Trained) -> dict[str, list[str]]:
    assert trained.returncode == 0, trained.stderr
    assert not (trained.folder / "worker-error.txt").exists()
    return {line.split()[0]: re.split(r" (?![^[]*\])", line)[1:] for line in trained.stdout.splitlines()}


def test_equal_streams_stay_equal_different_ones_different_and_runs_differ(train, tmp_path):
    (tmp_path / "train.py").write_text(STREAMS)
    runs = {seed: streams(train("train.py", extra=taking_from(seed))) for seed in (3, 4)}
    for found in runs.values():
        assert found["py"][0] == found["py"][1] != found["py"][2]
        assert found["legacy"][0] == found["legacy"][1] == found["reseeded"][0] != found["legacy"][2]
        assert len({*found["modern"][:3]}) == 1
        assert found["modern"][3] != found["modern"][0]
        assert found["split"][0] == found["split"][1]
        assert found["spawned"] == ["[", "True]", "[False]"] or found["spawned"] == ["[ True]", "[False]"]
        assert found["epochs"][0] == found["epochs"][2] == found["py"][2] != found["epochs"][1]
    assert all(runs[3][name][0] != runs[4][name][0] for name in runs[3] if name not in ("spawned", "split"))
    assert streams(train("train.py", extra=taking_from(3))) == runs[3]


def test_a_comment_above_a_seed_changes_nothing(train, tmp_path):
    (tmp_path / "train.py").write_text(STREAMS)
    before = train("train.py", extra=taking_from(3)).stdout
    (tmp_path / "train.py").write_text("# one line more\n" + STREAMS)
    assert train("train.py", extra=taking_from(3)).stdout == before


def test_without_the_flag_nothing_is_replaced(train, tmp_path):
    (tmp_path / "train.py").write_text(STREAMS)
    found = streams(train("train.py"))
    assert found["py"][:2] == [repr(random.Random(0).random())] * 2
    assert found["legacy"][0] == str(np.random.RandomState(0).rand())
    assert found["modern"][0] == str(np.random.default_rng(0).random())


def test_the_original_its_replacement_and_its_place_are_recorded(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import random\nimport numpy as np\nrandom.seed(11)\nrng = np.random.default_rng(\n    12\n)\n")
    told = seeds_told(train("train.py", extra=taking_from(3)))
    new = [str(seeding.replacement(3, kind, constant)) for kind, constant in (("random", 11), ("numpy.random", 12))]
    assert told == [
        ("random.seed", "11", f"{script}:3", new[0]),
        ("numpy.random.default_rng", "12", f"{script}:4", new[1]),
    ]


def test_the_runs_own_seed_is_left_as_it_was_given(train):
    code = "import random, sys; random.seed(int(sys.argv[1])); print(random.random())"
    trained = train("-c", code, "77", extra=taking_from(77))
    assert trained.stdout.split() == [repr(random.Random(77).random())]
    assert [item[1:] for item in seeds_told(trained)] == [("77", "<string>:1", "77")]


def test_fresh_entropy_stays_fresh_at_one_and_the_same_seed(train):
    code = "import random, numpy as np; random.seed(); np.random.seed(None); print(random.random(), np.random.rand(), "
    code += "np.random.default_rng().random(), np.random.RandomState().rand(), random.Random().random())"
    runs = [train("-c", code, extra=taking_from(3)) for _ in range(2)]
    assert set(runs[0].stdout.split()).isdisjoint(runs[1].stdout.split())
    assert seeds_told(runs[0]) == []


def test_what_a_library_refuses_is_still_refused(train):
    calls = (
        "np.random.seed(-1)",
        "np.random.RandomState(2**32)",
        "np.random.seed([2**33])",
        "np.random.seed(1, 2, 3)",
        "np.random.default_rng(-1)",
        "np.random.SeedSequence('x')",
        "np.random.PCG64(1.5)",
        "random.seed([])",
    )
    code = "import random, numpy as np\n"
    for call in calls:
        code += f"try: {call}; print('accepted')\nexcept (TypeError, ValueError): print('refused')\n"
    trained = train("-c", code, extra=taking_from(3))
    assert trained.stdout.split() == ["refused"] * 8, trained.stderr


KEPT = """
import copy, pickle, sys
import numpy as np
from numpy.random import RandomState, SeedSequence, PCG64

class Mine(RandomState):
    pass

class Sequence(SeedSequence):
    pass

state, entropy, bits = RandomState(3), SeedSequence(5), PCG64(7)
assert isinstance(np.random.mtrand._rand, np.random.RandomState) and isinstance(state, RandomState)
assert isinstance(Mine(1), RandomState) and not isinstance(state, Mine) and issubclass(Mine, np.random.RandomState)
assert isinstance(Sequence(1), SeedSequence) and type(Sequence(1)) is Sequence and not isinstance(entropy, Sequence)
assert isinstance(bits, np.random.BitGenerator) and not isinstance(3, RandomState) and not issubclass(int, PCG64)
assert Mine(1).rand() == RandomState(1).rand() and (Sequence(1).entropy == SeedSequence(1).entropy)
assert copy.deepcopy(state).rand() == pickle.loads(pickle.dumps(state)).rand() == RandomState(3).rand()
assert pickle.loads(pickle.dumps(RandomState)) is RandomState and RandomState.__doc__
with open(sys.argv[1], "wb") as file:
    pickle.dump([state, entropy, bits, np.random.default_rng(9)], file)
print(state.rand(), entropy.generate_state(1)[0], bits.random_raw())
"""


def test_types_keep_their_instances_subclasses_and_pickles_which_other_processes_read(train, tmp_path):
    (tmp_path / "train.py").write_text(KEPT)
    trained = train("train.py", str(tmp_path / "kept.pickle"), extra=taking_from(3))
    assert trained.returncode == 0, trained.stderr
    data = (tmp_path / "kept.pickle").read_bytes()
    assert b"isorun" not in data
    state, entropy, bits, generator = pickle.loads(data)
    assert [type(item) for item in (state, entropy, bits)] == [
        np.random.RandomState,
        np.random.SeedSequence,
        np.random.PCG64,
    ]
    assert trained.stdout.split() == [str(state.rand()), str(entropy.generate_state(1)[0]), str(bits.random_raw())]
    assert isinstance(generator, np.random.Generator)


@pytest.fixture
def library(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "somelib.py").write_text(
        "import numpy as np\nTABLE = np.random.RandomState(0).rand()\n"
        "def shuffled(seed=0):\n    return np.random.default_rng(seed).random()\n"
        "def drawn():\n    return np.random.default_rng(2**40 + 1).random()\n"
    )
    return {"PYTHONPATH": str(folder)}


def test_a_constant_passed_to_a_library_is_taken_and_the_librarys_own_are_not(train, tmp_path, library):
    script = tmp_path / "train.py"
    script.write_text("import somelib\nprint(somelib.TABLE, somelib.drawn())\nprint(somelib.shuffled(seed=42))\n")
    trained = train("train.py", extra={**taking_from(3), **library})
    table, drawn, shuffled = trained.stdout.split()
    assert table == str(np.random.RandomState(0).rand())
    assert drawn == str(np.random.default_rng(2**40 + 1).random())
    new = seeding.replacement(3, "numpy.random", 42)
    assert shuffled == str(np.random.default_rng(new).random())
    assert seeds_told(trained) == [("numpy.random.default_rng", "42", f"{script}:3", str(new))]
    assert trained.of_kind("note") == []


def test_a_setting_that_no_generator_got_is_noted(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("def XGBClassifier(random_state): pass\n\nXGBClassifier(random_state=4)\n")
    trained = train("train.py", extra=taking_from(3))
    assert seeds_told(trained) == [("XGBClassifier(random_state=) (in source)", "4", f"{script}:3", "")]
    (note,) = trained.of_kind("note")
    assert note["code"] == "seed-not-taken"
    assert "XGBClassifier(random_state=) 4" in note["message"]


def test_a_generator_seeded_for_each_example_does_not_fill_the_record(train):
    code = "import random\nprint(len({random.Random(index).random() for index in range(5000)}))"
    trained = train("-c", code, extra=taking_from(3))
    assert trained.stdout == "5000\n"
    assert len(seeds_told(trained)) == MAX_SEEDS_A_PLACE


CHILDREN = """
import multiprocessing as mp, random, subprocess, sys
import numpy as np

def drawn(seed):
    np.random.seed(seed)
    return random.Random(seed).random(), np.random.rand(), np.random.default_rng(seed).random()

if __name__ == "__main__":
    here = [drawn(seed) for seed in (1, 2)]
    for method in ("fork", "spawn"):
        with mp.get_context(method).Pool(1) as pool:
            print(pool.map(drawn, (1, 2)) == here)
    code = "import sys; sys.path.insert(0, '.'); import train; print([train.drawn(seed) for seed in (1, 2)])"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == str(here))
    print(here[0] != here[1])
"""


def test_forked_spawned_and_started_children_get_what_their_parent_gets(train, tmp_path):
    (tmp_path / "train.py").write_text(CHILDREN)
    trained = train("train.py", extra=taking_from(3))
    assert trained.stdout.split() == ["True"] * 4, trained.stderr


def test_values_that_were_handed_out_come_back_as_what_they_stood_for(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.begin()
    taker = seeding.SeedTaker(3, recorder, takes_constants=True, answers_fresh=False)
    one, other = seeding.Kind("one", seeding.whole_number), seeding.Kind("other", seeding.whole_number)
    new = taker.take(one, "call", 42)
    assert taker.take(one, "call", new) == new
    assert taker.take(other, "call", new) == taker.take(other, "call", 42) != new


def test_what_goes_wrong_in_it_leaves_the_training_its_own_seed(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.begin()

    def broken(value):
        raise RuntimeError("broken")

    seeding.activate(seeding.SeedTaker(3, recorder, takes_constants=True, answers_fresh=False))
    try:
        assert seeding.taken(seeding.Kind("kind", broken), "call", 42) == 42
    finally:
        seeding.activate(None)
    assert "broken" in (tmp_path / "worker-error.txt").read_text()
    assert seeding.taken(seeding.Kind("kind", broken), "call", 42) == 42
    assert [event["kind"] for event in read_run(tmp_path).main] == ["start"]


TORCH = """
import pickle, sys
import numpy as np
import torch
from torch import manual_seed
from torch.utils.data import DataLoader, TensorDataset, random_split

def start(worker):
    np.random.seed(42 + worker)

class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.rand(1).item() + np.random.rand()

if __name__ == "__main__":
    manual_seed(1337)
    print(torch.rand(1).item(), torch.initial_seed())
    torch.cuda.manual_seed_all(1337)
    generator = torch.Generator().manual_seed(1337)
    print(torch.rand(1, generator=generator).item(), generator.initial_seed())
    assert type(generator) is torch._C.Generator and isinstance(torch.default_generator, torch.Generator)
    assert pickle.loads(pickle.dumps(generator)).initial_seed() == generator.initial_seed()
    halves = [random_split(range(10), [5, 5], generator=torch.Generator().manual_seed(7))[part].indices
              for part in (0, 1)]
    print(sorted(halves[0] + halves[1]) == list(range(10)))
    for method in ("fork", "spawn") if sys.argv[1:] else ("fork",):
        torch.manual_seed(5)
        data = DataLoader(Noisy(), num_workers=2, worker_init_fn=start, shuffle=True, multiprocessing_context=method)
        print(torch.cat(list(data)).tolist())
    torch.seed()
    print(torch.initial_seed() > 2**31)
"""


@pytest.mark.parametrize("words", [(), pytest.param(("both",), marks=pytest.mark.slow)], ids=["fork", "spawn"])
@pytest.mark.long
def test_torch_is_taken_over_and_its_generators_stay_what_they_are(train, tmp_path, words):
    """Processes that are spawned import torch anew, and are slow."""
    script = tmp_path / "train.py"
    script.write_text(TORCH)
    first = train("train.py", *words, extra=taking_from(3))
    assert first.returncode == 0, first.stderr
    one, two, halves, fork, *spawn, fresh = first.stdout.splitlines()
    new = str(seeding.replacement(3, "torch", 1337))
    assert one == two
    assert one.split()[1] == new
    assert (halves, fresh) == ("True", "True")
    assert spawn == [fork for _ in words]
    assert ("torch.manual_seed", "1337", f"{script}:18", new) in seeds_told(first)
    assert [item for item in seeds_told(first) if not item[3] and not item[0].endswith("(in source)")] == []
    other = train("train.py", extra=taking_from(4)).stdout.splitlines()
    assert [line for line in first.stdout.splitlines() if line in other] == ["True", "True"]


def test_it_runs_in_the_oldest_python_that_is_there(train):
    from worker_trainings import OTHER_PYTHONS

    if not OTHER_PYTHONS:
        pytest.skip("no other Python here")
    code = "import random; random.seed(5); print(random.random())"
    trained = train("-c", code, python=str(OTHER_PYTHONS[0]), extra=taking_from(3))
    new = seeding.replacement(3, "random", 5)
    assert trained.stdout.split() == [repr(random.Random(new).random())], trained.stderr
    assert sys.version_info >= (3, 11)
