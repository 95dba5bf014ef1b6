"""Try outside programs under isorun, keep what was seen, and write the page: `python -m outside.run [options]`.

Each program is typed after `isorun run --` as its authors type it: once as it is, twice at each fixed level with one
seed. What was seen is kept in outside/results.json after every program; programs that are not run again keep theirs.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import fcntl
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import isorun
from isorun.errors import InputError, IsorunError
from outside.page import written
from outside.programs import ENVIRONMENTS, HERE, Program, read_programs
from outside.trying import Places, attempt_of, judged_again, tried

RESULTS: Final = HERE / "results.json"
PAGE: Final = HERE.parent / "docs" / "outside.md"


def main(words: Sequence[str]) -> int:
    """The command; 1 where a row of the page says no."""
    given = _parser().parse_args(words)
    try:
        programs = read_programs()
        kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        if not given.page:
            places = _places(given)
            chosen = _chosen(programs, given.only, kept if given.resume else {})
            if given.judge:
                there = [program for program in chosen if attempt_of(program, places).exists()]
                kept = _try_all(there, places, 1, judged_again) or kept
            else:
                with _alone_in(given.cache):
                    kept = _try_all(chosen, places, given.jobs, tried) or kept
        PAGE.write_text(written(programs, kept))
    except IsorunError as error:
        print(error, file=sys.stderr)
        return 1
    held = [judgement["held"] for name in programs for judgement in kept.get(name, {}).get("judgements", {}).values()]
    return 1 if False in held else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m outside.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these programs")
    parser.add_argument("--resume", action="store_true", help="only programs without a result, or declared anew since")
    parser.add_argument("--judge", action="store_true", help="run nothing; judge the runs of the cache again")
    parser.add_argument("--page", action="store_true", help="run nothing; write the page from what is kept")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at a time (default: 1)")
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="git directories, where none can be cloned")
    parser.add_argument(
        "--environment", action="append", default=[], metavar="NAME=PYTHON", help="an interpreter that is there"
    )
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument(
        "--cache", type=Path, default=user_cache / "isorun-outside", metavar="FOLDER", help="what is made and fetched"
    )
    return parser


def _places(given: argparse.Namespace) -> Places:
    interpreters = {}
    for pair in given.environment:
        name, _, python = pair.partition("=")
        if name not in ENVIRONMENTS or not Path(python).exists():
            raise InputError("--environment", found=pair, allowed=f"NAME=PYTHON, NAME one of {', '.join(ENVIRONMENTS)}")
        interpreters[name] = Path(python).absolute()
    return Places(given.cache.absolute(), given.sources and given.sources.absolute(), interpreters)


def _chosen(programs: dict[str, Program], only: Sequence[str], kept: dict[str, Any]) -> list[Program]:
    unknown = [name for name in only if name not in programs]
    if unknown:
        raise InputError("--only: no such program", found=unknown[0], allowed=", ".join(programs))
    wanted = [programs[name] for name in only or programs]
    return [program for program in wanted if kept.get(program.name, {}).get("declared") != _digest(program)]


def _try_all(
    chosen: Sequence[Program], places: Places, jobs: int, how: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(how, program, places): program for program in chosen}
        for number, done in enumerate(as_completed(waiting), start=1):
            program, row = waiting[done], done.result()
            kept = _keep(program, row, ran=how is tried)
            said = ", ".join(f"{name}: {judgement['said']}" for name, judgement in row["judgements"].items())
            print(f"[{number}/{len(chosen)}] {program.name} ({row.get('seconds', 0)} s): {said}", flush=True)
    return kept


@contextlib.contextmanager
def _alone_in(cache: Path) -> Iterator[None]:
    """Two suites in one cache would take each other's folders away."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                "another suite is at work in this cache", found=str(cache), hint="--cache FOLDER"
            ) from error
        yield


def _keep(program: Program, row: dict[str, Any], *, ran: bool) -> dict[str, Any]:
    """The row beside those of others, which may be made by another process at the same time."""
    with (HERE / "results.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        told = {"declared": _digest(program), "date": dt.date.today().isoformat(), "machine": _machine()}
        kept[program.name] = {**(told if ran else _when(kept, program)), **row}
        RESULTS.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    return kept


def _when(kept: dict[str, Any], program: Program) -> dict[str, Any]:
    return {key: kept.get(program.name, {}).get(key, "") for key in ("declared", "date", "machine")}


def _digest(program: Program) -> str:
    """Of all that makes its runs: what is declared true of them can be judged again."""
    return hashlib.sha256(repr(replace(program, metrics=(), silent="", why="")).encode()).hexdigest()[:12]


def _machine() -> str:
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, isorun {isorun.__version__}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
