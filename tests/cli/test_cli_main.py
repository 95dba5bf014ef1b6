"""The overview, its speed, and what all commands share."""

import subprocess
import sys
import time

import pytest

from isorun import session, workflow
from isorun.cli.main import COMMANDS, main
from isorun.store.folder import FolderStore
from isorun.study.design import changed, load_study
from isorun.testing.instant_executor import Computed, InstantExecutor


def test_help_names_every_command(shell):
    text = shell("--help").stdout
    assert [name for name in COMMANDS if f"\n    {name}" not in text] == []
    assert shell().stdout == text


def test_help_is_fast_because_heavy_parts_load_when_used():
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "isorun", "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.15 * 2  # twice the promise, for a busy machine; the benchmark holds the promise itself


def test_importing_isorun_loads_neither_numpy_nor_a_framework():
    code = (
        "import sys, isorun, isorun.cli.main; print(sorted({'numpy', 'scipy', 'torch', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


TABLE = "model,seed,acc\n" + "".join(f"{'ab'[n % 2]},{n // 2},{0.8 + n % 7 / 100}\n" for n in range(16))


@pytest.mark.parametrize(
    "words",
    [
        ("run", "study.toml", "--dry-run", "--json"),
        ("run", "--", "no-such-program"),
        ("compare", "runs.csv", "--value", "acc", "--by", "model"),
        ("status", "--sotre", "x"),
        ("report", "nothing.toml"),
        ("scan", "-"),
    ],
    ids=" ".join,
)
def test_what_is_forked_for_the_other_tests_answers_as_a_fresh_process_does(words, toy):
    toy.write("runs.csv", TABLE)
    fresh, forked = (toy(*words, stdin="epoch 1 acc: 0.5\n", fresh=is_fresh) for is_fresh in (True, False))
    assert vars(forked) == vars(fresh)
    assert fresh.stdout + fresh.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name, shell):
    done = shell(name, "--help", fresh=True)
    assert done.returncode == 0
    assert "--json" in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_an_unknown_command_lists_the_known_ones(shell):
    done = shell("rnu")
    assert done.returncode == 2
    assert "'run'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(toy):
    command = f"{sys.executable} -m isorun run study.toml --dry-run | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=toy.folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_version(shell):
    assert shell("--version").stdout.startswith("isorun 0.")


