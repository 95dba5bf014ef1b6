"""Try one program: have it, prepare its data, type its command after `isorun run --`, and look at what isorun tells."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import isorun
from isorun.errors import InputError
from outside.judging import (
    Judgement,
    Seen,
    beyond,
    judge_digest,
    judge_direction,
    judge_first_try,
    judge_identical,
    judge_metrics,
    true_value,
)
from outside.programs import HERE, Program

LONGEST_SECONDS: Final = 600
FIXED_LEVELS: Final = ("fixed-seed", "deterministic")
FILES: Final = ".outside-files"
EVERYWHERE: Final = {"MPLBACKEND": "Agg", "WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
"""Nothing of a program may open a window or ask the network."""
FOREIGN: Final = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
"""What a shell of this checkout may have, and one of the program's has not."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are: a cache of ours, a folder of git directories (None: cloned), interpreters already there."""

    cache: Path
    sources: Path | None
    interpreters: Mapping[str, Path]


def tried(program: Program, places: Places) -> dict[str, Any]:
    """All that is said of a program, as plain JSON. What cannot even be begun is a row that says so."""
    started = time.monotonic()
    try:
        python = interpreter_of(program.environment, places)
        folder = prepared(program, python, places)
    except (InputError, OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        return _row({"first try": Judgement(None, "could not be had: " + "".join(said))})
    attempt = _attempted(program, folder, _shell(program, python, folder))
    attempt["seconds"] = round(time.monotonic() - started, 1)
    attempt_of(program, places).write_text(json.dumps(attempt))
    return judged_again(program, places)


def attempt_of(program: Program, places: Places) -> Path:
    """In the folder where the command was typed: what isorun answered, so that it can be judged again."""
    return places.cache / "work" / program.name / program.folder / ".outside-attempt.json"


def judged_again(program: Program, places: Places) -> dict[str, Any]:
    """What is said of the runs that are there, without running anything: for who changed what is declared true."""
    kept = attempt_of(program, places)
    folder = kept.parent
    attempt = json.loads(kept.read_text())
    first = judge_first_try(attempt["exit_code"], _runs(attempt["report"], folder)["default"], attempt["alone"])
    if not first.held:
        return _row({"first try": first}, seconds=attempt["seconds"], said=attempt["said"])
    return _judged(program, folder, attempt, first)


def _row(judgements: Mapping[str, Judgement], **more: Any) -> dict[str, Any]:
    return {"judgements": {name: judgement.to_json() for name, judgement in judgements.items()}, **more}


def _attempted(program: Program, folder: Path, shell: Mapping[str, str]) -> dict[str, Any]:
    """The command typed as it is, then at the fixed levels; where it fails as it is, without isorun instead."""
    began = time.time()
    exit_code, said = _isorun(["run", "--", *program.words], folder, shell)
    report = _report(folder, shell)
    finished = exit_code == 0 and [run.state for run in _runs(report, folder)["default"]] == ["finished"]
    attempt = {"began": began, "exit_code": exit_code, "said": said[-2000:], "report": report}
    if not finished:
        return {**attempt, "alone": _alone(program, folder, shell), "fixed": {}}
    _keep_files(program, folder, began)
    levels = [word for level in FIXED_LEVELS for word in ("--level", level)]
    _isorun(["run", "-n", "2", "--seed", "1", *levels, "--name", "fixed", "--", *program.words], folder, shell)
    return {**attempt, "alone": "", "fixed": _report(folder, shell)}


def _keep_files(program: Program, folder: Path, began: float) -> None:
    """Copies of the files that tell true values: later runs write to the same names."""
    for truth in program.metrics:
        for path in folder.glob(truth.file) if truth.file else ():
            if path.stat().st_mtime >= began:
                kept = folder / FILES / path.relative_to(folder)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, kept)


def _judged(program: Program, folder: Path, attempt: Mapping[str, Any], first: Judgement) -> dict[str, Any]:
    report = attempt["report"]
    run = _runs(report, folder)["default"][0]
    output = _output(report, folder)
    truths = {truth.name: true_value(truth, output, folder / FILES) for truth in program.metrics}
    fixed = _runs(attempt["fixed"], folder)
    judgements = {
        "first try": first,
        "metrics": judge_metrics(program, run, truths),
        **{level: judge_identical(program, fixed[level]) for level in FIXED_LEVELS},
        "digest": judge_digest([run, *fixed["fixed-seed"], *fixed["deterministic"]]),
        "direction": judge_direction(program, report),
    }
    return _row(
        judgements,
        seconds=attempt["seconds"],
        truths=truths,
        found=dict(sorted(run.values.items())[:40]),
        beyond=beyond(program, run)[:40],
        warnings=sorted({warning["code"] for warning in report["warnings"]}),
        versions=_versions(program, report, folder),
    )


