"""What the runs of a study with factors say: effects, facts about seeds, interactions, flips, and what weakens them."""

import hashlib

import numpy as np
import pytest

import isorun
from isorun.analysis.factors import attribution
from isorun.analysis.factors.rankings import factor_flips, ranking_agreements
from isorun.errors import InputError
from isorun.study.cells import cells_of
from isorun.study.records import RunState, Seeded
from isorun.testing.memory_store import MemoryStore
from record_builder import make_record, make_series, packed

FACTORS = {"hash": {"variable": "HASH", "values": ["0", "1"]}, "mode": {"variable": "MODE", "values": ["a", "b"]}}


@pytest.fixture
def no_shares(monkeypatch):
    """Their intervals take a second, and most tests are about other things."""
    monkeypatch.setattr(attribution, "variance_shares", lambda _fit: ())


def study_of(**changes):
    given = {
        "approaches": {"net": "python net.py"},
        "levels": ["fixed-seed"],
        "seeds": list(range(1, 7)),
        "metrics": {"acc": {"direction": "higher"}},
        "factors": FACTORS,
    }
    return isorun.Study("varied", **(given | changes))


def noise(*parts):
    """The same number for the same words, in every process."""
    seed = int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8])
    return float(np.random.default_rng(seed).normal())


def trained(study, value, *, weights=None, skip=lambda _cell: False, **changes):
    """A store with a record of every cell. value, weights: what a cell gives."""
    store = MemoryStore()
    for cell in cells_of(study):
        if skip(cell):
            continue
        digests = {} if weights is None else {"weights.final": hashlib.sha256(repr(weights(cell)).encode()).hexdigest()}
        more = {name: given(cell) for name, given in changes.items()}
        store.finish(make_record(cell, results={"acc": value(cell)}, digests=digests, seed_used=cell.seed, **more))
    return store


def seeded(cell):
    return 0.9 + 0.01 * noise("seed", cell.seed) + 0.001 * noise(cell.seed, cell.environment, cell.repeat)


def moved(cell, by=0.02):
    return seeded(cell) + by * ("mode=b" in cell.environment)


def effect(found, name):
    return next(item for item in found.effects if item.name == name)


def test_what_moves_the_result_is_told_and_what_does_not_is_left_open(no_shares):
    study = study_of()
    found = isorun.factors(study, store=trained(study, moved))
    assert [item.name for item in found.moving] == ["mode=b"]
    assert found.verdict == "moved by mode"
    told, other = effect(found, "mode=b"), effect(found, "hash=1")
    assert told.tested.difference == pytest.approx(0.02, abs=0.003)
    assert told.p_corrected == pytest.approx(2 * told.tested.p)
    assert not other.is_claimed
    assert (told.tested.units, other.tested.units) == (6, 6)
    text = " ".join(str(found).split())
    assert text.startswith("acc is moved by mode: mode=b against a changes it by +")
    assert "p < 0.001 after correction for 2 tests; 6 seeds)." in text
    assert (
        "Not told from the baseline; the largest difference in points that the interval leaves open: hash=1: " in text
    )


def test_the_json_has_the_documented_keys_first(no_shares):
    study = study_of()
    found = isorun.factors(study, store=trained(study, moved)).to_json()
    assert list(found)[:5] == ["baseline", "effects", "interactions", "shares", "flips"]
    assert found["baseline"] == {"hash": "0", "mode": "a"}
    keys = ["factor", "value", "difference", "interval95", "p", "p_corrected", "units"]
    assert [list(item)[:7] for item in found["effects"]] == [keys, keys]
    assert (found["effects"][1]["factor"], found["effects"][1]["value"]) == ("mode", "b")
    assert found["interactions"] == found["flips"] == []


def test_the_bits_of_one_seed_are_a_fact_and_no_verdict(no_shares):
    study = study_of(seeds=[3])
    store = trained(
        study, lambda cell: 0.9 + 0.01 * ("mode=b" in cell.environment), weights=lambda cell: "mode" in cell.environment
    )
    found = isorun.factors(study, store=store)
    assert (found.verdict, found.difference_told) == ("undecided", False)
    assert (effect(found, "mode=b").tested.p, effect(found, "mode=b").tested.units) == (None, 1)
    text = " ".join(str(found).split())
    assert text.startswith("Undecided: from one seed no test is possible.")
    assert "hash=1: the same acc, and the same final weights for the one seed." in text
    assert "mode=b: another acc for the one seed (+1.0 points); other final weights for the one seed." in text
    [warning] = [condition for condition in found.conditions if condition.code == "too-few-units"]
    assert (warning.groups, warning.voids) == (("hash=1", "mode=b"), True)


