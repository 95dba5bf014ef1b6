"""Write the runs of a study as MLflow or Weights & Biases keep runs, or as tables for anyone.

isorun export mlflow study.toml --to sqlite:///mlflow.db     by MLflow's client: mlflow ui opens it
isorun export wandb-offline NAME --to ./wandb                folders that wandb sync uploads
isorun export parquet NAME | csv NAME                        runs and metrics, a row a run and a row a value

Runs that were imported go out as they came in. What the target has no place for is named. MLflow has to be installed,
here (isorun[mlflow]) or in the interpreter that --python names; the others need nothing (Parquet: isorun[tables]).
"""

from __future__ import annotations

import argparse

from isorun import cli

__all__ = ["declare", "execute"]


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    parser.add_argument("form", metavar="FORM", help="mlflow, wandb-offline, parquet or csv")
    parser.add_argument("study", nargs="?", metavar="STUDY", help="a study file or name (default: the latest here)")
    parser.add_argument("--to", metavar="PLACE", help="where (default: a new place named after the study)")
    parser.add_argument("--python", metavar="PATH", help="an interpreter that has mlflow")
    parser.add_argument("--store", metavar="FOLDER|URL", help="where records are kept (default: .isorun)")
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Export, and say what was written."""
    from isorun.share.exporting import export_runs

    done = export_runs(
        options.form,
        options.study,
        to=options.to,
        store=options.store,
        python=options.python or "",
        progress=cli.tell,
    )
    if options.json:
        cli.print_json(done.to_json())
    else:
        cli.show(done.view())
    return 0
