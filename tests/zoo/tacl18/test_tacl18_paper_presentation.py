"""The paper's tables and figures from records: layout, known answers, and what is missing or odd."""

import json
import math
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats
from tacl18_records import CPU, finished, records_of

from isorun.report.figures import svg
from isorun.study.cells import cells_of
from isorun.study.records import RunState
from isorun.zoo.paper import Request
from isorun.zoo.studies.tacl18 import design
from isorun.zoo.studies.tacl18.paper import Tacl18
from isorun.zoo.studies.tacl18.published import REIMPLEMENTED

DOCUMENT = Path(__file__).parents[3] / "docs" / "papers" / "tacl18.md"
PLACE = {"TrecQA": 0.74, "WikiQA": 0.68}


@pytest.fixture(autouse=True)
def data_there(made_data_folder, monkeypatch):
    """Studies are planned as with real data; nothing reads any."""
    monkeypatch.setattr(design, "stand_in_for", lambda _data, _scale: False)
    monkeypatch.setattr(design, "has_train_all", lambda: True)


def request_for(tmp_path, scale="gpu", device="cuda", **changes):
    return Request(scale, tmp_path, device=device, **changes)


def wave(cell):
    """Scores that differ by seed, side and data set, and less by environment."""
    base = PLACE.get(cell.approach, 0.7)
    seed = 0.02 * math.sin((cell.seed or 0) * 0.37)
    side = 0.01 * math.sin((cell.seed or 0) * 0.91 + 1) if cell.config != "CPU" else 0.0
    small = 0.0003 * len(cell.environment)
    ap = round(base + seed + side + small, 6)
    return ap, round(ap + 0.06 + 0.5 * side, 6)


def presented(tmp_path, scores=wave, **changes):
    request = request_for(tmp_path, **changes)
    paper = Tacl18()
    return paper.present(request, records_of(paper.studies(request), scores))


def table(shown, name):
    return next(item for item in shown.tables if item.name == name)


def cells(shown, name, *keys):
    """The row whose first cells are the keys, as a mapping from group and title."""
    found = table(shown, name)
    row = next(row for row in found.rows if row[: len(keys)] == keys)
    heads = [f"{column.group} {column.title}".strip() for column in found.columns]
    return dict(zip(heads, row, strict=True))


def seed_values(shown, data, side, metric):
    entry = next(item for item in shown.numbers["seeds"] if item["data"] == data)
    return [run[metric] for run in entry["sides"][side]]


def test_table_9_has_the_coefficients_that_scipy_computes(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=30)
    lists = {
        f"{metric.upper()} {side}": seed_values(shown, "TrecQA", side, metric)
        for side in ("CPU", "GPU")
        for metric in ("ap", "rr")
    }
    for a, b in (("AP CPU", "RR CPU"), ("AP CPU", "AP GPU"), ("RR CPU", "RR GPU"), ("AP GPU", "RR GPU")):
        tau = cells(shown, "table-9", "TrecQA", "Kendall's tau", a)[f"{b} ours"]
        rho = cells(shown, "table-9", "TrecQA", "Spearman's rho", a)[f"{b} ours"]
        assert float(tau) == pytest.approx(stats.kendalltau(lists[a], lists[b]).statistic, abs=5.1e-5)
        assert float(rho) == pytest.approx(stats.spearmanr(lists[a], lists[b]).statistic, abs=5.1e-5)


def test_table_9_keeps_its_triangle_and_the_published_values(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=5)
    assert [row[2] for row in table(shown, "table-9").rows[:3]] == ["AP CPU", "RR CPU", "AP GPU"]
    assert len(table(shown, "table-9").rows) == 12
    row = cells(shown, "table-9", "WikiQA", "Spearman's rho", "RR CPU")
    assert row["RR CPU ours"] == row["RR CPU published"] == ""
    assert row["AP GPU published"] == "0.4392"
    assert row["RR GPU published"] == "0.4690"


