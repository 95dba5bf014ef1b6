"""Searches for a configuration: the best score so far by trial and by time, what trials showed, what changes brought.

A search of any length fits: the line of the best has a corner an improvement, dots are thinned, and the strip of
symptoms gathers neighbouring trials in one column.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from isorun.report import UNKNOWN, Column, Table, count, fixed, significant
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.description import Axis, Dot, Figure, Legend, Line, Shape, Tick, Tile
from isorun.report.figures.groups import COLOURS, shape_of
from isorun.report.figures.marks import ABOVE, BELOW, DOUBTFUL, GREY, PROPOSED, PROPOSED_IN_VAIN, RUN, UNFINISHED

__all__ = [
    "BestCurve",
    "SearchStory",
    "TakenAction",
    "TrialMark",
    "action_gains",
    "best_so_far",
    "progress_by_time",
    "progress_by_trial",
    "symptom_strip",
]

_ENGINE, _ISORUN, _BEST, _MOMENT, _WITHOUT, _TARGET = 0, 1, 2, 3, 4, GREY
_MOST_DOTS: Final = 400
_MOST_BELOW: Final = 50
_MOST_COLUMNS: Final = 40
_GATHERED: Final = 20
_MOST_ACTIONS: Final = 24
_LONGEST_NAME: Final = 60
_FAR: Final = 3.0
"""Scores so many times as far from the best as the middle one are arrows at the edge: they would flatten the rest."""
_PALE: Final = 0.3
_WORDS: Final = {"without": "no number as score", "waiting": "not started"}
_SHAPES_WITHOUT: Final = {"pruned": UNFINISHED, "running": UNFINISHED}


@dataclass(frozen=True, slots=True)
class BestCurve:
    """The best score of one search. steps: where it changed: place, score, words. until: how far the search went."""

    name: str
    steps: tuple[tuple[float, float, str], ...]
    until: float

    @property
    def corners(self) -> tuple[tuple[float, float], ...]:
        """The curve as stairs: the best stays what it was until the trial that improves it has ended."""
        points: list[tuple[float, float]] = []
        for x, best, _ in self.steps:
            points += [(x, points[-1][1])] if points else []
            points.append((x, best))
        return (*points, (self.until, points[-1][1])) if points else ()


def best_so_far(
    heading: tuple[str, str, str], curves: Sequence[BestCurve], x: Axis, y: Axis, *, data: Table, target: float | None
) -> Figure:
    """Several searches: a line each, a mark a trial that improved. heading: name, title, sentence. target: dashed."""
    name, title, sentence = heading
    far = max((curve.until for curve in curves), default=0.0)
    lines = [Line(curve.corners, place % COLOURS, dotted=place >= COLOURS) for place, curve in enumerate(curves)]
    lines += [] if target is None else [Line(((0.0, target), (far, target)), _TARGET, dashed=True)]
    dots = (
        Dot(at, best, shape_of(place), place % COLOURS, words)
        for place, curve in enumerate(curves)
        for at, best, words in curve.steps
    )
    first = [Legend(curve.name, shape_of(place), place) for place, curve in enumerate(curves[:COLOURS])]
    again = enumerate(curves[COLOURS:])
    legend = [*first, *(Legend(curve.name, None, place % COLOURS, dotted=True) for place, curve in again)]
    legend += [] if target is None else [Legend("target", None, _TARGET, dashed=True)]
    return Figure(name, title, sentence, x, y, data, dots=tuple(dots), lines=tuple(lines), legend=tuple(legend))


@dataclass(frozen=True, slots=True)
class TrialMark:
    """One trial as it is drawn. score: None where there is none. state: as engines call it, `stalled`, or `without`.

    ended: seconds since the search began; None where that is not known. proposed: by isorun. symptoms: a word by
    name; those that are not known are left out.
    """

    number: int
    score: float | None
    state: str
    ended: float | None
    proposed: bool
    symptoms: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SearchStory:
    """A search as its figures need it. margin: by how much a score must be better to count.

    moments: trials since which something is the case, and what. bests: the trials that were the best, one after
    another, where that is not the best score.
    """

    marks: tuple[TrialMark, ...]
    direction: Literal["higher", "lower"]
    margin: float = 0.0
    target: float | None = None
    moments: tuple[tuple[int, str], ...] = ()
    bests: tuple[int, ...] = ()

    def gain(self, mark: TrialMark) -> float:
        """The score, so that more is better."""
        assert mark.score is not None
        return mark.score if self.direction == "higher" else -mark.score

    @property
    def scored(self) -> list[TrialMark]:
        """The trials with a number as score."""
        return [mark for mark in self.marks if mark.score is not None]


def progress_by_trial(story: SearchStory) -> Figure | None:
    """The best score after every trial, and every trial's own; nothing where no trial has a score."""
    if not story.scored:
        return None
    places = {mark.number: float(mark.number) for mark in story.marks}
    axis = value_axis("trial", [*places.values()], whole=True)
    moments = [(number - 0.5, label) for number, label in story.moments]
    return _progress(story, ("best-by-trial", "Best score by trial"), places, axis, moments)


