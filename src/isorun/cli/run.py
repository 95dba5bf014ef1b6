"""Train the same thing many times under control and record everything.

  isorun run study.toml                                    a declared study; again = only what is missing
  isorun run -n 16 --level fixed-seed -- python train.py   any command, no change to its code
  isorun run study.toml --store URL --queue                kept for isorun worker, which carries it out elsewhere

Levels: default (nothing fixed), fixed-seed (the algorithm's randomness fixed), deterministic (kernels, threads and
CPU path fixed too). Without --level the command runs at level default.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

from isorun import cli
from isorun.errors import UsageError, harmless
from isorun.study.records import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isorun import workflow
    from isorun.repair.agenda import Foreseen
    from isorun.scheduling import Outcome
    from isorun.store import AbstractStore
    from isorun.study.cells import Cell
    from isorun.study.design import Study
    from isorun.study.records import RunRecord

__all__ = ["declare", "execute"]

_MOST_SHOWN: Final = 1000
_ENDS_TOLD: Final = 5
_LINES_TOLD: Final = 3
_LINES_SEARCHED: Final = 6
_PLACE: Final = re.compile(r'\s+File ".+", line \d+')


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.usage = "isorun run [options] STUDY.toml | isorun run [options] -- COMMAND …"
    parser.add_argument("study", nargs="?", metavar="STUDY", help="a study file, or the name of an earlier study")
    parser.set_defaults(takes_command=True)
    command = cli.declare_command(parser)
    command.add_argument("-n", "--repeats", type=int, metavar="N", help="how many identical runs (default 1)")
    both = parser.add_argument_group("how to run")
    both.add_argument("-j", "--jobs", type=int, metavar="N", help=cli.JOBS_HELP)
    both.add_argument("--launch", choices=("auto", "warm", "fresh"), default="auto", help="warm: fork from a server")
    both.add_argument("--time-limit", metavar="TIME", help="such as 90s, 10m, 2h; a run is stopped then")
    both.add_argument("--retries", type=int, metavar="N", help="how often a failed run is tried again")
    both.add_argument("--fail-fast", action="store_true", help="stop everything at the first failure")
    cli.declare_isolate(both)
    cli.declare_session(both)
    about = "of a cluster: queue the runs and leave; the same command comes back to them"
    both.add_argument("--detach", action="store_true", help=about)
    about = "keep the study for isorun worker, and run nothing here"
    both.add_argument("--queue", action="store_true", help=about)
    both.add_argument("--dry-run", action="store_true", help="show what would be run, and stop")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Carry the study out and say what came of it."""
    from isorun import workflow

    with workflow.opened(_source(options), options.store) as (loaded, store):
        workflow.refuse_imported(loaded)
        study = cli.with_policy(loaded, options)
        if options.queue:
            return _queue(study, options, store)
        return _dry_run(study, options, store) if options.dry_run else _carry_out(study, options, store)


def _carry_out(study: Study, options: argparse.Namespace, store: workflow.Store) -> int:
    from isorun import workflow
    from isorun.cli.progress import Progress
    from isorun.study.design import with_key

    with workflow.session_of(study, **{**cli.session_options(options), "store": store}) as session:
        study = with_key(study, session.store.key)  # which may be part of its name
        with Progress(study, sys.stderr) as progress:
            # A search is kept by its name, too: isorun repair asks for it.
            keep = not options.study or bool(study.searches)
            outcome = workflow.run_missing(study, session, progress, keep_study=keep, detach=options.detach)
        _print(study, outcome, progress, options, session.store)
    return _exit_code(outcome, is_search=bool(study.searches), detached=options.detach)


