"""Take the runs that an experiment tracker kept into the store, as a study about which every question can be asked.

isorun import mlflow:sqlite:///mlflow.db --experiment 3
isorun import mlflow:http://127.0.0.1:5000 --approach model
isorun import wandb:./wandb | tensorboard:runs | optuna:sqlite:///s.db
isorun import trackio:PROJECT | aim:FOLDER | csv:FILE | parquet:FILE
isorun report NAME

Every value, parameter, tag and time is kept; what a record has no place for (artifacts, images) is named. Again: only
what is new. Runs are told apart by what they were filed under (the approach) and by their parameters (the config). A
parameter called seed is taken for the seed, and every verdict says so; where there is none, units are unknown, which it
says, too. Files are read without the tracker installed, and nothing in them is executed; Aim is read by its own
package, here or in the interpreter that --python names.
"""

from __future__ import annotations

import argparse

from isorun import cli

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("place", metavar="TRACKER:PLACE", help="such as mlflow:sqlite:///mlflow.db or wandb:./wandb")
    parser.add_argument(
        "--experiment",
        dest="experiments",
        action="append",
        metavar="NAME|NUMBER",
        help="only this experiment, project, study or run folder; may be repeated",
    )
    parser.add_argument("--name", help="a name for the study (default: the experiment's)")
    about = "what tells approaches apart: experiment (default), name, or a parameter or a tag"
    parser.add_argument("--approach", metavar="WHAT", help=about)
    parser.add_argument("--seed", metavar="PARAMETER", help="the parameter with the seed; none for none")
    about = "a parameter that tells no configs apart, such as a folder; may be repeated"
    parser.add_argument("--ignore", action="append", default=[], metavar="PARAMETER", help=about)
    about = "what runs are judged by; of a table without metrics.X, its columns with results; may be repeated"
    parser.add_argument("--metric", dest="metrics", action="append", metavar="NAME[:lower|:higher]", help=about)
    parser.add_argument("--update", action="store_true", help="take runs that grew since as they are now")
    parser.add_argument("--deleted", action="store_true", help="take runs that were deleted in MLflow, too")
    parser.add_argument("--python", metavar="PATH", help="an interpreter that has aim, for aim:FOLDER")
    parser.add_argument("--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun here)")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Import, and say what came of it."""
    from isorun.share.importing import import_runs

    found = import_runs(
        options.place,
        name=options.name,
        store=options.store,
        experiments=options.experiments or (),
        approach=options.approach,
        seed=options.seed,
        ignore=options.ignore,
        metrics=cli.named_metrics(options),
        update=options.update,
        python=options.python or "",
        progress=cli.tell,
        deleted=options.deleted,
    )
    if options.json:
        cli.print_json(found.to_json())
    else:
        cli.show(found.view())
    return 0
