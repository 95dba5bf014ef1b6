"""Show which metrics would be read from a training, before anything relies on them.

isorun scan train.log               what a training printed
python train.py | isorun scan -
isorun scan -- python train.py      a run of it: what it prints and logs, files that it writes, its weights

The run is a whole one at level default, and is kept nowhere; what the command does to files it does.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun import cli
from isorun.errors import InputError, UsageError, harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isorun.analysis.evidence.judged import JudgedMetric
    from isorun.sources import Found
    from isorun.sources.written import WrittenFile
    from isorun.study.design import Study
    from isorun.study.records import RunRecord

__all__ = ["declare", "execute"]

_FILES_SHOWN: Final = 20
_LINES_OF_A_FAILURE: Final = 5
_NARROWEST_TEXT: Final = 40
_OFFERS: Final = ("files.offered", "files.relied", "files.unread")
"""Notes on files, which a scan shows in a table of their own."""


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.usage = "isorun scan [options] LOG | isorun scan [options] -- COMMAND …"
    parser.set_defaults(takes_command=True)
    about = "a file with what a training printed; - for standard input"
    parser.add_argument("log", nargs="?", metavar="LOG", help=about)
    parser.add_argument("--pattern", dest="patterns", action="append", default=[], metavar="REGEX", help="your own")
    about = "with a command: a metrics file that it writes, as for isorun run"
    parser.add_argument("--file", dest="files", action="append", default=[], metavar="PATH", help=about)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Read the text, or run the command, and list the metrics found, and what was left out and why."""
    if bool(options.log) == bool(options.command):
        hint = "isorun scan train.log, or isorun scan -- python train.py"
        given = "both" if options.log else "neither"
        raise UsageError("either a log or a command is needed", found=given, hint=hint)
    if options.command:
        return _scan_command(options)
    if options.files:
        raise UsageError("--file belongs to a command", found=options.log, hint="isorun scan --file PATH -- COMMAND")
    from isorun.sources.lines import scan_text
    from isorun.study.parsing import sources

    text = _read(options.log)
    found = scan_text(text, sources({"patterns": options.patterns}, "--pattern"))
    judged = _judged(found)
    if options.json:
        cli.print_json(_as_json(found, judged))
        return 0
    _show_metrics(found, judged)
    if not found.series:
        run_it = f"isorun scan -- python {shlex.quote(options.log)}" if options.log.endswith(".py") else ""
        print(harmless(f"next: {run_it or _how_to_name(text, shlex.quote(options.log))}"))
    return 0


def _how_to_name(printed: str, what: str) -> str:
    """What reads a metric where nothing was read: a pattern only where a line that was printed gives one."""
    from isorun.sources.patterns import proposed_pattern

    log_it = "isorun.log(…) or isorun.result(…) in the training"
    pattern = proposed_pattern(printed.splitlines())
    return f"isorun scan --pattern {shlex.quote(pattern)} {what}, or {log_it}" if pattern else log_it


def _judged(found: Found) -> dict[str, JudgedMetric]:
    from isorun.analysis.evidence.judged import judged_column

    return {name: judged_column(name) for name in found.series}


def _as_json(found: Found, judged: dict[str, JudgedMetric]) -> dict[str, Any]:
    return {
        "metrics": {
            name: {
                "values": len(series.values),
                "origin": found.origins[name],
                "line": found.examples.get(name, ""),
                "direction": judged[name].direction or None,
                "direction_from": judged[name].direction_from or None,
            }
            for name, series in found.series.items()
        },
        "notes": [note.message for note in found.notes],
    }


def _show_metrics(found: Found, judged: dict[str, JudgedMetric]) -> None:
    from isorun.sources import describe

    width = shutil.get_terminal_size().columns
    names = ", ".join(sorted(found.series)) or "none"
    _print_wrapped(f"{len(found.series)} metric{'s' if len(found.series) != 1 else ''} found: {names}", width)
    better = {name: metric.direction or "unknown" for name, metric in judged.items()}
    for line in describe(found, better, width=width):
        print(harmless(line))
    for number, note in enumerate(found.notes, start=1):
        _print_wrapped(f"{number}. {note.message}", width)


def _print_wrapped(text: str, width: int) -> None:
    """Print a text that nobody pastes: lines that are to be pasted are never broken."""
    wrapped = textwrap.TextWrapper(
        max(width, _NARROWEST_TEXT), subsequent_indent="   ", break_on_hyphens=False, break_long_words=False
    )
    print(wrapped.fill(harmless(text)))


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return Path(name).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        what = f"{name} is a folder" if Path(name).is_dir() else f"{name} cannot be read: {error.strerror}"
        hint = "isorun scan train.log, isorun scan - for standard input, or isorun scan -- python train.py"
        raise InputError(what, allowed="a file with what a training printed", hint=hint) from None


