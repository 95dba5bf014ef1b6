"""What isorun costs around a training: public programs as they are typed, alone and behind `isorun run --`.

Time is CPU time of all processes. That of a training varies by some percent, on a busy machine by more, so that the
difference of two does not show half a percent. What isorun takes is therefore measured part by part:

- beside the training, in all other processes: what the whole command took, less what the training did;
- inside, whatever it trains: what the smallest Python program takes more, from its fork to the end of its interpreter,
  without the worker's last work. It imports those modules of the standard library that the training alone loads, too:
  who loads them first, isorun or the training, takes the same. To this comes what each source file of the training's
  own takes;
- the worker's last work: a `sitecustomize` of ours notes the time that the process has taken when the last exit handler
  of the training has run, and when the worker has written its last event;
- while it trains: how often Python tells audit hooks of something, times what one call takes.

The whole difference of pairs that take turns stands beside it, as a check.

Programs come at fixed commits from git directories OWNER+NAME/repo below $ISORUN_BENCH_SOURCES, else from GitHub;
their environments are interpreters named by $ISORUN_BENCH_TORCH and $ISORUN_BENCH_KERAS, else made.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmark_jobs import ONE_THREAD
from isorun.execution.assemble import read_record
from isorun.study.records import RunState
from peers import peer_environment

_PAIRS: Final = 3
_SMALL_PAIRS: Final = 9
_IMPORTS: Final = 2000
_RUNS: Final = 10
_LINES: Final = 100_000
_MOST_SECONDS: Final = 0.1
_MOST_PERCENT: Final = 0.5
_T_95: Final = (math.nan, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""The 97.5 % points of Student's t by degrees of freedom."""
_PR_SET_CHILD_SUBREAPER: Final = 36

_PROBE: Final = """
import atexit, json, os, sys, time


def _begin(folder):
    noted = {"told": 0}

    def count(_event, _arguments):
        noted["told"] += 1

    def note(moment):
        noted[moment] = time.process_time()
        with open(os.path.join(folder, f"{os.getpid()}.json"), "w") as file:
            json.dump(noted, file)

    def end():
        noted["modules"] = [name for name in sys.modules if name.partition(".")[0] in sys.stdlib_module_names]
        note("ended")
        note("closed")
        worker = sys.modules.get("isorun_worker.recorder")
        if worker is not None:
            finish = worker.Recorder.finish
            worker.Recorder.finish = lambda *arguments: (finish(*arguments), note("closed"))

    if os.environ.get("AROUND_COUNTED"):
        sys.addaudithook(count)
    atexit.register(end)


if os.environ.get("AROUND_NOTES") and "isorun" not in " ".join(sys.orig_argv[1:3]):
    _begin(os.environ["AROUND_NOTES"])
"""

_MNIST: Final = """
import numpy as np
r = np.random.default_rng(0)
images, labels = r.integers(0, 256, (7000, 28, 28), dtype=np.uint8), r.integers(0, 10, 7000).astype(np.uint8)
np.savez("mnist.npz", x_train=images[:6000], y_train=labels[:6000], x_test=images[6000:], y_test=labels[6000:])
"""
_LIGHTNING_MNIST: Final = """
import os, torch
os.makedirs("data/MNIST/complete")
for name, count in (("training.pt", 60000), ("test.pt", 1000)):
    made = torch.randint(0, 256, (count, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (count,))
    torch.save(made, f"data/MNIST/complete/{name}")
"""
_IMAGES: Final = """
import os
import numpy as np
from PIL import Image
r = np.random.default_rng(0)
for split, count in (("train", 40), ("validation", 10)):
    for label in range(4):
        os.makedirs(f"images/{split}/{label}")
        for number in range(count):
            made = r.integers(0, 256, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(made).save(f"images/{split}/{label}/{number}.png")
"""
_LETTERS: Final = """
import pickle
import numpy as np
letters = np.random.default_rng(0).integers(0, 65, 200_000).astype(np.uint16)
letters[:180_000].tofile("data/shakespeare_char/train.bin")
letters[180_000:].tofile("data/shakespeare_char/val.bin")
with open("data/shakespeare_char/meta.pkl", "wb") as file:
    pickle.dump({"vocab_size": 65, "itos": {}, "stoi": {}}, file)
"""
_TORCH: Final = ("torch==2.13.0", "torchvision", "timm", "lightning", "tensorboard", "pandas")
_KERAS: Final = ("tensorflow-cpu", "keras")


