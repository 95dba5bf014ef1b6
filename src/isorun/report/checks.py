"""A check: the verdict, a row a group, and the comment that a pull request gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isorun.analysis.checks import Check, CheckedGroup, CheckedSide, CheckVerdict
from isorun.analysis.evidence import first_of
from isorun.report import UNKNOWN, Column, NumberStyle, Table, View, count, p_value, style_for
from isorun.report.markdown import as_code, escaped_text, render_rows

__all__ = ["MARK", "check_comment", "check_view"]

MARK: Final = "<!-- isorun check -->"
"""The first line of a comment: whoever posts it finds the one of the last push by it, and writes over that."""
_SIGNS: Final = {
    CheckVerdict.WORSE: "❌",
    CheckVerdict.NOT_WORSE: "✅",
    CheckVerdict.UNCHANGED: "✅",
    CheckVerdict.UNDECIDED: "⚠️",
}
_MOST_FILES: Final = 6


def check_view(result: Check) -> View:
    """The verdict with its reason, a row a group, and what weakens the evidence."""
    sentences = (headline(result), *_reasons(result), *_changes(result), f"{result.error_statement}.")
    return View(sentences, (_table(result),), result.all_conditions)


def headline(result: Check) -> str:
    """The verdict in one sentence."""
    against = f"the baseline {result.baseline}"
    by = f" by more than {result.margin.words}" if result.margin.size else ""
    match result.verdict:
        case CheckVerdict.WORSE:
            return f"Worse: {result.metric} of {result.study} is worse than that of {against}{by}."
        case CheckVerdict.UNCHANGED:
            return f"Unchanged: {result.study} ended with the same weights as {against}, bit for bit."
        case CheckVerdict.NOT_WORSE:
            what = f"not worse than that of {against}{by}" if result.margin.size else f"better than that of {against}"
            return f"Not worse: {result.metric} of {result.study} is {what}."
        case _:
            return f"Undecided: it is not shown whether {result.metric} of {result.study} is worse than {against}{by}."


def _reasons(result: Check) -> Iterator[str]:
    """Of the groups that decide: why."""
    style = style_for(result.scale)
    for group in result.groups:
        if group.verdict in {result.verdict, CheckVerdict.NOT_JUDGED}:
            yield f"{group.name}: {_moved(group, style)}{group.why}{_p(group)}."


def _p(group: CheckedGroup) -> str:
    """The p of the claim that is made."""
    claimed = {CheckVerdict.WORSE: group.p_worse, CheckVerdict.NOT_WORSE: group.p_not_worse}.get(group.verdict)
    told = p_value(claimed)
    return "" if claimed is None else f" (p {told})" if told.startswith("<") else f" (p = {told})"


def _moved(group: CheckedGroup, style: NumberStyle) -> str:
    if group.difference is None:
        return ""
    before, after = (_mean(side, style) for side in (group.baseline, group.new))
    return f"{style.with_unit(before)} before, {style.with_unit(after)} now; "


def _changes(result: Check) -> Iterator[str]:
    if result.changed:
        yield f"Changed since the baseline: {first_of(result.changed, _MOST_FILES, ', ')}."


def _table(result: Check) -> Table:
    style = style_for(result.scale)
    unit, apart = style.unit, style.difference_sign
    return Table(
        name="check",
        title=f"{result.metric} against the baseline ({result.direction} is better, margin {result.margin.words})",
        columns=(
            Column("group", key=True),
            Column("mean", unit, "baseline"),
            Column("units", group="baseline"),
            Column("mean", unit, "new"),
            Column("units", group="new"),
            Column("difference", apart),
            Column("90 % interval", apart),
            Column("verdict"),
        ),
        rows=tuple(_row(group, style) for group in result.groups),
        notes=_notes(result),
    )


def _notes(result: Check) -> tuple[str, ...]:
    ways = {
        "the signed rank test of the same seeds" if one.paired else "Brunner and Munzel's test" for one in result.groups
    }
    corrected = ", that of worse by Holm's over the groups" if len(result.groups) > 1 else ""
    tests = f"One-sided p by {' and '.join(sorted(ways))}{corrected}."
    return ("Means are over units, what was drawn independently.", tests)


def _row(group: CheckedGroup, style: NumberStyle) -> tuple[str, ...]:
    return (
        group.name,
        _mean(group.baseline, style),
        _units(group.baseline),
        _mean(group.new, style),
        _units(group.new),
        _signed(group.difference, style, group),
        _interval(group, style),
        str(group.verdict),
    )


def _mean(side: CheckedSide, style: NumberStyle) -> str:
    return style.value(side.mean, side.sd)


def _units(side: CheckedSide) -> str:
    return str(side.units) if side.units == side.runs else f"{side.units} of {side.runs} runs"


def _signed(value: float | None, style: NumberStyle, group: CheckedGroup) -> str:
    """A difference with its sign, as many decimals as the wider of the two spreads supports."""
    if value is None:
        return UNKNOWN
    text = style.difference(value, max(group.new.sd or 0.0, group.baseline.sd or 0.0) or None)
    return f"+{text}" if value > 0 and text != "0" else text


def _interval(group: CheckedGroup, style: NumberStyle) -> str:
    if group.interval is None:
        return UNKNOWN
    low, high = (_signed(end, style, group) for end in group.interval)
    return f"{low} to {high}"


def check_comment(result: Check) -> str:
    """What a pull request is told, in GitHub's Markdown: verdict, small table, conditions, the command to repeat it."""
    parts = [
        MARK,
        f"### {_SIGNS[result.verdict]} {escaped_text(headline(result))}",
        "\n".join(f"- {escaped_text(sentence)}" for sentence in (*_reasons(result), *_changes(result))),
        _small_table(result),
        *_folded_conditions(result),
        f"<sub>{escaped_text(result.error_statement)}.</sub>",
        *([f"Repeat it: {as_code(result.command)}"] if result.command else []),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _small_table(result: Check) -> str:
    style = style_for(result.scale)
    heads = ["group", "baseline", "new", "difference (90 % interval)", "verdict"]
    rows = [
        [
            group.name,
            f"{style.with_unit(_mean(group.baseline, style))} (n = {_units(group.baseline)})",
            f"{style.with_unit(_mean(group.new, style))} (n = {_units(group.new)})",
            _told_difference(group, style),
            f"{group.verdict}",
        ]
        for group in result.groups
    ]
    return render_rows(heads, rows)


def _told_difference(group: CheckedGroup, style: NumberStyle) -> str:
    told = style.difference_with_unit(_signed(group.difference, style, group))
    return told if group.interval is None else f"{told} ({_interval(group, style)})"


def _folded_conditions(result: Check) -> Iterator[str]:
    conditions = result.all_conditions
    if conditions:
        lines = [
            f"- **{item.code}**: {escaped_text(item.message)}. Next: {escaped_text(item.next_step)}"
            for item in conditions
        ]
        title = f"{count(len(conditions), 'condition')} on this verdict"
        yield f"<details><summary>{title}</summary>\n\n" + "\n".join(lines) + "\n\n</details>"