def _queue(study: Study, options: argparse.Namespace, store: workflow.Store) -> int:
    """Keep the study for workers, and say what they would do."""
    from pathlib import Path

    from isorun import workflow
    from isorun.analysis.evidence import some
    from isorun.session import place_of, store_place
    from isorun.store import AbstractStore, shown_place

    if options.dry_run or options.executor != "local":
        other = "--dry-run" if options.dry_run else "--executor"
        raise UsageError(f"--queue keeps a study for workers and runs nothing; {other} does not go with it")
    place = place_of(study, store)
    kept, missing, conditions = workflow.queue(study, store=store)
    # A study that was asked for by its name comes with the store that keeps it, which is open already.
    shown = shown_place(options.store or (store_place(None) if isinstance(place, AbstractStore) else place))
    if options.json:
        warnings = [condition.to_json() for condition in conditions]
        cli.print_json({"study": kept.name, "missing": len(missing), "store": shown, "warnings": warnings})
        return 0
    print(harmless(f"{kept.name}: kept for workers; {some(len(missing), 'cell')} left to carry out, nothing was run"))
    if conditions:
        from isorun.report import View

        cli.show(View((), (), tuple(conditions)))
    where = harmless(str(Path(kept.folder).resolve()))
    print(f"next: isorun worker {shlex.quote(shown)}, on any machine that has {where}")
    return 0


def _source(options: argparse.Namespace) -> Study | str:
    """The study of a command, or the name of one."""
    examples = "isorun run study.toml, or isorun run -n 16 -- python train.py"
    if cli.study_or_command(options, options.study, examples):
        return cli.study_of([options.command], options)
    return str(options.study)


def _dry_run(study: Study, options: argparse.Namespace, store: workflow.Store) -> int:
    from isorun import workflow

    left = {cell.id for cell in workflow.missing(study, store=store)}  # first: 100,000 cells, but not twice
    cells = workflow.cells(study, store=store)
    named, final = workflow.as_its_store_names_it(study, store)
    ahead = _foreseen(study, store) if study.searches else ()
    unfinished = left
    if study.searches:  # a trial that failed is not tried again
        left = set().union(*(one.open for one in ahead))
    if options.json:
        ids = {} if final else {"id": None}
        listed = ({**cell.to_json(), **ids, **_factors(study, cell), "missing": cell.id in left} for cell in cells)
        cli.print_json(itertools.chain(listed, _next_json(named, ahead)))
        return 0
    name = named.name if final or options.name or options.study else "this study"
    runs = (f"{name}: {len(left)} of {len(cells)} runs are missing; nothing was run",)
    for line in _ahead(name, ahead) if study.searches else runs:
        print(harmless(line))
    if not final:
        print("  its name and the ids of its runs are not known yet: the store that is made with the first run has")
        print("  a part in them, because something secret is withheld from the records")
    for line in study.factors.in_words() if study.factors is not None else ():
        print(f"  {harmless(line)}")
    for cell in cells[:_MOST_SHOWN]:
        shown = f"{cell.id}  " if final else ""
        word = "missing " if cell.id in left else "failed  " if cell.id in unfinished else "finished"
        print(f"  {word}  {shown}{harmless(cell.label)}")
    if len(cells) > _MOST_SHOWN:
        print(f"  … and {len(cells) - _MOST_SHOWN:,} more; --json lists all")
    for line in _next(ahead):
        print(harmless(line))
    return 0


def _foreseen(study: Study, store: workflow.Store) -> tuple[Foreseen, ...]:
    from isorun.repair.agenda import foreseen
    from isorun.session import place_of, store_if_there

    with store_if_there(place_of(study, store)) as found:
        return foreseen(study, found)


def _ahead(name: str, ahead: Sequence[Foreseen]) -> Iterator[str]:
    """Of each search: how many trials are made and how many are to come."""
    for one in ahead:
        open_ones = f" ({one.made - one.ended} of them not ended)" if one.made > one.ended else ""
        counted = f"{one.made} trials are made{open_ones}, {one.to_come} to come, {one.made + one.to_come} in all"
        yield f"{f'{name} {one.design.name}'.strip()}: {counted}; nothing was run"