def progress_by_time(story: SearchStory) -> Figure | None:
    """The same by the time at which trials ended; nothing where engines kept no times."""
    ended = {mark.number: mark.ended for mark in story.marks if mark.ended is not None}
    if not any(mark.number in ended for mark in story.scored):
        return None
    unit, factor = _time_unit(max(ended.values()))
    places = {number: seconds / factor for number, seconds in ended.items()}
    known = replace(
        story,
        marks=tuple(sorted((one for one in story.marks if one.number in ended), key=lambda one: ended[one.number])),
    )
    begun = [(number, label) for number, label in story.moments if number in places]
    since = [(max((at for one, at in places.items() if one < number), default=0.0), label) for number, label in begun]
    moments = [(at, f"{label} ({significant(at, 2)} {unit})") for at, label in since]
    axis = value_axis(f"{unit} of search", [0.0, *places.values()])
    return _progress(known, ("best-by-time", "Best score by time"), places, axis, moments)


def _time_unit(longest: float) -> tuple[str, float]:
    return next(
        ((name, size) for name, size, most in (("seconds", 1.0, 180.0), ("minutes", 60.0, 10_800.0)) if longest < most),
        ("hours", 3600.0),
    )


def _progress(
    story: SearchStory,
    heading: tuple[str, str],
    places: Mapping[int, float],
    x: Axis,
    moments: Sequence[tuple[float, str]],
) -> Figure:
    name, title = heading
    steps = _improving(story)
    y, edge = _score_axis(story, below=len(steps) < len(story.marks))
    inside = [one for one in steps if not _is_beyond(story, one, edge)]
    curve = BestCurve(
        "best so far",
        tuple((places[one.number], one.score or 0.0, f"trial {one.number}") for one in inside),
        max(places.values()),
    )
    drawn = list(_dots(story, places, y, edge))
    # Where the best was beyond the edge the line is outside the frame, and comes in with the trial that is not.
    entry = ((places[inside[0].number], edge),) if len(inside) < len(steps) else ()
    lines = [Line((*entry, *curve.corners), _BEST)]
    if story.target is not None:
        lines.append(Line(((x.low, story.target), (x.high, story.target)), _TARGET, dashed=True))
    upright = [(min(max(at, x.low), x.high), label) for at, label in moments]
    lines += [Line(((at, y.low), (at, y.high)), _MOMENT, dashed=True) for at, _ in upright]
    return Figure(
        name=name,
        title=title,
        sentence=_sentence(story, steps, edge, drawn),
        x=x,
        y=y,
        data=_progress_data(story, name, title, steps, places),
        dots=tuple(drawn),
        lines=tuple(lines),
        legend=tuple(_progress_legend(story, moments)),
    )


def _improving(story: SearchStory) -> list[TrialMark]:
    """The trials that were the best: as repeats say, else those better than all before them, by whatever little."""
    if story.bests:
        return _in_order(story)
    found: list[TrialMark] = []
    for mark in story.scored:
        if not found or story.gain(mark) > story.gain(found[-1]):
            found.append(mark)
    return found


def _in_order(story: SearchStory) -> list[TrialMark]:
    """The trials that were the best, in the order of the marks; one that was so before an earlier mark is left out."""
    places = {mark.number: place for place, mark in enumerate(story.scored)}
    found: list[int] = []
    for number in reversed(story.bests):
        if number in places and (not found or places[number] < found[-1]):
            found.append(places[number])
    return [story.scored[place] for place in reversed(found)]


def _score_axis(story: SearchStory, *, below: bool) -> tuple[Axis, float]:
    """The axis of scores, and the worst score that is drawn where it is. below: trials without one need room."""
    gains = [story.gain(mark) for mark in story.scored]
    best, middle = max(gains), statistics.median(gains)
    edge = max(min(gains), best - _FAR * (best - middle)) if best > middle else min(gains)
    edge = min(edge, *(story.gain(one) for one in _in_order(story))) if story.bests else edge
    sign = 1.0 if story.direction == "higher" else -1.0
    shown = [sign * best, sign * edge, *([story.target] if story.target is not None else [])]
    wanted = (max(shown) - min(shown) or abs(best) or 1.0) * 0.06 if below else 0.0
    label = "score" if story.direction == "higher" else "score (lower is better)"
    return value_axis(label, [*shown, min(shown) - wanted]), sign * edge


