"""The price of determinism as a view: the cheapest set and how sure that is, then what each step costs and buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isorun.analysis.prices.price import Price, PricedSet
from isorun.report import UNKNOWN, Column, Listing, Table, View, count, significant

__all__ = ["price_view"]


def price_view(found: Price) -> View:
    """The cheapest set first and how sure that is, then what each step costs and buys, and how to get it."""
    ladder = {"as it is": found.as_it_is, **{f"+ {step.name}": step.set for step in found.steps}}
    added = ["1", *(_times(step.added_ratio, step.added_interval95) for step in found.steps)]
    tables = [
        _price_table("steps", "What each step costs and buys, taken one after the other", ladder, found.metric, added)
    ]
    if found.tried:
        tried = {_joined(item.names): item for item in found.tried}
        tables.append(_price_table("tried", "Sets with fewer steps", tried, found.metric))
    outside = " ".join(f"{name}={value}" for name, value in found.variables.items())
    how = [
        *found.study_lines,
        *([f"outside of isorun, beside seeds and settings in the code: {outside}"] if outside else []),
    ]
    listings = [
        Listing("not measured here", tuple(f"{item.name}: {item.why}" for item in found.not_applicable)),
        Listing("the recommended set in a study file", tuple(how)),
        Listing("next", found.next_steps),
    ]
    sentences = (*_broken_off(found), _cheapest(found), *_how_sure(found), *_timed(found))
    shown = tuple(item for item in listings if item.items)
    return View(sentences, tuple(tables) if found.as_it_is.runs else (), found.conditions, listings=shown)


def _broken_off(found: Price) -> tuple[str, ...]:
    if not found.stopped:
        return ()
    runs = sum(item.runs for item in found.sets)
    measured = f"{count(runs, 'run')} {'was' if runs == 1 else 'were'} measured"
    same = "the same command with more of them" if found.out_of_time else "the same command"
    return (f"Not finished ({found.stopped}): {measured}, and {same} goes on from there.",)


def _joined(names: tuple[str, ...]) -> str:
    return " + ".join(names) or "nothing"


def _times(ratio: float | None, interval: tuple[float, float] | None) -> str:
    if ratio is None:
        return UNKNOWN
    return f"{ratio:.3g}" if interval is None else f"{ratio:.3g} ({interval[0]:.3g}–{interval[1]:.3g})"


def _price_table(name: str, title: str, sets: Mapping[str, PricedSet], metric: str, added: Sequence[str] = ()) -> Table:
    """A row a set. added: how many times the time the last step of each takes by itself, where they are a ladder."""
    titles = ("time", *(("by itself",) if added else ()), "CPU time", "sd", "variance removed", "different ends")
    return Table(
        name=name,
        title=title,
        columns=(Column("step" if added else "set", key=True), *(Column(text) for text in titles)),
        rows=tuple(
            (
                label,
                "1" if not item.names else _times(item.time_ratio, item.interval95),
                *added[number : number + 1],
                "1" if not item.names else _times(item.cpu_ratio, None),
                _spread(item),
                _removed(item),
                _ends(item),
            )
            for number, (label, item) in enumerate(sets.items())
        ),
        notes=(
            "times: ratios to the training as it is, geometric mean of pairs (95 % interval)",
            f"sd: of {metric or 'the metric'}, between runs that should be the same (95 % interval)",
        ),
    )


def _ends(item: PricedSet) -> str:
    if item.distinct is None:
        return UNKNOWN
    return f"{item.distinct} of {item.runs if not item.seeds else item.runs // item.seeds}"


def _spread(item: PricedSet) -> str:
    around = item.sd_interval95
    inside = "" if around is None else f" ({significant(around[0], 2)}–{significant(around[1], 2)})"
    return UNKNOWN if item.sd is None else f"{significant(item.sd, 2)}{inside}"


def _removed(item: PricedSet) -> str:
    if item.variance_removed is None or item.variance_removed_interval95 is None:
        return UNKNOWN
    low, high = item.variance_removed_interval95
    if low <= 0 <= high:
        return "not told"
    return f"{100 * item.variance_removed:.0f} ({100 * low:.0f}–{100 * high:.0f}) %"


def _cheapest(found: Price) -> str:
    chosen = found.recommended_set
    if chosen is None:
        if found.undecided is not None:
            apart, of = found.undecided, f"{_joined(found.undecided.names)}"
            alone = f"{_joined(apart.alike)} alone" if apart.alike else "the training as it is"
            return (
                f"No set is recommended: the runs of {of} were the same, but it is not told apart from {alone}: "
                f"{apart.pairs:g} pairs."
            )
        if found.highest.identical is None:
            few = any(item.distinct is not None for item in found.sets) or found.stopped
            why = "too few runs were made" if few else "there is nothing to compare runs by"
            return f"Whether any set of steps gives bit-identical runs is not known: {why}."
        return "No set of steps that was measured gives bit-identical runs."
    what = "bit-identical runs" if found.by_weights else f"runs with the same {found.judged_by}"
    as_it_is = f"The training as it is gives {what} here: no step has to be taken."
    if not chosen.names:
        return f"{as_it_is}{_faster(found)}"
    costs = f"at {_times(chosen.time_ratio, chosen.interval95)} times the time"
    if found.as_it_is.identical:
        return f"{as_it_is} Cheapest is {_joined(chosen.names)} all the same, {costs}."
    return f"Cheapest set that gives {what} here: {_joined(chosen.names)}, {costs}."


def _faster(found: Price) -> str:
    """Of the sets with identical runs the quickest one, where it takes less time than the training as it is."""
    quicker = [item for item in found.sets if item.identical and item.interval95 and item.interval95[1] < 1]
    if not quicker:
        return ""
    item = min(quicker, key=lambda item: item.time_ratio or 1.0)
    return f" With {_joined(item.names)} it takes {_times(item.time_ratio, item.interval95)} of the time."


def _how_sure(found: Price) -> tuple[str, ...]:
    chosen = found.recommended_set
    if chosen is None or found.differing_at_most is None:
        return ()
    if chosen.seeds:
        alike = f"All {chosen.runs} runs of it came to one end for each seed ({chosen.pairs:g} pairs of equal seeds)"
    else:
        alike = (
            f"All {chosen.runs} runs of it came to one end, and no seed was fixed from outside ({chosen.pairs:g} pairs)"
        )
    among = (
        f"at most {100 * found.differing_at_most:.0f} % of pairs differ (95 %, chosen among {found.chosen_among} sets)"
    )
    needed = [
        f"{need.name} is needed: without it {need.odd} of {need.runs_without} runs ended unlike the others, "
        f"with it none of {need.runs_with} (p = {need.p:.1g})."
        for need in found.needs
        if need.shown
    ]
    return (f"{alike}, so {among}.", *needed)


def _timed(found: Price) -> tuple[str, ...]:
    base = found.as_it_is
    if base.seconds is None:
        return ()
    what = f"steps 2 to {found.cut_after} of the training" if found.cut_after else "the training"
    return (
        f"As it is, {what} took {base.seconds:.3g} s of its own (median of {base.runs} runs, start-up not counted).",
    )
