"""Constant seeds, and an option for the seed, are found in the source without running it."""

from __future__ import annotations

import ast
import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.worker import seedsource
from isorun.worker.seedsource import SourceSeed, facts_of, find_in_tree, parsed, read_facts, seed_option


def find(source: bytes) -> list[SourceSeed]:
    found = find_in_tree(ast.parse(source))
    assert read_facts(source).seeds == found  # what is not even parsed has none
    return found


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
    tree = parsed(file)
    assert tree is None or isinstance(find_in_tree(tree), list)


def test_a_missing_file_has_none(tmp_path):
    assert parsed(tmp_path / "none.py") is None


def option_of(*sources: str) -> str:
    for source in sources:
        assert read_facts(source.encode()).option == seed_option([ast.parse(source)])
    return seed_option([ast.parse(source) for source in sources])


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ("p.add_argument('--seed', type=int, default=1)", "--seed"),
        ("p.add_argument('-s', '--seed', type=int)", "--seed"),
        ("parser.add_argument('--random-seed', type=int)", "--random-seed"),
        ("p.add_argument('--manualSeed', type=int, help='manual seed')", "--manualSeed"),
        ("p.add_argument('--rng_seed')\np.add_argument('--seed')", "--seed"),
        ("@click.option('--seed', default=0)\ndef main(seed): pass", "--seed"),
        ("flags.DEFINE_integer('seed', 0, 'the seed')", "--seed"),
        ("import fire\ndef main(lr=.1, seed=0): pass\nfire.Fire(main)", "--seed"),
        ("def main(lr: float, seed: int = 0): pass\ntyper.run(main)", "--seed"),
        ("app = typer.Typer()\n@app.command()\ndef main(seed: int = 0): pass", "--seed"),
        ("@dataclass\nclass Args:\n    seed: int = 1\nargs = tyro.cli(Args)", "--seed"),
        ("parser = HfArgumentParser((ModelArguments, TrainingArguments))", "--seed"),
        ("cli = LightningCLI(Model, Data)", "--seed_everything"),
    ],
)
def test_options_of_many_libraries_are_found(source, option):
    assert option_of(source) == option


@pytest.mark.parametrize(
    "source",
    [
        "p.add_argument('--lr', type=float)",
        "p.add_argument('--seed-file')",
        "def main(seed): pass\nmain(1)",
        "def train(seed): pass\nsubprocess.run(train)",
        "@dataclass\nclass Args:\n    seed: int = 1\nArgs()",
        "torch.manual_seed(1337)",
        "# p.add_argument('--seed')",
        "",
    ],
)
def test_a_script_without_one_has_none(source):
    assert option_of(source) == ""


def test_the_first_source_that_has_one_is_asked():
    assert option_of("x = 1", "p.add_argument('--random_state')", "p.add_argument('--seed')") == "--random_state"


def test_it_is_recorded_with_the_run(train, tmp_path):
    (tmp_path / "options.py").write_text("import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed')\n")
    (tmp_path / "train.py").write_text("import options\n")
    (tmp_path / "plain.py").write_text("print(1)\n")
    assert train("train.py").of_kind("environment")[0]["effective"]["seed_option"] == "--seed"
    assert "seed_option" not in train("plain.py").of_kind("environment")[0]["effective"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose files were written long ago; what is read of it is listed."""
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    folder.mkdir()
    reads = []

    def read(source):
        reads.append(source)
        return read_facts(source)

    monkeypatch.setattr(seedsource, "read_facts", read)
    monkeypatch.setattr(seedsource, "_SETTLED_SECONDS", -1.0)
    return folder, reads


def test_what_a_file_says_is_kept_until_it_is_another_file(project):
    folder, reads = project
    file = folder / "a.py"
    file.write_text("import os\nos.environ['HOME']\ntorch.manual_seed(1)\n")
    first = facts_of([file], folder)
    assert facts_of([file], folder) == first
    assert (first[file].variables, first[file].seeds[0].value, len(reads)) == (["HOME"], "1", 1)
    before = file.stat()
    file.write_text("import os\nos.environ['HOME']\ntorch.manual_seed(2)\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size, same time of the content
    assert facts_of([file], folder)[file].seeds[0].value == "2"
    replaced = folder / "b.py"
    replaced.write_text("torch.manual_seed(3)\n")
    replaced.replace(file)
    assert facts_of([file], folder)[file].seeds[0].value == "3"
    assert len(reads) == 3


def test_a_file_that_changed_just_now_is_read_again(project, monkeypatch):
    folder, reads = project
    monkeypatch.setattr(seedsource, "_SETTLED_SECONDS", 60.0)
    (folder / "a.py").write_text("x = 1")
    for _ in range(3):
        facts_of([folder / "a.py"], folder)
    assert len(reads) == 3


def test_other_rules_read_everything_again(project, monkeypatch):
    folder, reads = project
    (folder / "a.py").write_text("x = 1")
    facts_of([folder / "a.py"], folder)
    monkeypatch.setattr(seedsource, "_rules", lambda: "newer")
    facts_of([folder / "a.py"], folder)
    assert len(reads) == 2


def test_a_copy_says_what_its_original_said(project, tmp_path):
    folder, reads = project
    file = folder / "a.py"
    file.write_text("torch.manual_seed(1)")
    facts_of([file], folder)
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy2(file, copy / "a.py")
    assert facts_of([copy / "a.py"], copy, folder)[copy / "a.py"].seeds[0].value == "1"
    assert len(reads) == 1
    (copy / "a.py").write_text("torch.manual_seed(2)")
    assert facts_of([copy / "a.py"], copy, folder)[copy / "a.py"].seeds[0].value == "2"


@pytest.mark.parametrize(
    "kept", [None, 3, "text", ["a", []], ["a", [], "", [["call"]]], ["a", [], "", [[1, 2, "x", 3, 4]]]]
)
def test_a_cache_that_holds_something_else_costs_only_time(project, monkeypatch, kept):
    folder, reads = project
    (folder / "a.py").write_text("torch.manual_seed(1)")
    monkeypatch.setattr(seedsource.Cache, "get", lambda *_: kept)
    assert facts_of([folder / "a.py"], folder)[folder / "a.py"].seeds[0].value == "1"
    assert len(reads) == 1