@dataclass(frozen=True, slots=True)
class _Program:
    """A public program, as `words` with `{length}` in them. lengths: of the training, and of next to none.

    edits: path, text and what stands in its place, where it would use a GPU, download data, or take no length.
    makes: Python that makes its data where it looks for them.
    """

    name: str
    repository: str
    commit: str
    paths: tuple[str, ...]
    words: str
    lengths: tuple[int, int]
    makes: str
    library: str = "TORCH"
    requirements: tuple[str, ...] = _TORCH
    edits: tuple[tuple[str, str, str], ...] = ()

    def command(self, length: int) -> list[str]:
        """As it is typed, for the interpreter of its environment."""
        named = os.environ.get(f"ISORUN_BENCH_{self.library}")
        python = named or str(peer_environment(f"around-{self.library.lower()}", self.requirements))
        return [python, *self.words.format(length=length).split()]


_GAN: Final = "examples/pytorch/domain_templates/generative_adversarial_net.py"
_CONVNET: Final = "examples/vision/mnist_convnet.py"
_LENGTH: Final = '__import__("os").environ["LENGTH"]'
_PROGRAMS: Final = (
    _Program(
        "timm train.py",
        "huggingface/pytorch-image-models",
        "aa4b5850c1543fa488abf260f18390eda46cf85d",
        ("train.py", "timm"),
        "train.py --data-dir images --model resnet10t --num-classes 4 --input-size 3 64 64 -b 16 --device cpu -j 1 "
        "--epochs {length}",
        (6, 1),
        _IMAGES,
    ),
    _Program(
        "Lightning generative_adversarial_net.py",
        "Lightning-AI/pytorch-lightning",
        "7f0c3436cd3f6ad3753125672024fc415cbcb414",
        (_GAN,),
        _GAN,
        (300, 2),
        _LIGHTNING_MNIST,
        edits=(
            (
                _GAN,
                'accelerator="gpu", devices=1',
                f'accelerator="cpu", max_epochs=1, limit_train_batches=int({_LENGTH})',
            ),
        ),
    ),
    _Program(
        "keras-io mnist_convnet.py",
        "keras-team/keras-io",
        "983729da0fa9d656e955148b0ea17867e71ecffd",
        (_CONVNET,),
        _CONVNET,
        (10, 1),
        _MNIST,
        "KERAS",
        _KERAS,
        (
            (
                _CONVNET,
                "keras.datasets.mnist.load_data()",
                '[[np.load("mnist.npz")[f"{x}_{part}"] for x in "xy"] for part in ("train", "test")]',
            ),
            (_CONVNET, "epochs = 15", f"epochs = int({_LENGTH})"),
        ),
    ),
    _Program(
        "nanoGPT train.py",
        "karpathy/nanoGPT",
        "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
        ("train.py", "model.py", "configurator.py", "config", "data"),
        "train.py config/train_shakespeare_char.py --device=cpu --compile=False --eval_iters=5 --log_interval=1 "
        "--block_size=64 --batch_size=8 --n_layer=4 --n_head=4 --n_embd=128 --max_iters={length}",
        (250, 2),
        _LETTERS,
    ),
)


@dataclass(frozen=True, slots=True)
class _Took:
    """CPU seconds of one run: of all processes, of the training alone, of the worker's last work.

    told: how often Python told an audit hook of something, where that was counted. own: source files of its own.
    modules: those of the standard library that were loaded when the training had ended.
    """

    whole: float
    training: float
    closing: float
    told: int
    own: int
    modules: frozenset[str]

    @property
    def beside(self) -> float:
        return self.whole - self.training


def measure() -> list[dict[str, Any]]:
    _adopt_orphans()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        prices = _prices(Path(name))
        for program in _PROGRAMS:
            folder = Path(name) / program.library / program.repository.partition("/")[2]
            _place(program, folder)
            least, pairs = _measured(program, folder)
            start = _start(Path(name), pairs[0][0].modules)
            rows += _rows(program.name, least, pairs, prices, start)
        rows += [_further_run(Path(name)), *_many_lines(Path(name), prices.command)]
    return rows


