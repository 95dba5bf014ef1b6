"""The paper's tables from records with known answers."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from ase20_records import record_of, records_of

from isorun.report.figures.svg import render as render_svg
from isorun.report.terminal import render_view
from isorun.study.cells import Level, cells_of
from isorun.study.records import RunState
from isorun.zoo.paper import SCALES, Request
from isorun.zoo.papers import presentation_view
from isorun.zoo.studies.ase20 import design
from isorun.zoo.studies.ase20.paper import Ase20
from isorun.zoo.studies.ase20.scales import SIZES
from record_builder import packed

LENET5 = (*[0.990] * 6, *[0.988] * 6, 0.086, 0.099, 0.106, 0.197)
"""16 default runs as the paper tells of them: four weak ones, the best at 99.0 %."""
FIXED = tuple(0.985 + 0.001 * place for place in range(16))
RESNET38 = (0.895, 0.899, 0.901, 0.903, 0.905, 0.908, 0.910, 0.914)
RESNET56 = (0.904, 0.907, 0.909, 0.911, 0.913, 0.915, 0.918, 0.921)


@pytest.fixture(autouse=True)
def no_data(made_data_folder):
    """Presenting needs no data."""


def studies_of(request):
    """The studies by their part: at scale smoke no data is needed."""
    return {study.name.removeprefix(f"ase20-{request.scale}-"): study for study in Ase20().studies(request)}


def presented(request, accuracies, **changes):
    """accuracies: part to (approach, level) to the accuracies of its runs."""
    studies = studies_of(request)
    records = {studies[part].name: records_of(studies[part], runs, **changes) for part, runs in accuracies.items()}
    return Ase20().present(request, records)


def table(shown, name):
    return next(item for item in shown.tables if item.name == name)


def row(shown, name, *keys):
    found = [cells for cells in table(shown, name).rows if cells[: len(keys)] == keys]
    assert len(found) == 1, found
    return dict(zip([column.title for column in table(shown, name).columns], found[0], strict=True))


def finding(shown, name):
    return next(item for item in shown.numbers["findings"] if item["name"] == name)


@pytest.fixture
def lenet5(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet5",), runs=16)
    runs = {("LeNet5", Level.DEFAULT): LENET5, ("LeNet5", Level.FIXED_SEED): FIXED}
    return presented(request, {"lenet5": runs})


@pytest.fixture
def resnets(tmp_path):
    request = Request("smoke", tmp_path, only=("resnet38", "resnet56"), runs=8)
    levels = (Level.DEFAULT, Level.FIXED_SEED)
    return presented(
        request,
        {
            "resnet38": {("ResNet38", level): RESNET38 for level in levels},
            "resnet56": {("ResNet56", level): RESNET56 for level in levels},
        },
    )


def test_table_2_has_the_papers_difference_and_interval_above_the_published_ones(lenet5):
    cells = table(lenet5, "table-2").rows
    ours = next(cell for cell in cells if cell[:3] == ("default", "LeNet5", "ours"))
    paper = next(cell for cell in cells if cell[:3] == ("default", "LeNet5", "paper"))
    sd = 100 * np.std(LENET5, ddof=1)
    low, high = (sd * math.sqrt(15 / scipy.stats.chi2.ppf(level, 15)) for level in (0.95, 0.05))
    assert ours[3:7] == ("16", "90", f"{sd:.0f}", f"{low:.0f}–{high:.0f}")
    assert paper[3:7] == ("16", "90.4", "38.7", "30.0–55.6")
    assert cells.index(paper) == cells.index(ours) + 1


def test_table_2_without_weak_runs_leaves_the_four_weak_ones_out(lenet5):
    found = row(lenet5, "table-2-without-weak", "default", "LeNet5")
    assert found["n"] == "12"
    overall = next(item for item in lenet5.numbers["groups"] if item["level"] == "default")
    assert overall["overall"]["max_diff"] == pytest.approx(0.904)
    assert overall["overall_without_weak"]["max_diff"] == pytest.approx(0.002)


def test_weak_runs_are_counted_and_named_beside_the_published_ones(lenet5):
    found = row(lenet5, "weak-runs", "LeNet5", "mnist", "default")
    assert (found["ours"], found["paper"]) == ("4 of 16", "4 of 16")
    assert all(accuracy in found["our runs (%)"] for accuracy in ("(8.6)", "(9.9)", "(10.6)", "(19.7)"))


def test_levene_is_scipys_and_stands_beside_the_papers_answer(lenet5):
    expected = scipy.stats.levene(LENET5, FIXED, center="median")
    found = lenet5.numbers["levene"]
    assert [item["selection"] for item in found] == ["best-loss", "best-accuracy"]
    assert found[0]["p"] == pytest.approx(expected.pvalue)
    assert found[0]["statistic"] == pytest.approx(expected.statistic)
    assert row(lenet5, "levene", "LeNet5", "mnist", "best-loss")["p, paper"] == "< 0.05"


def test_per_class_differences_are_those_of_the_class_that_varies_most(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet1",))
    study = studies_of(request)["lenet1"]
    cells = [cell for cell in cells_of(study) if cell.level is Level.DEFAULT]
    classes = [{"0": 0.9, "7": 0.2}, {"0": 0.8, "7": 0.95}]
    records = [record_of(cell, 0.8, classes=values) for cell, values in zip(cells, classes, strict=True)]
    shown = Ase20().present(request, {study.name: records})
    group = next(item for item in shown.numbers["groups"] if item["level"] == "default")
    assert (group["per_class"]["class"], group["per_class"]["max_diff"]) == ("7", pytest.approx(0.75))
    assert table(shown, "table-2").rows[0][-1] == "7"


def test_a_class_gap_that_chance_explains_is_said_to_be_one(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet1",))
    study = studies_of(request)["lenet1"]
    cells = [cell for cell in cells_of(study) if cell.level is Level.DEFAULT]
    labels = packed(range(10), name="test.labels")
    records = [
        replace(
            record_of(cell, 0.5, classes=dict.fromkeys("0123456789", value)), predictions=(packed(range(10)), labels)
        )
        for cell, value in zip(cells, (0.0, 1.0), strict=True)
    ]
    notes = " ".join(table(Ase20().present(request, {study.name: records}), "table-2").notes)
    assert "LeNet1 at level default, class 0: the best and the worst of 2 runs differ by 100.0 points" in notes
    assert "chance explains it" in notes


def test_table_2_takes_the_selection_rule_with_the_larger_difference(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet1",))
    study = studies_of(request)["lenet1"]
    cells = [cell for cell in cells_of(study) if cell.level is Level.DEFAULT]
    # by loss the first epoch (accuracy 0.1) is best in one run, by validation accuracy the second one in both
    records = [record_of(cell, 0.9, loss=loss) for cell, loss in zip(cells, [(2.0, 1.0), (1.0, 2.0)], strict=True)]
    shown = Ase20().present(request, {study.name: records})
    group = next(item for item in shown.numbers["groups"] if item["level"] == "default")
    assert group["overall"]["selection"] == "best-loss"
    assert group["overall"]["max_diff"] == pytest.approx(0.8)


def test_table_3_has_relative_differences_of_seconds(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet4",))
    study = studies_of(request)["lenet4"]
    cells = [cell for cell in cells_of(study) if cell.level is Level.FIXED_SEED]
    records = [record_of(cell, 0.9, seconds=time) for cell, time in zip(cells, (2.0, 2.5), strict=True)]
    shown = Ase20().present(request, {study.name: records})
    ours, paper = [cells for cells in table(shown, "table-3").rows if cells[:2] == ("fixed-seed", "LeNet4")]
    # two epochs: 4 s and 5 s, so 1 s, a quarter of the fastest, and sd 0.7071 over mean 4.5
    assert ours[2:6] == ("ours", "1.00", "25.0", "15.7")
    assert paper[2:] == ("paper", "17", "13.3", "3.6", "25", "20.1", "6.2")


def test_the_example_has_the_u_test_cohens_d_and_what_single_runs_claim(resnets):
    found = next(item for item in resnets.numbers["example"] if item["level"] == "fixed-seed")
    expected = scipy.stats.mannwhitneyu(RESNET56, RESNET38, method="exact")
    pooled = math.sqrt((np.var(RESNET56, ddof=1) + np.var(RESNET38, ddof=1)) / 2)
    reversed_pairs = sum(small > large for small in RESNET38 for large in RESNET56)
    assert found["comparison"]["mann_whitney"]["p"] == pytest.approx(expected.pvalue)
    assert found["comparison"]["cohens_d"] == pytest.approx((np.mean(RESNET56) - np.mean(RESNET38)) / pooled)
    assert found["comparison"]["single_run_reversal"] == pytest.approx(reversed_pairs / 64)
    assert found["better"] == "ResNet56"
    assert (found["better_worst"], found["worse_best"]) == (0.904, 0.914)
    assert found["wrong_claim"] == pytest.approx(0.010)


def test_the_examples_table_has_the_published_numbers_in_the_last_column(resnets):
    cells = {cells[0]: cells[-1] for cells in table(resnets, "example").rows}
    assert cells["Cohen's d"] == "1.7"
    assert cells["wrong claim possible (points)"] == "1.0"
    # normal runs whose means differ by 1.7 sd: P(X < Y) = Phi(-1.7 / sqrt 2) = 0.115
    assert cells["one run each: wrong order (%)"] == "about 11"


def test_equal_networks_have_no_better_one(tmp_path):
    request = Request("cpu", tmp_path, only=("resnet38", "resnet56"), runs=5, recorded=True)
    equal = [0.49, 0.495, 0.5, 0.505, 0.51]
    runs = {"resnet38": {("ResNet38", Level.FIXED_SEED): equal}}
    shown = presented(request, runs | {"resnet56": {("ResNet56", Level.FIXED_SEED): equal}})
    assert shown.numbers["example"][0]["better"] is None
    assert finding(shown, "5.2 example")["seen"] is False


@pytest.mark.parametrize(("runs", "seen"), [(8, True), (4, None)])
def test_the_example_is_judged_from_five_runs_on(runs, seen, tmp_path):
    request = Request("cpu", tmp_path, only=("resnet38", "resnet56"), runs=runs, recorded=True)
    accuracies = {"resnet38": {("ResNet38", Level.FIXED_SEED): RESNET38[-runs:]}}
    accuracies |= {"resnet56": {("ResNet56", Level.FIXED_SEED): RESNET56[-runs:]}}
    assert finding(presented(request, accuracies), "5.2 example")["seen"] is seen


@pytest.mark.parametrize(("weights", "distinct", "seen"), [("same", 1, True), (None, 5, False)])
def test_different_weights_of_deterministic_runs_are_counted(weights, distinct, seen, tmp_path):
    request = Request("cpu", tmp_path, only=("lenet1",), runs=5, recorded=True)
    shown = presented(request, {"lenet1": {("LeNet1", Level.DETERMINISTIC): (0.9,) * 5}}, weights=weights)
    assert row(shown, "weights", "LeNet1", "mnist", "deterministic")["final"] == str(distinct)
    assert finding(shown, "ours")["seen"] is seen
    assert any(item.code == "deterministic-differs" for item in shown.warnings) is not seen


def test_the_verdict_follows_the_records(tmp_path):
    request = Request("cpu", tmp_path, only=("lenet1",), runs=5, recorded=True)
    apart = presented(request, {"lenet1": {("LeNet1", Level.FIXED_SEED): (0.9, 0.8, 0.9, 0.8, 0.9)}})
    equal = presented(request, {"lenet1": {("LeNet1", Level.FIXED_SEED): (0.9,) * 5}})
    assert "With the seed fixed: up to 10 points (LeNet1); published: up to 2.9 points" in " ".join(apart.verdict)
    assert "With the seed fixed: no difference in any network" in " ".join(equal.verdict)
    assert "Not seen: Accuracy differs between fixed-seed runs" in " ".join(equal.verdict)
    assert "Scale cpu is less than was published" in equal.verdict[-1]


def test_a_smoke_run_claims_nothing_whatever_its_numbers_are(lenet5):
    assert lenet5.verdict == (
        "A smoke run checks that all of it works here: 32 runs finished. It claims nothing about the paper.",
    )
    assert {item["seen"] for item in lenet5.numbers["findings"]} == {None}
    assert {cells[1] for cells in table(lenet5, "findings").rows} == {"not judged"}


def test_fewer_than_five_runs_judge_no_finding(tmp_path):
    request = Request("cpu", tmp_path, only=("lenet1",), runs=4, recorded=True)
    levels = (Level.DEFAULT, Level.FIXED_SEED, Level.DETERMINISTIC)
    shown = presented(request, {"lenet1": {("LeNet1", level): (0.9, 0.8, 0.7, 0.6) for level in levels}})
    assert {item["seen"] for item in shown.numbers["findings"]} == {None}
    assert shown.verdict[0] == "12 runs finished, too few of any kind to judge a finding of the paper."


def test_a_difference_says_what_it_is_when_weak_runs_count(tmp_path):
    request = Request("cpu", tmp_path, only=("lenet5",), runs=16, recorded=True)
    shown = presented(request, {"lenet5": {("LeNet5", Level.DEFAULT): LENET5}})
    assert finding(shown, "1")["ours"] == "up to 0.20 points (LeNet5); with weak runs up to 90 points (LeNet5)"


@pytest.mark.parametrize(("loss", "is_short"), [((2.0, 1.0), True), ((1.0, 2.0), False)])
def test_trainings_that_still_improved_in_their_last_epoch_carry_a_caveat(loss, is_short, tmp_path, monkeypatch):
    sizes = {"lenet1": replace(SIZES["cpu"]["lenet1"], epochs=2)}
    monkeypatch.setitem(design.SIZES, "cpu", sizes)
    request = Request("cpu", tmp_path, only=("lenet1",), runs=5, recorded=True)
    runs = {("LeNet1", Level.DEFAULT): (0.7, 0.8, 0.7, 0.8, 0.7)}
    shown = presented(request, {"lenet1": runs}, loss=loss)
    assert ("still improving after 2 epochs" in finding(shown, "1")["ours"]) is is_short
    assert ("still-improving" in [item.code for item in shown.warnings]) is is_short
    group = next(item for item in shown.numbers["groups"] if item["level"] == "default")
    assert (group["epochs"], group["still_improving"]) == (2, is_short)


def test_the_classes_of_every_run_are_in_the_numbers(tmp_path):
    request = Request("cpu", tmp_path, only=("lenet1",), runs=2, recorded=True)
    study = studies_of(request)["lenet1"]
    cells = [cell for cell in cells_of(study) if cell.level is Level.DEFAULT]
    classes = [{"0": 0.9, "7": 0.2}, {"0": 0.8, "7": 0.95}]
    records = [record_of(cell, 0.8, classes=values) for cell, values in zip(cells, classes, strict=True)]
    shown = Ase20().present(request, {study.name: records})
    group = next(item for item in shown.numbers["groups"] if item["level"] == "default")
    assert group["selections"]["best-loss"]["per_class"] == {"0": [0.9, 0.8], "7": [0.2, 0.95]}


def test_figures_2_and_3_are_boxplots_with_means_as_triangles(lenet5):
    figures = {figure.name: figure for figure in lenet5.figures}
    assert set(figures) == {"figure-2-mnist", "figure-3-mnist"}
    shapes = [str(dot.shape) for dot in figures["figure-2-mnist"].dots]
    assert (shapes.count("triangle"), shapes.count("cross"), shapes.count("circle")) == (1, 4, 12)
    assert len(figures["figure-2-mnist"].boxes) == 1
    assert "LeNet5 varies most" in figures["figure-3-mnist"].sentence
    assert all(render_svg(figure).startswith("<svg") for figure in lenet5.figures)


@pytest.mark.parametrize("scale", SCALES)
def test_nothing_recorded_is_said_and_every_part_named(scale, tmp_path):
    shown = Ase20().present(Request(scale, tmp_path), {})
    assert shown.verdict == ("No run has finished, so nothing can be said about the paper's findings.",)
    assert [item.code for item in shown.warnings] == ["no-runs"]
    planned = {study.name for study in Ase20().studies(Request(scale, tmp_path, recorded=True))}
    assert planned >= {f"ase20-{scale}-{part}" for part in SIZES[scale]}
    assert set(shown.warnings[0].groups) == planned
    assert (shown.tables, shown.figures) == ((), ())


def test_parts_that_were_never_begun_have_no_rows_and_tables_without_runs_are_left_out(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet1", "lenet4", "digits", "factors"))
    shown = presented(request, {"lenet1": {("LeNet1", Level.FIXED_SEED): (0.9, 0.8)}})
    assert [item.name for item in shown.tables] == ["findings", "table-1", "table-2", "table-3", "weights"]
    assert not any("LeNet4" in cells or "digits" in cells for item in shown.tables for cells in item.rows)
    # a group of a part that was begun stays, and says how many runs it has
    assert row(shown, "table-2", "default", "LeNet1", "ours")["n"] == "0"
    (warning,) = [item for item in shown.warnings if item.code == "no-runs"]
    assert warning.groups == ("ase20-smoke-lenet4", "ase20-smoke-digits", "ase20-smoke-factors-lenet5")
    # machines get every group that was planned
    assert {(item["network"], item["finished"]) for item in shown.numbers["groups"]} >= {("LeNet1", 2), ("LeNet4", 0)}


def test_missing_runs_are_warned_of_and_the_others_shown(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet1", "lenet4"), runs=3)
    study = studies_of(request)["lenet1"]
    records = records_of(study, {("LeNet1", Level.DEFAULT): (0.9, 0.8, 0.7)})
    records[2] = replace(records[2], state=RunState.FAILED, reason="exit code 1", series={}, digests={})
    shown = Ase20().present(request, {study.name: records})
    warnings = {item.code: item for item in shown.warnings}
    assert {"runs-missing", "no-runs", "few-runs"} <= set(warnings)
    assert "isorun reproduce ase20 --scale smoke" in warnings["runs-missing"].next_step
    assert row(shown, "table-2", "default", "LeNet1", "ours")["n"] == "2"
    assert "LeNet1 at level fixed-seed: 0 of 3" in " ".join(table(shown, "table-2").notes)
    assert "ase20-smoke-lenet4" in warnings["no-runs"].groups


def test_a_run_that_diverged_leaves_the_rest_standing(tmp_path):
    request = Request("smoke", tmp_path, only=("lenet1", "resnet38", "resnet56"))
    runs = {"lenet1": {("LeNet1", Level.DEFAULT): (0.9, math.nan)}}
    runs |= {
        part: {(name, Level.FIXED_SEED): (0.5, math.nan)}
        for part, name in (("resnet38", "ResNet38"), ("resnet56", "ResNet56"))
    }
    shown = presented(request, runs)
    json.dumps(shown.numbers, allow_nan=False)
    lenet = shown.numbers["groups"][0]
    assert lenet["selections"]["best-loss"]["values"] == [0.9, None]
    # the validation accuracy was NaN as well, so that rule goes back to the first epoch
    assert (lenet["overall"]["selection"], lenet["overall"]["max_diff"]) == ("best-accuracy", pytest.approx(0.8))
    assert any(item.code == "metric-not-finite" for item in shown.warnings)


def test_everything_can_be_rendered_and_written_as_json(lenet5, resnets):
    for shown in (lenet5, resnets):
        text = render_view(presentation_view(shown), colour=False, width=120)
        assert max(map(len, text.splitlines())) <= 120
        assert json.loads(json.dumps(shown.numbers, allow_nan=False)) == shown.numbers
        for name in ("Table 1", "Table 2", "Table 3", "Levene", "Scaled down", "Not to be had here"):
            assert name in text


def test_numbers_have_the_documented_keys(lenet5):
    assert list(lenet5.numbers) == [
        *("paper", "scale", "device", "findings", "groups", "levene", "example", "factors", "nested", "libraries"),
        "published",
    ]
    assert list(lenet5.numbers["groups"][0]) == [
        *("network", "parameters", "data", "level", "planned", "finished", "failed"),
        *("gpu_runs_at_once", "epochs", "still_improving", "overall", "overall_without_weak", "per_class"),
        *("selections", "different_final_weights"),
    ]


def test_what_is_less_is_said_with_both_numbers(tmp_path):
    shown = Ase20().present(Request("gpu", tmp_path, only=("lenet1", "lenet5"), runs=5), {})
    assert shown.scaled_down == ("LeNet1, LeNet5: 5 of 16 runs a level, 10 of 50 epochs.",)


def test_data_made_on_the_spot_is_said_to_be_so(tmp_path):
    shown = Ase20().present(Request("smoke", tmp_path, only=("lenet1",)), {})
    assert any("mnist: small images made on the spot" in item for item in shown.scaled_down)


def test_a_stand_in_is_said_to_have_fewer_images(made_data_folder, tmp_path):
    folder = made_data_folder / "cifar10"
    folder.mkdir()
    images = np.zeros((20, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(20) % 10
    classes = [f"class {number}" for number in range(10)]
    np.savez(
        folder / "cifar10.npz",
        x_train=images,
        y_train=labels,
        x_test=images[:10],
        y_test=labels[:10],
        classes=classes,
    )
    request = Request("gpu", tmp_path, only=("resnet38",))
    shown = presented(request, {"resnet38": {("ResNet38", Level.DEFAULT): (0.9, 0.8)}})
    assert any("has 20 + 10 images instead of 50,000 + 10,000" in item for item in shown.scaled_down)
    assert row(shown, "table-1", "cifar10", "ResNet38", "ours")["train"] == "20"
