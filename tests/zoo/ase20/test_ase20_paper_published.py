"""The published numbers are those of the paper's text."""

import os
import re
from pathlib import Path

import pytest

from isorun.analysis.spreads import sd_interval
from isorun.study.cells import Level
from isorun.zoo.studies.ase20.published import DATA_SIZES, EXAMPLE, FINDINGS, TABLE_2, TABLE_3
from isorun.zoo.studies.ase20.scales import NETWORKS

NAMES = [network.name for network in NETWORKS.values()]
DATA = Path(os.environ.get("ISORUN_SHARED_DATA") or Path(__file__).parents[4] / "shared" / "data")


@pytest.fixture(scope="module")
def text():
    found = sorted((DATA.parent / "papers").glob("000_*.txt"))
    if not found:
        pytest.skip("the paper's text is not beside this repository")
    return found[0].read_text(encoding="utf-8")


def numbers(cell):
    """The numbers of a cell, "<0.1" as None."""
    found = re.findall(r"<0\.1|\d[\d,]*\.?\d*", cell)
    return [None if item == "<0.1" else float(item.replace(",", "")) for item in found]


def table_2_rows(text, setting):
    """Six rows of (Diff, SDev, CI) twice; the text has every column of a setting in one cell."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {setting}") and "LeNet1 LeNet4" in line)
    diff, sd, interval, class_diff, class_sd, class_interval = [cell.strip() for cell in line.split("|")[3:9]]
    groups = [re.findall(r"\(([^)]*)\)", item) for item in (interval, class_interval)]
    intervals = [[numbers(pair.replace("-", " ")) for pair in group] for group in groups]
    columns = zip(*map(numbers, (diff, sd, class_diff, class_sd)), *intervals, strict=True)
    return dict(zip(NAMES, columns, strict=True))


@pytest.mark.parametrize(("setting", "level"), [("Default", Level.DEFAULT), ("Fixed-seed", Level.FIXED_SEED)])
def test_table_2_is_that_of_the_text(text, setting, level):
    for name, (diff, sd, class_diff, class_sd, interval, class_interval) in table_2_rows(text, setting).items():
        row = TABLE_2[level][name]
        assert (row.overall.difference, row.overall.sd) == (diff, sd)
        assert (row.per_class.difference, row.per_class.sd) == (class_diff, class_sd)
        assert list(row.overall.sd_interval or [None]) == interval
        assert list(row.per_class.sd_interval) == class_interval


def test_table_3_is_that_of_the_text(text):
    found = [line for line in text.splitlines() if re.match(r"\|[^|]*\| (LeNet|ResNet|WRN)[^|]* \| +[\d,]+ +\|", line)]
    assert len(found) == 12
    for line, level in zip(found, [Level.DEFAULT] * 6 + [Level.FIXED_SEED] * 6, strict=True):
        cells = [cell.strip() for cell in line.split("|")]
        row = TABLE_3[level][cells[2]]
        ours = [
            number
            for time in (row.best_loss, row.best_accuracy)
            for number in (time.difference, time.relative_difference, time.relative_sd)
        ]
        assert ours == [numbers(cell)[0] for cell in cells[3:9]]


def test_the_example_and_the_findings_are_those_of_the_text(text):
    plain = " ".join(text.split())
    assert (
        f"ResNet56 averages {EXAMPLE.better_mean}% in test accuracy while ResNet38 averages {EXAMPLE.worse_mean}%"
        in plain
    )
    assert f"effect size (Cohen's d) of {EXAMPLE.cohens_d}" in plain
    assert f"its worse run ({EXAMPLE.better_worst}%) and ResNet38 with its best run ({EXAMPLE.worse_best}%)" in plain
    for number in FINDINGS.values():
        assert f"{number:,.1f}%".replace("100.0%", "100%") in plain


def test_the_networks_and_data_are_those_of_table_1(text):
    table = text[text.index("Table 1: Datasets") : text.index("4 EXPERIMENTAL SETTINGS")]
    for network in NETWORKS.values():
        assert f"{network.parameters:,}" in table
    for sizes in DATA_SIZES.values():
        assert all(f"{size:,}" in table for size in sizes)


@pytest.mark.parametrize("level", TABLE_2)
@pytest.mark.parametrize("name", NAMES)
def test_published_intervals_are_chi_square_intervals_of_16_runs(level, name):
    row = TABLE_2[level][name]
    for spread in (row.overall, row.per_class):
        if spread.sd is None:
            continue
        # the published sd is rounded, so the interval may be off by as much as rounding allows
        low = sd_interval(spread.sd - 0.05, 16)
        high = sd_interval(spread.sd + 0.05, 16)
        for place in (0, 1):
            assert low[place] - 0.05 <= spread.sd_interval[place] <= high[place] + 0.05
