"""What every command prints with `--json`, asked for real: one small training, in a folder of its own, in a minute.

The training is a few lines of plain Python, so that nothing but isorun is needed; a registry is served for the commands
that talk to one. `answers` gives each command's answers under the words that were typed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

__all__ = ["answers"]

_SOURCE: Final = Path(__file__).resolve().parents[2] / "src"
_TRAIN: Final = """\
import random
import sys

import isorun

rate = float(sys.argv[1])
accuracy = 0.0
for epoch in range(4):
    accuracy = 0.8 + 0.02 * epoch + rate / 10 + random.gauss(0, 0.01)
    isorun.log(epoch=epoch, loss=1 - accuracy, acc=accuracy)
isorun.digest("weights.final", [accuracy])
guessed = [random.randrange(3) for _ in range(20)]
isorun.result(acc=accuracy, predictions=guessed, labels=[place % 3 for place in range(20)])
"""
_STUDY: Final = """\
name = "base"
levels = ["default", "fixed-seed"]
seeds = [1, 2]
repeats = 2
[approaches.net]
command = "python train.py 0.1"
[metrics.acc]
direction = "higher"
"""
_PAIR: Final = """\
name = "pair"
levels = ["fixed-seed"]
seeds = [1, 2, 3, 4, 5]
[approaches.one]
command = "python train.py 0.1"
[approaches.two]
command = "python train.py 0.5"
[metrics.acc]
direction = "higher"
"""
_FACTORS: Final = """\
name = "factored"
levels = ["fixed-seed"]
seeds = [1, 2, 3]
[approaches.net]
command = "python train.py 0.1"
[metrics.acc]
direction = "higher"
[factors]
hash = { variable = "PYTHONHASHSEED", values = ["0", "1"] }
"""
_SEARCH: Final = """\
name = "searched"
[approaches.net]
command = "python train.py {config.rate}"
[metrics.acc]
direction = "higher"
[search]
trials = 4
engine = "random"
[search.space]
rate = { float = [0.1, 0.9] }
"""
_RUNS: Final = {
    "base": (0.861, 0.847, 0.854, 0.844, 0.842, 0.850, 0.849, 0.859, 0.837, 0.841, 0.846, 0.843),
    "new": (0.867, 0.851, 0.871, 0.853, 0.841, 0.866, 0.873, 0.868, 0.822, 0.847, 0.873, 0.846),
    "other": (0.853, 0.841, 0.858, 0.848, 0.838, 0.852, 0.851, 0.851, 0.830, 0.840, 0.852, 0.840),
}
_OF_TABLE: Final = ("runs.csv", "--value", "acc", "--by", "model")
_FINE: Final = (0, 3)
"""Exit codes of an answer: fine, and a difference was found."""

Answer = tuple[str, Any]
"""The words of a command, and what it printed."""


def answers() -> Iterator[Answer]:
    """Every command's answers, in the order of the command line reference as far as one needs what another left."""
    with tempfile.TemporaryDirectory() as made:
        folder = _Folder(Path(made))
        folder.lay_out()
        yield from _tables(folder)
        yield from _running(folder)
        yield from _looking(folder)
        yield from _deciding(folder)
        yield from _packages(folder)
        yield from _stores(folder)
        yield from _registry(folder)