def test_the_change_from_cpu_to_gpu_is_tested_as_scipy_does(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=20)
    cpu, gpu = (seed_values(shown, "WikiQA", side, "ap") for side in ("CPU", "GPU"))
    change = next(item for item in shown.numbers["changes"] if (item["data"], item["metric"]) == ("WikiQA", "AP"))
    assert change["paired_t_p"] == pytest.approx(stats.ttest_rel(cpu, gpu).pvalue)
    assert change["max"] == pytest.approx(max(b - a for a, b in zip(cpu, gpu, strict=True)))
    assert change["higher"] == sum(b > a for a, b in zip(cpu, gpu, strict=True))
    assert (change["from"], change["to"], change["n"]) == ("CPU", "GPU", 20)
    tau = stats.kendalltau(cpu, gpu).statistic
    line = next(line for line in shown.verdict if "order the 20 seeds by AP on WikiQA" in line)
    assert line.endswith(f"a tau of {tau:.2f} (published: 0.32).")


def test_table_7_has_a_row_a_thread_count_with_the_published_one_beside(tmp_path, monkeypatch):
    monkeypatch.setattr(design, "thread_counts", lambda _most: (1, 2))
    shown = presented(
        tmp_path, lambda cell: (0.75, 0.81) if "1" in cell.environment else (0.748, 0.8125), only=("threads",)
    )
    found = table(shown, "table-7")
    assert [row[1] for row in found.rows[:7]] == [
        *("1 thread", "2 threads", "3 threads", "4 threads", "5 threads", "6 threads"),
        "largest difference",
    ]
    second = cells(shown, "table-7", "TrecQA", "2 threads")
    assert (second["AP ours"], second["AP published"]) == ("0.7480", "0.7485")
    assert cells(shown, "table-7", "WikiQA", "2 threads")["RR published"] == "0.7022"
    assert cells(shown, "table-7", "TrecQA", "5 threads")["AP ours"] == "—"
    last = cells(shown, "table-7", "TrecQA", "largest difference")
    assert (last["AP ours"], last["RR ours"], last["AP published"]) == ("0.0020", "0.0025", "0.0018")
    assert cells(shown, "table-7", "WikiQA", "largest difference")["RR published"] == "0.0069"
    assert "Table 7 beyond 2 threads: the runs could use no more CPUs." in shown.not_had


def test_the_table_tells_which_weights_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(design, "thread_counts", lambda _most: (1, 2, 3))
    request = request_for(tmp_path, only=("threads",))
    (study,) = Tacl18().studies(request)
    weights = {"1 thread": "a", "2 threads": "b", "3 threads": "a"}
    records = [finished(cell, 0.7, 0.8, weights=weights[cell.environment]) for cell in cells_of(study)]
    shown = Tacl18().present(request, {study.name: records})
    assert [row[-1] for row in table(shown, "table-7").rows[:3]] == ["the first", "other", "same"]
    odd = [replace(record, digests={"weights.final": record.cell.id}) for record in records]
    shown = Tacl18().present(request, {study.name: odd})
    assert table(shown, "table-7").rows[0][-1] == "2 of 2 runs"


def test_other_initial_weights_are_told_apart_from_other_arithmetic(tmp_path):
    request = request_for(tmp_path, only=("cpu-paths",))
    found = {}
    for study in Tacl18().studies(request):
        starts = [
            ("other" if cell.environment == "ATen without vectors" else "start", cell) for cell in cells_of(study)
        ]
        found[study.name] = [finished(cell, 0.7, 0.8, initial=start) for start, cell in starts]
    notes = " ".join(table(Tacl18().present(request, found), "table-6").notes)
    assert "Other initial weights with the same seed: ATen without vectors." in notes


