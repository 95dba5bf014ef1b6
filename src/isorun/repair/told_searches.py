"""What is told of the searches of a study: each is judged by what its study asks of it, and told in its words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isorun.analysis.evidence import Condition
from isorun.analysis.studies.group_conditions import independent_draws, why_merged
from isorun.errors import InputError, NothingRecorded, known_names
from isorun.repair.bugs import Limits
from isorun.repair.diagnosis import Racing, SearchDiagnosis, diagnose
from isorun.repair.engines import steps_of_study
from isorun.repair.kept_searches import KnownSearch, known_searches, limits_of
from isorun.repair.priorities import Prior
from isorun.repair.priors import USUAL
from isorun.repair.racing import error_of_plans
from isorun.store import AbstractStore

if TYPE_CHECKING:
    from isorun.study.design import Study

__all__ = ["told_of", "told_of_search"]

_SHOWN: Final = 2


def told_of(study: Study, store: AbstractStore, *, where: str = "", kept_in: str = "") -> tuple[SearchDiagnosis, ...]:
    """What is said of each search of a study. where, kept_in: the study and its store, as a user names them."""
    return tuple(_told(one, where=where, kept_in=kept_in) for one in known_searches(study, store))


def told_of_search(
    study: Study,
    store: AbstractStore,
    name: str | None = None,
    *,
    limits: Limits = Limits(),  # noqa: B008
    prior: Prior | str | Path | None = USUAL,
    where: str = "",
    kept_in: str = "",
) -> SearchDiagnosis:
    """What is said of one search of a study. name: which; the only one if not given. The others: as in `told_of`.

    limits, prior: what is asked here counts for more than what the study says.
    """
    found = {one.design.name: one for one in known_searches(study, store, prior)}
    chosen = next(iter(found)) if name is None and len(found) == 1 else name or ""
    if chosen not in found:
        what = f"{study.name} has no search {name!r}" if name else f"{study.name} has {len(found)} searches: which one?"
        hint = f"isorun repair {where or study.name} --study {next(iter(found))!r}"
        raise InputError(what, allowed=known_names(chosen, found), hint=hint)
    if not found[chosen].trials:
        raise NothingRecorded(f"no trial of {found[chosen].title} was made yet", hint="isorun run makes them")
    return _told(found[chosen], limits, where=where, kept_in=kept_in)


def _told(known: KnownSearch, limits: Limits = Limits(), *, where: str, kept_in: str) -> SearchDiagnosis:  # noqa: B008
    """The one place in which a search of a study is judged: by what the study asks, where nothing else is asked."""
    said = limits_of(known.design)
    asked = Limits(
        said.target if limits.target is None else limits.target,
        said.time_limit if limits.time_limit is None else limits.time_limit,
        said.patience if limits.patience is None else limits.patience,
    )
    steps = steps_of_study(
        where or known.study.name,
        kept_in,
        has_all=len(known.trials) >= known.design.trials,
        is_repaired=known.design.begin != "never",
    )
    return diagnose(known.search(), known.prior, asked, steps=steps, racing=_racing(known))


def _racing(known: KnownSearch) -> Racing | None:
    if not known.is_raced:
        return None
    declared = known.declared_trials
    begun = [one for one, start in zip(declared, [0, *declared], strict=False) if start < len(known.trials)]
    return Racing(known.standing().races, known.extra, error_of_plans(begun), tuple(_copies(known)))


def _copies(known: KnownSearch) -> Iterator[Condition]:
    """Repeats that say nothing that the first did not: why they are copies, and how to get draws of their own."""
    copied = known.standing().copied
    records = {number: known.held(number) for number in copied}
    told = [
        f"trial {number}: {why_merged(records[number], known.drawn(number, trainings))}, which count as {draws}"
        for number, (trainings, draws) in copied.items()
    ]
    if told:
        named = "; ".join(told[:_SHOWN]) + (f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else "")
        message = f"repeats are copies of one draw, and nothing is called better by fewer than three draws ({named})"
        yield Condition("copies", message, independent_draws([one for held in records.values() for one in held]))
