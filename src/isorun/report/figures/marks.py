"""What every mark means: one thing in all figures, and one mark for each thing.

| mark | meaning |
|---|---|
| filled circle | one run; of a search, one trial |
| ring | a run that has not finished: it is running, or was stopped early |
| cross | a run that counts for little: weak, or without a value |
| diamond | a trial that isorun proposed; hollow: one that did not improve the trial before it above noise |
| hollow triangle | a mean of the runs beside it |
| square | what many runs say together: an estimate; hollow: one that is not told from no difference |
| star | a published number |
| plus, pentagon, hourglass, bar, chevron | a group that the legend names, where several share a row or a panel |
| arrow | a value beyond the edge, that way |
| thin line | one run, or the two runs of a pair |
| thick line | what many runs say together: a median, a mean, a share; the interval of an estimate |
| thick dotted line | the same, of groups whose colours come a second time |
| dashed line | no result, but what results are held against: no difference, a target, a boundary, a moment |
| box | the middle half of the runs of a row, with their median |
| shade around a line | the range of that line: of its runs, or of its error, as the figure says |
| other shade | a region or an amount that the legend, the axis or its text names |
| grey | no group: what groups are held against, or what is not told from it |

Figures take marks from here, by what they mean; tests/report/figures/test_marks.py holds every figure to it.
"""

from __future__ import annotations

from typing import Final

from isorun.report.figures.description import Shape

__all__ = [
    "ABOVE",
    "BELOW",
    "DOUBTFUL",
    "ESTIMATE",
    "GREY",
    "GROUPS",
    "MEAN",
    "OPEN_ESTIMATE",
    "PROPOSED",
    "PROPOSED_IN_VAIN",
    "PUBLISHED",
    "RUN",
    "UNFINISHED",
]

RUN: Final = Shape.CIRCLE
UNFINISHED: Final = Shape.RING
DOUBTFUL: Final = Shape.CROSS
PROPOSED: Final = Shape.DIAMOND
PROPOSED_IN_VAIN: Final = Shape.OPEN_DIAMOND
MEAN: Final = Shape.TRIANGLE
ESTIMATE: Final = Shape.SQUARE
OPEN_ESTIMATE: Final = Shape.OPEN_SQUARE
PUBLISHED: Final = Shape.STAR
GROUPS: Final = (Shape.PLUS, Shape.PENTAGON, Shape.HOURGLASS, Shape.BAR, Shape.CHEVRON)
ABOVE: Final = Shape.UP
BELOW: Final = Shape.DOWN

GREY: Final = 5
"""The colour that is no group's."""
