"""Sessions: a store and an executor, opened once, by name or URL; parts of other distributions work as isorun's own."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from isorun import plugins, session, workflow
from isorun.errors import IsorunError, NothingRecorded, PluginError, StoreError, StudyError
from isorun.in_progress import status
from isorun.session import (
    ExecutorOptions,
    is_there,
    open_executor,
    open_session,
    open_store,
    opened,
    runs_folder,
    store_place,
)
from isorun.store.folder import FolderStore
from isorun.study.design import Study
from isorun.study.records import Note
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore
from typed_commands import typed

DISTRIBUTION = Path(__file__).parent / "plugin_distribution"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The example distribution as an installer leaves it, made from its own pyproject.toml; folders for PYTHONPATH."""
    site = tmp_path_factory.mktemp("site")
    project = tomllib.loads((DISTRIBUTION / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata)
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return site, DISTRIBUTION


@pytest.fixture
def isorun(installed, tmp_path):
    """The command line where the example distribution is installed."""

    def call(*words):
        paths = [*map(str, installed), os.environ.get("PYTHONPATH", "")]
        env = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "80"}
        return typed(*words, cwd=tmp_path, env=env)

    return call


@pytest.mark.long
def test_a_detector_of_another_distribution_is_asked_by_the_doctor(isorun, tmp_path):
    (tmp_path / "t.py").write_text("import isorun\nfor e in range(12): isorun.log(epoch=e, val_loss=1.0 + e)\n")
    assert isorun("run", "-n", 1, "--name", "longer", "--", "python", "t.py").returncode == 0
    done = isorun("doctor", "longer", "--json")
    assert done.returncode == 3, done.stderr
    told = {problem["kind"]: problem["evidence"] for problem in json.loads(done.stdout)["problems"]}
    assert told["overlong"] == "the validation loss was lowest (1) with 11 of 12 to come"


def test_an_executor_and_a_store_of_another_distribution_work_through_the_command_line(isorun, tmp_path):
    words = ("run", "-n", 4, "--executor", "coins", "--store", "shelf://box", "--name", "tosses", "--json")
    done = isorun(*words, "--", "python", "no_such_file.py")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["finished"], {run["launch"] for run in told["runs"]}) == (4, {"instant"})
    assert [warning["code"] for warning in told["warnings"]] == ["on-a-shelf"]
    assert len(list((tmp_path / "box" / "records").iterdir())) == 4
    again = isorun(*words, "--", "python", "no_such_file.py")
    assert json.loads(again.stdout)["reused"] == 4
    report = isorun("report", "tosses", "--store", "shelf://box")
    assert "heads" in report.stdout
    assert "these records lie on a shelf" in report.stdout
    status = json.loads(isorun("status", "tosses", "--store", "shelf://box", "--json").stdout)
    assert (status["finished"], status["missing"], status["running"]) == (4, 0, [])


def test_an_executor_that_carries_out_jobs_elsewhere_works_through_the_command_line(isorun, tmp_path):
    (tmp_path / "train.py").write_text("print('acc: 0.75')")
    done = isorun("run", "-n", 2, "-j", 2, "--executor", "apart", "--json", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    assert [run["values"] for run in json.loads(done.stdout)["runs"]] == [{"acc": 0.75}] * 2


def test_an_executor_is_named_by_the_scheme_of_a_url_and_gets_all_of_it(isorun, monkeypatch, tmp_path):
    done = isorun("run", "-n", 2, "--executor", "coins://fair?tosses=3", "--json", "--", "python", "none.py")
    assert done.returncode == 0, done.stderr
    assert {run["launch"] for run in json.loads(done.stdout)["runs"]} == {"instant"}
    given = []

    def load(_, name, **__):
        return lambda options: (
            given.append((name, options.url, options.settings)) or InstantExecutor(lambda _: Computed())
        )

    monkeypatch.setattr(plugins, "load", load)
    for asked in ("coins", "coins://", "COINS://gpu?account=x&time=2h"):
        open_executor(asked, ExecutorOptions(tmp_path)).close()
    told = {"account": "x", "time": "2h"}
    assert given == [("coins", "", {}), ("coins", "coins://", {}), ("coins", "COINS://gpu?account=x&time=2h", told)]


def test_a_setting_of_an_executor_has_one_value(tmp_path):
    with pytest.raises(PluginError, match="'time' has two values"):
        open_executor("coins://?time=2h&time=3h", ExecutorOptions(tmp_path))


def test_what_is_said_of_a_cluster_goes_to_its_executor_and_is_refused_on_this_machine(isorun, tmp_path):
    (tmp_path / "train.py").write_text("print('acc: 0.75')")
    words = ("--partition", "gpu", "--time", "2h", "--", "python", "train.py")
    done = isorun("run", "--executor", "coins", *words)
    assert done.returncode == 0, done.stderr
    refused = isorun("run", *words)
    assert refused.returncode == 2
    assert "--partition, --time" in refused.stderr
    assert "--executor slurm or ray" in refused.stderr


@pytest.mark.parametrize("words", [("report", "s.toml"), ("report", "s"), ("run", "s.toml", "--dry-run"), ("status",)])
def test_reading_a_store_behind_a_url_makes_none(isorun, tmp_path, words):
    (tmp_path / "s.toml").write_text('[approaches.a]\ncommand = "true"\n')
    done = isorun(*words, "--store", "shelf://typo")
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]
    if "--dry-run" in words:
        assert "1 of 1 runs are missing" in done.stdout
    else:
        assert done.returncode == 1
        assert "neither a study file" in done.stderr or "there is no store shelf://typo" in done.stderr


