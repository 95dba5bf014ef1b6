"""isorun claim as people type it."""

import json

import pytest

from isorun import claiming
from isorun.cli.main import main


def test_a_published_noise_is_held_against_the_gain(capsys):
    assert main(["claim", "--model", "wrn-28-10", "--data", "cifar100", "--gain", "0.8"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(
        "A gain of 0.8 points for WRN-28-10 on CIFAR-100 (accuracy) is not above the noise of single runs."
    )
    assert "differ by as much in 48 % of pairs" in said
    assert "19 runs each side would show it with a chance of 80 %" in said
    assert "Table 2" in said


def test_json_has_the_keys_that_programs_read(capsys):
    assert main(["claim", "--model", "wrn-28-10", "--data", "cifar100", "--gain", "0.8", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["gain"], told["unit"], told["noise_sd"], told["above_noise"]) == (0.8, "points", 0.8, False)
    assert told["runs_needed"] == 19
    assert told["source"].endswith("Table 2, Default, Overall (section 5.1)")


def test_all_that_is_published_is_listed(capsys):
    assert main(["claim", "--list"]) == 0
    assert "TADAM on miniImageNet" in capsys.readouterr().out
    assert main(["claim", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["spreads"]
    assert all(item["source"] and item["sd"] >= 0 for item in listed)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--model", "resnet110", "--data", "cifar10", "--gain", "1"], 1, "the nearest that are: ResNet38 on CIFAR-10"),
        (["--model", "resnet56"], 2, "--gain is needed"),
        (["--model", "resnet56", "--gain", "0.8%"], 2, "--unit points or --unit share"),
        (["--gain", "0.8"], 2, "--model with --data, or --study"),
        (["--gain", "0", "--model", "resnet56"], 1, "a finite number other than 0"),
        (["--gain", "1", "--model", "resnet56", "--store", "x"], 2, "--store belongs to --study"),
        (["--gain", "1", "--study", "nope"], 1, "nope"),
        (["--gain", "1", "--study", "a", "--similar"], 2, "--similar"),
        (["--gain", "1", "--model", "resnet56", "--alpha", "2"], 1, "alpha"),
        (["--gain", "1", "--model", "resnet56", "--power", "2"], 1, "power"),
    ],
)
def test_mistakes_are_told_with_what_to_do(words, code, told, capsys):
    assert main(["claim", *words]) == code
    said = capsys.readouterr()
    assert told in said.err
    assert "Traceback" not in said.err
    assert not said.out


@pytest.mark.slow
def test_a_study_of_ones_own_is_taken(toy):
    assert toy("run", "study.toml").returncode == 0
    done = toy("claim", "--study", "study.toml", "--gain", "1", "--unit", "points", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["noise"]["level"] == "default"
    assert told["noise"]["runs"] == 3
    assert "study" in told["source"]
    level = toy("claim", "--study", "study.toml", "--gain", "1", "--unit", "points", "--level", "fixed-seed", "--json")
    assert json.loads(level.stdout)["noise"]["level"] == "fixed-seed"


def test_no_gain_is_told_that_an_accuracy_cannot_have(capsys):
    main(["claim", "--model", "lenet5", "--gain", "0.5"])
    told = " ".join(capsys.readouterr().out.split())
    assert "no gain that there can be is above the noise" in told
    assert "107" not in told
    assert "the best of 5 runs" not in told


def test_which_of_several_groups_is_meant_is_asked_in_words_that_can_be_typed():
    groups = [{"approach": "a b", "level": "default", "environment": name} for name in ("one", "two")]
    assert claiming._which_group(groups).startswith("name one, such as --where environment=one (")
    groups = [{"approach": name, "level": "default"} for name in ("a b", "c")]
    assert claiming._which_group(groups).startswith("name one, such as --model 'a b' (")
    assert "isorun run -n 10" in claiming._which_group(groups[:1])


def test_a_name_that_is_no_file_and_no_study_has_a_next_step(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["claim", "--study", "reg", "--gain", "1"]) == 1
    assert "a study by its file, or by its name where it was run (--store)" in " ".join(capsys.readouterr().err.split())


def test_a_loss_gets_no_one_ahead(capsys):
    assert main(["claim", "--model", "wrn-28-10", "--data", "cifar100", "--gain", "-3"]) == 0
    told = capsys.readouterr().out
    assert "ahead" not in told
    assert "in this direction in" in " ".join(told.split())
