"""The command line: one file per command; parse, call, print, exit code. Here is what commands share.

What they are given: a table of results, a study, or a training command with its options.

What they print alike: JSON for machines, colour only where it is wanted, files written whole. And a word on stderr
while a computation takes long: how long it has taken, and how much is left where that is known. Nothing is said in the
first seconds. On a terminal the line is rewritten and goes away before the result is printed; elsewhere there are few
lines, each after twice the time of the one before.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

from isorun.errors import InputError, UsageError, harmless

if TYPE_CHECKING:
    from isorun.analysis import Told
    from isorun.questions import Results
    from isorun.report import View
    from isorun.report.figures.description import Figure
    from isorun.study.design import Study

__all__ = [
    "JOBS_HELP",
    "ProgressLines",
    "Waiting",
    "answer",
    "declare_command",
    "declare_figure",
    "declare_json",
    "declare_session",
    "declare_table",
    "duration",
    "file_name",
    "labels",
    "load_results",
    "made_folder",
    "named_metric",
    "named_metrics",
    "policy",
    "print_json",
    "say",
    "session_options",
    "show",
    "show_text",
    "study_of",
    "study_or_command",
    "tell",
    "terminal_width",
    "waiting",
    "waiting_is_over",
    "wants_colour",
    "where",
    "write_figures",
    "write_file",
]

_Answered = TypeVar("_Answered", bound="Told")
_Said = TypeVar("_Said")


def declare_table(parser: argparse.ArgumentParser, *, optional: bool = False, judges: bool = True) -> None:
    """The words all statistics commands understand. judges: one metric is judged by units, as all but `mixed` do."""
    about = "CSV, JSON lines, Parquet (one row a run), or a study file"
    parser.add_argument("data", nargs="?" if optional else None, metavar="DATA", help=about)
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN=LABEL", help="only rows with this label"
    )
    about = "for a study: the selection, which epoch runs are judged at (default: its first)"
    parser.add_argument("--selection", metavar="NAME", help=about)
    parser.add_argument("--store", metavar="FOLDER", help="for a study: where records are kept")
    if judges:
        about = "what is judged and which direction is better: --value and --direction in one word"
        parser.add_argument("--metric", metavar="NAME[:lower|:higher]", help=about)
        about = "what was drawn independently (default: seed if there is one, else each row; repeat: one seed's runs)"
        parser.add_argument("--unit", metavar="COLUMN", help=about)
    parser.add_argument("--drop-missing", action="store_true", help="leave out values that are not finite, and say so")
    declare_json(parser)


def load_results(options: argparse.Namespace) -> Results:
    """The table, or the study's runs as one; `--metric` has set value and direction then."""
    from isorun.questions import results

    if getattr(options, "metric", None):
        options.value, direction = named_metric(options.metric)
        options.direction = direction or getattr(options, "direction", None)
    return results(options.data, store=options.store, selection=options.selection)


def where(options: argparse.Namespace) -> dict[str, str]:
    """The labels that rows must have."""
    return labels("--where", options.where)


