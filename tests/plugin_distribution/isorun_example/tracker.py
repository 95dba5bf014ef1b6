"""A tracker whose runs stand on a slate: lines of run, metric, step, microseconds since 1970 and value."""

from pathlib import Path

from isorun.errors import InputError
from isorun.share.trackers import AbstractTracker, GrowingSeries, TrackedRun


class Slate(AbstractTracker):
    """Runs of one file; an experiment is the file."""

    name = "slate"
    where_hint = "slate:FILE"

    def read(self, chosen):
        path = Path(self.where)
        if not path.is_file():
            raise InputError(f"there is no slate {path}", allowed=self.where_hint)
        chosen.only({"slate": "slate"}, "experiment", self.place)
        runs = {}
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                run, metric, step, time, value = line.decode().split()
                axis = runs.setdefault(run, {}).setdefault(metric, GrowingSeries())
                axis.add(float(step), int(time), float(value))
            except (ValueError, OverflowError) as error:
                raise InputError(f"line {number} of {path} is no value of a run", found=str(error)[:80]) from None
        for name, axes in runs.items():
            series = {metric: axis.series() for metric, axis in axes.items()}
            yield TrackedRun(key=(name,), experiment="slate", name=name, series=series)
