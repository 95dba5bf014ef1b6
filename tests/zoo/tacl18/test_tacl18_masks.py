"""Masks by device: the study, the agreements of its four sides, and what is said about the cause."""

import numpy as np
import pytest
from scipy import stats
from tacl18_records import records_of

from isorun.study.cells import cells_of
from isorun.zoo.paper import Request
from isorun.zoo.studies.tacl18 import design
from isorun.zoo.studies.tacl18.paper import Tacl18

SIDES = ("CPU, own masks", "GPU, own masks", "CPU", "GPU")


@pytest.fixture(autouse=True)
def data_there(made_data_folder, monkeypatch):
    monkeypatch.setattr(design, "stand_in_for", lambda _data, _scale: False)


def request_in(folder, scale="gpu", device="cuda", **changes):
    return Request(scale, folder, only=("masks",), device=device, **changes)


def noise(cell, *names):
    return float(np.random.default_rng([cell.seed, *map(ord, "".join(names))]).normal())


def scores_with(masks, arithmetic):
    """Scores of a seed, of who draws the masks (shared: one for both devices), and of the device's arithmetic."""

    def scores(cell):
        drawn_by = cell.config if cell.config.endswith(design.OWN_MASKS) else "both"
        ap = 0.7 + 0.01 * (noise(cell) + masks * noise(cell, drawn_by) + arithmetic * noise(cell, cell.config, "a"))
        return ap, 0.8

    return scores


def presented(folder, scores, **changes):
    request = request_in(folder, **changes)
    return Tacl18().present(request, records_of(Tacl18().studies(request), scores))


def test_every_seed_has_four_runs_with_own_and_shared_masks(tmp_path):
    (study,) = Tacl18().studies(request_in(tmp_path))
    cells = cells_of(study)
    assert len(cells) == 2 * 4 * 50
    assert tuple(dict.fromkeys(cell.config for cell in cells)) == SIDES
    assert {cell.config_values["dropout"] for cell in cells if cell.config in SIDES[:2]} == {"device"}
    assert {cell.config_values["dropout"] for cell in cells if cell.config in SIDES[2:]} == {"shared"}
    assert all("--dropout" in cell.command for cell in cells)


@pytest.mark.parametrize(("scale", "only", "count"), [("cpu", (), 0), ("cpu", ("masks",), 1), ("smoke", (), 1)])
def test_without_a_gpu_it_is_run_when_asked_for_or_to_see_that_it_works(scale, only, count, tmp_path):
    studies = Tacl18().studies(Request(scale, tmp_path, only=only, device="cpu"))
    assert sum(study.name.endswith("-masks") for study in studies) == count


def test_tau_is_scipys_and_the_paper_stands_beside_own_masks(tmp_path):
    shown = presented(tmp_path, scores_with(1.0, 0.2))
    found = shown.numbers["masks"][0]
    runs = {side: [run["ap"] for run in rows] for side, rows in found["sides"].items()}
    for item in found["agreements"]:
        assert item["tau"] == pytest.approx(stats.kendalltau(runs[item["a"]], runs[item["b"]]).statistic)
        assert item["tau_ci95"][0] < item["tau"] < item["tau_ci95"][1]
    pairs = [(item["a"], item["b"], item["same_masks"], item["same_side"]) for item in found["agreements"]]
    assert pairs == [
        ("CPU", "GPU", True, False),
        ("CPU, own masks", "GPU, own masks", False, False),
        ("CPU", "CPU, own masks", False, True),
        ("GPU", "GPU, own masks", False, True),
    ]
    assert found["published_tau"] == 0.2871
    table = next(item for item in shown.tables if item.name == "masks")
    assert [row[-1] for row in table.rows[:4]] == ["—", "0.29", "—", "—"]


def test_masks_that_matter_are_named_as_the_cause(tmp_path):
    shown = presented(tmp_path, scores_with(1.0, 0.2))
    assert shown.numbers["masks"][0]["fall_ci95"][0] > 0
    assert "the masks are a cause" in shown.verdict[0]


def test_masks_that_do_not_matter_are_not_said_to(tmp_path):
    shown = presented(tmp_path, scores_with(0.0, 0.5))
    assert "the masks are not shown to be the cause" in shown.verdict[0]


def test_few_seeds_are_not_judged(tmp_path):
    shown = presented(tmp_path, scores_with(1.0, 0.2), runs=5)
    assert "5 seeds, too few to judge what the masks do." in shown.verdict[0]
    assert shown.numbers["masks"][0]["fall_ci95"] is None


def test_a_side_without_runs_leaves_the_data_set_out(tmp_path):
    scores = scores_with(1.0, 0.2)
    shown = presented(tmp_path, lambda cell: None if cell.config == "GPU" else scores(cell))
    assert shown.numbers["masks"] == []
