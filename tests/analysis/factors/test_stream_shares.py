"""Random streams as a factor: the share of the variance that each makes alone, and what is told of their draws."""

import json

import numpy as np
import pytest
from scipy import stats
from test_factor_attribution import noise, study_of, trained

import isorun
from isorun.analysis.factors.contrasts import variance_ratio
from isorun.report.factors import factors_view

VALUES = ["all", "none", "weights", "order", "dropout"]
SPREAD = {"weights": 0.03, "order": 0.01, "dropout": 0.0}


def streams_study(**changes):
    return study_of(seeds=list(range(2, 42)), factors={"streams": VALUES}, **changes)


def follows(cell, stream):
    return cell.environment_content["switches"]["streams"] in {"all", stream}


def result(cell):
    """Every stream adds what its seed makes of it: that of the run where it follows, else the kept one."""
    return 0.8 + sum(
        spread * noise(stream, cell.seed if follows(cell, stream) else 1) for stream, spread in SPREAD.items()
    )


def recorded(cell, other=0):
    asked = cell.environment_content["switches"]["streams"]
    answer = "none" if asked == "dropout" else asked
    drawn = {"weights": 4, "order": 9, "dropout": 0, "augmentation": 0, "other": other}
    told = {
        "follow": [] if asked == "none" else [asked],
        "kept_seed": 1,
        "draws": drawn,
        "unclassified": [{"where": "torch.randn at train.py:7", "draws": other}] if other else [],
        "out_of_sight": ["numpy.random"] if other else [],
    }
    return {"effective": {"switches": {"torch": {"streams": answer}}, "streams": told}}


def test_the_share_of_each_stream_is_told_with_its_interval():
    study = streams_study()
    found = isorun.factors(study, store=trained(study, result, weights=result, environment=recorded))
    shares = {row.group: row for row in found.shares[0].shares}
    assert set(shares) == {"streams=weights", "streams=order", "streams=dropout"}
    assert shares["streams=weights"].share == pytest.approx(0.9, abs=0.2)
    assert shares["streams=weights"].lower < 0.9 < shares["streams=weights"].upper
    assert shares["streams=order"].share == pytest.approx(0.1, abs=0.08)
    assert shares["streams=dropout"].share == 0.0
    view = factors_view(found)
    assert any("each alone makes: weights" in sentence for sentence in view.verdict)
    document = json.loads(json.dumps(found.to_json()))
    assert [row["source"] for row in document["shares"][0]["sources"]] == list(shares)


def test_a_stream_that_drew_nothing_has_no_effect_and_that_is_told():
    study = streams_study()
    found = isorun.factors(study, store=trained(study, result, weights=result, environment=recorded))
    missed = [one for one in found.conditions if one.code == "factor-without-effect"]
    assert [one.message for one in missed] == [
        "streams = dropout was asked for, and did not come about: torch has none"
    ]
    assert [item.name for item in found.effects if not item.came_about] == ["streams=dropout"]


def test_runs_that_are_copies_because_nothing_follows_are_no_surprise():
    study = streams_study()
    found = isorun.factors(study, store=trained(study, result, weights=result, environment=recorded))
    surprised = [one for one in found.conditions if one.code == "seed-without-effect"]
    assert [one.groups for one in surprised] == [("net streams=dropout at level fixed-seed",)]
    few = [one.next_step for one in found.conditions if one.code == "too-few-units"]
    for next_step in (surprised[0].next_step, *few):
        assert "seeds = [1, 2" not in next_step  # of these there are enough
        assert "{seed}" not in next_step  # the kept one
        assert "take_seeds" not in next_step
    assert few


def test_a_difference_of_means_is_not_claimed_because_what_is_kept_is_one_draw():
    study = streams_study()

    def far(cell):
        return result(cell) + (0.0 if follows(cell, "order") else 0.5)

    found = isorun.factors(study, store=trained(study, far, weights=far, environment=recorded))
    moved = next(item for item in found.effects if item.value == "weights")
    assert moved.p_corrected is not None
    assert moved.p_corrected < 0.001
    assert "about that draw" in moved.why_not
    assert not found.difference_told


def test_draws_of_no_stream_and_out_of_sight_are_told_with_numbers_and_lines():
    study = streams_study()
    store = trained(study, result, weights=result, environment=lambda cell: recorded(cell, other=7))
    told = {one.code: one.message for one in isorun.analyse(study, store=store).conditions}
    assert told["streams-unclassified"].startswith("7 of 20 draws of a run could be told to no random stream")
    assert told["streams-unclassified"].endswith("7 by torch.randn at train.py:7")
    assert told["streams-out-of-sight"].endswith(": numpy.random")


