"""isorun repair, as people type it."""

import json
import sqlite3

import pytest

import isorun.repair
from isorun.cli.main import main

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.ERROR)

OBJECTIVE = """
import math

def objective(trial):
    lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
    trial.suggest_categorical("activation", ["relu", "tanh"])
    return 1 - abs(math.log10(lr) + 2)

def failing(trial):
    trial.suggest_float("lr", 1e-5, 1.0, log=True)
    raise MemoryError("no memory")

number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OBJECTIVE)
    return tmp_path


def made(storage, trials, name="first", score=None):
    study = optuna.create_study(
        storage=storage, study_name=name, direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1)
    )
    values = iter(score or ())

    def objective(trial):
        trial.suggest_float("lr", 1e-5, 1.0, log=True)
        trial.suggest_categorical("activation", ["relu", "tanh"])
        return next(values, 0.1)

    study.optimize(objective, n_trials=trials)
    return study


def test_a_stuck_search_is_told_and_ends_with_three(folder, capsys):
    made("sqlite:///study.db", 15, score=[0.5])
    assert main(["repair", "sqlite:///study.db", "--study", "first"]) == 3
    said = capsys.readouterr().out
    assert "optuna study first: 15 trials (15 finished)" in said
    assert "ineffective-search, since trial 1" in said


def test_the_page_is_written_and_python_gives_the_same(folder, capsys):
    made("sqlite:///study.db", 15, score=[0.5])
    assert main(["repair", "sqlite:///study.db", "--html", "search.html"]) == 3
    assert capsys.readouterr().out.endswith("written: search.html\n")
    page = (folder / "search.html").read_text()
    assert "Best score by trial" in page
    assert "<script" not in page
    told = isorun.repair.examine("sqlite:///study.db", "first")
    assert [bug.kind for bug in told.bugs] == ["ineffective-search"]
    assert "ineffective-search, since trial 1" in str(told)
    assert "<strong>optuna study first" in told._repr_html_()
    assert told.to_json()["best"]["trial"] == 0


def test_json_is_what_the_contract_says(folder, capsys):
    made("sqlite:///study.db", 15, score=[0.5])
    assert main(["repair", "sqlite:///study.db", "--study", "first", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["engine"], told["study"], told["trials"]) == ("optuna", "first", 15)
    assert told["bugs"][0]["kind"] == "ineffective-search"
    assert {action["parameter"] for action in told["actions"]} == {"lr", "activation"}


def test_a_search_without_a_bug_ends_with_zero_and_limits_can_be_given(folder, capsys):
    made("sqlite:///study.db", 3)
    assert main(["repair", "sqlite:///study.db"]) == 0
    assert "No bug is found" in capsys.readouterr().out
    assert main(["repair", "sqlite:///study.db", "--patience", "2"]) == 3
    assert main(["repair", "sqlite:///study.db", "--target", "0.9", "--time-limit", "0"]) == 3


def test_a_study_that_is_not_there_lists_those_that_are(folder, capsys):
    made("sqlite:///study.db", 1, "first")
    made("sqlite:///study.db", 1, "second")
    assert main(["repair", "sqlite:///study.db", "--study", "frist"]) == 1
    said = capsys.readouterr().err
    assert "first, second (did you mean 'first'?)" in said
    assert main(["repair", "sqlite:///study.db"]) == 1
    assert "2 studies: which one?" in capsys.readouterr().err


def test_no_finished_trial_yet(folder, capsys):
    optuna.create_study(storage="sqlite:///study.db", study_name="s").ask()
    assert main(["repair", "sqlite:///study.db"]) == 0
    assert "no trial has finished with a score yet" in " ".join(capsys.readouterr().out.split())


def test_a_file_that_is_not_there_is_not_made(folder, capsys):
    assert main(["repair", "sqlite:///nothing.db"]) == 1
    assert "nothing.db is not there" in capsys.readouterr().err
    assert main(["repair", "journal:nothing.log"]) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["train.py"]


def test_what_is_no_database_or_no_storage_is_told_and_left_as_it_is(folder, capsys):
    (folder / "text.db").write_text("this is a text, and not a database at all\n" * 50)
    assert main(["repair", "sqlite:///text.db"]) == 1
    assert "not a database" in capsys.readouterr().err
    with sqlite3.connect("other.db") as connection:
        connection.execute("create table things (name text)")
    connection.close()
    before = (folder / "other.db").read_bytes()
    assert main(["repair", "sqlite:///other.db"]) == 1
    assert "is no storage of Optuna" in capsys.readouterr().err
    assert (folder / "other.db").read_bytes() == before
    (folder / "study.db").touch()
    assert main(["repair", "sqlite:///study.db"]) == 1
    assert main(["repair", "nothing://of-the-kind"]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_half_written_database_is_told(folder, capsys):
    made("sqlite:///study.db", 15)
    whole = (folder / "study.db").read_bytes()
    (folder / "half.db").write_bytes(whole[: len(whole) // 2])
    assert main(["repair", "sqlite:///half.db"]) in (1, 3)
    assert "Traceback" not in capsys.readouterr().err


def test_a_locked_database_is_told(folder, capsys, monkeypatch):
    from isorun.repair.engines import optuna as engine

    made("sqlite:///study.db", 2)
    monkeypatch.setattr(engine, "_PATIENCE", 0.2)
    holder = sqlite3.connect("study.db", isolation_level=None)
    holder.execute("begin exclusive")
    try:
        assert main(["repair", "sqlite:///study.db"]) == 1
    finally:
        holder.close()
    said = capsys.readouterr().err
    assert "locked" in said
    assert "another process holds it" in said


def test_a_journal_whose_last_line_is_cut_off_is_read(folder, capsys):
    backend = optuna.storages.journal.JournalFileBackend("study.log")
    made(optuna.storages.JournalStorage(backend), 15, score=[0.5])
    whole = (folder / "study.log").read_bytes()
    (folder / "study.log").write_bytes(whole[:-20])
    assert main(["repair", "journal:study.log"]) == 3
    (folder / "study.log").write_bytes(b"{not json}\n" + whole)
    assert main(["repair", "journal:study.log"]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_going_on_needs_the_objective(folder, capsys):
    made("sqlite:///study.db", 3)
    assert main(["repair", "sqlite:///study.db", "--continue", "5"]) == 2
    assert "a storage holds no code" in capsys.readouterr().err
    assert main(["repair", "sqlite:///study.db", "--objective", "train.py:objective"]) == 2
    assert main(["repair", "sqlite:///study.db", "--continue", "0", "--objective", "train.py:objective"]) == 2


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("train.py", "not understood"),
        ("train.py:no-name", "not understood"),
        ("gone.py:objective", "is not there"),
        ("train.py:gone", "has no function gone"),
        ("train.py:number", "has no function number"),
        ("broken.py:objective", "cannot be imported"),
    ],
)
def test_an_objective_that_cannot_be_had_is_told(named, said, folder, capsys):
    made("sqlite:///study.db", 3)
    (folder / "broken.py").write_text("import nothing_of_the_kind\n")
    assert main(["repair", "sqlite:///study.db", "--continue", "1", "--objective", named]) in (1, 2)
    assert said in capsys.readouterr().err
    assert len(optuna.load_study(study_name="first", storage="sqlite:///study.db").trials) == 3


def test_it_goes_on_repaired(folder, capsys):
    made("sqlite:///study.db", 12)
    words = ["repair", "sqlite:///study.db", "--continue", "6", "--objective", "train.py:objective", "--json"]
    assert main(words) in (0, 3)
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == 18
    assert told["best"]["trial"] >= 12
    study = optuna.load_study(study_name="first", storage="sqlite:///study.db")
    assert sum(key.startswith("isorun:proposal:") for key in study.user_attrs) == 6


def test_an_objective_that_always_fails_is_diagnosed(folder, capsys):
    made("sqlite:///study.db", 2)
    words = ["repair", "sqlite:///study.db", "--continue", "4", "--objective", "train.py:failing", "--json"]
    assert main(words) == 3
    told = json.loads(capsys.readouterr().out)
    (bug,) = [bug for bug in told["bugs"] if bug["kind"] == "repeated-failure"]
    assert "MemoryError: no memory" in bug["evidence"]


def test_what_was_running_when_it_was_killed_is_tried_again(folder, capsys):
    study = made("sqlite:///study.db", 3)
    left = study.ask()
    lr = left.suggest_float("lr", 1e-5, 1.0, log=True)
    words = ["repair", "sqlite:///study.db", "--continue", "2", "--objective", "train.py:objective", "--requeue"]
    assert main(words) in (0, 3)
    study = optuna.load_study(study_name="first", storage="sqlite:///study.db")
    assert study.trials[left.number].state == optuna.trial.TrialState.FAIL
    assert study.trials[left.number + 1].params["lr"] == lr