def labels(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Columns and labels, as an option that may be repeated says them."""
    pairs = [text.partition("=") for text in texts]
    for name, sign, _ in pairs:
        if not sign:
            raise UsageError(f"{option} needs COLUMN=LABEL", found=name)
    return _each_once(option, ((name, label) for name, _, label in pairs))


def _each_once(option: str, pairs: Iterable[tuple[str, _Said]]) -> dict[str, _Said]:
    """What is said of each name; an error where two things are: nobody knows which of them is meant."""
    said: dict[str, _Said] = {}
    for name, value in pairs:
        if said.setdefault(name, value) != value:
            raise UsageError(
                f"{option} says two things of {name!r}", found=f"{said[name]!r} and {value!r}", hint="one of them"
            )
    return said


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
        metrics={name: {"direction": way} if way else {} for name, way in named_metrics(options).items()},
        sources={"patterns": options.patterns or [], "files": options.files or []},
        policy=policy(options),
        folder=Path.cwd(),
    )


def policy(options: argparse.Namespace) -> dict[str, Any]:
    """How runs are carried out, as far as the command line says it."""
    chosen = {
        "time_limit": getattr(options, "time_limit", None),
        "retries": getattr(options, "retries", None),
        "on_failure": "fail-fast" if getattr(options, "fail_fast", False) else None,
        "isolate": getattr(options, "isolate", False) or None,
    }
    return {key: value for key, value in chosen.items() if value is not None}


def with_policy(study: Study, options: argparse.Namespace) -> Study:
    """The study with limits given on the command line, which change how it runs and not which cells it has."""
    from isorun.study.design import changed, document_of

    changes = policy(options)
    return changed(study, policy={**document_of(study)["policy"], **changes}) if changes else study


def declare_isolate(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Whether each run works in a copy of the folder."""
    parser.add_argument("--isolate", action="store_true", help="each run works in a copy of this folder of its own")


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


def named_metrics(options: argparse.Namespace) -> dict[str, str]:
    """The metrics that `--metric` names, which may be repeated, each with its direction, or ""."""
    return _each_once("--metric", map(named_metric, options.metrics or []))


_PARTS_AT_ONCE: Final = 4096
_ENCODER: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
_ACTIVE: Final = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Characters that a terminal may act on, or that cannot be written: in JSON they have an escaped form."""


def declare_json(parser: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON, for machines")


def declare_registry(parser: argparse.ArgumentParser) -> None:
    """Which registry is asked."""
    about = "the registry (default: ISORUN_REGISTRY, or the one that was logged in to last)"
    parser.add_argument("--registry", metavar="URL", help=about)


def declare_figure(parser: argparse.ArgumentParser, what: str) -> None:
    """The option of commands that can draw their result."""
    parser.add_argument("--figure", metavar="FILE", help=f"draw {what}: .svg, or .pdf and .png with isorun[figures]")


JOBS_HELP: Final = "runs at a time, each on CPUs of its own (default: 1; on a cluster as many as fit there)"


def declare_session(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Where runs are carried out and where records are kept."""
    parser.add_argument(
        "--executor", default="local", metavar="NAME|URL", help="what carries out runs (default: local)"
    )
    parser.add_argument("--partition", metavar="NAME", help="of a cluster: the partition that runs are queued in")
    parser.add_argument("--time", metavar="2h", help="of a cluster: the longest that a run may take")
    about = "of a cluster: devices (GPUs) of a run whose environment does not say"
    parser.add_argument("--gpus-per-run", metavar="N", help=about)
    about = "devices (GPUs) that runs may use, divided among them: auto, none, or a list such as 0,1"
    parser.add_argument("--devices", default="auto", metavar="LIST", help=about)
    about = "where records are kept (default: .isorun beside the study)"
    parser.add_argument("--store", metavar="FOLDER|URL", help=about)


def session_options(options: argparse.Namespace) -> dict[str, Any]:
    """What a session is opened with, as the command line says it."""
    names = ("store", "jobs", "launch", "devices")
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return {**given, "executor": _executor(options)} if hasattr(options, "executor") else given


def _executor(options: argparse.Namespace) -> str:
    """The executor as one URL: what options say of a cluster are settings of it."""
    asked = str(options.executor)
    settings = {name: getattr(options, name.replace("-", "_"), None) for name in ("partition", "time", "gpus-per-run")}
    settings = {name: value for name, value in settings.items() if value is not None}
    if not settings:
        return asked
    if asked == "local":
        words = ", ".join(f"--{name}" for name in settings)
        raise UsageError(
            f"{words}: for runs on a cluster, and these run on this machine",
            allowed="--executor slurm or ray; here: --devices, and devices_per_run and time_limit in a study",
        )
    from urllib.parse import urlencode

    url = asked if ":" in asked else f"{asked}://"
    return f"{url}{'&' if '?' in url else '?'}{urlencode(settings)}"


def print_json(value: Any) -> None:
    """Strict JSON on stdout, a part at a time: a million numbers are never one text.

    A list of numbers stands on one line. Of an iterator every item does, as it comes.
    """
    waiting_is_over()
    parts: list[str] = []
    for part in _json_parts(value, "\n"):
        parts.append(part)
        if len(parts) > _PARTS_AT_ONCE:
            sys.stdout.write("".join(parts))
            parts.clear()
    sys.stdout.write(f"{''.join(parts)}\n")


def _json_parts(value: Any, line: str) -> Iterator[str]:
    """line: what begins a line at this depth."""
    deeper = f"{line}  "
    if isinstance(value, Iterator):
        yield from _bracketed("[]", ("" for _ in itertools.repeat(0)), value, line)
    elif isinstance(value, dict) and any(map(_has_structure, value.values())):
        yield from _bracketed("{}", (f"{_encode(str(key))}: " for key in value), value.values(), line)
    elif isinstance(value, dict) and value:
        members = f",{deeper}".join([f"{_encode(str(key))}: {_encode(item)}" for key, item in value.items()])
        yield f"{{{deeper}{members}{line}}}"
    elif isinstance(value, (list, tuple)) and not all(map(_is_number, value)):
        yield from _bracketed("[]", itertools.repeat("", len(value)), value, line)
    else:
        yield _encode(value)


def _bracketed(brackets: str, names: Iterable[str], members: Iterable[Any], line: str) -> Iterator[str]:
    deeper, opening = f"{line}  ", brackets[0]
    streamed = isinstance(members, Iterator)
    for member, name in zip(members, names, strict=False):
        yield f"{opening}{deeper}{name}"
        yield from (_encode(member),) if streamed else _json_parts(member, deeper)
        opening = ","
    yield brackets if opening == brackets[0] else f"{line}{brackets[1]}"


def _encode(value: Any) -> str:
    text = _ENCODER.encode(value)
    return text if text.isascii() and "\x7f" not in text else _ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _has_structure(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple)) and bool(value)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, (int, float))


