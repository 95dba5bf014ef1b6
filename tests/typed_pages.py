"""Pages of the documentation, typed as a reader types them: their files written, then their commands run.

A file is a block after a line that ends with its name: `study.toml`:. A command is a line that begins with $ in a block
of console; what follows it is what it prints. … stands for anything in a line, and on a line of its own for any lines.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from typed_commands import typed

_FENCE = re.compile(r"(?P<before>[^\n]*)\n+```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"`([\w./-]+\.(?:py|toml|csv|sh))`[^`]*:$")
_WIDTH = {"COLUMNS": "80", "NO_COLOR": "1"}


@dataclass
class Reader:
    """A folder, and the exit code of what was typed last in it."""

    folder: Path
    code: int = 0
    typed: list[str] = field(default_factory=list)

    def follow(self, page: str) -> None:
        """Do all that the page shows, and hold what is printed against what it says."""
        for block in _FENCE.finditer(page):
            if block["kind"] == "console":
                for command, expected in commands(block["text"]):
                    printed = self._type(command)
                    assert matches(printed, expected), f"$ {command}\nprints:\n{printed}\nand not:\n{expected}"
            elif named := _NAMED.search(block["before"]):
                (self.folder / named[1]).write_text(block["text"])

    def _type(self, command: str) -> str:
        self.typed.append(command)
        if command == "echo $?":
            return f"{self.code}\n"
        program, *words = shlex.split(command, comments=True)
        if program == "isorun":
            done = typed(*words, cwd=self.folder, env=_WIDTH, timeout=300)
        else:
            done = subprocess.run(
                [program, *words], cwd=self.folder, capture_output=True, text=True, timeout=300, check=False
            )
        self.code = done.returncode
        assert self.code in {0, 3}, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Every command of a block of console, with what it is said to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def matches(printed: str, expected: str) -> bool:
    """Whether this is what was printed, … aside."""
    lines = [
        r"(?:[^\n]*\n)*" if line == "…" else r"[^\n]*".join(map(re.escape, line.rstrip().split("…"))) + r" *\n"
        for line in expected.rstrip("\n").split("\n")
        if expected.strip()
    ]
    return re.fullmatch("".join(lines) + r"\s*", printed) is not None
