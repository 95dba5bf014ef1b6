"""Priors as files: counts of edits from real trainings, their source, and how well they foretold searches held out.

A file is written by benchmarks/repair/build_priors.py and never by hand. Those that lie here are shipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from isorun.diagnose import Symptoms
from isorun.errors import InputError
from isorun.repair.actions import Edit
from isorun.repair.priorities import Prior, PriorRow
from isorun.repair.searches import SYMPTOMS

__all__ = ["USUAL", "prior_from_json", "prior_of", "prior_to_json", "read_prior", "shipped_prior", "shuffled"]

_FORMAT: Final = 1
_MOST_TRIES: Final = 5000.0
_HERE: Final = Path(__file__).parent
_SHIPPED: Final = "shipped"
USUAL: Final = "usual"
"""Where no prior is named: that of the study whose search it is, else those that are shipped."""


def prior_of(given: Prior | str | Path | None) -> Prior | None:
    """What a user names: a prior, a file, "shipped" (also where nothing is said: USUAL), or none.

    For comparisons "shipped, without DATA" leaves out what was counted on a data set, and "shipped, shuffled SEED" (or
    both) gives each count to another edit.
    """
    if given is None or isinstance(given, Prior):
        return given
    first, *changes = (_SHIPPED if given == USUAL else str(given)).split(", ")
    return _shipped(tuple(changes)) if first == _SHIPPED else read_prior(Path(given))


@cache
def _shipped(changes: tuple[str, ...]) -> Prior | None:
    prior = shipped_prior()
    for change in changes:
        prior = None if prior is None else _changed(prior, change)
    return prior


def _changed(prior: Prior, change: str) -> Prior:
    kind, _, what = change.partition(" ")
    if kind == "without" and what:
        rows = tuple(row for row in prior.rows if row.data != what)
        return replace(prior, rows=rows, source=f"{prior.source}; without {what}")
    if kind == "shuffled" and what.isdecimal():
        return shuffled(prior, np.random.default_rng([int(what), 1]))
    raise InputError(
        f"the prior {_SHIPPED!r} cannot be changed so", found=change, allowed="without DATA, shuffled SEED"
    )


def shuffled(prior: Prior, rng: np.random.Generator) -> Prior:
    """The same counts, each given to another edit: a prior that is wrong, and looks as sure as the right one."""
    order = rng.permutation(len(prior.rows))
    moved = zip(prior.rows, (prior.rows[place] for place in order), strict=True)
    rows = tuple(replace(one, tries=other.tries, improved=other.improved) for one, other in moved)
    return replace(prior, rows=rows, source=f"{prior.source}; shuffled")


@cache
def shipped_prior() -> Prior | None:
    """All shipped files as one prior; none where none is shipped.

    A table of all configurations gives as many edits as one cares to draw from it, and they share its trainings: no
    file counts for more tries than the trainings of a few weeks of searches would be.
    """
    found = [read_prior(path) for path in sorted(_HERE.glob("*.json"))]
    if not found:
        return None
    rows = tuple(row for one in found for row in _worth_at_most(_MOST_TRIES, one))
    noise = max(one.noise for one in found)
    return Prior(rows, source="; ".join(one.source for one in found), noise=noise)


def _worth_at_most(most: float, prior: Prior) -> tuple[PriorRow, ...]:
    share = min(1.0, most / max(sum(row.tries for row in prior.rows), 1.0))
    return tuple(replace(row, tries=row.tries * share, improved=row.improved * share) for row in prior.rows)


def read_prior(path: Path) -> Prior:
    """The prior in a file."""
    try:
        return prior_from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"the prior {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} is no prior",
            found=f"{type(error).__name__}: {error}",
            allowed="a file written by benchmarks/repair/build_priors.py",
        ) from None


def prior_from_json(document: Mapping[str, Any]) -> Prior:
    """The prior as its file holds it."""
    if document["format"] != _FORMAT:
        raise ValueError(f"format {document['format']!r}, which this isorun does not know")
    about = {key: value for key, value in document.items() if key not in ("format", "counts")}
    rows = tuple(_row(counted) for counted in document["counts"])
    return Prior(rows, source=str(document["source"]), noise=float(document.get("noise") or 0.0), about=about)


def _row(counted: Mapping[str, Any]) -> PriorRow:
    tries, improved = float(counted["tries"]), float(counted["improved"])
    if not 0 <= improved <= tries:
        raise ValueError(f"{improved:g} of {tries:g} improved")
    name, before, after = (str(counted[key]) for key in ("parameter", "from", "to"))
    symptoms = Symptoms(**{symptom: str(counted.get(symptom, "unknown")) for symptom in SYMPTOMS})
    edit = Edit(name, name, before, after, None, counted.get("rises"))
    return PriorRow(edit, symptoms, tries, improved, str(counted.get("data", "")))


def prior_to_json(prior: Prior) -> dict[str, Any]:
    """What is written to a file."""
    counts = [
        {
            "parameter": row.edit.meaning,
            "from": row.edit.before,
            "to": row.edit.after,
            **({} if row.edit.rises is None else {"rises": row.edit.rises}),
            **{name: told for name, told in zip(SYMPTOMS, row.symptoms, strict=True) if told != "unknown"},
            **({"data": row.data} if row.data else {}),
            "tries": row.tries,
            "improved": row.improved,
        }
        for row in prior.rows
    ]
    return {"format": _FORMAT, "source": prior.source, "noise": prior.noise, **prior.about, "counts": counts}