def _scan_command(options: argparse.Namespace) -> int:
    """Run the command once in a store that goes again; 1 where it failed, as what it left is then not all."""
    import tempfile

    from isorun.sources.messages import plain
    from isorun.study.design import adhoc_study
    from isorun.study.records import RunState

    given = {"patterns": options.patterns, "files": options.files}
    study = adhoc_study([options.command], sources=given, folder=Path.cwd())
    with tempfile.TemporaryDirectory(prefix="isorun-scan-") as kept:
        store = Path(kept) / "store"
        record = _run_once(study, store)
        printed = _printed(store / "runs" / record.run_id / "output.log", study)
        files = _written(record, store / "runs" / record.run_id)
    found = _found(record, printed, files)
    judged = _judged(found)
    ended = record.state is RunState.FINISHED
    if options.json:
        weights = dict(record.digests)
        told = {"files": [_file_json(file, record) for file in files], "weights": weights}
        cli.print_json({**_as_json(found, judged), **told, "state": str(record.state), "reason": record.reason})
        return int(not ended)
    if not ended:
        print(harmless(f"the run {record.state} ({record.reason}): what it left is not all that a whole run leaves"))
        for line in record.log_tail.splitlines()[-_LINES_OF_A_FAILURE:]:
            print(harmless(f"  {plain(line)}"))
    _show_metrics(found, judged)
    for line in (*_file_lines(files, record), *_weight_lines(record), *_next(record, files)):
        print(harmless(line))
    return int(not ended)


def _run_once(study: Study, store: Path) -> RunRecord:
    from isorun import workflow
    from isorun.cli.progress import Progress

    with workflow.session_of(study, store=str(store)) as session, Progress(study, sys.stderr) as progress:
        return workflow.run_missing(study, session, progress, keep_study=False).records[0]


def _printed(log: Path, study: Study) -> Found:
    """What its output gives alone, for the lines that values were first seen in."""
    from isorun.sources.lines import scan_text

    [approach] = study.approaches.values()
    return scan_text(log.read_bytes().decode("utf-8", "replace") if log.is_file() else "", approach.sources)


def _written(record: RunRecord, run_folder: Path) -> list[WrittenFile]:
    from datetime import datetime

    from isorun.execution.assemble import FILES, written_paths
    from isorun.sources.written import Looked, look

    since = datetime.fromisoformat(record.started_at).timestamp()
    folder, told = Path.cwd(), record.environment.get(FILES)
    named = {str(folder / name): item for name, item in told.items()} if isinstance(told, dict) else {}
    effective = {**record.environment.get("effective", {}), FILES: named}
    return look(written_paths(folder, run_folder, since, effective), Looked(folder, run_folder, since, whole=True))


def _found(record: RunRecord, printed: Found, files: Sequence[WrittenFile]) -> Found:
    """The metrics of the record, each with a line or a row in which it was first seen."""
    from isorun.sources import Found
    from isorun.study.records import Series

    examples = dict(printed.examples)
    for file in files:
        taken = [name for name, origin in file.found.origins.items() if record.origins.get(name) == origin]
        examples |= {name: file.found.examples[name] for name in taken if name in file.found.examples}
    alone = {name: Series((0.0,), (0.0,), (value,)) for name, value in record.results.items()}
    notes = tuple(note for note in record.notes if note.code not in _OFFERS)
    return Found({**alone, **record.series}, record.results, record.origins, examples, notes)


def _is_used(file: WrittenFile, record: RunRecord) -> bool:
    return any(origin in record.origins.values() for origin in file.found.origins.values())


def _file_json(file: WrittenFile, record: RunRecord) -> dict[str, Any]:
    values = {name: series.values[-1] for name, series in file.found.series.items()}
    return {
        "path": file.shown,
        "form": file.form,
        "metrics": {name: value if abs(value) < float("inf") else None for name, value in values.items()},
        "used": _is_used(file, record),
        "why_not": file.why_not or None,
        "option": file.option,
    }


def _file_lines(files: Sequence[WrittenFile], record: RunRecord) -> Iterator[str]:
    from isorun.sources.written import values_shown

    by_files = any(_is_used(file, record) for file in files)
    other = "another file has the same metrics" if by_files else "the run printed or logged metrics"
    yield f"{len(files)} file{'s' if len(files) != 1 else ''} with metrics written{':' if files else ''}"
    for file in files[:_FILES_SHOWN]:
        used = "read" if _is_used(file, record) else f"not read: {file.why_not or other}"
        values = values_shown(file.found) if file.found.series else "nothing that is surely a metric"
        yield f"  {file.shown} ({file.form}): {values}; {used}"
        if used != "read" and (file.why_not or not by_files):
            yield f"    to read it: {file.option}"


def _weight_lines(record: RunRecord) -> Iterator[str]:
    if record.digests:
        yield "weights: " + ", ".join(f"{name} {digest[:16]}" for name, digest in sorted(record.digests.items()))
        return
    why = next((note.message for note in record.notes if note.code == "no-digest"), "")
    yield f'weights: no digest{f" ({why})" if why else ""}; isorun.digest("weights.final", …) leaves one'


def _next(record: RunRecord, files: Sequence[WrittenFile]) -> Iterator[str]:
    from isorun.study.records import RunState

    command = shlex.join(record.cell.command)
    if record.state is not RunState.FINISHED:
        yield f"next: mend the failure, then isorun scan -- {command}"
        return
    offered = [file for file in files if not _is_used(file, record)]
    if record.origins:
        yield f"next: isorun run -n 16 -- {command}"
    elif offered:
        yield f"next: isorun scan {offered[0].option} -- {command}"
    else:
        yield f"next: {_how_to_name(record.log_tail, f'-- {command}')}"