def test_table_8_shows_our_hardware_before_the_papers(tmp_path):
    shown = presented(tmp_path, only=("devices",))
    rows = table(shown, "table-8").rows
    assert [row[:3] for row in rows[:5]] == [
        ("TrecQA", "ours", "CPU: EPYC"),
        ("TrecQA", "ours", "GPU: NVIDIA H200"),
        ("TrecQA", "ours", "GPU without cuDNN: NVIDIA H200"),
        ("TrecQA", "ours", "largest difference"),
        ("TrecQA", "published", "CPU: Intel i7-6800K"),
    ]
    theirs = cells(shown, "table-8", "WikiQA", "published", "largest difference")
    assert (theirs["AP"], theirs["RR"]) == ("0.0269", "0.0250")
    assert not any("Table 8" in text for text in shown.not_had)


def test_a_gpu_run_that_was_on_the_cpu_is_no_gpu_run(tmp_path):
    request = request_for(tmp_path, only=("devices",))
    (study,) = Tacl18().studies(request)
    records = [finished(cell, 0.7, 0.8, effective=CPU) for cell in cells_of(study)]
    shown = Tacl18().present(request, {study.name: records})
    ours = [row[2] for row in table(shown, "table-8").rows[:3]]
    assert ours == ["CPU: EPYC", "GPU without cuDNN, run on the CPU: EPYC", "GPU, run on the CPU: EPYC"]
    assert [warning.code for warning in shown.warnings] == ["not-on-gpu"]
    assert any(text.startswith("Table 8") for text in shown.not_had)


def test_the_seed_as_large_as_published_gains_is_as_published(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=12)
    assert shown.verdict[0].startswith("As published:")
    effect = next(
        item for item in shown.numbers["effects"] if item["factor"] == "seed (CPU)" and item["metric"] == "AP"
    )
    values = seed_values(shown, "TrecQA", "CPU", "ap")
    assert effect["difference"] == pytest.approx(max(values) - min(values))
    assert effect["published"] == 0.0393
    assert effect["gains"] == 14
    gains = (0.008, 0.176, 0.006, 0.022, 0.047, 0.008, 0.023, 0.002, 0.002, 0.033, 0.004, 0.012, 0.018, 0.002)
    bar = 1.96 * math.sqrt(2) * statistics.stdev(values)
    assert effect["bar"] == pytest.approx(bar)
    assert effect["smaller_gains"] == sum(gain < bar for gain in gains)


def test_more_seeds_of_the_same_spread_do_not_make_more_gains_look_small(tmp_path):
    def of_two_values(cell):
        return 0.7 + (0.012 if cell.seed % 2 else 0.0), 0.8

    few, many = (presented(tmp_path, of_two_values, only=("seeds",), runs=runs) for runs in (10, 100))
    bars = [shown.numbers["effects"][0]["bar"] for shown in (few, many)]
    assert bars[1] == pytest.approx(1.96 * math.sqrt(2) * 0.006, rel=0.03)
    assert bars[0] == pytest.approx(bars[1], rel=0.12)


def test_gains_are_not_judged_by_fewer_than_five_seeds(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=4)
    assert {item["smaller_gains"] for item in shown.numbers["effects"]} == {None}
    assert not any(line.startswith(("As published", "Not as published")) for line in shown.verdict)
    assert "too few to judge 14 published gains" in " ".join(shown.verdict)


def test_seeds_that_do_not_matter_are_not_as_published(tmp_path):
    shown = presented(tmp_path, lambda cell: (PLACE[cell.approach], 0.8), only=("seeds",), runs=5)
    assert shown.verdict[0].startswith("Not as published")
    assert any("is the same in 5 seeds" in line for line in shown.verdict)
    assert any("no seed of 5 changes its AP" in line for line in shown.verdict)


def test_seeds_that_matter_on_one_data_set_are_as_published_in_part(tmp_path):
    def scores(cell):
        return wave(cell) if cell.approach == "WikiQA" else (0.7, 0.8)

    shown = presented(tmp_path, scores, only=("seeds",), runs=12)
    assert shown.verdict[0].startswith("As published in part")
    assert "WikiQA" in shown.verdict[0]
    assert "TrecQA" not in shown.verdict[0]


