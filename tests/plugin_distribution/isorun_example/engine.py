"""An engine that keeps its searches in a ledger: a line of JSON as a trial begins, one as it ends. `ledger:FILE`."""

import json
import math
import os
import time
from pathlib import Path

import numpy as np

from isorun.errors import InputError
from isorun.repair.engines import AbstractEngine
from isorun.repair.policy import values_for
from isorun.repair.searches import Parameter, Search, Trial

SPACE = (Parameter("lr", "float", low=1e-4, high=1.0, log=True), Parameter("units", "int", low=8, high=64))


class Ledger(AbstractEngine):
    """The searches of one file."""

    name = "ledger"
    location = "ledger:FILE"
    strategies = ("scatter",)
    by_chance = ("scatter",)

    @property
    def path(self):
        return Path(self.where.partition(":")[2])

    def names(self):
        return list(dict.fromkeys(line["search"] for line in self._lines()))

    def read(self, name):
        told = []
        for line in self._lines():
            if line["search"] == name and "ends" in line:
                told[line["ends"]] |= line
            elif line["search"] == name:
                told.append(line)
        return Search("ledger", name, "higher", SPACE, tuple(_trial(number, line) for number, line in enumerate(told)))

    def go_on(self, name, function, trials, policy, *, again):
        left = [one for one in self.read(name).trials if again and one.state == "running"]
        for one in left:
            self.give_up(name, one.number, "its process is gone: it is tried again")
        for _ in range(trials):
            search = self.read(name)
            number = len(search.trials)
            plan = None if left else policy.plan(search, number)
            drawn = left.pop(0).parameters if left else self.propose("scatter", search, SPACE, number)
            values = {one.name: next(iter(values_for(plan, one)), drawn[one.name]) for one in SPACE}
            begun = {"started": time.time(), "process": os.getpid()}
            self.append(name, parameters=values, origin=plan.origin if plan else None, **begun)
            try:
                self.append(name, ends=number, score=function(values))
            except Exception as error:
                self.append(name, ends=number, score=None, why=f"{type(error).__name__}: {error}")

    def give_up(self, name, number, why):
        self.append(name, ends=number, score=None, why=why)
        return True

    def append(self, name, **told):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"search": name, **told}) + "\n")

    @classmethod
    def propose(cls, strategy, search, space, seed):  # noqa: ARG003 - it has one strategy, which learns nothing
        rng = np.random.default_rng(seed)
        return {one.name: _drawn(one, rng) for one in space}

    def _lines(self):
        if not self.path.is_file():
            raise InputError(f"{self.path} is not there", hint="isorun repair ledger:FILE")
        lines = self.path.read_text(encoding="utf-8").split("\n")[:-1]  # what has no end of line is half-written
        return [json.loads(line) for line in lines]


def _trial(number, line):
    score, origin = line.get("score"), line.get("origin")
    has_score = score is not None and math.isfinite(score)
    return Trial(
        number,
        "finished" if has_score else "failed" if "score" in line else "running",
        score if has_score else None,
        line["parameters"],
        started=line.get("started"),
        process=line.get("process"),
        why_failed=line.get("why", ""),
        proposed_by="isorun" if origin is not None else "",
        origin=origin,
    )


def _drawn(parameter, rng):
    if parameter.kind == "category":
        return parameter.choices[int(rng.integers(len(parameter.choices)))]
    if parameter.kind == "int":
        return int(parameter.low + (parameter.step or 1) * rng.integers(4))
    return float(parameter.low * (parameter.high / parameter.low) ** rng.random())
