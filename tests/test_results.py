"""The kept results are whole, and the page about them says what they say."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "results").glob("*.json"))
PAGE = (ROOT / "docs" / "results.md").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_result_names_its_machine_its_scale_and_what_was_less(path):
    told = json.loads(path.read_text())
    assert f"`{path.name}`" in (ROOT / "results" / "README.md").read_text()
    assert told["runs"]["failed"] == 0
    assert told["verdict"]
    assert told["numbers"]
    assert bool(told["machines"]) is (told["paper"] != "dream")
    assert told["scaled_down"] or told["scale"] == "paper"


def test_every_listed_result_is_there():
    listed = re.findall(r"`([a-z0-9-]+\.json)`", (ROOT / "results" / "README.md").read_text())
    assert sorted(listed) == [path.name for path in FILES]


def test_the_page_shows_the_spreads_of_the_gpu_runs():
    told = json.loads((ROOT / "results" / "ase20-gpu.json").read_text())
    made = [group for group in told["numbers"]["groups"] if group["finished"]]
    groups = {(group["network"], group["level"]): group for group in made}
    network, shown = "", 0
    for row in re.findall(r"^\| (\S*) ?\| (default|fixed-seed) \|(.*)$", PAGE, re.MULTILINE):
        network = row[0] or network
        group = groups[network, row[1]]
        mean, sd, diff, one_class, weights = (cell.strip() for cell in row[2].strip(" |").split("|"))
        values = group["rules"]["best-loss"]["values"]
        assert float(mean) == round(100 * sum(values) / len(values), 2)
        assert sd in {f"{100 * group['overall']['sd']:.{digits}f}" for digits in (1, 2)}
        assert diff.split()[0] in {f"{100 * group['overall']['max_diff']:.{digits}f}" for digits in (1, 2)}
        assert one_class.split()[0] in {f"{100 * group['per_class']['max_diff']:.{digits}f}" for digits in (0, 1)}
        assert weights == f"{group['different_final_weights']} of {group['finished']}"
        shown += 1
    assert shown == 12
