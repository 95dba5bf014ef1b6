"""The statistics commands as people type them: tables from elsewhere, studies, and mistakes."""

import csv
import json
import random

import pytest

from isorun.cli.main import COMMANDS


@pytest.fixture
def table(shell):
    generator = random.Random(3)
    path = shell.folder / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "setting", "seed", "repeat", "value"])
        for model in ("base", "new"):
            for seed in range(12):
                effect = generator.gauss(0, 0.01)
                for repeat in range(2):
                    value = 0.90 + (0.05 if model == "new" else 0) + effect + generator.gauss(0, 0.005)
                    writer.writerow([model, "s", seed, repeat, f"{value:.6f}"])
    return shell


def test_summarize_has_the_documented_keys(table):
    entries = json.loads(table("summarize", "runs.csv", "--value", "value", "--by", "model,setting", "--json").stdout)
    assert [entry["group"] for entry in entries] == [
        {"model": "base", "setting": "s"},
        {"model": "new", "setting": "s"},
    ]
    keys = "group n mean sd sd_ci90 median iqm min max max_diff rel_sd rel_max_diff"
    assert list(entries[0]) == [*keys.split(), "dropped", "units", "unit", "warnings"]
    assert entries[0]["n"] == 24


def test_compare_has_the_documented_keys_and_the_right_verdict(table):
    words = ("compare", "runs.csv", "--metric", "value:higher", "--by", "model", "--a", "base", "--b", "new")
    result = json.loads(table(*words, "--json").stdout)
    keys = (
        "a b n_a n_b mean_a mean_b difference difference_ci95 levene mann_whitney mann_whitney_one_sided_p welch_p "
        "cohens_d hedges_g probability_of_improvement single_run_reversal wilcoxon_p paired_t_p verdict why"
    )
    assert list(result)[:20] == keys.split()
    assert result["verdict"] == "B better"
    assert result["wilcoxon_p"] is None
    text = table(*words).stdout
    assert text.startswith("new is better after 12 ")
    assert "24 runs of 12 seeds count as 12" in text
    assert (result["n_a"], result["units_a"], result["unit"]) == (24, 12, "seed")
    assert max(map(len, text.splitlines())) <= 80
    assert table(*words, "--exit-code").returncode == 3
    words = ("compare", "runs.csv", "--value", "value", "--by", "model", "--direction", "lower", "--json")
    assert table(*words).stdout.count('"A better"') == 1


def test_a_name_that_tells_no_direction_gets_no_verdict_until_one_is_given(table):
    words = ("compare", "runs.csv", "--value", "value", "--by", "model")
    result = json.loads(table(*words, "--json").stdout)
    assert result["verdict"] == "undecided"
    assert result["warnings"][0]["code"] == "direction-unknown"
    assert "--metric value:lower" in table(*words).stdout
    ranked = table("rank", *words[1:]).stdout
    assert "ranks first" not in ranked


def test_mixed_has_the_documented_keys(table):
    result = json.loads(table("mixed", "runs.csv", "value ~ model + (1|seed)", "--json").stdout)
    keys = "loglik_reml loglik_ml aic fixed random residual_sd singular ranova anova differences"
    assert list(result)[:10] == keys.split()
    assert [row["name"] for row in result["fixed"]] == ["(Intercept)", "modelnew"]
    assert result["random"][0]["group"] == "seed"
    assert (result["n"], result["units"], result["unit"]) == (48, 12, "seed")
    assert [row["label"] for row in result["means"]] == ["base", "new"]
    assert list(result["warnings"][0]) == ["code", "message", "next", "groups", "voids"]


def test_mixed_makes_no_claim_from_a_model_that_lacks_what_the_data_show(table):
    words = ("mixed", "runs.csv", "value ~ model + (1|seed)")
    text = table(*words).stdout
    assert text.startswith("No claim about model can be made from the model as given: the effects of")
    assert "[interaction-missing]" in text
    told = json.loads(table(*words, "--json").stdout)
    (warning,) = [item for item in told["warnings"] if item["code"] == "interaction-missing"]
    assert warning["voids"]
    assert '"value ~ model + (1|seed) + (1|model:seed)"' in warning["next"]
    assert told["interactions"][0]["p"] < 0.05
    fits = ("mixed", "runs.csv", "value ~ model + (1|seed) + (1|model:seed)", "--ddf", "kenward-roger")
    text = table(*fits).stdout
    assert "No claim" not in text
    assert "48 runs of 12 seeds count as 12 for model" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_mixed_compares_as_asked_and_judges_hypotheses(table):
    words = ("mixed", "runs.csv", "value ~ model + (1|seed) + (1|repeat)")
    told = json.loads(table(*words, "--adjust", "dunnett", "--control", "base", "--json").stdout)
    assert [(row["a"], row["b"]) for row in told["differences"]] == [("new", "base")]
    assert told["differences"][0]["lower"] > 0
    assert "--control" in table(*words, "--adjust", "dunnett").stderr
    judged = json.loads(table(*words, "--hypotheses", "--rerun", "base=new", "--json").stdout)["hypotheses"]
    assert judged["formula"].endswith("+ (1|model:seed)")
    assert judged["as_given"]["formula"] == words[2]
    assert judged["reruns"]["rejected"] is True
    assert "Judged with value ~ model" in " ".join(table(*words, "--hypotheses", "--rerun", "base=new").stdout.split())


