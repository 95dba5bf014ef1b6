"""What commands are given, where several share it: a table of results, a study, or a command with its options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.cli import output
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.questions import Results
    from isorun.study.design import Study

__all__ = [
    "declare_command",
    "declare_table",
    "load",
    "named_metric",
    "policy",
    "study_of",
    "study_or_command",
    "where",
]


def declare_table(parser: argparse.ArgumentParser, *, optional: bool = False, judges: bool = True) -> None:
    """The words all statistics commands understand. judges: one metric is judged by units, as all but `mixed` do."""
    about = "CSV, JSON lines, Parquet (one row a run), or a study file"
    parser.add_argument("data", nargs="?" if optional else None, metavar="DATA", help=about)
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN=LABEL", help="only rows with this label"
    )
    about = "for a study: the selection, which epoch runs are judged at (default: its first)"
    parser.add_argument("--selection", metavar="NAME", help=about)
    parser.add_argument("--rule", dest="selection", help=argparse.SUPPRESS)
    parser.add_argument("--store", metavar="FOLDER", help="for a study: where records are kept")
    if judges:
        about = "what is judged and which direction is better: --value and --direction in one word"
        parser.add_argument("--metric", metavar="NAME[:lower|:higher]", help=about)
        about = "what was drawn independently (default: seed if there is one, else each row; repeat: one seed's runs)"
        parser.add_argument("--unit", metavar="COLUMN", help=about)
    parser.add_argument("--drop-missing", action="store_true", help="leave out values that are not finite, and say so")
    output.declare(parser)


def load(options: argparse.Namespace) -> Results:
    """The table, or the study's runs as one; `--metric` has set value and direction then."""
    from isorun.questions import results

    if getattr(options, "metric", None):
        options.value, direction = named_metric(options.metric)
        options.direction = direction or getattr(options, "direction", None)
    return results(options.data, store=options.store, selection=options.selection)


def where(options: argparse.Namespace) -> dict[str, str]:
    """The labels that rows must have."""
    pairs = [text.partition("=") for text in options.where]
    for name, sign, _ in pairs:
        if not sign:
            raise UsageError("--where needs COLUMN=LABEL", found=name)
    return {name: label for name, _, label in pairs}


_OPTIONS: Final = {
    "repeats": "--repeats",
    "levels": "--level",
    "seeds": "--seed",
    "take_seeds": "--take-seeds",
    "name": "--name",
    "env": "--env",
    "python": "--python",
    "threads": "--threads",
    "devices_per_run": "--devices-per-run",
    "metrics": "--metric",
    "patterns": "--pattern",
    "files": "--file",
}


def declare_command(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The options of a study that is made from a command; the group they stand in, for more."""
    group = parser.add_argument_group("for a command")
    group.add_argument("--level", dest="levels", action="append", metavar="LEVEL", help="may be given more than once")
    group.add_argument("--seed", dest="seeds", action="append", type=int, metavar="S", help="may be repeated")
    group.add_argument(
        "--take-seeds",
        action="store_true",
        default=None,
        help="constants the training seeds with follow the run's seed",
    )
    group.add_argument("--name", help="a name for the study (default: from the command)")
    group.add_argument("--env", action="append", metavar="NAME=VALUE", help="an environment variable for the training")
    group.add_argument("--python", metavar="PATH", help="the interpreter that a leading `python` stands for")
    group.add_argument("--threads", type=int, metavar="N", help="CPUs a run may use")
    group.add_argument("--devices-per-run", type=int, metavar="N", help="devices (GPUs) a run sees")
    group.add_argument(
        "--metric", dest="metrics", action="append", metavar="NAME[:lower|:higher]", help="what runs are judged by"
    )
    group.add_argument("--pattern", dest="patterns", action="append", metavar="REGEX", help="reads metrics from output")
    group.add_argument("--file", dest="files", action="append", metavar="PATH", help="metrics file the training writes")
    return group


def study_or_command(
    options: argparse.Namespace, name: str | None, examples: str, *, allowed: Sequence[str] = ()
) -> bool:
    """Whether a command was given; an error when it is both or neither, or options that a study file holds.

    allowed: options that a study file may be used with all the same.
    """
    words = options.command
    if bool(name) == bool(words):
        found = "both" if words else "neither"
        raise UsageError("either a study file or a command is needed", found=found, hint=examples)
    wrong = [option for option in _given(options) if option not in allowed] if name else []
    if wrong:
        hint = f"write it into {name}, where it is kept with the study"
        raise UsageError(f"{_OPTIONS[wrong[0]]} belongs to a command, not to a study file", hint=hint)
    return bool(words)


def _given(options: argparse.Namespace) -> list[str]:
    """The options for a command that were given."""
    return [name for name in _OPTIONS if getattr(options, name, None) is not None]


def study_of(commands: Sequence[Sequence[str]], options: argparse.Namespace) -> Study:
    """The study of one command, or of several that are compared."""
    from isorun.study.design import adhoc_study

    if any(not command[0].strip() for command in commands):
        raise UsageError("the command is empty", found=repr(" ".join(options.command)), hint="-- python train.py")
    repeats = getattr(options, "repeats", None)
    environment: dict[str, Any] = {"env": dict(map(_variable, options.env or [])), "python": options.python or ""}
    if options.threads is not None:
        environment["threads"] = options.threads
    if options.devices_per_run is not None:
        environment["devices_per_run"] = options.devices_per_run
    return adhoc_study(
        commands,
        name=options.name,
        levels=options.levels or (),
        seeds=options.seeds or (),
        repeats=1 if repeats is None else repeats,
        take_seeds=bool(options.take_seeds),
        environment=environment,
        metrics=dict(map(_metric, options.metrics or [])),
        sources={"patterns": options.patterns or [], "files": options.files or []},
        policy=policy(options),
        folder=Path.cwd(),
    )


def policy(options: argparse.Namespace) -> dict[str, Any]:
    """How runs are carried out, as far as the command line says it."""
    limit = getattr(options, "time_limit", None)
    chosen = {
        "time_limit": float(limit) if limit and limit.replace(".", "", 1).isdigit() else limit,
        "retries": getattr(options, "retries", None),
        "on_failure": "fail-fast" if getattr(options, "fail_fast", False) else None,
    }
    return {key: value for key, value in chosen.items() if value is not None}


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError("--env needs NAME=VALUE", found=text)
    return name, value


def named_metric(text: str) -> tuple[str, str]:
    """The metric and the direction that NAME, NAME:higher or NAME:lower names; "" where it names none."""
    name, sign, direction = text.rpartition(":")
    if not sign:
        return text, ""
    if direction not in ("higher", "lower") or not name:
        raise UsageError("--metric needs NAME, NAME:higher or NAME:lower", found=text)
    return name, direction


def _metric(text: str) -> tuple[str, dict[str, str]]:
    name, direction = named_metric(text)
    return name, {"direction": direction} if direction else {}