def test_a_factor_that_changes_bits_but_not_the_score_is_told_so(no_shares):
    study = study_of(repeats=2)
    store = trained(
        study, lambda cell: 0.9 + cell.seed / 100, weights=lambda cell: (cell.seed, "mode" in cell.environment)
    )
    found = isorun.factors(study, store=store)
    text = " ".join(str(found).split())
    assert "mode=b: the same acc for all 6 seeds; other final weights for 6 of 6 seeds." in text
    assert "hash=1: the same acc, and the same final weights for all 6 seeds." in text
    assert effect(found, "mode=b").changes.alone is False
    by_value = {(item.factor, item.value): item for item in found.digests}
    assert (by_value["mode", "b"].distinct, by_value["mode", "b"].most_of_one_seed) == (6, 1)


def test_weights_that_identical_runs_change_by_themselves_are_no_factors_doing(no_shares):
    study = study_of(repeats=2)
    found = isorun.factors(study, store=trained(study, seeded, weights=lambda cell: cell.id))
    assert effect(found, "mode=b").changes.alone is True
    assert effect(found, "mode=b").tested.units == 6
    text = " ".join(str(found).split())
    assert "(of identical runs 12 of 12 differ)" in text
    assert "Of identical runs (same seed, same environment) 12 of 12 differ." in text
    changes = effect(found, "mode=b").changes.to_json()
    assert (changes["identical"], changes["identical_changed"]) == (12, 12)
    assert max(item.most_of_one_seed for item in found.digests) == 2


def test_without_repeats_moved_seeds_are_no_evidence_about_a_factor(no_shares):
    study = study_of()
    found = isorun.factors(study, store=trained(study, seeded, weights=lambda cell: cell.id))
    [warning] = [condition for condition in found.conditions if condition.code == "identical-runs-unknown"]
    assert (warning.voids, warning.groups) == (False, ())
    assert "repeats = 2" in warning.next_step
    text = " ".join(str(found).split())
    assert "Whether identical runs agree is not known: they are no evidence about a factor." in text
    agreeing = isorun.factors(study, store=trained(study, seeded, weights=lambda cell: cell.seed))
    assert "identical-runs-unknown" not in {condition.code for condition in agreeing.conditions}


def test_identical_runs_that_agree_are_not_spoken_of(no_shares):
    study = study_of(repeats=2)
    weights = lambda cell: (cell.seed, cell.environment)  # noqa: E731
    found = isorun.factors(study, store=trained(study, seeded, weights=weights))
    assert "identical-runs-unknown" not in {condition.code for condition in found.conditions}
    assert "dentical runs" not in str(found)
    changes = effect(found, "mode=b").changes
    assert (changes.identical, changes.identical_changed) == (12, 0)


def test_seeds_without_a_partner_are_a_warning(no_shares):
    study = study_of()
    missing = {("mode=b", 4), ("mode=b", 5)}
    store = trained(study, moved, skip=lambda cell: (cell.environment, cell.seed) in missing)
    found = isorun.factors(study, store=store)
    assert effect(found, "mode=b").tested.units == 4
    [warning] = [condition for condition in found.conditions if condition.code == "cells-missing"]
    assert (
        warning.message
        == "mode=b (net at level fixed-seed): not both sides have a finished run of seed 4, 5; it rests on 4 seeds"
    )


def test_an_environment_without_runs_leaves_the_others(no_shares):
    study = study_of()
    failed = {"state": lambda cell: RunState.FAILED if cell.environment == "hash=1" else RunState.FINISHED}
    found = isorun.factors(study, store=trained(study, moved, **failed))
    assert effect(found, "hash=1").tested.difference is None
    assert effect(found, "mode=b").is_claimed
    assert {"runs-failed", "cells-missing"} <= {condition.code for condition in found.conditions}


def test_seeds_that_made_one_draw_are_not_to_be_more_of_them(no_shares):
    study = study_of()
    own = Seeded("random.seed", "42", "train.py:3")
    store = trained(study, lambda cell: 0.9 + 0.01 * ("mode=b" in cell.environment), seeded=lambda _cell: (own,))
    found = isorun.factors(study, store=store)
    [warning] = [condition for condition in found.conditions if condition.code == "too-few-units"]
    assert "take_seeds = true in a study file" in warning.next_step
    assert "add seeds" not in warning.next_step


