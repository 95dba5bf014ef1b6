"""isorun repair, as people type it."""

import json
import shutil
import sqlite3
import subprocess
import sys

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


def test_a_storage_that_is_named_by_its_path_alone_gets_its_address(folder, capsys):
    made("sqlite:///s.db", 1)
    made(optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("s.log")), 1)
    (folder / "project" / "trial_0").mkdir(parents=True)
    (folder / "project" / "oracle.json").write_text("{}")
    meant = {
        "s.db": "sqlite:///s.db",
        "gone.db": "sqlite:///gone.db",
        "s.log": "journal:s.log",
        "project": "keras-tuner:project",
        "project/oracle.json": "keras-tuner:project",
        "sqlite:s.db": "sqlite:///s.db",
        "sqlite://s.db": "sqlite:///s.db",
        "sqlite:///sdb": "sqlite:///s.db",
        "sqlite:///s.log": "journal:s.log",
        "sqlite:///project": "keras-tuner:project",
        "journal:s.db": "sqlite:///s.db",
        "keras_tuner:project": "keras-tuner:project",
    }
    for given, address in meant.items():
        assert main(["repair", given]) == 1
        said = capsys.readouterr().err
        assert said.endswith(f"next:    isorun repair {address}\n"), said
        assert "Traceback" not in said
    with pytest.raises(isorun.errors.InputError, match=r"isorun repair sqlite:///s\.db"):
        isorun.repair.examine("s.db")


def test_a_schema_of_an_older_optuna_is_told_with_its_remedy_and_left_as_it_is(folder, capsys):
    made("sqlite:///s.db", 1)
    with sqlite3.connect("s.db") as connection:
        connection.execute("update alembic_version set version_num = 'v2.6.0.a'")
        connection.execute("update version_info set library_version = '2.10.1'")
    connection.close()
    before = (folder / "s.db").read_bytes()
    assert main(["repair", "sqlite:///s.db"]) == 1
    assert "optuna storage upgrade --storage sqlite:///s.db" in capsys.readouterr().err
    assert (folder / "s.db").read_bytes() == before


@pytest.mark.parametrize("url", ["mysql+nodriver_at_all://me:hunter2@host/x", "nosuchbase://me:hunter2@host/x"])
def test_a_database_without_a_driver_is_told_without_its_password(url, folder, capsys):
    assert main(["repair", url]) == 1
    said = capsys.readouterr().err
    assert "cannot be read" in said
    assert "hunter2" not in said


def test_a_missing_driver_is_named_by_its_package():
    from isorun.repair.engines import optuna as engine

    error = ImportError("Failed to import DB access module")
    error.__cause__ = ModuleNotFoundError("No module named 'MySQLdb'", name="MySQLdb")
    assert "pip install mysqlclient" in engine._unreadable("mysql://me:pw@host/x", error).message()


def test_a_study_that_holds_nothing_or_several_goals_is_told(folder, capsys):
    optuna.create_study(storage="sqlite:///s.db", study_name="s", directions=["minimize", "maximize"])
    assert main(["repair", "sqlite:///s.db"]) == 1
    assert "several objectives" in capsys.readouterr().err
    optuna.delete_study(study_name="s", storage="sqlite:///s.db")
    assert main(["repair", "sqlite:///s.db"]) == 1
    assert "holds no study yet" in capsys.readouterr().err


def test_a_trial_that_gives_no_number_says_so(folder, capsys):
    (folder / "train.py").write_text(f"{OBJECTIVE}\ndef nan(trial):\n    return objective(trial) * math.nan\n")
    made("sqlite:///study.db", 2)
    words = ["repair", "sqlite:///study.db", "--in-process", "--continue", "4", "--objective", "train.py:nan", "--json"]
    assert main(words) == 3
    (bug,) = [bug for bug in json.loads(capsys.readouterr().out)["bugs"] if bug["kind"] == "repeated-failure"]
    assert "not a number" in bug["evidence"]


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
    assert main(["repair", "sqlite:///study.db", "--store", "there"]) == 2
    assert "--store belongs to a study" in capsys.readouterr().err
    assert main(["repair", "sqlite:///study.db", "--in-process", "--continue", "5"]) == 2
    assert "a storage holds no code" in capsys.readouterr().err
    assert main(["repair", "sqlite:///study.db", "--objective", "train.py:objective"]) == 2
    assert (
        main(["repair", "sqlite:///study.db", "--in-process", "--continue", "0", "--objective", "train.py:objective"])
        == 2
    )


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
    assert main(["repair", "sqlite:///study.db", "--in-process", "--continue", "1", "--objective", named]) in (1, 2)
    assert said in capsys.readouterr().err
    assert len(optuna.load_study(study_name="first", storage="sqlite:///study.db").trials) == 3