def test_a_folder_may_be_given_as_a_url(isorun, tmp_path):
    done = isorun("run", "--name", "once", "--store", f"folder://{tmp_path}/box", "--", "true")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["box"]
    assert list((tmp_path / "box" / "runs").iterdir())
    for place in ("box", "folder://box", f"FOLDER://{tmp_path}/box"):
        status = json.loads(isorun("status", "once", "--store", place, "--json").stdout)
        assert status["finished"] == 1


def test_decide_takes_the_executor_and_the_store_too(isorun):
    words = ("decide", "--executor", "coins", "--store", "shelf://box", "--max-runs", 5, "--metric", "heads:higher")
    done = isorun(*words, "--json", "--", "python", "a.py", "--vs-", "python", "b.py")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs_made"] >= 10


def test_a_source_of_another_distribution_reads_what_isoruns_own_do_not(isorun, tmp_path):
    (tmp_path / "train.py").write_text("print('gauge pressure 1.5')\nprint('gauge other 9')\n")
    sources = '[approaches.a.sources.installed]\ngauge = ["pressure"]\n'
    (tmp_path / "study.toml").write_text(f'[approaches.a]\ncommand = "python train.py"\n{sources}')
    done = isorun("run", "study.toml", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["values"] == {"pressure": 1.5}


def test_a_paper_of_another_distribution_is_listed_and_reproduced(isorun):
    assert "On the tossing of coins" in " ".join(isorun("reproduce").stdout.split())
    done = isorun("reproduce", "coin-paper", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["numbers"] == {"tosses": 2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--executor", "coin"), ["no executor 'coin'", "local, ray, slurm, apart, coins, torn", "mean 'coins'"]),
        (("--executor", "torn"), ["executor 'torn' of the distribution isorun-example cannot be loaded", "nowhere"]),
        (("--store", "box://here"), ["no store 'box'", "folder, postgresql, postgres, shelf"]),
        (("--executor", "coin://fair"), ["no executor 'coin'", "did you mean 'coins'"]),
        (("--executor", "local://here"), ["the executor 'local' takes no URL", "local://here"]),
        (("--store", "folder://"), ["names no folder", "folder:///data/runs"]),
        (
            ("--store", "registry:lab/net@3"),
            ["registry:lab/net@3 is no store", "isorun pull registry:lab/net@3 brings"],
        ),
        (("--store", "postgresql:/lab/isorun"), ["the store is no URL", "postgresql://user@host:5432/database"]),
    ],
)
def test_a_wrong_name_lists_the_known_ones_and_a_broken_part_is_named(isorun, tmp_path, words, said):
    done = isorun("run", *words, "--", "true")
    assert done.returncode == 1
    assert all(text in done.stderr for text in said), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".isorun").exists()


def test_everything_else_works_beside_a_broken_part(isorun):
    assert isorun("run", "--", "true").returncode == 0


def test_a_store_is_opened_by_its_folder(tmp_path):
    with open_store(str(tmp_path / "runs")) as store:
        assert isinstance(store, FolderStore)


def test_where_the_store_lies(tmp_path, monkeypatch):
    monkeypatch.delenv("ISORUN_STORE", raising=False)
    assert store_place(None, tmp_path) == str(tmp_path / ".isorun")
    assert store_place("here", tmp_path) == "here"
    monkeypatch.setenv("ISORUN_STORE", "everywhere")
    assert store_place(None, tmp_path) == "everywhere"
    assert store_place("here", tmp_path) == "here"
    assert runs_folder("here") == Path("here/runs")
    assert runs_folder("postgresql://host/base", tmp_path) == tmp_path / ".isorun" / "runs"