BASES = {
    "base": {"variable": "BASE", "values": ["a", "b", "c"]},
    "mode": {"variable": "MODE", "values": ["a", "b"]},
    "design": "full",
}


def test_a_broken_environment_of_a_full_design_takes_only_its_own_effect_and_the_verdict_names_it(no_shares):
    study = study_of(factors=BASES)
    ran = trained(study, moved, skip=lambda cell: "base=b" in cell.environment)
    found = isorun.factors(study, store=ran)
    told, broken = effect(found, "mode=b"), effect(found, "base=b")
    assert told.is_claimed
    assert told.tested.difference == pytest.approx(0.02, abs=0.003)
    assert told.tested.units == effect(found, "base=c").tested.units == 6
    assert (broken.tested.units, broken.why_not) == (0, "no run with base=b finished")
    assert {item.name: item.tested.units for item in found.interactions} == {
        "base=b x mode=b": 0,
        "base=c x mode=b": 6,
    }
    text = " ".join(str(found).split())
    assert "Of base=b nothing is known: no run with base=b finished." in text
    [warning] = [condition for condition in found.conditions if condition.code == "cells-missing"]
    assert warning.message.endswith("; effects rest on the others")


def test_an_effect_rests_on_the_values_of_other_factors_where_both_sides_ran(no_shares):
    study = study_of(factors=BASES)
    lost = next(name for name, values in study.factors.points.items() if values == {"base": "b", "mode": "b"})
    store = trained(
        study, lambda cell: seeded(cell) + 0.3 * ("mode=b" in cell.environment), skip=lambda c: c.environment == lost
    )
    found = isorun.factors(study, store=store)
    # Were the mean over all that ran taken, the missing base b of mode b would pass for an effect of the base.
    assert effect(found, "base=b").tested.difference == pytest.approx(0.0, abs=0.003)
    assert effect(found, "mode=b").tested.difference == pytest.approx(0.3, abs=0.003)


def test_a_baseline_that_never_ran_is_what_is_said_to_be_missing(no_shares):
    study = study_of()
    found = isorun.factors(study, store=trained(study, moved, skip=lambda cell: cell.environment == "baseline"))
    told = "Undecided: there is nothing to compare by acc; of hash=1 and mode=b nothing is known: no run of the "
    assert " ".join(str(found).split()).startswith(f"{told}baseline finished.")


def test_other_packages_beside_the_factor_are_a_warning(no_shares):
    study = study_of()

    def environment(cell):
        versions = {"numpy": "2.0", "scipy": "1.1" if "mode=b" in cell.environment else "1.0"}
        return {"requested": {}, "effective": {"packages": versions}}

    found = isorun.factors(study, store=trained(study, moved, environment=environment))
    [warning] = [condition for condition in found.conditions if condition.code == "packages-beside-factor"]
    assert "with mode=b other packages changed as well (scipy 1.0 became 1.1)" in warning.message


def test_other_code_voids_a_difference_unless_the_code_is_the_factor(no_shares):
    study = study_of()

    def code(cell):
        return {"sources_sha256": "new" if "mode=b" in cell.environment else "old"}

    found = isorun.factors(study, store=trained(study, moved, code=code))
    assert not effect(found, "mode=b").is_claimed
    assert found.verdict == "undecided"
    assert str(found).startswith("Undecided: mode=b differs, but no claim is made: the two sides were trained by")


def test_a_request_that_did_not_come_about_is_said(no_shares):
    study = study_of(factors={"threads": [1, 2]})

    def environment(_cell):
        return {"requested": {}, "effective": {"switches": {"torch": {"threads": "1"}}}}

    found = isorun.factors(study, store=trained(study, seeded, environment=environment))
    assert not effect(found, "threads=2").came_about
    assert "factor-without-effect" in {condition.code for condition in found.conditions}
    assert "Not come about as asked, so that its numbers are about something else: threads=2." in str(found).replace(
        "\n ", ""
    )


def test_a_code_factor_is_meant_to_change_the_code(no_shares, monkeypatch):
    study = study_of(factors={"design": "full", **FACTORS})
    kinds = {
        name: attribution.replace(factor, kind="code")
        for name, factor in study.factors.factors.items()
        if name == "mode"
    }
    object.__setattr__(study, "factors", attribution.replace(study.factors, factors={**study.factors.factors, **kinds}))

    def code(cell):
        return {"sources_sha256": "new" if "mode=b" in cell.environment else "old"}

    found = isorun.factors(study, store=trained(study, moved, code=code))
    assert effect(found, "mode=b").is_claimed
    assert not any(item.why_not for item in (*found.effects, *found.interactions))


