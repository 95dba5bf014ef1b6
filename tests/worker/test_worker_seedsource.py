"""Constant seeds are found in the source without running it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.worker.seedsource import find, find_in_file


@pytest.mark.parametrize(
    ("line", "call", "value"),
    [
        ("rng = np.random.default_rng(42)", "numpy.random.default_rng", "42"),
        ("rng = numpy.random.RandomState(7)", "numpy.random.RandomState", "7"),
        ("g = torch.Generator().manual_seed(3)", "torch.Generator.manual_seed", "3"),
        ("g.manual_seed(3)", "torch.Generator.manual_seed", "3"),
        ("torch.manual_seed(0)", "torch.manual_seed", "0"),
        ("train_test_split(x, y, random_state=1)", "train_test_split(random_state=)", "1"),
        ("key = jax.random.PRNGKey(0)", "jax.random.PRNGKey", "0"),
        ("key = jax.random.key(0)", "jax.random.key", "0"),
        ("set_seed(5)", "set_seed", "5"),
        ("pl.seed_everything(5, workers=True)", "seed_everything", "5"),
        ("keras.utils.set_random_seed(812)", "set_random_seed", "812"),
        ("rng = np.random.default_rng(seed=-1)", "numpy.random.default_rng(seed=)", "-1"),
        ("r = random.Random(9)", "random.Random", "9"),
        ("s = SeedSequence([1, 2])", "numpy.random.SeedSequence", "[1, 2]"),
    ],
)
def test_a_constant_seed_is_found_with_its_line(line, call, value):
    (found,) = find(f"import x\n\n{line}\n".encode())
    assert (found.call, found.value, found.line) == (call, value, 3)


@pytest.mark.parametrize(
    "line",
    [
        "rng = np.random.default_rng()",
        "rng = np.random.default_rng(args.seed)",
        "torch.manual_seed(int(os.environ['ISORUN_SEED']))",
        "split(x, random_state=None)",
        "key = lookup.key(0)",
        "model.fit(seeded=1)",
        "# default_rng(42)",
        "'torch.manual_seed(1)'",
    ],
)
def test_seeds_that_are_not_constant_are_none(line):
    assert find(line.encode()) == []


@given(st.binary(max_size=200))
def test_a_file_that_is_no_python_has_none(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("source") / "x.py"
    file.write_bytes(data)
    assert isinstance(find_in_file(file), list)


def test_a_missing_file_has_none(tmp_path):
    assert find_in_file(tmp_path / "none.py") == []
