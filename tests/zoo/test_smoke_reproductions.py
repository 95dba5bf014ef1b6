"""Papers at smoke scale, from the command to their tables, on real data where they are at hand.

On made data every paper is run in test_papers_contract.py.
"""

import json

import pytest

from isorun.cli.main import main


def reproduced(name, folder, capsys, *words):
    code = main(["reproduce", name, "--store", str(folder / "store"), "--jobs", "2", "--json", *words])
    told = capsys.readouterr()
    assert code == 0, told.err[-2000:]
    return json.loads(told.out)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "no-data"))


REAL = [
    pytest.param("ase20", ("--only", "resnet38", "--only", "wrn-28-10", "--launch", "warm"), "cifar100", id="ase20"),
    pytest.param("tacl18", ("--only", "baseline", "--launch", "warm"), "trecqa", id="tacl18"),
    pytest.param(
        "fewshot",
        ("--only", "prototypical-sgd", "--only", "matching-adam", "--launch", "warm"),
        "omniglot",
        id="fewshot",
    ),
    pytest.param("dream", ("--only", "case-1"), "dream-search-logs", id="dream"),
    pytest.param("tacl18", ("--only", "seeds"), "trecqa", id="tacl18-seeds", marks=pytest.mark.slow),
    pytest.param("dream", (), "dream-search-logs", id="dream-whole", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "words", "data"), REAL)
@pytest.mark.usefixtures("shared_data_folder")
@pytest.mark.long
def test_real_data_are_used_where_they_are_at_hand(name, words, data, tmp_path, capsys):
    told = reproduced(name, tmp_path, capsys, *words)
    assert told["runs"]["failed"] == 0
    assert not any(data in sentence and "made on the spot" in sentence for sentence in told["not_had"])


@pytest.mark.usefixtures("shared_data_folder")
def test_the_published_search_logs_give_the_known_answers(tmp_path, capsys):
    text = json.dumps(reproduced("dream", tmp_path, capsys, "--only", "case-1", "--only", "case-2")["tables"])
    for known in ("68.21", "67.79", "34.23", "82.66"):
        assert known in text