def answer(result: _Answered, view: Callable[[_Answered], View], options: argparse.Namespace) -> None:
    """Print a result as it was asked for: as JSON, or as its view."""
    if options.json:
        print_json(result.to_json())
    else:
        show(view(result))


def show(view: View) -> None:
    """Print what a command has to say."""
    show_text(view.text(colour=wants_colour(), width=terminal_width()))


def show_text(text: str) -> None:
    """Print a text that is ready to be shown."""
    waiting_is_over()
    sys.stdout.write(text)


def say(line: str) -> None:
    """Print a line that may quote what records, documents and packages of others say."""
    show_text(f"{harmless(line)}\n")


def wants_colour() -> bool:
    """Whether stdout is a terminal and nobody asked for plain text (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """How many columns there are, within what is readable."""
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 160))


def file_name(text: str) -> str:
    """A text from a user as a harmless file name: no path is ever built from it as it stands."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[:80] or "figure"


_WRITTEN_PAGES: Final = ("html", "markdown", "latex")
_WRITTEN_FIGURES: Final = ("figure", "change", "matrix", "profiles")


def refuse_other_files(options: argparse.Namespace) -> None:
    """Before any work: a file that an option names must be one that the option may write."""
    for name in (*_WRITTEN_PAGES, *_WRITTEN_FIGURES):
        path = getattr(options, name, None)
        if isinstance(path, str):  # `env --latex` prints, and names no file
            from isorun.replaceable import KINDS, refuse_other

            kind = name if name in _WRITTEN_PAGES else Path(path).suffix.lower().lstrip(".")
            if kind in KINDS:
                refuse_other(path, kind)