def test_values_that_are_not_finite_are_refused_or_left_out_and_said(no_shares):
    study = study_of()
    bad = {("mode=b", 2)}
    store = trained(study, lambda cell: float("nan") if (cell.environment, cell.seed) in bad else moved(cell))
    with pytest.raises(InputError, match="not finite"):
        isorun.factors(study, store=store)
    found = isorun.factors(study, store=store, drop_missing=True)
    assert effect(found, "mode=b").tested.units == 5
    assert "Left out, because not finite: 1 value of acc." in found.notes


def test_an_end_of_an_interval_near_zero_is_no_power_of_ten(no_shares):
    study = study_of(seeds=[1, 2, 3])
    changes = {1: 0.05, 2: 0.25, 3: 0.1465}
    store = trained(study, lambda cell: 0.5 + cell.seed / 100 + changes[cell.seed] * ("mode=b" in cell.environment))
    found = isorun.factors(study, store=store)
    low, _ = effect(found, "mode=b").tested.interval95
    assert abs(low) < 0.105
    assert "e-" not in str(found)


def both_together(cell):
    both = "mode=b" in cell.environment and "hash=1" in cell.environment
    return seeded(cell) + 0.02 * both


def test_a_full_design_tells_that_effects_do_not_add_up(no_shares):
    study = study_of(factors={"design": "full", **FACTORS})
    found = isorun.factors(study, store=trained(study, both_together))
    [item] = found.interactions
    assert item.is_claimed
    assert item.tested.difference == pytest.approx(0.02, abs=0.003)
    assert effect(found, "mode=b").tested.difference == pytest.approx(0.01, abs=0.003)
    assert "The effects of hash=1 x mode=b do not add up" in " ".join(str(found).split())
    assert found.to_json()["interactions"][0]["factors"] == ["hash", "mode"]


def test_a_fractional_design_names_what_it_does_not_tell_apart(no_shares, monkeypatch):
    names = ["a", "b", "c", "d"]
    table = {name: {"variable": name.upper(), "values": ["0", "1"]} for name in names}
    study = study_of(factors={"design": "full", **table}, seeds=[1, 2, 3])
    half = {name: point for name, point in study.factors.points.items() if list(point.values()).count("1") % 2 == 0}
    design = attribution.replace(study.factors, points=half, resolution=4)
    object.__setattr__(study, "factors", design)
    store = trained(study, seeded, skip=lambda cell: cell.environment not in half)
    found = isorun.factors(study, store=store)
    aliases = {item.name: item.aliases for item in found.interactions}
    assert aliases["a=1 x b=1"] == ("c=1 x d=1",)
    assert any("resolution IV" in note for note in found.notes)
    alike = [item.p_corrected for item in found.interactions if item.name in {"a=1 x b=1", "c=1 x d=1"}]
    assert alike[0] == alike[1] == pytest.approx(min(1.0, alike[0]))


def test_shares_of_the_variance_come_with_intervals():
    study = study_of()
    found = isorun.factors(study, store=trained(study, lambda cell: moved(cell, 0.05)))
    [shares] = found.shares
    by_name = {row.group: row for row in shares.shares}
    assert list(by_name) == ["hash", "mode", "seed", "rest"]
    assert by_name["mode"].share > 0.5 > by_name["seed"].share > by_name["hash"].share
    assert sum(row.share for row in by_name.values()) == pytest.approx(1.0)
    assert all(row.lower <= row.share <= row.upper for row in by_name.values())


def test_runs_that_never_vary_have_no_shares():
    study = study_of(seeds=[1, 2])
    found = isorun.factors(study, store=trained(study, lambda _cell: 0.9))
    assert found.shares[0].shares == ()
    assert found.shares[0].why_not


def test_spreads_that_differ_are_told_with_an_effect(no_shares):
    study = study_of(seeds=list(range(1, 13)))

    def wider(by):
        return lambda cell: (
            0.8 + 0.02 + 0.001 * by * noise("n", cell.seed)
            if "mode=b" in cell.environment
            else 0.8 + 0.001 * noise("m", cell.seed)
        )

    codes = {}
    for by in (1, 10):
        found = isorun.factors(study, store=trained(study, wider(by)))
        codes[by] = [one.message for one in found.conditions if one.code == "unequal-spreads"]
        assert any(effect.is_claimed for effect in found.effects if effect.value == "b")
    assert codes[1] == []
    (message,) = codes[10]
    assert message.startswith("mode=b: values spread ")
    assert "times more than the baseline's" in message