def test_a_study_that_is_not_kept_is_told_with_the_store_that_was_looked_in(tmp_path):
    with pytest.raises(StudyError) as raised, opened("toy", tmp_path / "nowhere"):
        pass
    assert raised.value.found == f"there is no store {tmp_path / 'nowhere'}"
    open_store(str(tmp_path / "empty")).close()
    for source in ("toy", None):
        with pytest.raises(IsorunError) as told, opened(source, str(tmp_path / "empty")):
            pass
        assert told.value.found == f"{tmp_path / 'empty'} keeps no study"
    with pytest.raises(StudyError) as raised, opened("toy"):
        pass
    assert raised.value.found == ""


def test_only_a_store_that_is_a_folder_has_run_folders_inside(tmp_path):
    class Elsewhere(MemoryStore):
        folder = Path("/nowhere/of/ours")

    assert runs_folder(Elsewhere(), tmp_path) == tmp_path / ".isorun" / "runs"
    assert runs_folder(f"folder://{tmp_path}/box") == tmp_path / "box" / "runs"
    with FolderStore(tmp_path / "box") as store:
        assert runs_folder(store) == tmp_path / "box" / "runs"


@pytest.mark.parametrize("ask", [workflow.records, workflow.missing, workflow.analyse, status])
def test_what_a_store_of_others_raises_while_it_is_read_names_it(ask):
    class Torn(MemoryStore):
        def records(self, cell_ids=None):
            raise ConnectionError("the server went away")

        finished = records

    with pytest.raises(PluginError, match=r"the store .*Torn failed[^$]*the server went away"):
        ask(Study("s", approaches={"a": "true"}), store=Torn())


@pytest.mark.parametrize("ask", [workflow.records, workflow.missing, workflow.analyse, status])
def test_a_store_that_cannot_be_reached_is_not_taken_for_one_that_is_not_there(ask, monkeypatch):
    def down(place, *, create):
        raise StoreError(f"{place} does not answer", found="connection refused")

    monkeypatch.setattr(plugins, "load", lambda *_, **__: down)
    with pytest.raises(StoreError, match="connection refused"):
        ask(Study("s", approaches={"a": "true"}), store="down://host/base")


def test_what_a_store_tells_names_the_command_that_looks_at_it_where_there_is_one(tmp_path):
    class Telling(MemoryStore):
        def notes(self):
            return (Note("store-odd", "something is odd"),)

    (condition,) = workflow.store_conditions(Telling())
    assert "isorun store" not in condition.next_step
    with FolderStore(tmp_path / "a box") as store:
        (store.folder / "inbox" / "bbbbbbbbbbbbbbbb-1.json").touch()
        (condition,) = workflow.store_conditions(store)
    assert f"isorun store verify --store '{tmp_path}/a box'" in condition.next_step


def test_a_mistake_in_isoruns_own_parts_is_shown_as_one(monkeypatch):
    monkeypatch.setattr(MemoryStore, "records", lambda *_: {}["no such key"])
    with pytest.raises(KeyError):
        workflow.records(Study("s", approaches={"a": "true"}), store=MemoryStore())


def test_a_folder_that_is_no_store_does_not_become_one_by_being_read(tmp_path):
    (tmp_path / "functions").mkdir()
    assert not is_there(str(tmp_path))
    with pytest.raises(NothingRecorded, match="there is no store"):
        workflow.records(Study("s", approaches={"a": "true"}), store=tmp_path)
    with pytest.raises(StudyError, match="neither"):
        workflow.load("s", store=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["functions"]
    open_store(str(tmp_path)).close()
    assert is_there(str(tmp_path))


def test_a_session_opens_each_once_and_closes_what_it_opened(tmp_path, monkeypatch):
    told = []

    class Telling(InstantExecutor):
        def close(self):
            told.append("closed")
            super().close()

    monkeypatch.setattr(session, "open_executor", lambda *_: told.append("opened") or Telling(lambda _: Computed()))
    with open_session(str(tmp_path)) as opened:
        assert opened.executor is opened.executor
    assert told == ["opened", "closed"]


def test_a_session_leaves_open_what_others_opened():
    executor = InstantExecutor(lambda _: Computed())
    closed = []
    store = MemoryStore()
    store.close = lambda: closed.append("store")
    executor.close = lambda: closed.append("executor")
    with open_session(store, executor) as opened:
        assert (opened.store, opened.executor) == (store, executor)
    assert not closed


@pytest.mark.parametrize(
    ("factory", "said"),
    [(lambda _: "no executor", "subclass of AbstractExecutor"), (lambda: None, "TypeError"), (3, "TypeError")],
)
def test_a_factory_that_makes_no_executor_is_told(monkeypatch, tmp_path, factory, said):
    monkeypatch.setattr(plugins, "load", lambda *_, **__: factory)
    with pytest.raises(PluginError, match=said):
        open_executor("odd", ExecutorOptions(tmp_path))


def test_asking_what_is_installed_waits_until_a_name_is_not_known():
    run = "import sys, isorun.cli.main as m; m.main(['run', '--dry-run', '--', 'true'])"
    code = f"{run}; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