@pytest.mark.long
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_files_that_are_closed_stop_no_command(toy, closed):
    for command in ("run -- python train.py", "report", "--help"):
        line = f'"{sys.executable}" -m isorun {command} {closed}'
        done = subprocess.run(["sh", "-c", line], cwd=toy.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert "1 finished" in toy("run", "--seed", "2", "--level", "fixed-seed", "--", "python", "train.py").stdout


def test_what_an_encoding_lacks_is_printed_as_a_question_mark(toy):
    toy("run", "-n", "2", "--", "python", "train.py")
    done = toy("report", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert " ? " in done.stdout


BOTH = ["store", "executor"]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """What is opened from now on, in a folder with a study, four runs of it, and the same study kept by name."""
    monkeypatch.chdir(tmp_path)
    approaches = "".join(f'approaches.{name}.command = "python a.py {name}"\n' for name in "xy")
    (tmp_path / "study.toml").write_text(f'{approaches}repeats = 2\nmetrics.acc = "higher"\n')
    study = load_study(tmp_path / "study.toml")
    executor = InstantExecutor(lambda job: Computed({"acc": 0.9 + job.seed % 997 / 10_000}), 2)
    with FolderStore(tmp_path / ".isorun") as store:
        workflow.remember(changed(study, name="kept", repeats=4), store=store)
        workflow.run(study, store=store, executor=executor)
    found = []
    original = session.open_store

    def open_store(*arguments, **options):
        found.append("store")
        return original(*arguments, **options)

    def open_executor(*_):
        found.append("executor")
        return executor

    for module in (session, workflow):
        monkeypatch.setattr(module, "open_store", open_store)
    monkeypatch.setattr(session, "open_executor", open_executor)
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run -- python a.py", BOTH),
        ("run --name mine -- python a.py --password hunter2", BOTH),
        ("run study.toml", ["store"]),
        ("run kept", BOTH),
        ("run kept --json", BOTH),
        ("decide --max-runs 5 -- python a.py 1 --vs- python a.py 2", BOTH),
        ("decide study.toml --max-runs 5", BOTH),
        ("decide kept --max-runs 5", BOTH),
        ("report", ["store"]),
        ("report kept", ["store"]),
        ("report study.toml", ["store"]),
        ("compare kept", ["store"]),
        ("compare study.toml", ["store"]),
        ("summarize kept", ["store"]),
        ("status kept", ["store"]),
    ],
)
def test_a_command_opens_its_store_once_and_its_executor_once(words, expected, opened, capsys):
    assert main(words.split()) == 0, capsys.readouterr().err
    assert opened == expected
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("repiar sqlite:///s.db", "next:    isorun repair sqlite:///s.db"),
        ("Report study.toml", "did you mean 'report'"),
        ("nothing-like-it", "next:    isorun --help"),
        ("repair sqlite:///s.db --contnue 5", "did you mean --continue?"),
        ("run --sead=3 -- true", "next:    isorun run --seed"),
        ("run --n 16 -- true", "did you mean -n?"),
        ("repair s --zzzzzz", "next:    isorun repair --help"),
    ],
)
def test_a_mistyped_command_or_option_names_the_one_that_is_meant(words, said, capsys):
    try:
        code = main(words.split())
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", ["run --repeat 2 -- true", "report --stor s", "search --mos 3 x"])
def test_an_option_is_never_guessed_from_its_first_letters(words, capsys):
    with pytest.raises(SystemExit):
        main(words.split())
    assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("summarize r.csv --value acc --by task --where model=a --where model=b", "--where says two things of 'model'"),
        ("compare s.toml --baseline b --baseline-where level=a --baseline-where level=b", "--baseline-where says two"),
        ("run --metric acc:lower --metric acc:higher -- true", "--metric says two things of 'acc'"),
        ("import csv:r.csv --metric acc:lower --metric acc:higher", "--metric says two things of 'acc'"),
    ],
)
def test_of_two_things_that_are_said_of_one_name_none_is_chosen(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('[approaches.a]\ncommand = "true"\n')
    (tmp_path / "r.csv").write_text("model,task,acc\na,t,1\nb,t,2\n")
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", ["run --time-limit ² -- true", "worker .isorun --idle ²"])
def test_a_digit_that_is_no_number_is_no_duration(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    FolderStore(tmp_path / ".isorun").close()
    assert main(words.split()) == 1
    assert "it is not a duration" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["store", "env", "registry"])
def test_only_a_word_that_has_to_be_there_is_asked_for(command, capsys):
    with pytest.raises(SystemExit):
        main([command])
    assert capsys.readouterr().err.splitlines()[0].lower().endswith("are required: action")


@pytest.mark.parametrize(("action", "option"), [("verify", "--store"), ("repair", "--store"), ("share", "--group")])
def test_a_store_that_is_named_without_its_option_is_answered_with_it(tmp_path, monkeypatch, capsys, action, option):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".isorun").mkdir()
    assert main(["store", action, "other"]) == 2
    assert f"next:    isorun store {action} {option} " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["env", "describe", "--latex", "ab"], "there is no run 'ab'"),
        (["env", "diff", "ab", "--json", "cd"], "there is no run 'ab'"),
        (["store", "redact", "--store", "s", "NAME"], "NAME: nothing is recorded of it"),
    ],
)
def test_an_option_may_stand_between_names(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    for place in (".isorun", "s"):
        FolderStore(tmp_path / place).close()
    main(words)
    shown = capsys.readouterr()
    assert told in shown.out + shown.err


def test_a_folder_that_is_gone_is_said_to_be(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("PWD", str(gone))
    gone.rmdir()
    assert main(["run", "--", "python", "t.py"]) == 1
    told = capsys.readouterr().err
    assert "does not exist any more" in told
    assert f"nothing at {gone}" in told
    assert "disk" not in told


def test_scan_of_what_is_no_log_says_what_to_type(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.py").write_text("print('acc')\n")
    assert main(["scan", "t.py"]) == 0
    assert "next: isorun scan -- python t.py" in capsys.readouterr().out
    assert main(["scan", str(tmp_path)]) == 1
    assert "is a folder" in capsys.readouterr().err


def test_what_belongs_to_somebody_else_is_named_with_who_can_change_that(monkeypatch, capsys):
    from isorun.cli import status

    def refused(_):
        raise PermissionError(13, "Permission denied", "lab/store.sqlite")

    monkeypatch.setattr(status, "execute", refused)
    monkeypatch.setattr("os.dup2", lambda *_: None)
    assert main(["status"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("isorun: lab/store.sqlite may not be used by you\n")
    assert "isorun store share" in said