def test_a_smoke_run_does_not_judge_the_paper(tmp_path):
    shown = presented(tmp_path, scale="smoke")
    assert len(shown.verdict) == 1
    assert "It claims nothing about the paper." in shown.verdict[0]
    assert shown.scaled_down


def test_made_data_are_never_read_against_published_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(design, "stand_in_for", lambda _data, _scale: True)
    shown = presented(tmp_path, scale="smoke")
    assert shown.numbers["made_data"] is True
    assert "published gains" not in " ".join(shown.verdict)
    assert all("made on the spot" in item.notes[-1] for item in shown.tables)
    assert all(dot.series == 0 for figure in shown.figures if "figure-2" in figure.name for dot in figure.dots)
    assert all(item["systems_below_ap"] == 0 for item in shown.numbers["baseline"])


def test_figure_2_has_a_panel_for_each_side_and_data_set(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=6)
    panels = {figure.name: figure for figure in shown.figures if figure.name.startswith("figure-2")}
    assert set(panels) == {
        *("figure-2-cpu-trecqa", "figure-2-gpu-trecqa", "figure-2-cpu-wikiqa", "figure-2-gpu-wikiqa"),
    }
    dots = panels["figure-2-cpu-trecqa"].dots
    assert sum(dot.shape == "circle" for dot in dots) == 6
    (model,) = [dot for dot in dots if dot.shape == "star" and dot.title.startswith(REIMPLEMENTED)]
    assert (model.x, model.y) == (0.746, 0.808)
    assert not [dot for dot in panels["figure-2-cpu-wikiqa"].dots if dot.title.startswith(REIMPLEMENTED)]


def test_figure_3_shows_every_seeds_change_and_all_figures_can_be_drawn(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=6)
    names = [figure.name for figure in shown.figures]
    assert {"figure-3-trecqa", "figure-3-slopes-trecqa", "figure-3-wikiqa", "seed-distribution"} <= set(names)
    change = next(figure for figure in shown.figures if figure.name == "figure-3-trecqa")
    cpu, gpu = (seed_values(shown, "TrecQA", side, "ap") for side in ("CPU", "GPU"))
    assert [dot.x for dot in change.dots] == pytest.approx([b - a for a, b in zip(cpu, gpu, strict=True)])
    for figure in shown.figures:
        assert "<svg" in svg.render(figure)


def test_seeds_that_one_side_lacks_are_left_out_of_pairs_only(tmp_path):
    def scores(cell):
        return None if cell.config == "GPU" and cell.seed == 7764 else wave(cell)

    shown = presented(tmp_path, scores, only=("seeds",), runs=6)
    assert len(seed_values(shown, "TrecQA", "CPU", "ap")) == 6
    assert len(seed_values(shown, "TrecQA", "GPU", "ap")) == 5
    assert {item["n"] for item in shown.numbers["changes"]} == {5}
    assert {item["n"] for item in shown.numbers["agreements"]["TrecQA"]} == {5, 6}


def test_one_side_alone_still_has_its_own_agreement(tmp_path):
    shown = presented(tmp_path, lambda cell: wave(cell) if cell.config == "CPU" else None, only=("seeds",), runs=6)
    row = cells(shown, "table-9", "TrecQA", "Kendall's tau", "AP CPU")
    assert row["RR CPU ours"] == "1.0000"
    assert row["AP GPU ours"] == "—"
    assert row["AP GPU published"] == "0.2871"
    assert "changes" not in {item.name for item in shown.tables}


def test_two_seeds_have_no_order_to_agree_on(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=2)
    assert cells(shown, "table-9", "TrecQA", "Kendall's tau", "AP CPU")["RR CPU ours"] == "—"


