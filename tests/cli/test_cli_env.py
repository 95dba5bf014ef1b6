"""isorun env as people type it."""

import json

import pytest

from isorun.cli.main import main
from isorun.session import open_store
from isorun.study.cells import Level
from record_builder import make_cell, make_record

FIRST = make_record(make_cell(Level.FIXED_SEED))
SECOND = make_record(
    make_cell(Level.FIXED_SEED, 1),
    environment={"requested": {}, "effective": {"torch": {"threads": 1}, "cpu": {"affinity": 2, "model": "EPYC"}}},
)
ALIKE = make_record(make_cell(Level.FIXED_SEED, 2), launch="fresh")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    for place, records in ((".isorun", (FIRST, SECOND, ALIKE)), ("other", (SECOND,))):
        with open_store(str(folder / place)) as store:
            for record in records:
                store.finish(record)
    return folder


@pytest.fixture
def kept(stores, monkeypatch):
    monkeypatch.chdir(stores)
    return stores


def test_what_differs_in_numbers_ends_with_3(kept, capsys):
    assert main(["env", "diff", FIRST.run_id, SECOND.cell.id[:8]]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "1 difference that can change numbers, torch.threads first" in said


def test_json_has_the_differences(kept, capsys):
    assert main(["env", "diff", FIRST.run_id, SECOND.run_id, "--json"]) == 3
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    assert (found["what"], found["first"], found["second"], found["kind"]) == ("torch.threads", "2", "1", "numerics")


def test_what_differs_in_nothing_that_counts_ends_with_0(kept, capsys):
    assert main(["env", "diff", FIRST.run_id, ALIKE.run_id]) == 0
    assert "nothing differs that can change numbers" in " ".join(capsys.readouterr().out.split())


def test_runs_come_from_two_stores(kept, capsys):
    words = ["env", "diff", FIRST.run_id, SECOND.run_id, "--store", ".isorun", "--store", "other", "--json"]
    assert main(words) == 3
    assert json.loads(capsys.readouterr().out)["second"] == SECOND.run_id


def test_a_run_is_described(kept, capsys):
    assert main(["env", "describe", FIRST.run_id]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Trained on EPYC")
    assert "what would make it whole" in said
    assert main(["env", "describe", FIRST.run_id, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"run", "sentence", "checklist"} <= set(told)
    assert main(["env", "describe", FIRST.run_id, "--latex"]) == 0
    assert r"\toprule" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["diff", "zz"], 2, "diff takes two runs"),
        (["diff", "a", "b", "--store", "1", "--store", "2", "--store", "3"], 2, "one store or two"),
        (["diff", "a", "b", "--latex"], 2, "belong to describe"),
        (["describe", "a", "b"], 2, "isorun env diff RUN1 RUN2"),
        (["describe", "a", "--latex", "--json"], 2, "choose one"),
        (["describe", "a", "--python", "x"], 2, "its own interpreter"),
        (["describe", "zz"], 1, "isorun run --json lists"),
        (["describe", "zz", "--store", "nowhere"], 1, "there is no store nowhere"),
        (["describe", "--python", "/no/python"], 1, "/no/python"),
    ],
)
def test_mistakes_are_told_with_what_to_do(kept, words, code, told, capsys):
    assert main(["env", *words]) == code
    said = capsys.readouterr()
    assert told in said.err
    assert not said.out
    assert sorted(path.name for path in kept.iterdir()) == [".isorun", "other"]
