"""The command line reference, made from the commands: `python -m isorun.cli.reference > docs/command-line.md`."""

from __future__ import annotations

import argparse
import inspect

from isorun.cli.main import COMMANDS, command_module

__all__ = ["markdown"]

_INTRODUCTION = """\
# The command line

Every command prints its verdict first, then the tables, then numbered warnings with the next command. Results go to
stdout, progress to stderr. `NO_COLOR` is respected. Exit codes: 0 fine, 1 user error or failed runs, 2 usage, 3 a
difference was found, 130 interrupted.

This page is made from the commands' own help; see [study-file.md](study-file.md) for study files.
"""


def markdown() -> str:
    """The whole reference."""
    return "\n".join([_INTRODUCTION, *(_section(name) for name in COMMANDS)])


def _section(name: str) -> str:
    module = command_module(name)
    parser = argparse.ArgumentParser(add_help=False)
    module.declare(parser)
    arguments = [action for action in parser._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
    table = ["| argument | meaning |", "|---|---|", *(_row(action) for action in arguments)]
    text = inspect.cleandoc(module.__doc__ or "")
    return f"## `isorun {name}`\n```text\n{text}\n```\n\n" + "\n".join(table) + "\n"


def _row(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    words = [f"{word} {metavar}" if action.nargs != 0 else word for word in action.option_strings] or [metavar]
    shown = ", ".join(f"`{word}`" for word in words)
    meaning = (action.help or "").replace("|", "\\|")
    choices = f" ({', '.join(map(str, action.choices))})" if action.choices else ""
    return f"| {shown.replace('|', chr(92) + '|')} | {meaning}{choices} |"


if __name__ == "__main__":
    print(markdown(), end="")
