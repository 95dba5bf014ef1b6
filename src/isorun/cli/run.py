"""Train the same thing many times under control and record everything.

  isorun run study.toml                                    a declared study; again = only what is missing
  isorun run -n 16 --level fixed-seed -- python train.py   any command, no change to its code

Levels: default (nothing fixed), fixed-seed (the algorithm's randomness fixed), deterministic (kernels, threads and
CPU path fixed too). Without --level the command runs at level default.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun.cli import output
from isorun.errors import UsageError
from isorun.study.records import RunState

if TYPE_CHECKING:
    from isorun.execution.scheduler import Outcome
    from isorun.study.design import Study

__all__ = ["declare", "execute"]

_AD_HOC_ONLY = (
    "repeats",
    "levels",
    "seeds",
    "name",
    "env",
    "python",
    "threads",
    "metrics",
    "patterns",
    "files",
    "take_seeds",
)


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.usage = "isorun run [options] STUDY.toml | isorun run [options] -- COMMAND …"
    parser.add_argument("study", nargs="?", metavar="STUDY", help="a study file, or the name of an ad hoc study")
    parser.set_defaults(takes_command=True)
    adhoc = parser.add_argument_group("for a command")
    adhoc.add_argument("-n", "--repeats", type=int, metavar="N", help="how many identical runs (default 1)")
    adhoc.add_argument("--level", dest="levels", action="append", metavar="LEVEL", help="may be given more than once")
    adhoc.add_argument("--seed", dest="seeds", action="append", type=int, metavar="S", help="may be repeated")
    adhoc.add_argument(
        "--take-seeds",
        action="store_true",
        default=None,
        help="constants the training seeds with follow the run's seed",
    )
    adhoc.add_argument("--name", help="a name for the study (default: from the command)")
    adhoc.add_argument("--env", action="append", metavar="NAME=VALUE", help="an environment variable for the training")
    adhoc.add_argument("--python", metavar="PATH", help="the interpreter that replaces a leading `python`")
    adhoc.add_argument("--threads", type=int, metavar="N", help="CPUs a run may use")
    adhoc.add_argument(
        "--metric", dest="metrics", action="append", metavar="NAME[:lower]", help="what runs are judged by"
    )
    adhoc.add_argument("--pattern", dest="patterns", action="append", metavar="REGEX", help="reads metrics from output")
    adhoc.add_argument("--file", dest="files", action="append", metavar="PATH", help="metrics file the training writes")
    both = parser.add_argument_group("how to run")
    both.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="runs at a time, each on CPUs of its own")
    both.add_argument("--launch", choices=("auto", "warm", "fresh"), default="auto", help="warm: fork from a server")
    both.add_argument("--time-limit", metavar="TIME", help="such as 90s, 10m, 2h; a run is stopped then")
    both.add_argument("--retries", type=int, metavar="N", help="how often a failed run is tried again")
    both.add_argument("--fail-fast", action="store_true", help="stop everything at the first failure")
    both.add_argument("--store", metavar="FOLDER", help="where records are kept (default: .isorun beside the study)")
    both.add_argument("--dry-run", action="store_true", help="show what would be run, and stop")
    output.declare(parser)


def execute(options: argparse.Namespace) -> int:
    """Carry the study out and say what came of it."""
    from isorun import workflow
    from isorun.cli.progress import Progress

    study = _study(options)
    if options.dry_run:
        return _dry_run(study, options)
    if not options.study:
        workflow.remember(study, options.store)
    progress = Progress(study, sys.stderr)
    with progress:
        outcome = workflow.run(study, store=options.store, jobs=options.jobs, launch=options.launch, observer=progress)
    _print(study, outcome, progress, options)
    return _exit_code(outcome)


def _study(options: argparse.Namespace) -> Study:
    from isorun import workflow

    words = options.command
    if bool(options.study) == bool(words):
        raise UsageError(
            "either a study file or a command is needed",
            found="both" if words else "neither",
            hint="isorun run study.toml, or isorun run -n 16 -- python train.py",
        )
    if words:
        return _adhoc(words, options)
    given = [name for name in _AD_HOC_ONLY if getattr(options, name) is not None]
    if given:
        hint = f"write it into {options.study}, where it is kept with the study"
        raise UsageError(f"--{given[0].replace('_', '-')} belongs to a command, not to a study file", hint=hint)
    return _with_policy(workflow.load(options.study), options)


def _adhoc(words: list[str], options: argparse.Namespace) -> Study:
    from isorun.study.adhoc import adhoc_study

    environment = {"env": dict(map(_variable, options.env or [])), "python": options.python or ""}
    if options.threads is not None:
        environment["threads"] = options.threads
    return adhoc_study(
        words,
        name=options.name,
        levels=options.levels or (),
        seeds=options.seeds or (),
        repeats=1 if options.repeats is None else options.repeats,
        take_seeds=bool(options.take_seeds),
        environment=environment,
        metrics=dict(map(_metric, options.metrics or [])),
        sources={"patterns": options.patterns or [], "files": options.files or []},
        policy=_policy_options(options),
        folder=Path.cwd(),
    )


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError("--env needs NAME=VALUE", found=text)
    return name, value


def _metric(text: str) -> tuple[str, str]:
    name, sign, direction = text.rpartition(":")
    if not sign:
        return text, "higher"
    if direction not in ("higher", "lower") or not name:
        raise UsageError("--metric needs NAME, NAME:higher or NAME:lower", found=text)
    return name, direction


def _policy_options(options: argparse.Namespace) -> dict[str, Any]:
    limit = options.time_limit
    given = {
        "time_limit": float(limit) if limit and limit.replace(".", "", 1).isdigit() else limit,
        "retries": options.retries,
        "on_failure": "fail-fast" if options.fail_fast else None,
    }
    return {key: value for key, value in given.items() if value is not None}


def _with_policy(study: Study, options: argparse.Namespace) -> Study:
    """The study with limits given on the command line, which change how it runs and not which cells it has."""
    from isorun.study.document import document_of
    from isorun.study.extension import changed

    changes = _policy_options(options)
    return changed(study, policy={**document_of(study)["policy"], **changes}) if changes else study


def _dry_run(study: Study, options: argparse.Namespace) -> int:
    from isorun import workflow

    cells = workflow.plan(study)
    left = {cell.id for cell in workflow.missing_in(study, options.store)}
    if options.json:
        output.print_json([{**cell.to_json(), "missing": cell.id in left} for cell in cells])
        return 0
    print(f"{study.name}: {len(left)} of {len(cells)} runs are missing; nothing was run")
    for cell in cells:
        print(f"  {'missing ' if cell.id in left else 'finished'}  {cell.id}  {cell.label}")
    return 0


def _print(study: Study, outcome: Outcome, progress: Any, options: argparse.Namespace) -> None:
    from isorun.report.plain_text import harmless

    name = options.study or study.name
    if options.json:
        output.print_json(_summary(study, outcome, name))
        return
    print(_headline(study, outcome))
    for line in progress.metrics_found():
        print(line)
    for record in [record for record in outcome.records if record.state is not RunState.FINISHED][:5]:
        print(f"  {record.state}: {record.cell.label}: {harmless(record.reason)}")
        for line in record.log_tail.rstrip().splitlines()[-3:]:
            print(f"    | {harmless(line)}")
    if not outcome.records and not outcome.elsewhere:
        print("  a finished run is never run again; to repeat it (another script, other sources), name a new --store")
    if outcome.count(RunState.FINISHED) or not outcome.records:
        print(f"next: isorun report {name}{f' --store {options.store}' if options.store else ''}")


def _headline(study: Study, outcome: Outcome) -> str:
    finished = outcome.count(RunState.FINISHED)
    failed = len(outcome.records) - finished
    parts = [f"{finished} finished"]
    parts += [f"{failed} did not finish"] if failed else []
    parts += [f"{outcome.elsewhere} done by another isorun"] if outcome.elsewhere else []
    text = f"{study.name}: " + (", ".join(parts) if outcome.records or outcome.elsewhere else "nothing was missing")
    return text + (f"; stopped: {outcome.stopped}" if outcome.stopped else "")


def _summary(study: Study, outcome: Outcome, name: str) -> dict[str, Any]:
    return {
        "study": study.name,
        "finished": outcome.count(RunState.FINISHED),
        "failed": outcome.count(RunState.FAILED) + outcome.count(RunState.TIMED_OUT),
        "interrupted": outcome.count(RunState.INTERRUPTED),
        "elsewhere": outcome.elsewhere,
        "stopped": outcome.stopped,
        "runs": [
            {
                "run": record.run_id,
                "label": record.cell.label,
                "state": str(record.state),
                "reason": record.reason,
                "wall_seconds": record.wall_seconds,
                "launch": record.launch,
            }
            for record in outcome.records
        ],
        "next": f"isorun report {name}",
    }


def _exit_code(outcome: Outcome) -> int:
    if outcome.stopped == "interrupted":
        return 130
    last = {record.cell.id: record.state for record in outcome.records}
    return 0 if all(state is RunState.FINISHED for state in last.values()) and not outcome.stopped else 1