def _next(ahead: Sequence[Foreseen]) -> Iterator[str]:
    """Of each search what it would propose now."""
    for one in ahead:
        if one.next is not None:
            again = f", repeat {one.next.repeat}" if one.next.repeat else ""
            by = f"by {one.next.by}" if one.next.origin is None else f"by {one.next.by}, from trial {one.next.origin}"
            yield f"  next      {one.design.label(one.next.number)}{again} ({by}): {_values(one.next.parameters)}"


def _values(parameters: Mapping[str, Any]) -> str:
    shown = parameters.items()
    return ", ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in shown)


def _next_json(study: Study, ahead: Sequence[Foreseen]) -> Iterator[dict[str, Any]]:
    """What would be proposed now, as a cell."""
    from isorun.study.searches import trial_cell

    for one in ahead:
        if one.next is not None:
            yield {**trial_cell(study, one.design, one.next).to_json(), "missing": True, "is_next": True}


def _print(study: Study, outcome: Outcome, progress: Any, options: argparse.Namespace, store: AbstractStore) -> None:
    from isorun.scheduling import LEFT

    name = options.study or study.name
    if options.json:
        cli.print_json(_summary(study, outcome, name, store, options.store or ""))
        return
    for line in _searched(study, store):
        print(line)
    print(_headline(study, outcome, store))
    for line in progress.metrics_found():
        print(line)
    for line in _told_ends(outcome):
        print(harmless(line))
    conditions = [one for one in outcome.conditions if not progress.is_read(one)]
    if conditions:
        from isorun.report import View

        cli.show(View((), (), tuple(conditions)))
    if study.policy.isolate and outcome.records:
        print("  what each run made in its copy of the folder is kept: runs/ID/workspace in the store")
    if not outcome.proposed:
        print("  a finished run is never run again; to repeat it (another script, other sources), name a new --store")
    kept_in, typed = (f" --store {shlex.quote(options.store)}" if options.store else ""), shlex.quote(name)
    if outcome.stopped.startswith(LEFT):
        print(f"  isorun status {typed}{kept_in} shows them, the same command comes back to them,")
        print(f"  isorun stop {typed}{kept_in} ends them")
    if outcome.count(RunState.FINISHED) or outcome.elsewhere or not outcome.proposed:
        print(f"next: isorun {_asked_next(study, outcome)} {typed}{kept_in}")


def _told_ends(outcome: Outcome) -> Iterator[str]:
    """The runs that did not finish, those that ended in the same way together, each with the end of its output.

    What kept an environment from being made is both the reason and the output: no line of that is told twice.
    """
    alike: dict[tuple[RunState, str, str], list[str]] = {}
    for record in outcome.records:
        if record.state is not RunState.FINISHED:
            alike.setdefault((record.state, record.reason, record.log_tail), []).append(record.cell.label)
    for (state, reason, tail), labels in list(alike.items())[:_ENDS_TOLD]:
        others = f" and {len(labels) - 1} more" if labels[1:] else ""
        yield f"  {state}: {labels[0]}{others}: {reason}"
        for line in _last_lines(tail):
            found = line.strip().partition("found:")
            if found[0] or not found[1] or found[2].strip() not in reason:
                yield f"    | {line}"
    left = sum(map(len, list(alike.values())[_ENDS_TOLD:]))
    if left:
        yield f"  {left} more ended in other ways: isorun report names them"


def _last_lines(tail: str) -> list[str]:
    """The end of an output: of a traceback from its last place on, which names the file and the line."""
    lines = tail.rstrip().splitlines()[-_LINES_SEARCHED:]
    place = max((number for number, line in enumerate(lines) if _PLACE.match(line)), default=len(lines))
    return lines[min(place, max(len(lines) - _LINES_TOLD, 0)) :]


def _asked_next(study: Study, outcome: Outcome) -> str:
    """The command that answers what the study was declared for; where runs left nothing to judge by, what says so."""
    if study.searches:
        return "repair"
    finished = [record for record in outcome.records if record.state is RunState.FINISHED]
    without_metric = finished and not any(record.results or record.series for record in finished)
    return "report" if study.factors is None or without_metric else "factors"


