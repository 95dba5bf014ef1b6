"""docs/outside.md, from what is kept of each program: a table, and a line for everything that did not hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from outside.judging import COLUMNS
from outside.programs import Program

HEAD: Final = """# Outside programs

Public programs, typed after `isorun run --` as their authors type them, with tiny data made for them: once as they are,
then twice with one seed at `fixed-seed` and at `deterministic`, on a CPU. `make test-outside` makes this page; what is
here was seen, on the dates and machines named at its end. The programs are declared in `outside/programs/`, with the
commit each is taken at and where the true value of each metric is known from: the program's own line or file, read
without isorun.

| column | yes means |
|---|---|
| first try | the run finished, with nothing but `isorun run --` before the command |
| metrics | every metric declared for the program was found, with the last value that the program told |
| fixed-seed, deterministic | both runs ended with the same weights (*weights*); *values*: the same values, not proven |
| digest | the weights at the end have a digest |
| direction | runs are judged by a metric of the program, and which direction is better is right |
"""


def written(programs: Mapping[str, Program], kept: Mapping[str, Any]) -> str:
    """The whole page; programs without a result are rows, too."""
    parts = [HEAD, _totals(programs, kept), _table(programs, kept), _notes(programs, kept), _where(programs, kept)]
    return "\n".join(parts)


def _judged(kept: Mapping[str, Any], name: str, column: str) -> Mapping[str, Any]:
    if name not in kept:
        return {"held": None, "said": "not run"}
    judged: Mapping[str, Any] = kept[name]["judgements"].get(column, {"held": None, "said": ""})
    return judged


def _totals(programs: Mapping[str, Program], kept: Mapping[str, Any]) -> str:
    said = []
    for column in COLUMNS:
        held = [_judged(kept, name, column)["held"] for name in programs]
        said.append(f"{column} {held.count(True)} of {held.count(True) + held.count(False)}")
    return f"## {len(programs)} programs\n{'; '.join(said)}. Where a question does not arise (–), it is not counted.\n"


def _table(programs: Mapping[str, Program], kept: Mapping[str, Any]) -> str:
    lines = ["| program | what | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name, program in programs.items():
        cells = [_cell(column, _judged(kept, name, column)) for column in COLUMNS]
        lines.append(f"| {name} | {program.why} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(column: str, judged: Mapping[str, Any]) -> str:
    if judged["held"] is None:
        return "–"
    if not judged["held"]:
        return "**no**"
    if column in ("fixed-seed", "deterministic"):
        return str(judged["said"]).removeprefix("same ")
    return "yes"


def _notes(programs: Mapping[str, Program], kept: Mapping[str, Any]) -> str:
    lines = ["## What did not hold"]
    for name in programs:
        said = [
            f"{column}: {_plain(judged['said'])}"
            for column in COLUMNS
            if (judged := _judged(kept, name, column))["said"] and judged["held"] is not True
        ]
        if said:
            lines.append(f"- **{name}**: " + "; ".join(said))
    lines += ["", "## Names found beyond those declared", "Training values, rates and the like, or false ones:"]
    for name in programs:
        if more := kept.get(name, {}).get("beyond"):
            shown = dict.fromkeys(re.sub(r"\[.*\]", "[…]", each) for each in more)  # one name for all classes
            lines.append(f"- {name}: " + ", ".join(f"`{each}`" for each in shown))
    return "\n".join(lines) + "\n"


def _plain(said: str) -> str:
    return said.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _where(programs: Mapping[str, Program], kept: Mapping[str, Any]) -> str:
    lines = ["## Commands", "| program | as typed | from | environment | date | seconds |", "|---|---|---|---|---|---|"]
    for name, program in programs.items():
        row = kept.get(name, {})
        origin = f"[{program.commit[:10]}]({program.git}/tree/{program.commit})" if program.git else "its packages"
        command = program.command.replace("|", "\\|")
        when = f"{row.get('date', '')} | {row.get('seconds', '')}"
        lines.append(f"| {name} | `{command}` | {origin} | {program.environment} | {when} |")
    machines = sorted({kept[name]["machine"] for name in programs if name in kept})
    return "\n".join([*lines, "", "Machine: " + "; ".join(machines)]) + "\n"