def _dots(story: SearchStory, places: Mapping[int, float], y: Axis, edge: float) -> Iterator[Dot]:
    """Every trial, or as many as can be told apart: those that improved, and others evenly spaced."""
    steps = {mark.number for mark in _improving(story)}
    scored = story.scored
    others = _thinned([mark for mark in scored if mark.number not in steps], _MOST_DOTS)
    small = len(scored) > 4 * _MOST_COLUMNS
    for mark in [*others, *(mark for mark in scored if mark.number in steps)]:
        by = "proposed by isorun" if mark.proposed else "the engine's own"
        words = f"trial {mark.number}: {significant(mark.score, 5)}, {by}"
        shape, series = (PROPOSED, _ISORUN) if mark.proposed else (RUN, _ENGINE)
        tiny = small and mark.number not in steps
        if _is_beyond(story, mark, edge):
            arrow = BELOW if story.direction == "higher" else ABOVE
            yield Dot(places[mark.number], edge, arrow, series, f"{words}, beyond the edge")
        else:
            yield Dot(places[mark.number], mark.score or 0.0, shape, series, words, small=tiny)
    without = [mark for mark in story.marks if mark.score is None and mark.state != "waiting"]
    for mark in _thinned(without, _MOST_BELOW):
        shape = _SHAPES_WITHOUT.get(mark.state, DOUBTFUL)
        words = f"trial {mark.number}: {_WORDS.get(mark.state, mark.state)}"
        yield Dot(places[mark.number], y.low + 0.02 * (y.high - y.low), shape, _WITHOUT, words)


def _is_beyond(story: SearchStory, mark: TrialMark, edge: float) -> bool:
    """Whether a score is worse than the worst that is drawn where it is."""
    return mark.score is not None and (mark.score < edge if story.direction == "higher" else mark.score > edge)


def _thinned(marks: Sequence[TrialMark], most: int) -> list[TrialMark]:
    if len(marks) <= most:
        return list(marks)
    return [marks[round(place * (len(marks) - 1) / (most - 1))] for place in range(most)]


def _sentence(story: SearchStory, steps: Sequence[TrialMark], edge: float, drawn: Sequence[Dot]) -> str:
    best = steps[-1]
    said = f"The best score so far; it is {significant(best.score, 5)} since trial {best.number}."
    if story.bests:
        said = f"The score of the best trial so far, as repeats say; it is {significant(best.score, 5)} since trial "
        said += f"{best.number}."
    beyond = sum(_is_beyond(story, mark, edge) for mark in story.scored)
    if beyond:
        worse = "below" if story.direction == "higher" else "above"
        said += f" {count(beyond, 'score')} {worse} {significant(edge, 3)}: arrows, not drawn where they are."
    without = sum(mark.score is None and mark.state != "waiting" for mark in story.marks)
    said += f" Trials without a score ({without:,}) lie at the bottom." if without else ""
    whole = len(story.scored) + without
    return said + (f" Drawn are {len(drawn):,} of {whole:,} trials." if len(drawn) < whole else "")


def _progress_legend(story: SearchStory, moments: Sequence[tuple[float, str]]) -> Iterator[Legend]:
    yield Legend("best so far", None, _BEST)
    if any(not mark.proposed for mark in story.scored):
        yield Legend("a trial of the engine's own", RUN, _ENGINE)
    if any(mark.proposed for mark in story.scored):
        yield Legend("a trial proposed by isorun", PROPOSED, _ISORUN)
    edge = _score_axis(story, below=False)[1]
    if any(_is_beyond(story, mark, edge) for mark in story.scored):
        arrow = BELOW if story.direction == "higher" else ABOVE
        yield Legend(f"beyond {significant(edge, 3)}", arrow, _ENGINE)
    shapes: dict[Shape, list[str]] = {}
    for state in dict.fromkeys(mark.state for mark in story.marks if mark.score is None and mark.state != "waiting"):
        shapes.setdefault(_SHAPES_WITHOUT.get(state, DOUBTFUL), []).append(_WORDS.get(state, state))
    for shape, words in shapes.items():
        yield Legend(f"a trial without a score: {' or '.join(words)}", shape, _WITHOUT)
    if story.target is not None:
        yield Legend(f"target {story.target:g}", None, _TARGET, dashed=True)
    for label in dict.fromkeys(label for _, label in sorted(moments)):
        yield Legend(label, None, _MOMENT, dashed=True)


