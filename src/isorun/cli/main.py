"""The command `isorun`: picks the command's module and turns errors into messages and exit codes.

Exit codes: 0 fine, 1 user error or failed runs, 2 usage, 3 a difference was found, 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import keyword
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

from isorun import __version__, cli
from isorun.cli import waiting
from isorun.errors import (
    IsorunError,
    OtherPlatform,
    UsageError,
    harmless,
    known_names,
    lacks_posix,
    without_passwords,
)

__all__ = ["COMMANDS", "command_module", "main"]

COMMANDS: Final = {
    "run": "train the same thing many times under control and record everything",
    "worker": "take cells that nobody has made yet from a store, on any number of machines",
    "status": "what is running now, who runs it, and how far it is",
    "stop": "end the runs that were left in a cluster's queue",
    "report": "how much the runs of a study vary, and what made it so",
    "doctor": "what is wrong inside a training, and what to try",
    "audit": "which sources of nondeterminism a training leaves open, and how to close each",
    "price": "what each step towards determinism costs in time and buys in variance, here",
    "env": "the environment of a run in one sentence for a paper, and what differs between two",
    "summarize": "how the runs of each group look, from any table of results",
    "compare": "is A better than B? every test, effect and interval, and a verdict",
    "check": "is a change worse than its baseline by more than a margin? for CI",
    "mixed": "where the variance comes from: a mixed model, tested as R does",
    "decide": "run more until the verdict is in, or the budget is out",
    "power": "how many runs a difference takes, or what these runs could see",
    "claim": "is a claimed gain above the known noise of single runs?",
    "rank": "which of many approaches is best, over one task or many",
    "factors": "what exactly changed the result? the effect of each factor of a study",
    "bisect": "which commit of a range changed the result?",
    "agree": "do devices, environments or metrics put the same runs in the same order?",
    "repair": "what is wrong with an AutoML search, what to try next, and going on with it",
    "reproduce": "run a paper's own design, and show its tables with our numbers beside theirs",
    "data": "the data sets of the papers: list them, get them, find them",
    "import": "take the runs of MLflow, W&B, TensorBoard, Optuna, trackio, Aim or a table into a study",
    "export": "write a study's runs for MLflow, W&B, or anyone: Parquet and CSV",
    "pack": "one file that holds a study: runs, environment, code; the same study, the same bytes",
    "replay": "the same run again: identical bit by bit, or the first thing that differs",
    "replicate": "a package's runs again, here: repeated, replicated, reproduced, or not",
    "verify": "is a package whole, what is in it, and who signed it?",
    "keys": "keys to sign packages with, and keys of others that you trust",
    "login": "keep a token for a registry",
    "push": "give a package to a registry, where others find it by name",
    "pull": "get a package from a registry, every byte checked",
    "search": "find packages in a registry",
    "registry": "versions, users and tokens of a registry; is one whole?",
    "serve": "pages and an API over stores and packages, on this machine or for a lab",
    "store": "is a store whole? verify it, repair it, share it with a group",
    "scan": "show which metrics would be read from a training's output, or from a run of it",
}
_COMPUTATIONS: Final = frozenset(
    {
        *("report", "summarize", "compare", "mixed", "power", "claim", "rank", "factors", "agree"),
        *("import", "export", "pack", "verify", "push", "pull"),
    }
)
"""Commands that may take long without a progress of their own."""
_MAY_BE_EMPTY: Final = frozenset({"a", "b", "control"})
"""Options that name a label of a table, which may be an empty one."""
_GARBAGE: Final = (100_000, 50, 50)
"""When Python looks for garbage: rarely, since a command makes thousands of records and drops none before it ends."""
EXAMPLES: Final = """\
examples:
  isorun run -n 16 --level fixed-seed -- python train.py --lr 0.01
  isorun run study.toml                 again: only what is missing
  isorun report study.toml --html report.html
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_standard_files()
    gc.set_threshold(*_GARBAGE)
    try:
        return _dispatch(words)
    except IsorunError as error:
        _complain(error.message())
        return 2 if isinstance(error, UsageError) else 1
    except ImportError as error:
        if not lacks_posix(error):
            raise
        _complain(OtherPlatform(f"isorun {words[0]}").message())
        return 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except OSError as error:
        _silence_stdout()
        _complain(_refused(error).message())
        return 1


