"""Command lines nobody would type on purpose: each ends soon, with a known exit code and a message, never a traceback.

The words of a line follow from its number, so that a line that fails can be typed again. The full form has 1,500.
"""

import argparse
import io
import json
import random
import sys
import time

import pytest

from isorun.cli.main import COMMANDS, command_module, main

QUICK, FULL = 120, 1500
FILES = {
    "runs.csv": "model,seed,task,acc\n" + "".join(f"m{n % 2},{n // 2},t{n % 3},{0.9 + n / 1000}\n" for n in range(24)),
    "empty.csv": "",
    "odd.csv": 'a,"b\n1,2,3\n',
    "long.csv": "acc,model\n" + "9" * 400 + ",a\n1,b\n",
    "study.toml": '[approaches.a]\ncommand = "true"\n[approaches.b]\ncommand = "true --b"\n',
    "bad.toml": "[approaches.a\n",
    "train.log": "epoch 1 acc 0.5\nepoch 2 acc 0.6\n",
}
WORDS = (
    *("", " ", "-", "--", "-1", "0", "1", "2", "0.05", "1e-300", "1e300", "nan", "inf", "9" * 400, "١", "true", "a,b"),
    *("acc", "model", "seed", "m0", "m1", "t0", "acc:higher", "acc:", "model=m0", "=", "acc ~ model + (1|seed)"),
    *("\x1b[31mred", "\x9b", "\u202e", "\ud800", "<script>", "../..", "/", "/dev/null", "x" * 5000, "%s", "{seed}"),
    *("welch", "sequential", "paired-t", "higher", "lower", "default", "fixed-seed", "(?P<a>x)", "(" * 99, *FILES),
)
# Lines that are answered, to which mistakes are added.
GOOD = {
    "summarize": ["runs.csv", "--value", "acc", "--by", "model"],
    "compare": ["runs.csv", "--value", "acc", "--by", "model", "--a", "m0", "--b", "m1"],
    "mixed": ["runs.csv", "acc ~ model + (1|seed)"],
    "power": ["--effect", "1"],
    "rank": ["runs.csv", "--value", "acc", "--by", "model"],
    "agree": ["runs.csv", "--value", "acc", "--by", "model", "--pair", "seed"],
    "run": ["study.toml"],
    "decide": ["study.toml"],
    "report": ["study.toml"],
    "scan": ["train.log"],
    "reproduce": ["ase20"],
    "data": ["list"],
    "status": [],
    "store": ["verify"],
}
# No line may train, serve, reach the network, or write beside its folder. No machine has the address that is for texts.
HARMLESS = {
    "run": ["--dry-run"],
    "reproduce": ["--dry-run"],
    "decide": ["--max-runs", "5"],
    "serve": ["--host", "203.0.113.7"],
}
NEVER = ("get", "--store", "--download")


def options_of(command):
    parser = argparse.ArgumentParser(add_help=False)
    command_module(command).declare(parser)
    return [action for action in parser._actions if action.option_strings]


def line(number):
    """The words of one command line."""
    chance = random.Random(number)
    command = chance.choice([*COMMANDS, *COMMANDS, "", "rnu", "-x", "--version"])
    if command not in COMMANDS:
        return [command, *chance.choices(WORDS, k=chance.randrange(3))]
    any_words = chance.choices([*FILES, *WORDS], k=chance.randrange(3))
    words = list(GOOD.get(command, [])) if chance.random() < 0.7 else any_words
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        action = chance.choice(options_of(command))
        words.append(chance.choice(action.option_strings))
        words += [] if action.nargs == 0 else [chance.choice(list(action.choices or WORDS))]
    if words and chance.random() < 0.2:
        words[chance.randrange(len(words))] = chance.choice(WORDS)
    words = [command, *(word for word in words if word not in NEVER), *HARMLESS.get(command, ())]
    if command in ("run", "decide") and chance.random() < 0.2:
        words += ["--", *chance.choices(WORDS, k=chance.randrange(4))]
    return words


class Failed(AssertionError):
    """A line that ended as none may."""


def check(number):
    words = line(number)
    began = time.process_time()
    code, errors = ended(words)
    if code not in (0, 1, 2, 3) or "Traceback" in errors or "\x1b" in errors:
        raise Failed(f"line {number} {words!r}: exit code {code}\n{errors}")
    if code in (1, 2) and not errors.strip():
        raise Failed(f"line {number} {words!r}: exit code {code} without a word")
    if time.process_time() - began > 30:
        raise Failed(f"line {number} {words!r}: {time.process_time() - began:.0f} s")
    return code


def ended(words):
    """Exit code and stderr; the command runs in this process, since a thousand interpreters would take minutes."""
    before = sys.stdout, sys.stderr, sys.stdin
    sys.stdout, sys.stderr, sys.stdin = io.StringIO(), io.StringIO(), io.TextIOWrapper(io.BytesIO(b""))
    try:
        code = main(words)
    except SystemExit as exit_:
        code = exit_.code or 0
    finally:
        errors = sys.stderr.getvalue()
        sys.stdout, sys.stderr, sys.stdin = before
    return code, errors


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def test_any_command_line_ends_with_an_exit_code_and_a_message(folder):
    codes = [check(number) for number in range(QUICK)]
    assert {0, 1, 2} <= set(codes)


@pytest.mark.slow
def test_any_command_line_in_full(folder):
    codes = [check(number) for number in range(QUICK, QUICK + FULL)]
    assert {0, 1, 2} <= set(codes)


def test_what_lines_leave_in_their_folder_is_what_they_were_asked_for(folder):
    """No word becomes a path outside the folder."""
    beside = set(folder.parent.iterdir())
    for number in range(0, QUICK, 4):
        check(number)
    assert set(folder.parent.iterdir()) == beside


def test_json_of_a_fuzzed_line_is_strict_or_absent(folder, capsys):
    code = main(["summarize", "runs.csv", "--value", "acc", "--by", "model", "--json"])
    assert code == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