def test_the_share_of_a_stream_whose_draws_may_be_elsewhere_is_not_known():
    study = streams_study()
    store = trained(study, result, weights=result, environment=lambda cell: recorded(cell, other=7))
    found = isorun.factors(study, store=store)
    assert {row.group for row in found.shares[0].shares} == {"streams=weights", "streams=order"}
    rows = {row["source"]: row for row in json.loads(json.dumps(found.to_json()))["shares"][0]["sources"]}
    assert rows["streams=weights"]["share"] == pytest.approx(0.9, abs=0.2)
    assert rows["streams=weights"]["why_not"] == ""
    assert (rows["streams=dropout"]["share"], rows["streams=dropout"]["interval95"]) == (None, None)
    told = "no draw was told to it, and 7 draws of a run were told to no stream and numbers were drawn out of sight"
    assert rows["streams=dropout"]["why_not"] == f"{told} (numpy.random)"
    sentences = " ".join(factors_view(found).verdict)
    assert "dropout 0.0 %" not in sentences
    assert f"How much of it dropout makes is not known: {told}" in sentences
    (table,) = (table for table in factors_view(found).tables if table.name == "shares")
    assert [row[-3:] for row in table.rows if "streams=dropout" in row] == [("—", "—", "—")]


def test_a_framework_whose_streams_cannot_be_parted_is_told_once():
    study = streams_study()
    found = isorun.factors(study, store=trained(study, result, weights=result))
    (told,) = (one for one in found.conditions if one.code == "factor-without-effect")
    assert told.message.startswith("random streams were asked for, and nothing")
    assert not any(item.came_about for item in found.effects)


def test_noise_from_run_to_run_is_no_stream():
    study = streams_study()

    def noisy(cell):
        asked = cell.environment_content["switches"]["streams"]
        return (
            0.8 + 0.01 * noise(asked, cell.seed) + (0.1 * noise("w", cell.seed) if asked in {"all", "weights"} else 0)
        )

    found = isorun.factors(study, store=trained(study, noisy, weights=noisy, environment=recorded)).shares[0]
    assert {row.group for row in found.shares} == {"streams=weights", "streams=none"}
    assert {row.group: row.share for row in found.shares}["streams=none"] == pytest.approx(0.01, abs=0.01)
    unknown = dict(found.unknown)
    assert set(unknown) == {"streams=order", "streams=dropout"}
    assert all("not told from run-to-run noise: it varies by" in why for why in unknown.values())


def test_without_all_there_is_nothing_to_have_a_share_of():
    study = study_of(factors={"streams": ["none", "weights"]})
    found = isorun.factors(study, store=trained(study, result, environment=recorded))
    assert found.shares[0].shares == ()
    assert "all" in found.shares[0].why_not
    assert any(f"makes is not known: {found.shares[0].why_not}" in sentence for sentence in factors_view(found).verdict)


def test_the_ends_of_the_interval_are_the_ratios_that_the_test_of_pitman_just_rejects():
    random = np.random.default_rng(1)
    some = random.normal(size=12)
    whole = 0.5 * some + random.normal(size=12)
    ratio, *ends = variance_ratio(some, whole)
    assert ratio == pytest.approx(some.var(ddof=1) / whole.var(ddof=1))
    for end in ends:
        scaled = some / np.sqrt(end)
        assert stats.pearsonr(scaled + whole, scaled - whole).pvalue == pytest.approx(0.05)


def test_the_interval_holds_the_ratio_in_95_of_100():
    random, held = np.random.default_rng(2), 0
    for _ in range(1_000):
        some = random.normal(size=10)
        _, lower, upper = variance_ratio(some, some + random.normal(size=10))
        held += lower < 0.5 < upper
    assert 930 <= held <= 970
    share, lower, upper = variance_ratio(np.ones(5), np.arange(5.0))
    assert (share, lower) == (0.0, 0.0)
    assert upper > 0.5, "in steps of one, equal values may be nearly one apart"


def test_values_in_steps_have_shares_that_know_of_the_steps():
    random, held = np.random.default_rng(1), 0
    for _ in range(300):
        some, rest = np.sqrt(0.1) * random.normal(size=5), np.sqrt(0.9) * random.normal(size=5)
        coarse, whole = np.round(some), np.round(some + rest)
        if whole.std() > 0:
            _, lower, upper = variance_ratio(coarse, whole)
            assert lower < upper
            held += lower <= 0.1 <= upper
    assert held > 270