def test_mixed_fits_slopes_and_refuses_what_nobody_means(table):
    text = table("mixed", "runs.csv", "value ~ model + (model|seed)").stdout
    assert "correlation of (Intercept) and modelnew" in text
    result = table("mixed", "runs.csv", "value ~ " + "(" * 1000 + "model" + ")" * 1000 + " + (1|seed)")
    assert result.returncode == 1
    assert "too many brackets" in result.stderr
    assert "Traceback" not in result.stderr


def test_power_answers_whichever_is_asked(table):
    assert json.loads(table("power", "--effect", "1", "--test", "welch", "--json").stdout)["runs"] == 17
    assert 1.2 < json.loads(table("power", "--runs", "10", "--json").stdout)["effect_size"] < 1.6
    own = ("power", "runs.csv", "--value", "value", "--by", "model", "--a", "base", "--difference", "0.01", "--json")
    assert json.loads(table(*own).stdout)["runs"] > 5


def test_figures_are_written(table):
    words = ("compare", "runs.csv", "--value", "value", "--by", "model", "--figure", "sides.svg")
    assert table(*words).returncode == 0
    assert (table.folder / "sides.svg").read_text().startswith("<svg")
    assert "allowed" in table(*words[:-1], "sides.gif").stderr


TWO = """
import random, sys
import isorun
isorun.result(acc=random.gauss(0.9 + float(sys.argv[1]), 0.01))
"""
STUDY = """
[approaches.base]
command = "python two.py 0"
[approaches.new]
command = "python two.py {gain}"
[metrics.acc]
direction = "higher"
"""


@pytest.fixture
def study(shell):
    def declare(gain):
        shell.write("two.py", TWO)
        shell.write("study.toml", STUDY.replace("{gain}", str(gain)))
        return shell

    return declare


@pytest.mark.long
def test_decide_runs_until_the_verdict_is_in_and_no_longer(study):
    shell = study(0.1)
    done = shell("decide", "study.toml", "--json", "--figure", "path.svg")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["a"], result["b"], result["verdict"]) == ("base", "new", "B better")
    assert 10 <= result["runs_made"] <= 24
    again = json.loads(shell("decide", "study.toml", "--json").stdout)
    assert again["runs_made"] == 0
    assert again["verdict"] == "B better"
    compared = json.loads(shell("compare", "study.toml", "--json").stdout)
    assert compared["n_a"] == 1  # the file still declares one run; decide went beyond it


def test_decide_names_a_condition_that_no_cell_meets(study):
    shell = study(0.1)
    assert "no config of the study is 'fast'" in shell("decide", "study.toml", "--where", "config=fast").stderr
    mistyped = shell("decide", "study.toml", "--where", "confg=default")
    assert mistyped.returncode == 1
    assert "did you mean 'config'" in mistyped.stderr


def test_decide_stops_at_its_budget(study):
    result = json.loads(study(0.001)("decide", "study.toml", "--max-runs", "6", "--json").stdout)
    assert result["n_a"] <= 6
    assert result["verdict"] in ("undecided", "A better", "B better")