def _isorun(words: Sequence[str], folder: Path, shell: Mapping[str, str]) -> tuple[int, str]:
    """What is typed in that folder after `isorun`; its exit code and what it said."""
    command = [sys.executable, "-m", "isorun", *words]
    try:
        done = subprocess.run(
            command, cwd=folder, env=shell, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"stopped after {LONGEST_SECONDS} s"
    return done.returncode, done.stdout if words[0] == "report" else done.stdout + done.stderr


def _report(folder: Path, shell: Mapping[str, str]) -> dict[str, Any]:
    """The report of the latest study; empty where there is none."""
    code, printed = _isorun(["report", "--json"], folder, shell)
    report: dict[str, Any] = json.loads(printed) if code == 0 else {}
    return {key: report[key] for key in ("study", "metrics", "warnings") if key in report}


def _runs(report: Mapping[str, Any], folder: Path) -> dict[str, list[Seen]]:
    """The runs of a report's study by level."""
    runs: dict[str, list[Seen]] = {level: [] for level in ("default", *FIXED_LEVELS)}
    for record in isorun.records(report["study"], store=folder / ".isorun") if report else ():
        values = {name: float(series.values[-1]) for name, series in record.series.items() if len(series.values)}
        runs[record.cell.level].append(
            Seen(
                state=str(record.state),
                reason=record.reason,
                values=values | dict(record.results),
                series={name: list(series.values) for name, series in record.series.items()},
                digests=dict(record.digests),
            )
        )
    return runs


def _record(report: Mapping[str, Any], folder: Path) -> isorun.RunRecord:
    return next(iter(isorun.records(report["study"], store=folder / ".isorun")))


def _output(report: Mapping[str, Any], folder: Path) -> str:
    return (folder / ".isorun" / "runs" / _record(report, folder).run_id / "output.log").read_text(errors="replace")


def _versions(program: Program, report: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Of the packages that the environment was asked for, those that the run imported."""
    requirements = (HERE / "requirements" / f"{program.environment}.txt").read_text().splitlines()
    asked = {line.partition("==")[0] for line in requirements}
    effective = _record(report, folder).environment.get("effective", {})
    return {name: version for name, version in sorted(effective.get("packages", {}).items()) if name in asked}


def _alone(program: Program, folder: Path, shell: Mapping[str, str]) -> str:
    """How the command fails without isorun; empty where it does not."""
    words = program.words
    command = [shutil.which(words[0], path=shell["PATH"]) or words[0], *words[1:]]
    try:
        done = subprocess.run(
            command, cwd=folder, env=shell, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"[:200]
    if done.returncode == 0:
        return ""
    told = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
    return next((line for line in reversed(told) if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)), told[-1])[
        :200
    ]


def _shell(program: Program, python: Path, folder: Path) -> dict[str, str]:
    """The variables of a shell in which the program's environment is active."""
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    home = folder / ".outside-home"
    home.mkdir(exist_ok=True)
    path = os.pathsep.join([str(python.parent), kept.get("PATH", os.defpath)])
    active = {"PATH": path, "VIRTUAL_ENV": str(python.parent.parent), "HOME": str(home)}
    return {**kept, **EVERYWHERE, **active, **program.variables}


def interpreter_of(environment: str, places: Places) -> Path:
    """The interpreter of an environment, made once for a list of requirements."""
    if environment in places.interpreters:
        return places.interpreters[environment]
    requirements = HERE / "requirements" / f"{environment}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = places.cache / "environments" / f"{environment}-{digest}"
    python = folder / "bin" / "python"
    done = folder / "made"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, "-r", requirements], check=True)
        done.touch()
    return python


def prepared(program: Program, python: Path, places: Places) -> Path:
    """A fresh folder with the program and its made data; the folder in which the command is typed."""
    work = places.cache / "work" / program.name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    if program.git:
        _take(program, _git_folder(program, places), work)
    folder = work / program.folder
    folder.mkdir(parents=True, exist_ok=True)
    shell = _shell(program, python, folder)
    for words in program.prepare:
        filled = [word.replace("{work}", str(work)).replace("{home}", shell["HOME"]) for word in words]
        subprocess.run(
            [python, HERE / "made_data.py", *filled], cwd=folder, env=shell, check=True, capture_output=True, text=True
        )
    return folder


def _git_folder(program: Program, places: Places) -> Path:
    """A git directory that has the program's commit: one of the folder of sources, else fetched once."""
    owner, name = program.git.removesuffix(".git").rstrip("/").split("/")[-2:]
    if places.sources is not None:
        base = places.sources / f"{owner}+{name}" / "repo"
        for folder in (base / ".git", base, places.sources / name / ".git", places.sources / f"{name}.git"):
            if (folder / "HEAD").exists():
                return folder
        raise InputError(f"{places.sources} has no {owner}/{name}", allowed=f"{base}, {name}/.git or {name}.git")
    folder = places.cache / "git" / f"{owner}+{name}-{program.commit[:12]}"
    if not (folder / "FETCH_HEAD").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
        fetch = ["git", "--git-dir", str(folder), "fetch", "--quiet", "--depth", "1", program.git, program.commit]
        subprocess.run(fetch, check=True, capture_output=True, text=True)
    return folder


def _take(program: Program, git_folder: Path, work: Path) -> None:
    """The files of the commit under the program's paths; large ones that a git directory lacks are left out."""
    git = ["git", "--git-dir", str(git_folder)]
    listing = [*git, "ls-tree", "-r", "-z", program.commit, "--", *program.paths]
    listed = subprocess.run(listing, check=True, capture_output=True).stdout
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    wanted = [(about.split(), name.decode()) for about, _, name in entries if about.split()[1] == b"blob"]
    asked = b"".join(about[2] + b"\n" for about, _ in wanted)
    answer = io.BytesIO(
        subprocess.run([*git, "cat-file", "--batch"], input=asked, check=True, capture_output=True).stdout
    )
    for about, name in wanted:
        head = answer.readline().split()
        if head[-1] == b"missing":
            continue
        content = answer.read(int(head[2]))
        answer.read(1)
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if about[0] == b"100755" else 0o644)
    if not any(work.iterdir()):
        raise InputError(
            f"{program.name}: nothing was taken", found=", ".join(program.paths), allowed="paths of the commit"
        )
