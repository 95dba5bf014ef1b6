"""Whether a script has an option for its seed is read in its source."""

from __future__ import annotations

import ast

import pytest

from isorun.worker.seedoption import seed_option


def option_of(*sources: str) -> str:
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