def _searched(study: Study, store: AbstractStore) -> Iterator[str]:
    """Of each search the best trial, how it is with it, and what is wrong with it."""
    if not study.searches:
        return
    from isorun.repair.told_searches import told_of

    for told in told_of(study, store):
        yield from map(harmless, told.view().verdict)
        if told.search.best is not None:
            yield harmless(f"  best trial: {_values(told.search.best.parameters)}")


def _headline(study: Study, outcome: Outcome, store: AbstractStore) -> str:
    """How it ended. That all runs were made before is said only where none was proposed."""
    from isorun import workflow
    from isorun.study.cells import cells_of

    before = ""
    if not outcome.proposed:
        known = len(cells_of(workflow.known_to(study, store)))
        before = f", all {known:,} runs were made before" if known > 1 else ", its only run was made before"
    return f"{study.name}: {outcome.counted}{before}"


def _summary(study: Study, outcome: Outcome, name: str, store: AbstractStore, kept_in: str) -> dict[str, Any]:
    """For machines. name, kept_in: the study and its store, as they were named."""
    from isorun import workflow

    made = {record.run_id for record in outcome.records}
    kept = [record for record in workflow.records(study, store=store) if record.run_id not in made]
    earlier = [record for record in kept if record.state is RunState.FINISHED]
    return {
        "study": study.name,
        "finished": outcome.count(RunState.FINISHED),
        "failed": outcome.count(RunState.FAILED) + outcome.count(RunState.TIMED_OUT),
        "interrupted": outcome.count(RunState.INTERRUPTED),
        "elsewhere": outcome.elsewhere,
        "stopped": outcome.stopped,
        "reused": len(earlier),
        "runs": [
            *({**_run(record, reused=False), **_factors(study, record.cell)} for record in outcome.records),
            *({**_run(record, reused=True), **_factors(study, record.cell)} for record in earlier),
        ],
        "warnings": [condition.to_json() for condition in outcome.conditions],
        **_searches_json(study, store, name, kept_in),
        "next": shlex.join(["isorun", _asked_next(study, outcome), name, *(["--store", kept_in] if kept_in else [])]),
    }


def _factors(study: Study, cell: Cell) -> dict[str, Any]:
    """The value of each factor in a cell of a design; nothing where there is none."""
    return {} if study.factors is None else {"factors": dict(study.factors.points[cell.environment])}


def _searches_json(study: Study, store: AbstractStore, name: str, kept_in: str) -> dict[str, Any]:
    if not study.searches:
        return {}
    from isorun.repair.told_searches import told_of

    return {"searches": [told.to_json() for told in told_of(study, store, where=name, kept_in=kept_in)]}


def _run(record: RunRecord, *, reused: bool) -> dict[str, Any]:
    """One run with the last value of everything it left. reused: it was made before, and not by this command."""
    last = {name: series.values[-1] for name, series in record.series.items() if series.values}
    return {
        "run": record.run_id,
        "label": record.cell.label,
        "seed": record.seed_used if record.cell.seed is None else record.cell.seed,
        "state": str(record.state),
        "reason": record.reason,
        "wall_seconds": record.wall_seconds,
        "launch": record.launch,
        "values": {name: _finite(value) for name, value in {**last, **record.results}.items()},
        "reused": reused,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _exit_code(outcome: Outcome, *, is_search: bool, detached: bool) -> int:
    """A search goes on when a trial fails, so that it fails only where none of them finished."""
    from isorun.scheduling import INTERRUPTED, LEFT

    if outcome.stopped.startswith(LEFT):
        return 0 if detached else 130
    if outcome.stopped == INTERRUPTED:
        return 130
    last = {record.cell.id: record.state for record in outcome.records}
    misnamed = any(condition.code == "metric-not-logged" for condition in outcome.conditions)
    ended_well = [state is RunState.FINISHED for state in last.values()]
    well = (any(ended_well) or not ended_well) if is_search else all(ended_well)
    return 0 if well and not misnamed and not outcome.stopped else 1
