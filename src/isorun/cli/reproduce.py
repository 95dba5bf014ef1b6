"""Run a paper's own design and print its tables with our numbers beside the published ones.

isorun reproduce                         the papers, their tables, networks and data, and the cost at each scale
isorun reproduce ase20                   a smoke run: seconds, to see that all of it works here
isorun reproduce ase20 --scale cpu       minutes on 2 cores; gpu: minutes on one data-centre GPU; paper: as published
isorun reproduce ase20 --only lenet5 --runs 16 --scale cpu --html lenet5.html
isorun reproduce --from ase20.json --html ase20.html
                                         the pages of what --json printed elsewhere: no run, no data

The runs are kept as those of any study: the same command again runs only what is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from isorun import cli
from isorun.errors import UsageError

if TYPE_CHECKING:
    from isorun.cli.progress import Progress
    from isorun.report import View
    from isorun.reproducing import KeptReproduction, Reproduction
    from isorun.study.design import Study
    from isorun.zoo.paper import Request

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument(
        "paper",
        nargs="?",
        metavar="PAPER",
        help="ase20, tacl18, fewshot, dream, or one that another distribution brings (default: list them)",
    )
    parser.add_argument(
        "--scale", default="smoke", metavar="SCALE", help="smoke, cpu, gpu or paper (default: smoke, seconds)"
    )
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="a part of it; may be repeated")
    parser.add_argument("--runs", type=int, metavar="N", help="identical runs a group (default: the scale's own)")
    parser.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu or cuda (default: auto)")
    parser.add_argument(
        "-j", "--jobs", type=int, default=1, metavar="N", help="runs at a time, each on CPUs of its own"
    )
    parser.add_argument("--launch", choices=("auto", "warm", "fresh"), default="auto", help="warm: fork from a server")
    parser.add_argument("--store", metavar="FOLDER", help="where records are kept (default: .isorun in this folder)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be run, and stop")
    parser.add_argument("--recorded", action="store_true", help="show what is recorded, and run nothing")
    parser.add_argument(
        "--from", dest="kept", metavar="FILE", help="show what --json printed into this file, and run nothing"
    )
    parser.add_argument("--html", metavar="FILE", help="also write one self-contained page")
    parser.add_argument("--markdown", metavar="FILE", help="also write Markdown tables")
    parser.add_argument("--latex", metavar="FILE", help="also write LaTeX tables (booktabs)")
    parser.add_argument("--figures", metavar="FOLDER", help="also write the figures as SVG files")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """List the papers, or carry one out and show it."""
    if options.kept is not None:
        return _show_kept(options)
    if options.paper is None:
        return _list(options)
    if options.jobs < 1:
        raise UsageError("--jobs is too small", found=str(options.jobs), allowed="1 or more")
    if options.dry_run:
        return _dry_run(options)
    _check_targets(options)
    from isorun.reproducing import reproduce

    done = reproduce(
        options.paper,
        scale=options.scale,
        only=options.only,
        runs=options.runs,
        device=options.device,
        store=options.store,
        jobs=options.jobs,
        launch=options.launch,
        watch=_progress,
        run=not options.recorded,
    )
    _show(done, options)
    return _exit_code(done)


def _show_kept(options: argparse.Namespace) -> int:
    """The pages of a reproduction that was made before, perhaps by others."""
    asked = {"--only": options.only, "--runs": options.runs, "--store": options.store, "--dry-run": options.dry_run}
    asked |= {"--recorded": options.recorded, "--scale": options.scale != "smoke", "--device": options.device != "auto"}
    given = [name for name, value in asked.items() if value]
    if given:
        raise UsageError(f"--from runs nothing, so {given[0]} says nothing", allowed="--from FILE alone with formats")
    _check_targets(options)
    from isorun.reproducing import kept_reproduction

    done = kept_reproduction(options.kept)
    if options.paper not in (None, done.paper):
        raise UsageError(f"{options.kept} is of another paper", found=done.paper, hint="leave the paper's name out")
    _show(done, options)
    return 0


def _show(done: Reproduction | KeptReproduction, options: argparse.Namespace) -> None:
    """Write the files that were asked for, and print the rest."""
    view = done.view(figures=True)
    written = _write(done, view, options)
    if options.json:
        cli.print_json(done.to_json())
    else:
        cli.show(view)
        for path in written:
            print(f"written: {path}")


def _check_targets(options: argparse.Namespace) -> None:
    """Refuse places that cannot be written to before hours of training, not after."""
    for path in filter(None, (options.html, options.markdown, options.latex)):
        if not Path(path).absolute().parent.is_dir():
            raise UsageError(f"{path} cannot be written", found=f"there is no folder {Path(path).parent}")
    if options.figures:
        cli.made_folder(options.figures)


def _list(options: argparse.Namespace) -> int:
    from isorun.zoo.papers import brought_papers, papers, papers_to_json, papers_view

    given = [
        name for name in ("only", "runs", "store", "html", "markdown", "latex", "figures") if getattr(options, name)
    ]
    if given:
        raise UsageError(f"--{given[0]} needs a paper", hint=f"isorun reproduce ase20 --{given[0]} …")
    brought, broken = brought_papers()
    known = (*papers(), *brought)
    if options.json:
        cli.print_json(papers_to_json(known, broken))
        return 0
    cli.show(papers_view(known, broken))
    print("\nnext: isorun reproduce ase20")
    return 0


def _dry_run(options: argparse.Namespace) -> int:
    from isorun.reproducing import runs_to_do, studies_of

    studies = studies_of(options.paper, _request(options))
    planned = [(study, *runs_to_do(study, options.store)) for study in studies]
    if options.json:
        entries = [{"study": study.name, "runs": runs, "missing": left} for study, runs, left in planned]
        cli.print_json({"paper": options.paper, "scale": options.scale, "studies": entries})
        return 0
    missing, total = sum(left for _, _, left in planned), sum(runs for _, runs, _ in planned)
    print(f"{options.paper} at scale {options.scale}: {missing} of {total} runs are missing; nothing was run")
    for study, runs, left in planned:
        print(f"  {study.name}: {left} of {runs} runs are missing")
    return 0


def _request(options: argparse.Namespace) -> Request:
    from isorun.zoo.paper import Request

    return Request(options.scale, Path(), tuple(options.only), options.runs, options.device)


def _progress(study: Study) -> Progress:
    from isorun.cli.progress import Progress

    return Progress(study, sys.stderr)


def _write(done: Reproduction | KeptReproduction, view: View, options: argparse.Namespace) -> list[str]:
    from isorun.report import html, latex, markdown

    title, kicker = done.heading
    if options.html:
        cli.write_file(options.html, html.render_view(title, kicker, view), "html")
    if options.markdown:
        cli.write_file(options.markdown, markdown.render_view(title, view), "markdown")
    if options.latex:
        cli.write_file(options.latex, latex.render_view(title, view), "latex")
    figures = cli.write_figures(view.figures, options.figures) if options.figures else []
    return [*filter(None, (options.html, options.markdown, options.latex)), *figures]


def _exit_code(done: Reproduction) -> int:
    from isorun.scheduling import INTERRUPTED

    if done.stopped == INTERRUPTED:
        return 130
    return 1 if done.failed or done.stopped else 0