MISTAKES = {
    "missing column": (("summarize", "runs.csv", "--value", "vlaue"), 1, "did you mean 'value'"),
    "no value": (("compare", "runs.csv", "--by", "model"), 1, "--value"),
    "unknown label": (
        ("compare", "runs.csv", "--value", "value", "--by", "model", "--a", "bsae", "--b", "new"),
        1,
        "base",
    ),
    "text column": (("summarize", "runs.csv", "--value", "model"), 1, "text where a number is needed"),
    "missing file": (("summarize", "none.csv", "--value", "x"), 1, "none.csv"),
    "bad formula": (("mixed", "runs.csv", "value ~ model + (1|seed"), 1, "^"),
    "unknown term": (("mixed", "runs.csv", "value ~ modl + (1|seed)"), 1, "modl"),
    "nothing asked": (("power",), 2, "what is asked for?"),
    "bad test": (("power", "--effect", "1", "--test", "anova"), 1, "anova"),
    "bad where": (("summarize", "runs.csv", "--value", "value", "--where", "model"), 2, "COLUMN=LABEL"),
    "no such label": (("summarize", "runs.csv", "--value", "value", "--where", "model=x"), 1, "base"),
    "decide without a study": (("decide", "none.toml"), 1, "there is no study file"),
    "pairs that are not named": (
        ("power", "runs.csv", "--value", "value", "--test", "wilcoxon", "--difference", "0.01"),
        1,
        "--pair",
    ),
    "a unit that is no column": (
        ("rank", "runs.csv", "--value", "value", "--by", "model", "--unit", "sed"),
        1,
        "seed",
    ),
    "repeats of several seeds": (
        ("compare", "runs.csv", "--value", "value", "--by", "model", "--unit", "repeat"),
        1,
        "--where seed=",
    ),
    "task and pair": (
        ("rank", "runs.csv", "--value", "value", "--by", "model", "--task", "setting", "--pair", "seed"),
        1,
        "by task or by pair",
    ),
    "one approach": (("rank", "runs.csv", "--value", "value", "--by", "setting"), 1, "2 or more approaches"),
    "unknown post-hoc test": (
        ("rank", "runs.csv", "--value", "value", "--by", "model", "--post-hoc", "dun"),
        1,
        "did you mean 'dunn'",
    ),
    "agreement of what": (("agree", "runs.csv", "--value", "value", "--by", "model"), 1, "--pair"),
    "no formula": (("mixed", "runs.csv"), 2, "FORMULA"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_clear_message(mistake, table):
    words, code, message = MISTAKES[mistake]
    done = table(*words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_values_that_are_not_finite_are_named_and_only_dropped_when_asked(shell):
    shell.write("runs.csv", "model,value\na,1\na,nan\na,2\nb,3\nb,inf\nb,4\n")
    refused = shell("summarize", "runs.csv", "--value", "value", "--by", "model")
    assert refused.returncode == 1
    assert "1 missing or NaN and 1 infinite of 6" in refused.stderr
    done = shell("summarize", "runs.csv", "--value", "value", "--by", "model", "--drop-missing")
    assert "2 values not finite" in done.stdout
    entries = json.loads(
        shell("summarize", "runs.csv", "--value", "value", "--by", "model", "--drop-missing", "--json").stdout
    )
    assert [entry["dropped"] for entry in entries] == [1, 1]


@pytest.mark.parametrize(
    "words",
    [
        ("summarize", "runs.csv", "--value", "v", "--by", "m", "--json"),
        ("summarize", "runs.csv", "--value", "v", "--by", "m", "--figure", "x.svg"),
        ("compare", "runs.csv", "--value", "v", "--by", "m"),
        ("mixed", "runs.csv", "v ~ 1 + (1|m)"),
        ("power", "runs.csv", "--value", "v", "--difference", "1"),
        ("rank", "runs.csv", "--value", "v", "--by", "m"),
        ("agree", "runs.csv", "--value", "v", "--by", "m", "--pair", "s"),
    ],
    ids=lambda words: " ".join(words[::2]),
)
def test_values_of_a_diverged_run_are_refused_in_words(words, shell):
    shell.write("runs.csv", "m,s,v\na,1,1e308\na,2,1.7e308\na,3,-1.7e308\nb,1,1\nb,2,2\nb,3,3\n")
    done = shell(*words)
    assert done.returncode == 1
    assert "too large to compute with" in done.stderr
    assert "Warning" not in done.stderr
    assert "Traceback" not in done.stderr


def test_every_statistics_command_is_listed():
    assert {"summarize", "compare", "mixed", "decide", "power"} <= set(COMMANDS)


def test_analyses_by_name_stand_beside_the_verdict_and_claim_nothing(table):
    words = ("compare", "runs.csv", "--metric", "value:higher", "--by", "model", "--pair", "seed", "--rope", "0.001")
    asked = [*words, "--also", "aso", "--also", "bayesian-signed-rank", "--also", "bayesian-correlated-t"]
    result = json.loads(table(*asked, "--json").stdout)
    assert list(result["also"]) == ["aso", "bayesian-signed-rank", "bayesian-correlated-t"]
    assert result["also"]["bayesian-signed-rank"]["b_better"] > 0.9
    assert result["verdict"] == json.loads(table(*words, "--json").stdout)["verdict"]
    assert "not bounded by them" in " ".join(table(*asked).stdout.split())
    unpaired = table(
        "compare", "runs.csv", "--metric", "value:higher", "--by", "model", "--also", "bayesian-signed-rank"
    )
    assert (unpaired.returncode, "--pair" in unpaired.stderr) == (1, True)


def test_a_paired_verdict_is_about_the_pairs(table):
    words = ("compare", "runs.csv", "--metric", "value:higher", "--by", "model", "--pair", "seed")
    result = json.loads(table(*words, "--json").stdout)
    assert (result["verdict"], result["test"], result["pairs"]) == ("B better", "signed-rank", 12)
    text = table(*words).stdout
    assert text.startswith("new is better after 12 pairs of runs")
    assert "pairing" in text