def test_without_a_gpu_the_second_side_is_named(tmp_path):
    shown = presented(tmp_path, device="cpu", only=("seeds", "devices"), runs=6)
    assert any("oneDNN" in note for note in table(shown, "table-9").notes)
    assert any(text.startswith("Table 8") for text in shown.not_had)
    assert any("Figure 3" in text for text in shown.not_had)
    assert "AP CPU without oneDNN" in {column.group for column in table(shown, "table-9").columns}


def test_lost_runs_are_warned_of_and_a_later_attempt_replaces_them(tmp_path):
    request = request_for(tmp_path, only=("seeds",), runs=4)
    (study,) = Tacl18().studies(request)
    first, *others = cells_of(study)
    failed = replace(finished(first, 0.7, 0.8), state=RunState.FAILED, reason="out of memory", results={})
    records = [finished(cell, *wave(cell)) for cell in others]
    diverged = finished(first, float("nan"), 0.8)
    shown = Tacl18().present(request, {study.name: [diverged, *records]})
    assert [warning.code for warning in shown.warnings] == ["lost-runs"]
    assert "1 run without finite scores" in shown.warnings[0].message
    again = finished(first, 0.7, 0.8, attempt=2)
    shown = Tacl18().present(request, {study.name: [failed, again, *records]})
    assert not shown.warnings
    assert shown.numbers["lost_runs"] == 0


@pytest.mark.parametrize("scale", ["smoke", "cpu", "gpu", "paper"])
def test_nothing_recorded_is_said_and_named(scale, tmp_path):
    shown = Tacl18().present(request_for(tmp_path, scale=scale), {})
    assert shown.verdict == ("There are no runs to judge yet.",)
    assert any(f"seeds (isorun reproduce tacl18 --scale {scale} makes them)" in text for text in shown.not_had)
    assert [item.name for item in shown.tables] == ["rounding"]
    assert shown.scaled_down
    json.dumps(shown.numbers, allow_nan=False)


def test_parts_that_were_never_begun_have_no_tables_and_are_named(tmp_path):
    request = request_for(tmp_path, runs=5)
    paper = Tacl18()
    found = records_of(paper.studies(request), wave)
    begun = {name: found[name] for name in ("tacl18-gpu-seeds", "tacl18-gpu-cpu-paths")}
    shown = paper.present(request, begun)
    names = [item.name for item in shown.tables]
    assert names == ["table-6", "seed-ranges", "table-9", "changes", "rounding", "digits"]
    missing = next(text for text in shown.not_had if text.startswith("No runs yet of:"))
    assert missing.startswith("No runs yet of: baseline, data, threads, tacl18-gpu-onednn-off (")


def test_what_is_scaled_down_goes_by_the_parts_and_runs_asked_for(tmp_path):
    assert "50 seeds instead of 200" in presented(tmp_path, only=("seeds",), runs=50).scaled_down
    assert not any("seeds" in text for text in presented(tmp_path, only=("seeds",), runs=200).scaled_down)
    assert not any("seeds" in text for text in presented(tmp_path, only=("threads",), runs=2).scaled_down)
    assert presented(tmp_path, only=("baseline",)).scaled_down == ()


def test_fewer_seeds_than_planned_are_said(tmp_path):
    shown = presented(tmp_path, lambda cell: None if cell.seed == 7764 else wave(cell), only=("seeds",), runs=6)
    assert "5 seeds instead of 200, of 6 planned" in shown.scaled_down


def test_one_part_alone_shows_nothing_of_the_others(tmp_path):
    shown = presented(tmp_path, only=("threads",))
    assert [item.name for item in shown.tables] == ["table-7"]
    assert shown.figures == ()
    assert not any("Tables 4 and 5" in text or "Table 6" in text for text in shown.not_had)


def test_every_part_alone_has_a_verdict(tmp_path):
    for part in Tacl18.parts:
        assert "no runs" not in presented(tmp_path, only=(part,), runs=3).verdict[0]
    (line,) = presented(tmp_path, only=("rounding",)).verdict
    assert line.endswith("by AP: 9 of 152 pairs on TrecQA raw, 2 of 21 pairs on TrecQA clean.")