def _adopt_orphans() -> None:
    """What outlives its parent becomes a child of this process, so that nothing that a command took is missed."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _place(program: _Program, folder: Path) -> None:
    """The program with its edits and its data."""
    folder.mkdir(parents=True)
    source = os.environ.get("ISORUN_BENCH_SOURCES")
    git = Path(source) / program.repository.replace("/", "+") / "repo" if source else folder / ".git"
    if not source:
        address = f"https://github.com/{program.repository}"
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", address, str(folder)], check=True)
    archive = ["git", "--git-dir", str(git), "archive", "--format=tar", program.commit, *program.paths]
    packed = subprocess.run(archive, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], input=packed, check=True)
    for path, old, new in program.edits:
        text = (folder / path).read_text()
        if old not in text:
            raise SystemExit(f"{path} has no {old!r}")
        (folder / path).write_text(text.replace(old, new))
    subprocess.run([program.command(0)[0], "-c", program.makes], cwd=folder, check=True)


def _measured(program: _Program, folder: Path) -> tuple[float, list[tuple[_Took, _Took]]]:
    """What a study of the program takes beside it, next to nothing long; and it whole, in pairs."""
    long, short = program.lengths
    _run(program.command(short), folder, short, around=True)  # hashes of libraries and sources are kept from here on
    least, pairs = [], []
    for turn in range(_PAIRS):
        least.append(_run(program.command(short), folder, short, around=True).beside)
        pairs.append(_pair(program, folder, long, turn))
    return statistics.median(least), pairs


def _rows(
    name: str, least: float, pairs: Sequence[tuple[_Took, _Took]], prices: _Prices, start: float
) -> list[dict[str, Any]]:
    closing = statistics.median(around.closing for _, around in pairs)
    own, told = pairs[0][1].own, pairs[0][0].told
    importing, hearing = own * prices.importing, told * prices.hearing
    training = statistics.median(alone.whole for alone, _ in pairs)
    reading = max(0.0, statistics.median(around.beside for _, around in pairs) - least)
    check = ", ".join(f"{1000 * (around.training - alone.training):+.0f}" for alone, around in pairs)
    return [
        _row(
            f"{name}: inside its process, whatever its length",
            start + importing + closing,
            _MOST_SECONDS,
            "CPU s a run",
            f"start {1000 * start:.0f} ms ({1000 * prices.start:.0f} ms with modules that the training loads anyway), "
            f"{own} source files {1000 * importing:.0f} ms, "
            f"end {1000 * closing:.0f} ms; {len(pairs)} pairs. A study of one run takes {least:.2f} s beside it",
        ),
        _row(
            f"{name}: what grows with the training",
            100 * (hearing + reading) / training,
            _MOST_PERCENT,
            "% of CPU time",
            f"of {training:.1f} s: {1000 * hearing:.1f} ms for {told:,} calls of the audit hook, "
            f"{1000 * reading:.0f} ms beside it for what it printed. Check: by the pairs its process takes "
            f"{check} ms more",
        ),
    ]


def _pair(program: _Program, folder: Path, length: int, turn: int) -> tuple[_Took, _Took]:
    """Alone and with isorun around it, in turns."""
    command = program.command(length)
    if turn % 2:
        around = _run(command, folder, length, around=True)
        return _run(command, folder, length), around
    alone = _run(command, folder, length)
    return alone, _run(command, folder, length, around=True)


def _run(command: Sequence[str], folder: Path, length: int = 0, *, around: bool = False, counted: bool = True) -> _Took:
    """One run. Alone, what Python tells audit hooks is counted: that takes less than what it is counted for."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "sitecustomize.py").write_text(_PROBE)
        noted = {"PYTHONPATH": name, "AROUND_NOTES": name, "AROUND_COUNTED": "1" if counted and not around else ""}
        env = {**os.environ, **ONE_THREAD, **noted, "LENGTH": str(length), "PL_USE_MOCKED_MNIST": "1"}
        store = Path(name) / "store"
        words = [sys.executable, "-m", "isorun", "run", "--store", str(store), "--"] if around else []
        whole = _cpu_seconds([*words, *command], folder, env)
        records = [read_record(run) for run in (store / "runs").iterdir()] if around else []
        if any(record.state is not RunState.FINISHED for record in records):
            raise SystemExit(f"a run failed: {shlex.join(command)}")
        training = records[0].cpu_seconds if around else whole
        notes = [json.loads(path.read_text()) for path in Path(name).glob("*.json")]
    main = max(notes, key=lambda note: note["ended"])
    own = len(records[0].environment.get("effective", {}).get("sources", ())) if around else 0
    return _Took(whole, training, main["closed"] - main["ended"], main["told"], own, frozenset(main["modules"]))


