"""What is wrong inside a training: problems with their evidence, and what to try.

isorun doctor study.toml            every run of a study, and what they have in common
isorun doctor 3f0c9a1be2d45678-1    one run, by the id that isorun run --json lists
isorun doctor study.toml --json     for programs; exit code 3 when a problem is found

A training shows its inside when it calls isorun.watch(model); what can be told from its losses and accuracies alone is
told without.
"""

from __future__ import annotations

import argparse

from isorun import cli

__all__ = ["declare", "execute"]

_FOUND = 3


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "a study file, the name of an earlier study, or the id of a run"
    parser.add_argument("subject", metavar="STUDY|RUN", help=about)
    parser.add_argument("--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun)")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Examine and tell; 3 where a problem was found."""
    from isorun.showing import view_of
    from isorun.workflow import doctor

    found = doctor(options.subject, store=options.store)
    cli.answer(found, view_of, options)
    return _FOUND if found.problems else 0
