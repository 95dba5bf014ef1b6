"""What weakens a price, each with the next command."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from isorun.analysis.evidence import Condition, first_of
from isorun.analysis.evidence.provenance import effective
from isorun.analysis.evidence.run_units import BY_WEIGHTS
from isorun.analysis.prices.choice import MOST_RUNS, Undecided
from isorun.analysis.prices.price import Price, PricedSet
from isorun.analysis.prices.priced_runs import FEWEST_RUNS
from isorun.study.records import RunRecord

__all__ = ["Circumstances", "more_time", "price_conditions"]

_WIDE: Final = 0.1
_RUNS_FOR_TIMES: Final = 12
_USED_AGAIN: Final = "what was measured is used again"


class Circumstances(NamedTuple):
    """How a price was measured. most: runs of each set. whole: whether all sets that may be cheaper were tried.

    too_long: seconds that the least measurement takes, where there was less time. load, cpus: of the machine now.
    seconds: that might be spent; spent: that were; each_more: for one more run of every set of the ladder. asked_steps:
    after which runs were to be ended. steps_seen: whether steps of an optimizer are seen in this training at all.
    """

    most: int
    whole: bool
    too_long: float
    load: float
    cpus: int
    seconds: float = math.inf
    spent: float = 0.0
    each_more: float = 0.0
    asked_steps: int = 0
    steps_seen: bool = True

    def seconds_for(self, more: int) -> int:
        """Seconds that are enough for so many more runs of every set of the ladder, in full tens."""
        return math.ceil((self.spent + 1.1 * more * self.each_more) / 10) * 10


def price_conditions(price: Price, records: Sequence[RunRecord], how: Circumstances) -> Iterator[Condition]:
    """All that is to be known beside a price; nothing where nothing was measured."""
    if not price.as_it_is.runs:
        return
    yield from _about_digests(price, records)
    yield from _about_metric(price)
    yield from _about_cuts(records, how)
    yield from _about_times(price, how)
    yield from _about_the_budget(price, how)
    if price.undecided is not None:
        yield _about_chance(price, price.undecided, how)
    elif price.recommended is None and price.highest.identical is False:
        yield _about_open_ends(price, records)


def more_time(asked_steps: int, too_long: float, *, steps_seen: bool) -> str:
    """How there is enough time for the least measurement; steps help only where they are seen."""
    longer = f"--seconds {too_long * 1.5:.0f}"
    if not steps_seen:
        return f"the same command with {longer}"
    cut = "--steps 200, which ends each run after 200 optimizer steps where these are seen"
    shorter = f"fewer --steps than {asked_steps}" if asked_steps else cut
    return f"the same command with {shorter}, or with {longer}"


def _more_runs(price: Price, how: Circumstances, runs: int) -> str:
    """The command for so many runs of each set, with the time that they take where that is more than there was."""
    enough = how.seconds_for(runs - price.fewest_runs)
    longer = f" --seconds {enough}" if enough > how.seconds else ""
    return f"the same command with --runs {runs}{longer}"


def _about_the_budget(price: Price, how: Circumstances) -> Iterator[Condition]:
    if how.too_long:
        runs = min(item.runs for item in price.sets)
        message = (
            f"{FEWEST_RUNS} runs of each set take {how.too_long:.0f} s, more than there were: "
            f"what {runs} of each tell{'s' if runs == 1 else ''} is shown, and decides nothing"
        )
        shorter = more_time(how.asked_steps, how.too_long, steps_seen=how.steps_seen)
        yield Condition("too-little-time", message, f"{shorter}: {_USED_AGAIN}")
    elif price.out_of_time:
        message = (
            f"{price.fewest_runs} of {how.most} runs of each set were made, then --seconds {how.seconds:g} were spent"
        )
        enough = how.seconds_for(how.most - price.fewest_runs)
        yield Condition("out-of-time", message, f"the same command with --seconds {enough}: {_USED_AGAIN}")
    if price.recommended is not None and not how.whole:
        message = "there was no time left to try every set with one step less: a cheaper one may do"
        yield Condition("not-all-tried", message, f"the same command with more --seconds: {_USED_AGAIN}")


def _about_digests(price: Price, records: Sequence[RunRecord]) -> Iterator[Condition]:
    if price.judged_by == BY_WEIGHTS:
        return
    reasons = {note.message for record in records for note in record.notes if note.code == "no-digest"}
    why = f" ({first_of(sorted(reasons), 1)})" if reasons else ""
    add = "add isorun.result(weights=model) at the end of the training: its bits are then compared"
    if any(item.distinct is not None for item in price.sets):
        names = first_of(price.compared, 5, ", ")
        message = f"the runs left no digest of their weights{why}: identical means the same {price.judged_by} ({names})"
        yield Condition("judged-by-numbers", message, add)
    else:
        message = f"the runs left neither a digest of their weights{why} nor numbers: only their time is known"
        yield Condition("nothing-to-compare", message, f"{add}; isorun scan shows which metrics are read", voids=True)


def _about_metric(price: Price) -> Iterator[Condition]:
    if any(item.sd is not None for item in price.sets):
        return
    ended = " before they were ended" if price.cut_after else ""
    message = f"no spread can be told: the runs told no {price.metric or 'metric'}{ended}"
    whole = "print it, or call isorun.log; --metric NAME"
    yield Condition("no-metric", message, "more --steps, or whole trainings" if price.cut_after else whole)


def _about_cuts(records: Sequence[RunRecord], how: Circumstances) -> Iterator[Condition]:
    uncut = [record for record in records if not (effective(record).get("work") or {}).get("cut")]
    if how.asked_steps and uncut:
        of_all = f"{len(uncut)} of {len(records)} runs"
        message = f"{of_all} were not ended after {how.asked_steps} steps, but at their end"
        unseen = "leave --steps out: no step of an optimizer is seen here; docs/price.md says whose are"
        yield Condition("not-cut", message, "fewer --steps" if how.steps_seen else unseen)


def _about_times(price: Price, how: Circumstances) -> Iterator[Condition]:
    wide = [item for item in price.sets if _is_wide(item)]
    if wide:
        names = first_of([" + ".join(item.names) for item in wide], 3, ", ")
        now = f"load {how.load:.1f} on {how.cpus} CPUs now"
        message = f"times vary: the interval of {names} is wider than ± 10 % ({now})"
        runs = min(max(_RUNS_FOR_TIMES, 2 * how.most), MOST_RUNS)
        more = f"{_more_runs(price, how, runs)}, or when nothing else runs here: {_USED_AGAIN}"
        yield Condition("wide-interval", message, more)
    short = [item.seconds for item in price.sets if item.seconds is not None and item.seconds < _WIDE]
    if short:
        message = f"a run works for {short[0]:.3f} s: at that length a ratio is more of starting than of training"
        yield Condition("short-runs", message, f"a longer training{', or more --steps' if how.asked_steps else ''}")


def _is_wide(item: PricedSet) -> bool:
    return item.interval95 is not None and item.interval95[1] / item.interval95[0] > (1 + _WIDE) ** 2


def _about_chance(price: Price, open_set: Undecided, how: Circumstances) -> Condition:
    idle = [need for need in price.needs if need.name in open_set.names and need.name not in open_set.alike]
    seen = [
        f"without {need.name} {need.odd} of {need.runs_without} runs ended unlike the others, "
        f"with it 0 of {need.runs_with} (p = {need.p:.2g})"
        for need in idle
    ]
    message = f"that no runs of {' + '.join(open_set.names)} differed may be chance: {first_of(seen, 3)}"
    more = _more_runs(price, how, min(2 * how.most, MOST_RUNS))
    return Condition("not-told-apart", message, f"{more}: {_USED_AGAIN}")


def _about_open_ends(price: Price, records: Sequence[RunRecord]) -> Condition:
    notes = (note for record in records for note in record.notes)
    ends = {note.message for note in notes if note.code == "nondeterministic-operation"}
    ends |= {f"{len(record.devices)} devices" for record in records if len(record.devices) > 1}
    seen = f": {first_of(sorted(ends), 3)}" if ends else ""
    message = f"runs of one seed differ with every step taken{seen}"
    typed = f"isorun audit -- {shlex.join(price.command)}"
    return Condition("still-differs", message, f"{typed} tells what it leaves open, with the lines")