def test_it_goes_on_repaired(folder, capsys):
    made("sqlite:///study.db", 12, score=[-3.0] * 12)  # below all that the objective gives: draws have no seed here
    words = [
        "repair",
        "sqlite:///study.db",
        "--in-process",
        "--continue",
        "6",
        "--objective",
        "train.py:objective",
        "--prior",
        "none",  # one that does not fit by the luck of the draws would leave a trial to the engine
        "--json",
    ]
    assert main(words) in (0, 3)
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == 18
    assert told["best"]["trial"] >= 12
    study = optuna.load_study(study_name="first", storage="sqlite:///study.db")
    assert sum(key.startswith("isorun:proposal:") for key in study.user_attrs) == 6


def test_an_objective_that_always_fails_is_diagnosed(folder, capsys):
    made("sqlite:///study.db", 2)
    words = [
        "repair",
        "sqlite:///study.db",
        "--in-process",
        "--continue",
        "4",
        "--objective",
        "train.py:failing",
        "--json",
    ]
    assert main(words) == 3
    told = json.loads(capsys.readouterr().out)
    (bug,) = [bug for bug in told["bugs"] if bug["kind"] == "repeated-failure"]
    assert "MemoryError: no memory" in bug["evidence"]


def test_what_was_running_when_it_was_killed_is_tried_again(folder, capsys):
    study = made("sqlite:///study.db", 3)
    left = study.ask()
    lr = left.suggest_float("lr", 1e-5, 1.0, log=True)
    words = [
        "repair",
        "sqlite:///study.db",
        "--in-process",
        "--continue",
        "2",
        "--objective",
        "train.py:objective",
        "--requeue",
    ]
    assert main(words) in (0, 3)
    study = optuna.load_study(study_name="first", storage="sqlite:///study.db")
    assert study.trials[left.number].state == optuna.trial.TrialState.FAIL
    assert study.trials[left.number + 1].params["lr"] == lr


TUNER = """
import os, warnings
os.environ.setdefault("KERAS_BACKEND", "torch")
warnings.simplefilter("ignore")
import keras_tuner as kt

class Tuned(kt.RandomSearch):
    def run_trial(self, trial, gain):
        hp = trial.hyperparameters
        return {"score": gain * hp.Float("lr", 1e-3, 1.0, sampling="log") + hp.Int("units", 1, 100)}

def tuner(folder="project"):
    made = Tuned(objective=kt.Objective("score", "max"), max_trials=6, project_name=folder, seed=1)
    return made, {"gain": 2.0}

def elsewhere():
    return tuner("another")

def nothing():
    return None

def failing():
    made, given = tuner()
    return made, {"loss": 1.0}

def broken():
    raise ValueError("no data")

if __name__ == "__main__":
    made, given = tuner()
    made.search(**given)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project folder of KerasTuner with six trials, and the code that made it."""
    folder = tmp_path_factory.mktemp("keras")
    (folder / "train.py").write_text(TUNER)
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=False)
    if "No module named" in done.stderr:
        pytest.skip("KerasTuner is not installed")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def copied(project, tmp_path, monkeypatch):
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_a_folder_of_keras_tuner_is_examined_and_left_as_it_is(copied, capsys):
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    assert main(["repair", "keras-tuner:project"]) == 0
    assert "keras-tuner study project: 6 trials (6 finished)" in capsys.readouterr().out
    assert main(["repair", "keras-tuner:project", "--json", "--patience", "1"]) in (0, 3)
    told = json.loads(capsys.readouterr().out)
    assert (told["engine"], told["study"], told["trials"]) == ("keras-tuner", "project", 6)
    assert {action["parameter"] for action in told["actions"]} == {"lr", "units"}
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before
    assert main(["repair", "keras-tuner:projcet"]) == 1
    assert "projects in .: project" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--in-process", "--continue", "3"], "--tuner train.py:tuner"),
        (["--in-process", "--continue", "3", "--objective", "train.py:tuner"], "--objective belongs to another engine"),
        (["--tuner", "train.py:tuner"], "belong to --continue N"),
        (["--study", "p"], "keras-tuner:FOLDER is one search"),
        (["--requeue"], "keras-tuner tries again"),
    ],
)
@pytest.mark.long
def test_options_that_do_not_go_with_a_folder_are_told(words, said, copied, capsys):
    assert main(["repair", "keras-tuner:project", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.long
def test_a_folder_goes_on_repaired(copied, capsys):
    whole = (copied / "project" / "oracle.json").read_text()
    (copied / "project" / "oracle.json").write_text(whole[:100])
    refused = {
        "nothing": "something else than a tuner",
        "elsewhere": "works in another folder",
        "broken": "ValueError: no data",
    }
    for function, said in refused.items():
        words = ["repair", "keras-tuner:project", "--in-process", "--continue", "4", "--tuner", f"train.py:{function}"]
        assert main(words) == 1
        assert said in " ".join(capsys.readouterr().err.split())
    words = ["repair", "keras-tuner:project", "--in-process", "--continue", "4", "--tuner", "train.py:tuner", "--json"]
    assert main(words) in (0, 3)
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == 10
    assert len(list((copied / "project").glob("trial_*/isorun.json"))) == 4
