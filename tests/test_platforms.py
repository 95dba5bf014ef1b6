"""Other platforms than Linux, as far as one can tell here: what works does, and what does not is said at once."""

import json
import subprocess
import sys
from contextlib import closing

import pytest

from isorun.study.design import Study
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.workflow import run

LACKING = {
    # What CPython does not have there, by its documentation; numbers and frameworks are loaded as they are here.
    "darwin": """
for name in ("sched_getaffinity", "sched_setaffinity", "memfd_create", "pidfd_open", "getrandom", "posix_fadvise",
             "posix_fallocate", "O_TMPFILE", "O_PATH", "splice", "eventfd", "copy_file_range", "getxattr", "listxattr"):
    if hasattr(os, name): delattr(os, name)
import fcntl, select, signal, socket, resource
for module, names in {fcntl: ("F_SETPIPE_SZ", "F_GETPIPE_SZ"), select: ("epoll",), socket: ("SO_PEERCRED",),
                      signal: ("sigtimedwait", "sigwaitinfo", "pidfd_send_signal")}.items():
    for name in names:
        if hasattr(module, name): delattr(module, name)
""",
    "win32": """
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty"): sys.modules[name] = None
for name in ("sched_getaffinity", "sched_setaffinity", "memfd_create", "pidfd_open", "getrandom", "fork", "killpg",
             "getuid", "geteuid", "setsid", "uname", "O_TMPFILE", "O_PATH", "chown", "mkfifo", "waitid"):
    if hasattr(os, name): delattr(os, name)
""",
}
START = (
    "import os, sys, numpy, scipy.special, scipy.stats, subprocess, multiprocessing, tempfile, pathlib, socket, csv\n"
)
THERE = """
sys.platform = {platform!r}
import contextlib, io, json, pathlib
from isorun.cli.main import main
told = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code or 0
    told.append([code, out.getvalue(), err.getvalue()])
pathlib.Path("told.json").write_text(json.dumps(told))
"""
COMMANDS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "run --help": ["run", "--help"],
    "compare": ["compare", "runs.csv", "--value", "test_acc", "--by", "model"],
    "report": ["report", "net"],
    "run study": ["run", "study.toml"],
    "run": ["run", "--", "python", "train.py"],
    "decide": ["decide", "--", "python", "a.py", "--vs-", "python", "b.py"],
    "price": ["price", "--", "python", "train.py"],
    "audit": ["audit", "--", "python", "train.py"],
}
REFUSED = ("run study", "run", "decide", "price", "audit")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store and a table, both made on Linux."""
    folder = tmp_path_factory.mktemp("elsewhere")
    lines = [f"{model},{0.9 + k / 1000 + (model == 'new') / 10}" for model in ("base", "new") for k in range(6)]
    (folder / "runs.csv").write_text("\n".join(["model,test_acc", *lines]) + "\n")
    (folder / "train.py").write_text("")
    (folder / "study.toml").write_text('[approaches.a]\ncommand = "python train.py"\n')
    study = Study("net", approaches={"a": "python train.py"}, repeats=6, folder=str(folder))
    with closing(InstantExecutor(lambda job: Computed({"test_acc": 0.9 + job.cell.repeat / 100}))) as executor:
        run(study, store=str(folder / ".isorun"), executor=executor, keep_study=True)
    return folder


@pytest.fixture(scope="module", params=LACKING)
def there(request, folder):
    """The platform, and what each command says on it: exit code, output, errors."""
    program = START + LACKING[request.param] + THERE.format(platform=request.param)
    words = [sys.executable, "-c", program, json.dumps(list(COMMANDS.values()))]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return request.param, dict(zip(COMMANDS, json.loads((folder / "told.json").read_text()), strict=True))


def test_help_version_and_questions_on_tables_work_everywhere(there):
    _, told = there
    assert [told[name][0] for name in ("--version", "--help", "run --help")] == [0, 0, 0]
    code, out, err = told["compare"]
    assert (code, out.startswith("new is better")) == (0, True), err


@pytest.mark.parametrize("name", REFUSED)
def test_runs_are_refused_at_the_start_with_what_works_instead(there, name):
    platform, told = there
    code, _, err = told[name]
    assert (code, "needs Linux" in err.splitlines()[0], "Traceback" in err) == (1, True, False), err
    assert f"found:   this is {platform}" in err


def test_a_store_is_reported_on_macos_and_refused_with_a_reason_on_windows(there):
    platform, told = there
    code, out, err = told["report"]
    if platform == "darwin":
        assert (code, "92.5 %" in out) == (0, True), err
    else:
        assert (code, "a store in a folder needs Linux" in err) == (1, True), err
