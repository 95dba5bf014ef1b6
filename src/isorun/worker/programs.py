"""What a run executes in Python: a script, a module, code, or a function; the same in a fresh and a warm process."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from . import levels

SCRIPT, MODULE, CODE, FUNCTION = "script", "module", "code", "function"


class Program(NamedTuple):
    """target: the script's path, the module's name, the code, or "file.py:name".

    arguments: what follows it on the command line. unbuffered: whether output is written at once (`python -u`).
    """

    kind: str
    target: str
    arguments: tuple[str, ...] = ()
    unbuffered: bool = False


def parse(arguments: Sequence[str]) -> Program | None:
    """The program of a command line, without its leading `python`.

    None when it asks for what only a fresh interpreter can give: other options than `-u`, or standard input.
    """
    rest = list(arguments)
    unbuffered = rest[:1] == ["-u"]
    rest = rest[1:] if unbuffered else rest
    if len(rest) >= 2 and rest[0] in ("-m", "-c"):
        kind = MODULE if rest[0] == "-m" else CODE
        return Program(kind, rest[1], tuple(rest[2:]), unbuffered)
    if not rest or rest[0].startswith("-"):
        return None
    return Program(SCRIPT, rest[0], tuple(rest[1:]), unbuffered)


def fresh_command(python: str, program: Program) -> list[str]:
    """The command that runs the program in a process of its own."""
    unbuffered = ["-u"] if program.unbuffered else []
    if program.kind == FUNCTION:
        return [python, *unbuffered, str(levels.site_folder() / "call.py"), program.target, *program.arguments]
    option = {SCRIPT: [], MODULE: ["-m"], CODE: ["-c"]}[program.kind]
    return [python, *unbuffered, *option, program.target, *program.arguments]


def from_json(data: Mapping[str, Any]) -> Program:
    """The program that `Program._asdict` gave, after its way through JSON."""
    return Program(data["kind"], data["target"], tuple(data["arguments"]), bool(data["unbuffered"]))