def test_seeds_that_no_two_sides_share_are_told(no_shares):
    study = study_of(seeds=[1, 2, 3, 4])
    store = trained(study, seeded, skip=lambda cell: (cell.seed > 2) == ("mode=b" in cell.environment))
    found = isorun.factors(study, store=store)
    told = [one.message for one in found.conditions if one.code == "cells-missing" and one.message.startswith("mode=b")]
    assert len(told) == 1
    assert told[0].endswith("not both sides have a finished run of seed 1, 2, 3, 4; nothing is known of it")


def test_flips_of_a_factor_stand_beside_those_of_seeds(no_shares):
    study = study_of(approaches={"net": "python net.py", "tree": "python tree.py"})

    def value(cell):
        ahead = (cell.approach == "net") != ("mode=b" in cell.environment)
        return 0.9 + 0.01 * ahead + 1e-4 * noise(cell.approach, cell.seed, cell.environment)

    found = isorun.factors(study, store=trained(study, value))
    turned = {item.value: item for item in found.flips}
    assert (turned["b"].share, turned["b"].seeds_share, turned["b"].means_turned) == (1.0, 0.0, 1)
    assert (turned["1"].share, turned["1"].compared, turned["1"].seeds_compared) == (0.0, 6, 15)
    assert "mode=b alone turns the order of two approaches in 100.0 % of 6 pairs of single runs" in " ".join(
        str(found).split()
    )
    assert {item.held.approach for item in found.effects} == {"net", "tree"}
    only = isorun.factors(study, store=trained(study, value), where={"approach": "net"})
    assert (len(only.effects), only.flips) == (2, ())


def test_seeds_alone_turn_orders_and_ties_are_none():
    scores = {"a": {"p": {"1": 0.1, "2": 0.4}, "q": {"1": 0.1}}, "b": {"p": {"1": 0.2, "2": 0.3}, "q": {"1": 0.1}}}
    found = factor_flips(scores, [("p", "q")], factor="f", value="1", config="", level="")
    assert (found.seeds_turned, found.seeds_compared) == (1, 1)
    assert (found.turned, found.compared, found.share) == (0, 0, None)
    assert (found.pairs, found.means_turned) == (1, 0)
    scores = {
        "a": {"p": {"1": 1.0, "2": 1.0, "3": 1.0}, "q": {"1": 0.0, "2": 1.0, "3": 1.0}},
        "b": {"p": {"1": 0.0, "2": 1.0, "3": 0.0}, "q": {"1": 1.0, "2": 1.0, "3": 1.0}},
    }
    found = factor_flips(scores, [("p", "q")], factor="f", value="1", config="", level="")
    assert (found.turned, found.compared, found.share) == (1, 1, 1.0)
    assert (found.seeds_turned, found.seeds_compared) == (0, 1)
    assert factor_flips({"a": scores["a"]}, [("p", "q")], factor="f", value="1", config="", level="") is None


def test_rankings_agree_or_not_from_three_approaches_on():
    scores = {
        name: {"baseline": {"1": place}, "x": {"1": -place}} for name, place in {"a": 1.0, "b": 2.0, "c": 3.0}.items()
    }
    [found] = ranking_agreements(scores, "baseline")
    assert (found.b, found.kendall.estimate, found.spearman.estimate) == ("x", -1.0, pytest.approx(-1.0))
    assert ranking_agreements({name: scores[name] for name in "ab"}, "baseline") == ()


def test_questions_are_counted_where_predictions_were_kept(no_shares):
    study = study_of(seeds=[1])
    truth = [place % 3 for place in range(30)]

    def predictions(cell):
        wrong = 5 if "mode=b" in cell.environment else 15
        return packed([label if place >= wrong else 9 for place, label in enumerate(truth)]), packed(
            truth, "test.labels"
        )

    def accuracy(cell):
        return 25 / 30 if "mode=b" in cell.environment else 0.5

    found = isorun.factors(study, store=trained(study, accuracy, predictions=predictions), unit="question")
    told = effect(found, "mode=b")
    assert (told.tested.units, found.noun) == (30, "question")
    assert told.tested.difference == pytest.approx(1 / 3)
    assert told.is_claimed
    assert any("these trained models" in note for note in found.notes)
    assert not any("ended with" in note for note in found.notes)

    curves = make_series([0.1, 0.2, 0.1])
    store = trained(study, accuracy, predictions=predictions, series=lambda _: {"acc": curves, "val_acc": curves})
    found = isorun.factors(study, store=store, unit="question")
    assert any("count with those that they ended with" in note for note in found.notes)


