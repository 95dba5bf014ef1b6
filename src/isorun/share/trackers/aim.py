"""Aim: its repository (`.aim`), read by Aim's own package, which alone knows its storage.

aim:FOLDER, the one that holds `.aim`. The package is asked in a process of its own, that of `--python` where one is
named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from isorun.errors import InputError
from isorun.share.trackers import (
    MICROSECONDS,
    AbstractTracker,
    Chosen,
    GrowingSeries,
    TrackedRun,
    left_out_times,
    number_of,
    shown_where,
)
from isorun.share.trackers.own_packages import asked_of_package
from isorun.study.records import RunState

__all__ = ["Aim"]


class Aim(AbstractTracker):
    """Runs of Aim. An experiment is one of Aim's."""

    name = "aim"
    where_hint = "aim:FOLDER, the folder that holds .aim"

    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """Every run, in the order in which they began."""
        path = Path(self.where)
        folder = path if path.name == ".aim" else path / ".aim"
        if not (folder / "meta").is_dir():
            raise InputError(f"there is no repository of Aim in {shown_where(self.where)}", allowed=self.where_hint)
        rows = list(asked_of_package("aim", "aim_reading.py", arguments=[str(folder)], python=chosen.python))
        names = {str(row["experiment"]): str(row["experiment"]) for row in rows}
        wanted = chosen.only(names, "experiment", self.place)
        runs = [_run(row) for row in rows if str(row["experiment"]) in wanted]
        yield from sorted(runs, key=lambda run: (run.started or 0, run.key))


def _run(row: Mapping[str, Any]) -> TrackedRun:
    axes: dict[str, GrowingSeries] = {}
    left_out = [str(item) for item in row["left_out"]]
    for name, steps, times, values in row["series"]:
        axis, wrong = GrowingSeries(), 0
        for step, time, value in zip(steps, times, values, strict=True):
            number, moment = number_of(value), number_of(time)
            if number is None:
                wrong += 1
            else:
                axis.add(number_of(step) or 0.0, None if moment is None else round(moment * MICROSECONDS), number)
        axes |= {name: axis} if axis.values else {}
        if wrong:
            left_out.append(left_out_times(f"a value of {name} that is no number", wrong))
    left_out += [f"what Aim itself noted as {name}" for name in row["params"] if name.startswith("__")]
    words = {"aim.description": row["description"]} if row["description"] else {}
    words |= {"aim.archived": "true"} if row.get("archived") else {}
    return TrackedRun(
        key=(str(row["run"]),),
        experiment=str(row["experiment"]),
        name=str(row["name"]),
        state=None if row["active"] else RunState.FINISHED,
        started=_microseconds(row["created"]),
        ended=_microseconds(row["ended"]),
        params=_params(row["params"]),
        tags={**dict.fromkeys(row["tags"], ""), **words},
        series={name: axis.series() for name, axis in axes.items()},
        left_out=tuple(left_out),
    )


def _params(params: Mapping[str, Any]) -> dict[str, Any]:
    """What was set on a run; `run["hparams"] = {…}` is how everybody sets all of them."""
    own = params.get("hparams")
    rest = {name: value for name, value in params.items() if name != "hparams" and not name.startswith("__")}
    return {**(own if isinstance(own, Mapping) else {} if own is None else {"hparams": own}), **rest}


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * MICROSECONDS)