def _prepare_standard_files() -> None:
    """Let every text be printed: to nowhere when the caller closed the file, with ? for what its encoding lacks.

    A closed file would also lend its number to the next one that is opened, and what is printed would end up there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def command_module(name: str) -> ModuleType:
    """The module of a command. No module can be called as a keyword of Python is (`isorun import`)."""
    return importlib.import_module(f"isorun.cli.{name}_" if keyword.iskeyword(name) else f"isorun.cli.{name}")


def _dispatch(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        command = command_module(words[0])
        parser = _Parser(
            prog=f"isorun {words[0]}",
            description=command.__doc__,
            formatter_class=_Formatter,
            allow_abbrev=False,  # `--n 16` would be `--name 16`, and no error
        )
        command.declare(parser)
        options = _parse(parser, words[1:])
        cli.refuse_other_files(options)
        with waiting(words[0]) if words[0] in _COMPUTATIONS else nullcontext():
            code: int = command.execute(options)
        sys.stdout.flush()
        return code
    overview = _overview()
    if not words:
        overview.print_help()
        return 0
    if not words[0].startswith("-"):
        _refuse_command(words)
    overview.parse_args(words)
    return 0


def _refuse_command(words: list[str]) -> NoReturn:
    """A first word that is no command; what stands behind it is most often right."""
    import difflib

    near = difflib.get_close_matches(words[0].lower(), COMMANDS, n=1)
    raise UsageError(
        f"there is no command {words[0]!r}",
        allowed=known_names(words[0].lower(), COMMANDS),
        hint=shlex.join(["isorun", near[0], *words[1:]]) if near else "isorun --help",
    )


def _parse(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The options, and in `command` whatever stands behind the first `--`, untouched."""
    for action in parser._actions:  # noqa: SLF001 - as below
        action.required = action.required and action.nargs != "*"  # or it is asked for where another word is missing
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_intermixed_args(words[:end])  # an option may stand between names: describe --latex RUN
    _refuse_empty(parser, options)
    _hide_passwords(options)
    options.command = words[end + 1 :]
    if options.command and not parser.get_default("takes_command"):
        parser.error(f"this command takes no training command, but {' '.join(options.command)!r} was given")
    return options


def _refuse_empty(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """An empty word is most often a shell's variable that is not set; without it something else would be answered."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list what was declared
        given = getattr(options, action.dest, None)
        if action.dest not in _MAY_BE_EMPTY and (given == "" or (isinstance(given, list) and "" in given)):
            parser.error(f"{'/'.join(action.option_strings) or action.metavar} is empty")


def _hide_passwords(options: argparse.Namespace) -> None:
    """From here on the place of a store has no password, whatever is said or kept of it; it is opened with it."""
    for name in ("store", "stores", "baseline", "index", "places"):
        given = getattr(options, name, None)
        if given and "://" in str(given):
            from isorun.store import shown_place

            setattr(options, name, shown_place(given) if isinstance(given, str) else [*map(shown_place, given)])


def _overview() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="isorun",
        description="Is this training result real, or is it noise, and what made it so?",
        epilog=EXAMPLES,
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action="version", version=f"isorun {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return parser


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of examples, and fills paragraphs to the width of the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = [
            block
            if _is_example(block)
            else textwrap.fill(block, width, initial_indent=indent, subsequent_indent=indent)
            for block in text.strip("\n").split("\n\n")
        ]
        return "\n\n".join(filled)


def _is_example(block: str) -> bool:
    return any(line.strip().startswith("isorun ") for line in block.splitlines())


class _Parser(argparse.ArgumentParser):
    """Says what to do next when the words on the command line do not fit."""

    def error(self, message: str) -> NoReturn:
        message = message.replace("invalid int value:", "a whole number is needed, not")
        message = message.replace("invalid float value:", "a number is needed, not")
        unknown = message.partition("unrecognized arguments: ")[2]
        forgotten = self.get_default("takes_command") and unknown
        hint = f"{self.prog} [options] -- COMMAND …" if forgotten else f"{self.prog} --help"
        if meant := self._meant(unknown.split()):
            message, hint = f"{message} (did you mean {meant}?)", f"{self.prog} {meant} …"
        _complain(f"{message}\n  next:    {hint}", self.prog)
        sys.exit(2)

    def _meant(self, words: Sequence[str]) -> str:
        """The option that is nearest to the first one that is not known; empty where none is near."""
        given = next((word.partition("=")[0] for word in words if word.startswith("--")), "")
        options = [name for action in self._actions for name in action.option_strings]
        import difflib

        bare = {name.lstrip("-"): name for name in options}  # dashes would make all of them alike
        return "".join(bare[name] for name in difflib.get_close_matches(given.lstrip("-"), bare, n=1))


def _complain(message: str, program: str = "isorun") -> None:
    # Where the message cannot be written either, the exit code has to say it.
    lines = [harmless(line) for line in without_passwords(f"{program}: {message}").split("\n")]
    with suppress(OSError):
        print("\n".join(lines), file=sys.stderr)


def _refused(error: OSError) -> IsorunError:
    """What no part of isorun had an answer to, most often a result that could not be printed."""
    try:
        Path.cwd()
    except OSError:
        return IsorunError(
            "the folder that this was started in does not exist any more",
            found=f"nothing at {os.environ.get('PWD', 'its place')}",
            hint="cd to a folder that is there, then run the same command again",
        )
    if isinstance(error, PermissionError) and error.filename:
        return IsorunError(
            f"{error.filename} may not be used by you",
            found=error.strerror or str(error),
            hint="ls -ld shows who may; the owner of a store lets a group in with isorun store share",
        )
    where = f" for {error.filename}" if error.filename else ""
    return IsorunError(
        f"the system refused an operation{where}",
        found=error.strerror or str(error),
        hint="check the disk and where the output goes, then run the same command again; finished runs are kept",
    )


def _silence_stdout() -> None:
    # The reader has gone (isorun report | head), or the disk is full: Python would complain while shutting down.
    # A program that called `main` may have put something else in its place, which needs no such care.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