def test_questions_of_another_metric_are_classes_whose_mean_is_the_metric(no_shares):
    study = study_of(seeds=[1, 2], metrics={"acc": {}, "map": {"direction": "higher"}})

    def by_question(cell):
        return {
            "map": {
                f"q{number}": 0.5 + 0.01 * number + 0.02 * ("mode=b" in cell.environment) * (number % 2)
                for number in range(9)
            }
        }

    store = MemoryStore()
    for cell in cells_of(study):
        values = by_question(cell)
        store.finish(
            make_record(
                cell, results={"acc": 0.5, "map": float(np.mean(list(values["map"].values())))}, per_class=values
            )
        )
    found = isorun.factors(study, store=store, value="map", unit="question")
    assert (effect(found, "mode=b").tested.units, effect(found, "mode=b").is_claimed) == (9, True)
    with pytest.raises(InputError, match="left no value of acc for each test question"):
        isorun.factors(study, store=store, unit="question")


def test_a_study_without_factors_is_refused_with_the_next_step():
    study = isorun.Study("plain", approaches={"net": "python net.py"})
    with pytest.raises(InputError, match="declares no factors"):
        isorun.factors(study, store=MemoryStore())


def test_runs_without_seeds_are_not_paired(no_shares):
    study = study_of(levels=["default"], seeds=[1], repeats=6)
    found = isorun.factors(study, store=trained(study, lambda cell: 0.9 + 0.01 * noise(cell.id)))
    assert {item.tested.test for item in found.effects} == {"Welch"}
    assert found.noun == "run"


@pytest.mark.slow
def test_the_false_rate_over_all_effects_is_what_holm_promises(no_shares, monkeypatch):
    monkeypatch.setattr(attribution, "mixed_model", lambda *_: None)
    study = study_of(
        seeds=[1, 2, 3, 4, 5], factors={name: {"variable": name, "values": ["0", "1", "2"]} for name in "XYZ"}
    )
    trials = 300
    told = 0
    for trial in range(trials):
        store = trained(study, lambda cell: 0.9 + 0.01 * noise(trial, cell.seed) + 0.01 * noise(trial, cell.id))  # noqa: B023
        told += isorun.factors(study, store=store).difference_told
    assert told / trials < 0.05 + 3 * (0.05 * 0.95 / trials) ** 0.5


def test_seeds_that_took_no_effect_are_one_seed_in_every_sentence(no_shares):
    """Six seeds that all end with the same weights: one draw, whatever is told of it."""
    study = study_of(approaches={"net": "python net.py", "tree": "python tree.py"})

    def value(cell):
        return 0.9 + 0.01 * (cell.approach == "net") + 0.005 * ("mode=b" in cell.environment)

    store = trained(study, value, weights=lambda cell: (cell.approach, cell.environment))
    found = isorun.factors(study, store=store)
    assert {item.changes.pairs for item in found.effects} == {1}
    assert {(item.compared, item.seeds_compared) for item in found.flips} == {(1, 0)}
    text = " ".join(str(found).split())
    assert "6 seeds;" not in text
    assert "of 6 seeds" not in text
    assert "in 0.0 % of 1 pair of single runs with the same seed." in text


def test_an_approach_whose_seeds_took_no_effect_leaves_those_of_the_other(no_shares):
    study = study_of(approaches={"net": "python net.py", "tree": "python tree.py"})

    def value(cell):
        return 0.9 if cell.approach == "net" else seeded(cell)

    def weights(cell):
        return "net" if cell.approach == "net" else cell.id

    found = isorun.factors(study, store=trained(study, value, weights=weights))
    pairs = {item.held.approach: item.changes.pairs for item in found.effects}
    assert pairs == {"net": 1, "tree": 6}
    assert {(item.compared, item.seeds_compared) for item in found.flips} == {(6, 15)}


def test_runs_without_seeds_have_shares_too():
    study = study_of(levels=["default"], seeds=[1], repeats=5)
    value = {"baseline": 0.9, "hash=1": 0.9, "mode=b": 0.95}
    store = trained(study, lambda cell: value[cell.environment] + 0.001 * noise(cell.id))
    [shares] = isorun.factors(study, store=store).shares
    assert [row.group for row in shares.shares] == ["hash", "mode", "rest"]
    assert shares.shares[1].share > 0.9
    assert "columns moved" not in str(isorun.factors(study, store=store))