def made_folder(path: str | Path) -> Path:
    """The folder, made when it is missing."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    return folder


def write_file(path: str | Path, text: str, kind: str) -> None:
    """Write a file whole or not at all, so that a full disk never leaves half a report.

    A link is followed, and what is no file (a device such as /dev/null, a pipe) is written to: it is never replaced.
    kind: of `isorun.replaceable.KINDS`; a file of another kind that is there is refused.
    """
    from isorun.replaceable import refuse_other

    target = Path(path)
    refuse_other(target, kind)
    try:
        target = target.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_text(text, encoding="utf-8")
            return
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{str(target)!r} cannot be written: {why}") from None
    unfinished = target.parent / f".{target.name[:100]}.{os.getpid()}.part"
    try:
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{str(target)!r} cannot be written: {why}") from None


def write_figures(figures: Iterable[Figure], folder: str | Path, *, pdf: bool = False) -> list[str]:
    """Write figures as numbered SVG files, and as PDF beside them where that is wanted; their paths."""
    from isorun.replaceable import refuse_other
    from isorun.report.figures import files, svg

    place, written = made_folder(folder), []
    for number, figure in enumerate(figures, start=1):
        path = place / f"{number:02}-{file_name(figure.name)}.svg"
        write_file(path, svg.render(figure, standalone=True), "svg")
        written.append(str(path))
        if pdf:
            refuse_other(path.with_suffix(".pdf"), "pdf")
            files.save_by_matplotlib(figure, path.with_suffix(".pdf"))
            written.append(str(path.with_suffix(".pdf")))
    return written


_SILENT_SECONDS: Final = 2.0
_EVERY: Final = 0.5
_FIRST_LINE_SECONDS: Final = 10.0


def duration(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 99.5 else f"{hours:.1f} h"


class ProgressLines:
    """Lines that say how work goes on: on a terminal (`live`) the last one is rewritten, elsewhere each one stays.

    A courtesy: one that cannot be shown (a log on a full disk, a reader that has gone) ends no work.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.live = stream.isatty()

    def rewrite(self, line: str) -> None:
        """Show it in place of the last one; cut, since of a line that wraps only the end is rewritten."""
        columns = shutil.get_terminal_size((80, 24)).columns
        self._write(f"\r\x1b[K{harmless(line)[: columns - 1]}")

    def say(self, line: str) -> None:
        """Show it for good."""
        shown = harmless(line)
        self._write(f"\r\x1b[K{shown}\n" if self.live else f"{shown}\n")

    def clear(self) -> None:
        """Leave a clean line."""
        if self.live:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


_DOING: Final = {"push": "sending", "pull": "receiving"}
"""What commands do while they are waited for, where that is not computing."""


class Waiting:
    """Tells of one computation from a thread of its own, so that the computation need not know of it."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._lines = ProgressLines(stream)
        self._share = 0.0
        self._shown = False
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)
        self._thread.start()

    def tell(self, done: float, total: float) -> None:
        """So much of the computation is done."""
        self._share = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0

    def end(self) -> None:
        """Say nothing more, and leave a clean line."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            if self._shown:
                self._lines.clear()

    def line(self, elapsed: float) -> str:
        """What is said after so many seconds."""
        text = f"isorun {self._what}: {_DOING.get(self._what, 'computing')} for {duration(elapsed)}"
        if not self._share:
            return text
        return f"{text}, {self._share:.0%} done, about {duration(elapsed * (1 / self._share - 1))} left"

    def _speak(self) -> None:
        pause = _SILENT_SECONDS if self._lines.live else _FIRST_LINE_SECONDS
        while not self._over.wait(pause):
            elapsed = time.monotonic() - self._began
            line = self.line(elapsed)
            if self._lines.live:
                self._lines.rewrite(line)
            else:
                self._lines.say(line)
            self._shown = True
            pause = _EVERY if self._lines.live else elapsed


# A process computes for one command. Whatever prints its result ends the waiting, wherever it began.
_current: list[Waiting] = []


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Tell of everything that takes long in here, until a result is printed."""
    _current.append(Waiting(what, sys.stderr))
    try:
        yield
    finally:
        waiting_is_over()


def waiting_is_over() -> None:
    """A result is about to be printed."""
    while _current:
        _current.pop().end()


def tell(done: float, total: float) -> None:
    """So much of what is waited for is done; for computations that know it."""
    if _current:
        _current[-1].tell(done, total)