def _progress_data(
    story: SearchStory, name: str, title: str, steps: Sequence[TrialMark], places: Mapping[int, float]
) -> Table:
    """The trials that improved: what the line is made of. All trials are in --json."""
    columns = (Column("trial", key=True), Column("at"), Column("best so far"), Column("proposed by", key=True))
    rows = tuple(
        (
            str(one.number),
            fixed(places[one.number], 2),
            significant(one.score, 5),
            "isorun" if one.proposed else "engine",
        )
        for one in steps
    )
    note = f"{count(len(story.marks), 'trial')}; here are those that improved the best score."
    return Table(f"data-{name}", f"Data: {title}", columns, rows, notes=(note,), folded=True)


def symptom_strip(story: SearchStory, sound: Sequence[str]) -> Figure | None:
    """What trials showed: a row a symptom, a column a trial, or several neighbouring ones; nothing where none is known.

    sound: the words that are no cause for alarm; they are pale.
    """
    shown = [mark for mark in story.marks if mark.state != "waiting"]
    rows = _strip_rows(shown)
    if not rows or not any(mark.symptoms for mark in shown):
        return None
    columns = _gathered(shown)
    single = len(columns) == len(shown)
    tiles = []
    for place, column in enumerate(columns):
        for at, row in enumerate(rows):
            having = sum(row in _row_names(mark) for mark in column)
            if having:
                alarming = row.partition(": ")[2] not in sound
                strength = (1.0 if alarming else _PALE) * (0.25 + 0.75 * having / len(column))
                words = f"{_column_name(column)}: {row}" + ("" if single else f", {having} of {len(column)}")
                series = _strip_series(row)
                text = "" if single else f"{100 * having / len(column):.0f}"
                tiles.append(
                    Tile(
                        (place - 0.5, place + 0.5), (at - 0.5, at + 0.5), series, strength, words, text, strong=alarming
                    )
                )
    return Figure(
        name="symptoms",
        title="What trials showed",
        sentence=_strip_sentence(columns, single=single),
        x=_strip_axis(columns),
        y=row_axis("", rows),
        data=_strip_data(columns, rows),
        tiles=tuple(tiles),
    )


def _row_names(mark: TrialMark) -> list[str]:
    """The rows in which a trial has a tile."""
    ended = [] if mark.state == "finished" else [f"ended: {_WORDS.get(mark.state, mark.state)}"]
    ended = ["still: running"] if mark.state == "running" else ended
    return [*(f"{name}: {word}" for name, word in mark.symptoms.items()), *ended]


def _strip_rows(marks: Sequence[TrialMark]) -> list[str]:
    """The rows that occur, grouped by symptom in the order in which the trials name them, the frequent first."""
    counted = Counter(row for mark in marks for row in _row_names(mark))
    groups = list(dict.fromkeys(name for mark in marks for name in mark.symptoms))
    order = [*groups, "ended", "still"]
    return sorted(counted, key=lambda row: (order.index(row.partition(": ")[0]), -counted[row], row))


def _strip_series(row: str) -> int:
    groups = ("architecture", "convergence", "gradient", "weight")
    name = row.partition(": ")[0]
    return groups.index(name) if name in groups else _WITHOUT


def _gathered(marks: Sequence[TrialMark]) -> list[Sequence[TrialMark]]:
    if len(marks) <= _MOST_COLUMNS:
        return [[mark] for mark in marks]
    edges = [round(place * len(marks) / _GATHERED) for place in range(_GATHERED + 1)]
    return [marks[low:high] for low, high in itertools.pairwise(edges)]


def _column_name(column: Sequence[TrialMark]) -> str:
    first, last = column[0].number, column[-1].number
    return f"trial {first}" if first == last else f"trials {first} to {last}"


def _strip_axis(columns: Sequence[Sequence[TrialMark]]) -> Axis:
    every = max(1, math.ceil(len(columns) / 10))
    ticks = tuple(
        Tick(float(place), str(column[0].number)) for place, column in enumerate(columns) if place % every == 0
    )
    label = "trial" if all(len(column) == 1 for column in columns) else "trials from this number on"
    return Axis(label, -0.5, len(columns) - 0.5, ticks, rows=True)