def test_the_panels_of_a_data_set_share_their_axes(tmp_path):
    shown = presented(tmp_path, only=("seeds",), runs=6)
    panels = {figure.name: figure for figure in shown.figures}
    first, second = panels["figure-2-cpu-trecqa"], panels["figure-2-gpu-trecqa"]
    assert (first.x, first.y) == (second.x, second.y)
    assert all(first.x.low < dot.x < first.x.high for figure in (first, second) for dot in figure.dots)


def test_scores_that_are_not_numbers_count_as_lost(tmp_path):
    shown = presented(
        tmp_path, lambda cell: (float("nan"), 0.8) if cell.seed == 7764 else wave(cell), only=("seeds",), runs=4
    )
    assert shown.numbers["lost_runs"] == 4
    json.dumps(shown.numbers, allow_nan=False)


def test_the_baseline_stands_among_the_systems_it_passes(tmp_path):
    request = request_for(tmp_path, only=("baseline",))
    (study,) = Tacl18().studies(request)
    sizes = {"questions": 95.0, "positive": 284.0, "negative": 1233.0}
    values = {f"{split}_{name}": number for split in ("train", "dev", "test") for name, number in sizes.items()}
    records = [
        replace(finished(cell, 0.7014, 0.768), results={"map": 0.7014, "mrr": 0.768, **values})
        for cell in cells_of(study)
    ]
    shown = Tacl18().present(request, {study.name: records})
    names = [row[0] for row in table(shown, "table-2-raw").rows]
    assert names[8:10] == ["idf-weighted sum, published", "idf-weighted sum, ours"]
    assert names[7].startswith("Shnarch")
    assert "8 of 18" in table(shown, "table-2-raw").notes[0]
    assert any("passes 8 of 18 systems on TrecQA raw" in line for line in shown.verdict)
    assert cells(shown, "table-1", "TrecQA", "test")["ours negative"] == "1,233"
    assert cells(shown, "table-1", "TrecQA", "test")["published questions"] == "100"


def test_rounding_hides_the_orders_that_can_be_counted_by_hand(tmp_path):
    shown = presented(tmp_path, only=("rounding",))
    found = {(item["source"], item["metric"]): item for item in shown.numbers["rounding"]}
    wiki = found["Table 3, WikiQA", "RR"]
    assert wiki["told_apart"] == 66
    assert wiki["pairs"] == [{"better": "He and Lin (2016)", "worse": "Wang et al. (2016b)", "kind": "tied"}]
    threads = found["Table 7, TrecQA", "AP"]
    assert threads["told_apart"] == 12
    assert threads["pairs"] == [{"better": "6 threads", "worse": "2 threads", "kind": "tied"}]
    notes = table(shown, "rounding").notes
    assert notes[0] == "0.7484 and 0.7486 become 0.748 and 0.749: 5 times the difference."
    assert notes[1].endswith("no difference at all.")


def test_the_seeds_tell_how_many_digits_they_support(tmp_path):
    shown = presented(tmp_path, only=("seeds", "rounding"), runs=16)
    digits = next(
        item
        for item in shown.numbers["digits"]
        if (item["data"], item["side"], item["metric"]) == ("TrecQA", "CPU", "AP")
    )
    values = seed_values(shown, "TrecQA", "CPU", "ap")
    error = stats.sem(values)
    assert digits["standard_error"] == pytest.approx(error)
    assert digits["decimals"] == -math.floor(math.log10(error))


def test_every_number_key_is_documented(tmp_path):
    document = DOCUMENT.read_text()
    shown = presented(tmp_path, runs=4)

    def keys(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if re.fullmatch(r"[a-z_-]+", key):
                    yield key
                yield from keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from keys(inner)

    assert not {key for key in keys(shown.numbers) if f"`{key}`" not in document}
    assert not {part for part in Tacl18.parts if f"`{part}`" not in document}
