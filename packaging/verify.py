"""Are the wheel and the source distribution whole, and does each extra do what it promises, freshly installed?

    make test-packages                            all of it: environments of some GB, from a registry
    python packaging/verify.py --only core figures

The distributions are built twice and have to be the same bytes. The wheel has to hold every file of src/isorun that git
knows. Then it is installed alone and with each extra in an environment of its own, and the thing that the extra is for
is done; by pipx and uvx, too; and alone by every Python from 3.11 to 3.13 that is here.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Generator, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
TRAINING = "import random\nprint('test_acc', 0.9 + random.random() / 50)\n"
TABLE = "model,acc\n" + "".join(f"{m},{0.9 + k / 100 + (m == 'new') / 5}\n" for m in ("base", "new") for k in range(6))
TORCH = "import torch\nimport isorun\nmodel = torch.nn.Linear(2, 2)\nisorun.result(test_acc=0.9, weights=model)\n"
OPTUNA = """
import optuna
study = optuna.create_study(storage="sqlite:///s.db", study_name="s", direction="minimize")
study.optimize(lambda trial: trial.suggest_float("x", 0.01, 1) ** 2, n_trials=12)
"""
ON_TORCH = "import os; os.environ['KERAS_BACKEND'] = 'torch'"
PARQUET = "import pandas; pandas.read_csv('runs.csv').to_parquet('runs.parquet')"

# What each extra is for, as programs ("python") and commands of isorun, and what has to be said (an exit of 1: "!").
PROMISES: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "core": [
        (("isorun", "--version"), "isorun "),
        (("isorun", "--help"), "commands:"),
        (("isorun", "run", "-n", "3", "--name", "core", "--", "python", "train.py"), "3 finished"),
        (("isorun", "report", "core"), "test_acc"),
        (("isorun", "compare", "runs.csv", "--value", "acc", "--by", "model"), "new is better"),
        (("isorun", "compare", "runs.csv", "--value", "acc", "--by", "model", "--figure", "f.pdf"), "!isorun[figures]"),
    ],
    "figures": [
        (("isorun", "compare", "runs.csv", "--value", "acc", "--by", "model", "--figure", "f.pdf"), "new is better"),
    ],
    "tables": [
        (("python", "-c", PARQUET), ""),
        (("isorun", "summarize", "runs.parquet", "--value", "acc", "--by", "model"), "new"),
    ],
    "torch": [
        (("isorun", "run", "-n", "2", "--level", "fixed-seed", "--name", "t", "--", "python", "net.py"), "2 finished"),
        (("isorun", "report", "t"), "same weights"),
    ],
    "demo": [(("isorun", "run", "-n", "1", "--", "python", str(ROOT / "examples/ci/train.py")), "1 finished")],
    "zoo": [(("isorun", "reproduce"), "ase20"), (("python", "-c", "import PIL, sklearn, isorun.zoo.models.lenet"), "")],
    "postgres": [(("isorun", "report", "s", "--store", "postgresql://127.0.0.1:1/x"), "!127.0.0.1")],
    "sign": [
        (("isorun", "keys", "new", "--out", "lab.key"), "ed25519"),
    ],
    "server": [(("python", "-c", "import isorun.serving.app"), "")],
    "ray": [(("isorun", "run", "-n", "2", "--executor", "ray", "--", "python", "train.py"), "2 finished")],
    "mlflow": [
        (("isorun", "run", "-n", "2", "--name", "m", "--", "python", "train.py"), "2 finished"),
        (("isorun", "export", "mlflow", "m", "--to", "sqlite:///mlflow.db"), "2 runs"),
    ],
    "aim": [(("python", "-c", "import aim"), "")],
    "optuna": [(("python", "optuna_search.py"), ""), (("isorun", "repair", "sqlite:///s.db"), "12 trials")],
    "keras-tuner": [(("python", "-c", "import isorun.repair.engines.keras_tuner"), "")],
    "autokeras": [(("python", "-c", f"{ON_TORCH}; import isorun.repair.engines.autokeras"), "")],
}
# Keras computes with a framework that is the user's choice.
BESIDE = {"autokeras": "torch"}


def main() -> int:
    """Verify, and say what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="core, the name of an extra, built, tools")
    parser.add_argument("--wheel", type=Path, help="a wheel that is built already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="isorun-packages-") as place:
        failures = list(_verified(Path(place), options.only, options.wheel))
    for failure in failures:
        print(f"FAILED {failure}")
    print("all hold" if not failures else f"{len(failures)} do not hold")
    return 1 if failures else 0


def _verified(place: Path, only: list[str] | None, wheel: Path | None) -> Iterator[str]:
    tools = Environment(place / "tools", sys.executable)
    if wheel is None or not only or "built" in only:
        tools.install("build")
        wheel = yield from _built(place, tools)
    for name, steps in PROMISES.items():
        if not only or name in only:
            for python in _pythons() if name == "core" else [sys.executable]:
                yield from _kept(place, name, steps, python, wheel.resolve())
    if not only or "tools" in only:
        yield from _by_tools(place, wheel.resolve())


class Environment:
    """A virtual environment of its own."""

    def __init__(self, folder: Path, python: str) -> None:
        self.bin = folder / "bin"
        subprocess.run([python, "-m", "venv", str(folder)], check=True)

    def install(self, *what: str) -> None:
        """Install from the registry that pip knows."""
        words = [str(self.bin / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
        subprocess.run(words, check=True)

    def run(self, *words: str, cwd: Path, more: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """A program of the environment, with its other programs in the path."""
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "NO_COLOR": "1", **(more or {})}
        env.pop("PYTHONPATH", None)
        words = (str(self.bin / words[0]), *words[1:])
        return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=900)


def _built(place: Path, tools: Environment) -> Generator[str, None, Path]:
    """Build twice from what git knows: the same bytes, and every file in it. Gives the wheel."""
    source = place / "source"
    files = subprocess.run(
        [str(shutil.which("git")), "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    names = [name for name in files.split("\0") if name]
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    digests = []
    for number in ("first", "second"):
        done = tools.run("python", "-m", "build", "--outdir", str(place / number), cwd=source, more=_EPOCH)
        if done.returncode:
            raise SystemExit(f"cannot be built:\n{done.stdout}{done.stderr}")
        made = sorted((place / number).iterdir())
        digests.append([(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in made])
    print(f"built twice: {digests[0]}")
    if digests[0] != digests[1]:
        yield f"built twice, and not the same: {digests}"
    made = sorted((place / "first").iterdir())
    wheel = next(path for path in made if path.suffix == ".whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {name.removeprefix("src/") for name in names if name.startswith("src/isorun/")}
    yield from (f"the wheel lacks {name}" for name in sorted(wanted - held))
    extra = sorted(name for name in held - wanted if ".dist-info/" not in name)
    yield from (f"the wheel holds {name}, which git does not know" for name in extra)
    for words in (("twine", "check", "--strict", *map(str, made)), ("check-wheel-contents", str(wheel))):
        try:
            tools.install(words[0])
        except subprocess.CalledProcessError:
            print(f"{words[0]}: not looked at, it cannot be installed here")
            continue
        done = tools.run(*words, cwd=place)
        print(f"{words[0]}: {'holds' if not done.returncode else 'FAILED'}")
        if done.returncode:
            yield f"{words[0]}: {done.stdout}{done.stderr}"
    return wheel


_EPOCH = {"SOURCE_DATE_EPOCH": "1767225600"}


def _pythons() -> list[str]:
    """Those that begin: a shim of a version manager may stand for a version that is not there."""
    found = {version: path for version in PYTHONS if (path := shutil.which(f"python{version}")) and _begins(path)}
    for version in PYTHONS:
        print(f"python{version}: {found.get(version, 'not here')}")
    return list(found.values()) or [sys.executable]


def _begins(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def _kept(place: Path, name: str, steps: list[tuple[tuple[str, ...], str]], python: str, wheel: Path) -> Iterator[str]:
    """Install with one extra, and do what it is for."""
    label = f"{name} ({Path(python).name})"
    environment = Environment(place / label.replace(" ", "-"), python)
    extras = ",".join(filter(None, (name, BESIDE.get(name))))
    environment.install(f"{wheel}[{extras}]" if name != "core" else str(wheel))
    folder = place / f"work-{label}"
    folder.mkdir()
    programs = {"train.py": TRAINING, "runs.csv": TABLE, "net.py": TORCH, "optuna_search.py": OPTUNA}
    for file, text in programs.items():
        (folder / file).write_text(text)
    for words, said in steps:
        done = environment.run(*words, cwd=folder)
        told, refused = done.stdout + done.stderr, said.startswith("!")
        if bool(done.returncode) != refused or said.lstrip("!") not in told:
            yield f"{label}: {' '.join(words)} (exit {done.returncode})\n{told[-2000:]}"
            return
    print(f"{label}: holds")
    shutil.rmtree(environment.bin.parent)


def _by_tools(place: Path, wheel: Path) -> Iterator[str]:
    """Without an environment of one's own: pipx run and uvx."""
    tools = Environment(place / "runners", sys.executable)
    tools.install("pipx", "uv")
    homes = {"PIPX_HOME": str(place / "pipx"), "UV_CACHE_DIR": str(place / "uv")}
    for words in (
        ("pipx", "run", "--spec", str(wheel), "isorun", "--version"),
        ("uvx", "--from", str(wheel), "isorun", "--version"),
    ):
        done = tools.run(*words, cwd=place, more=homes)
        print(f"{words[0]}: {'holds' if done.stdout.startswith('isorun ') else 'FAILED'}")
        if not done.stdout.startswith("isorun "):
            yield f"{words[0]}: {done.stdout}{done.stderr}"


if __name__ == "__main__":
    sys.exit(main())