def _strip_sentence(columns: Sequence[Sequence[TrialMark]], *, single: bool) -> str:
    what = (
        "a column is a trial"
        if single
        else f"a column is about {len(columns[0])} trials, a number the percentage of them"
    )
    return f"A row is a symptom and {what}; pale rows are no cause for alarm. What is not known has no tile."


def _strip_data(columns: Sequence[Sequence[TrialMark]], rows: Sequence[str]) -> Table:
    heads = (Column("trials", key=True), *(Column(row) for row in rows))
    cells = tuple(
        (_column_name(column), *(str(sum(row in _row_names(mark) for mark in column)) for row in rows))
        for column in columns
    )
    return Table("data-symptoms", "Data: what trials showed", heads, cells, folded=True)


@dataclass(frozen=True, slots=True)
class TakenAction:
    """A change that isorun proposed and what it brought. after: None where the trial has no score (yet)."""

    trial: int
    label: str
    before: float
    after: float | None
    outcome: str


def action_gains(actions: Sequence[TakenAction], direction: Literal["higher", "lower"]) -> Figure | None:
    """A row a change: from the score of the trial that was changed to that of the new one; nothing without a score."""
    scored = [one for one in actions if one.after is not None]
    if not scored:
        return None
    shown = _telling(scored, direction)
    axis = value_axis("score" if direction == "higher" else "score (lower is better)", _ends(shown))
    dots, lines = [], []
    for row, one in enumerate(shown):
        after = min(max(one.after or 0.0, axis.low), axis.high)
        helped = one.outcome == "improved"
        lines.append(Line(((one.before, row), (after, row)), _BEST if helped else _TARGET, thin=True))
        dots.append(Dot(one.before, row, RUN, _TARGET, f"before: {significant(one.before, 5)}"))
        words = f"trial {one.trial}: {significant(one.after, 5)}, {one.outcome}"
        dots.append(Dot(after, row, PROPOSED if helped else PROPOSED_IN_VAIN, _BEST if helped else _ISORUN, words))
    helped_all = sum(one.outcome == "improved" for one in scored)
    said = f"{helped_all} of {count(len(scored), 'change')} improved the trial it started from above noise."
    if left := len(actions) - len(scored):
        said += f" {left} more {'has' if left == 1 else 'have'} no score."
    more = f" Drawn are {len(shown)} of {len(scored):,}: those that gained most and the latest." * (
        len(shown) < len(scored)
    )
    return Figure(
        name="actions",
        title="What each change brought",
        sentence=said + more,
        x=axis,
        y=row_axis("", [_shortened(f"{one.trial}: {one.label}") for one in shown]),
        data=_action_data(scored),
        dots=tuple(dots),
        lines=tuple(lines),
        legend=(
            Legend("the trial that was changed", RUN, _TARGET),
            Legend("isorun's trial, improved above noise", PROPOSED, _BEST),
            Legend("isorun's trial, not improved above noise", PROPOSED_IN_VAIN, _ISORUN),
        ),
    )


def _telling(actions: Sequence[TakenAction], direction: str) -> list[TakenAction]:
    if len(actions) <= _MOST_ACTIONS:
        return list(actions)
    sign = 1.0 if direction == "higher" else -1.0
    half = _MOST_ACTIONS // 2
    gained = sorted(actions[:-half], key=lambda one: sign * (one.before - (one.after or 0.0)))[:half]
    return sorted([*gained, *actions[-half:]], key=lambda one: one.trial)


def _ends(actions: Sequence[TakenAction]) -> list[float]:
    """What the axis holds: all scores but those so far off that nothing else could be told apart."""
    scores = [score for one in actions for score in (one.before, one.after) if score is not None]
    middle = statistics.median(scores)
    spread = statistics.median(abs(score - middle) for score in scores)
    near = [score for score in scores if not spread or abs(score - middle) <= 4 * _FAR * spread]
    return [*near, *(one.before for one in actions)]


def _shortened(label: str) -> str:
    """In the middle: what a long name was changed to stands at the end."""
    half = _LONGEST_NAME // 2
    return label if len(label) <= _LONGEST_NAME else f"{label[: half - 1]}…{label[-half:]}"


def _action_data(actions: Sequence[TakenAction]) -> Table:
    columns = (
        Column("trial", key=True),
        Column("change", key=True),
        Column("before"),
        Column("after"),
        Column("outcome"),
    )
    rows = tuple(
        (
            str(one.trial),
            one.label,
            significant(one.before, 5),
            UNKNOWN if one.after is None else significant(one.after, 5),
            one.outcome,
        )
        for one in actions
    )
    return Table("data-actions", "Data: what each change brought", columns, rows, folded=True)