class _Folder:
    """Where commands are typed, with settings of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("ISORUN_")} | {
            "PYTHONPATH": str(_SOURCE),
            "XDG_CONFIG_HOME": str(path / "config"),
            "XDG_CACHE_HOME": str(path / "cache"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def lay_out(self) -> None:
        """The training, its studies, and a table of runs."""
        for name, text in (("base", _STUDY), ("pair", _PAIR), ("factored", _FACTORS), ("searched", _SEARCH)):
            (self.path / f"{name}.toml").write_text(text)
        (self.path / "train.py").write_text(_TRAIN)
        rows = [f"{model},{seed},{acc}" for model, runs in _RUNS.items() for seed, acc in enumerate(runs, start=1)]
        (self.path / "runs.csv").write_text("\n".join(["model,seed,acc", *rows]) + "\n")

    def printed(self, *words: str, given: str = "") -> str:
        """What a command prints; an error where it fails."""
        command = [sys.executable, "-m", "isorun", *words]
        done = subprocess.run(
            command, cwd=self.path, env=self.environment, input=given, capture_output=True, text=True, check=False
        )
        if done.returncode not in _FINE:
            raise RuntimeError(f"isorun {' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def asked(self, name: str, *words: str, given: str = "") -> Answer:
        """The answer of a command, under the words that name it."""
        split = words.index("--") if "--" in words else len(words)
        told = self.printed(*words[:split], "--json", *words[split:], given=given)
        return f"isorun {name}", json.loads(told)

    def git(self, *words: str) -> None:
        """One step in a repository of its own."""
        who = ("-c", "user.name=isorun", "-c", "user.email=isorun@example.org", "-c", "commit.gpgsign=false")
        program = shutil.which("git") or "git"
        subprocess.run([program, *who, *words], cwd=self.path, env=self.environment, check=True, capture_output=True)


def _tables(folder: _Folder) -> Iterator[Answer]:
    """Questions about a table."""
    yield folder.asked("summarize", "summarize", *_OF_TABLE)
    sides = ("--a", "new", "--b", "base", "--pair", "seed")
    yield folder.asked("compare", "compare", *_OF_TABLE, *sides, "--also", "aso")
    yield folder.asked("mixed", "mixed", "runs.csv", "acc ~ model + (1|seed)")
    yield folder.asked("power", "power", *_OF_TABLE[:3], "--where", "model=base", "--difference", "0.01")
    yield folder.asked("claim", "claim", "--model", "wrn-28-10", "--data", "cifar100", "--gain", "0.8")
    yield folder.asked("claim --list", "claim", "--list")
    yield folder.asked("rank", "rank", *_OF_TABLE, "--repetitions", "200")
    yield folder.asked("agree", "agree", *_OF_TABLE, "--pair", "seed", "--a", "base", "--b", "new")


def _running(folder: _Folder) -> Iterator[Answer]:
    """What makes runs, or tells of those that are being made."""
    yield folder.asked("run --dry-run", "run", "base.toml", "--dry-run")
    yield folder.asked("run --queue", "run", "base.toml", "--queue")
    yield folder.asked("worker", "worker", "--study", "base")
    yield folder.asked("run", "run", "pair.toml")
    yield folder.asked("status", "status", "pair.toml")
    yield folder.asked("stop", "stop")
    yield folder.asked("scan", "scan", "--", "python", "train.py", "0.1")
    (folder.path / "train.log").write_text("epoch 1 loss 0.5 acc 0.81\nepoch 2 loss 0.4 acc 0.84\n")
    yield folder.asked("scan LOG", "scan", "train.log")


def _looking(folder: _Folder) -> Iterator[Answer]:
    """What is known of runs."""
    yield folder.asked("report", "report", "base.toml")
    yield folder.asked("doctor", "doctor", "base.toml")
    folder.printed("run", "--name", "broken", "--", "python", "train.py", "nan")
    yield folder.asked("doctor", "doctor", "broken")
    yield folder.asked("audit", "audit", "--seconds", "5", "--", "python", "train.py", "0.1")
    first, second = sorted(path.name for path in (folder.path / ".isorun" / "runs").iterdir())[:2]
    yield folder.asked("env describe", "env", "describe", first)
    yield folder.asked("env diff", "env", "diff", first, second)
    yield folder.asked("compare", "compare", "pair.toml")
    folder.printed("run", "factored.toml")
    yield folder.asked("factors", "factors", "factored.toml")
    folder.printed("run", "searched.toml")
    yield folder.asked("repair", "repair", "searched.toml")
    yield folder.asked("data list", "data", "list")
    yield folder.asked("reproduce", "reproduce")
    yield folder.asked("reproduce --dry-run", "reproduce", "dream", "--only", "case-1", "--dry-run")
    (folder.path / "kept.json").write_text(json.dumps(_KEPT))
    yield folder.asked("reproduce --from", "reproduce", "--from", "kept.json")


def _deciding(folder: _Folder) -> Iterator[Answer]:
    """What makes runs until something is known."""
    yield folder.asked("decide", "decide", "pair.toml", "--max-runs", "8")
    folder.printed("run", "base.toml", "--store", "before")
    yield folder.asked("check", "check", "base.toml", "--baseline", "before", "--margin", "5", "--no-run")
    where = ("--where", "level=default", "--anyway")
    yield folder.asked("compare --baseline", "compare", "base.toml", "--baseline", "before", *where)
    training = ("--", "python", "train.py", "0.1")
    yield folder.asked("price", "price", "--runs", "4", "--seconds", "30", *training)
    folder.git("init", "--quiet")
    folder.git("add", "train.py")
    folder.git("commit", "--quiet", "-m", "first")
    (folder.path / "train.py").write_text(_TRAIN.replace("0.8 +", "0.5 +"))
    folder.git("commit", "--quiet", "-am", "second")
    yield folder.asked("bisect", "bisect", "HEAD~1..HEAD", "--metric", "acc:higher", "--max-runs", "8", *training)
    yield folder.asked("bisect --dry-run", "bisect", "HEAD~1..HEAD", "--dry-run", *training)
    folder.git("checkout", "--quiet", "HEAD~1", "--", "train.py")


def _packages(folder: _Folder) -> Iterator[Answer]:
    """A study as a file, and what is made of it."""
    yield folder.asked("keys", "keys", "new")
    yield folder.asked("pack", "pack", "base.toml", "-o", "base.isorun", "--snapshot")
    yield folder.asked("pack --dry-run", "pack", "base.toml", "--dry-run")
    yield folder.asked("verify", "verify", "base.isorun")
    first = min(path.name for path in (folder.path / ".isorun" / "runs").iterdir())
    yield folder.asked("replay", "replay", first, "--anyway")
    yield folder.asked("replicate", "replicate", "base.isorun", "-n", "2", "--folder", "again", "--yes", "--anyway")
    yield folder.asked("export", "export", "csv", "base", "--to", "exported")
    yield folder.asked("import", "import", "csv:runs.csv", "--name", "imported", "--metric", "acc:higher")


def _stores(folder: _Folder) -> Iterator[Answer]:
    """Stores themselves."""
    yield folder.asked("store verify", "store", "verify")
    yield folder.asked("store copy", "store", "copy", ".isorun", "copied")
    yield folder.asked("store repair", "store", "repair", "--store", "copied")
    yield folder.asked("store share", "store", "share", "--store", "copied")
    yield folder.asked("store redact", "store", "redact", "LANG", "--dry-run")


@contextmanager
def _served(folder: _Folder) -> Iterator[tuple[Any, str]]:
    """What a server with a new registry tells, and its one-time token."""
    command = [sys.executable, "-m", "isorun", "serve", "--json", "--port", "0", "--registry", "registry"]
    with (folder.path / "served.log").open("w+") as log:
        server = subprocess.Popen(
            command, cwd=folder.path, env=folder.environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert server.stdout is not None
        try:
            told = ""
            while not told.endswith("}\n"):
                line = server.stdout.readline()
                if not line:
                    raise RuntimeError((folder.path / "served.log").read_text())
                told += line
            token = None
            while token is None:  # it is printed after the address
                token = re.search(r"isorun_setup_\S+", (folder.path / "served.log").read_text())
            yield json.loads(told), token.group()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
            server.stdout.close()


def _registry(folder: _Folder) -> Iterator[Answer]:
    """Commands that talk to a registry."""
    with _served(folder) as (told, token):
        yield "isorun serve", told
        yield folder.asked("login", "login", told["url"], "--set-up", "root", given=f"{token}\n")
        yield folder.asked("push", "push", "base.isorun", "root/toy/base")
        yield folder.asked("search", "search")
        yield folder.asked("pull", "pull", "registry:root/toy/base@1", "-o", "pulled.isorun")
        for action in ("show root/toy/base", "users", "tokens", "audit", "user bob", "token", "publish root/toy/base"):
            yield folder.asked(f"registry {action.split()[0]}", "registry", *action.split())
        yield folder.asked("registry yank", "registry", "yank", "root/toy/base@1", "--reason", "wrong data")
    yield folder.asked("registry verify", "registry", "verify", "registry")
    yield folder.asked("registry sweep", "registry", "sweep", "registry")


_KEPT: Final = {
    "paper": "ase20",
    "title": "A paper",
    "scale": "cpu",
    "only": ["lenet1"],
    "runs": {"finished": 2, "failed": 0, "stopped": ""},
    "machines": [{"os": "Debian", "python": "3.11", "torch": "2.13", "cpu": "AMD EPYC", "runs": 2}],
    "verdict": ["It ran."],
    "tables": [{"name": "one", "title": "Table 1", "columns": ["study"], "rows": [["a"]], "notes": ["A note."]}],
    "figures": [{"name": "one", "sentence": "It varies."}],
    "scaled_down": ["all of it"],
    "not_had": ["data"],
    "not_attempted": ["Figure 1: a drawing."],
    "warnings": [],
    "numbers": {},
    "page": {"version": 1, "verdict": ["It ran."]},
}
"""A reproduction as it is kept: what a paper trains takes longer than all of this."""