def _cpu_seconds(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> float:
    """What a command took, with all that it left to this process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}: {done.stderr.decode(errors='replace')[-2000:]}")
    with suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@dataclass(frozen=True, slots=True)
class _Prices:
    """CPU seconds: inside the smallest program, of one source file more, of one call of the audit hook.

    command: beside the smallest program, in a study of one run.
    """

    start: float
    importing: float
    hearing: float
    command: float


def _prices(folder: Path) -> _Prices:
    (folder / "small.py").write_text("print('loss: 0.5')")
    (folder / "imports.py").write_text(
        "import sys\nsys.path[0] = 'made'\nfor n in range(2000): __import__(f'made_{n}')"
    )
    (folder / "hears.py").write_text("import sys\nfor n in range(2_000_000): sys.audit('builtins.id', n)")
    (folder / "made").mkdir()
    for number in range(_IMPORTS):
        (folder / "made" / f"made_{number}.py").write_text("")
    start, command = _taken(folder, "small.py")
    importing = (_taken(folder, "imports.py")[0] - start) / _IMPORTS
    hearing = (_taken(folder, "hears.py")[0] - start) / 2_000_000
    return _Prices(start, max(importing, 0.0), max(hearing, 0.0), command)


def _taken(folder: Path, script: str) -> tuple[float, float]:
    """What isorun takes inside a script, without the worker's last work, and beside it; medians of pairs."""
    inside, beside = [], []
    for _ in range(_SMALL_PAIRS):
        alone = _run([sys.executable, script], folder, counted=False)
        around = _run([sys.executable, script], folder, around=True)
        inside.append(around.training - around.closing - alone.training)
        beside.append(around.beside)
    return statistics.median(inside), statistics.median(beside)


def _start(folder: Path, loaded: frozenset[str]) -> float:
    """What isorun takes inside a program that loads these modules itself, as far as isorun loads them, too."""
    (folder / "small.py").write_text("print('loss: 0.5')")
    needed = _run([sys.executable, "small.py"], folder, around=True).modules & loaded - {"__main__", "sitecustomize"}
    (folder / "loads.py").write_text("".join(f"import {name}\n" for name in sorted(needed)) + "print('loss: 0.5')")
    return _taken(folder, "loads.py")[0]


def _further_run(folder: Path) -> dict[str, Any]:
    """One more run in a study, of the smallest training there is; and the command itself."""
    (folder / "small.py").write_text("print('loss: 0.5')")
    further, first = [], []
    for _ in range(_SMALL_PAIRS):
        alone = _small(folder, [])
        one, several = (_small(folder, ["isorun", "run", "-n", str(runs), "--"]) for runs in (1, 1 + _RUNS))
        further.append((several - one) / _RUNS - alone)
        first.append(one - alone)
    return _row(
        "print('loss: 0.5'): one more run in a study, in all processes",
        statistics.median(further),
        _MOST_SECONDS,
        "CPU s a run",
        f"{_interval(further)} by {_SMALL_PAIRS} that take turns; a study of one run takes {_interval(first)} s "
        "more than the training, most of it the start of the command",
    )


def _small(folder: Path, words: list[str]) -> float:
    with tempfile.TemporaryDirectory() as store:
        around = [sys.executable, "-m", *words[:2], "--store", store, *words[2:]] if words else []
        return _cpu_seconds([*around, sys.executable, "small.py"], folder, os.environ)


_PRINTED: Final = {
    "lines": "print(f'step {n}: loss {1 / (n + 1):.6f}')",
    "bars": "print(f'\\r{n:6}/100000 [=====>....] loss: {1 / (n + 1):.4f}', end='', flush=True)",
}


def _many_lines(folder: Path, command: float) -> list[dict[str, Any]]:
    """A training that prints a hundred thousand times, without anything else to do."""
    rows = []
    for kind, code in _PRINTED.items():
        (folder / "prints.py").write_text(f"for n in range({_LINES}): {code}")
        took = [_run([sys.executable, "prints.py"], folder, around=True) for _ in range(_PAIRS)]
        alone = [_run([sys.executable, "prints.py"], folder, counted=False) for _ in range(_PAIRS)]
        beside = statistics.median(one.beside for one in took) - command
        inside = statistics.median(one.training for one in took) - statistics.median(one.training for one in alone)
        each = 1e6 * (beside + inside) / _LINES
        rows.append(
            _row(
                f"{_LINES:,} {kind} printed",
                each,
                "",
                "µs each",
                f"{beside:.2f} s beside the training, {inside:.2f} s inside: {_MOST_PERCENT} % where a training prints "
                f"{_MOST_PERCENT / 100 / (each / 1e6):,.0f} a second",
            )
        )
    return rows


def _interval(values: Sequence[float]) -> str:
    half = _T_95[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.fmean(values):.3f} ± {half:.3f} (95 %)"


def _row(name: str, measured: float, target: float | str, unit: str, detail: str) -> dict[str, Any]:
    ok = target == "" or (isinstance(target, float) and measured <= target)
    shown = f"{detail}; load of the machine {os.getloadavg()[0]:.0f}"
    return {"name": name, "measured": measured, "target": target, "unit": unit, "ok": ok, "detail": shown}


if __name__ == "__main__":
    for row in measure():
        print(row, flush=True)
