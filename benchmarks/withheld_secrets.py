"""How many secrets are withheld, and how many ordinary values with them: names of variables and options, shapes, texts.

A secret is found when it can be read neither in the recorded command nor in what is kept of the output; an ordinary
value is falsely withheld when it cannot be read in one of them. The cases are in `secret_cases.toml`, all secrets are
made up here. The rules have seen these cases. Before they had, 24 of 266 new names, 33 of 88 new shapes were missed
and 30 of 252 new ordinary cases withheld; of a second lot, after the rules were mended, 5 of 112, 5 of 40, 0 of 80.
"""

from __future__ import annotations

import random
import re
import string
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from isorun.execution.output import Secrets
from isorun.worker.redaction import redacted_argv

_CASES: Final = tomllib.loads((Path(__file__).parent / "secret_cases.toml").read_text(encoding="utf-8"))


def _pairs(cases: dict[str, str | list[str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, given in cases.items() for value in ([given] if isinstance(given, str) else given)]


VARIABLES: Final[list[str]] = _CASES["variables"].split()
OPTIONS: Final[list[str]] = _CASES["options"].split()
ORDINARY_VARIABLES: Final = _pairs(_CASES["ordinary_variables"])
ORDINARY_OPTIONS: Final = _pairs(_CASES["ordinary_options"])
ORDINARY_TEXTS: Final[list[str]] = _CASES["ordinary"]["texts"]

_LETTERS: Final = string.ascii_letters + string.digits
_ALPHABETS: Final = {
    "alnum": _LETTERS,
    "base64_": _LETTERS + "+/",
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "upper": string.ascii_uppercase + "234567",
}
# Shorter pieces of a secret stand in ordinary text by chance.
_TELLING_LENGTH: Final = 5


def _made(rng: random.Random, length: int, alphabet: str = _LETTERS) -> str:
    return "".join(rng.choice(alphabet) for _ in range(length - 2)) + rng.choice(string.digits) + rng.choice("Xyz")


def shapes(seed: int = 1) -> dict[str, tuple[str, list[str]]]:
    """For each shape a text that a training may print, and the parts of it that are secret."""
    rng = random.Random(seed)
    found = {}
    for name, start in _CASES["starts"].items():
        token = _made(rng, 32)
        found[name] = (f"using {start}{token} now", [token])
    return found | {name: _filled(text, rng) for name, text in _CASES["shapes"].items()}


def _filled(text: str, rng: random.Random) -> tuple[str, list[str]]:
    secrets: list[str] = []

    def make(found: re.Match[str]) -> str:
        secrets.append("".join(rng.choice(_ALPHABETS[found[1]]) for _ in range(int(found[2]))))
        return secrets[-1]

    whole = re.sub(r"\$\{([a-z]+(?:64_)?)(\d+)\}", make, text)
    return whole, [secret for secret in secrets if len(secret) >= _TELLING_LENGTH]


def missed_names(seed: int = 1) -> list[str]:
    """Variables and options whose value can still be read in the command or in the output."""
    rng = random.Random(seed)
    missed = []
    for name in VARIABLES:
        value = _made(rng, 14, string.ascii_letters + string.digits + "-")
        printed = Secrets.of(["python", "t.py"], {name: value}).masked(f"the value is {value}")
        missed += [name] if value in printed else []
    for name in OPTIONS:
        value = "".join(rng.choice(string.ascii_letters) for _ in range(3)) + _made(rng, 11)
        for argv in ([name, value], [f"{name}={value}"], ["bash", "-c", f"t.py {name} {value} --lr 1"]):
            printed = Secrets.of(["t.py", *argv], {}).masked(f"the value is {value}")
            if value in " ".join(redacted_argv(["t.py", *argv], {})) + printed:
                missed.append(" ".join(argv))
    return missed


def missed_shapes(seed: int = 1) -> list[str]:
    """Shapes whose secret part can still be read in the output or in a command that holds the text."""
    missed = []
    for name, (text, secrets) in shapes(seed).items():
        kept = Secrets().masked(text) + " ".join(redacted_argv(["bash", "-c", text], {}))
        missed += [name] if any(secret in kept for secret in secrets) else []
    return missed


def falsely_withheld() -> list[str]:
    """Ordinary variables, options and texts that cannot be read any more."""
    found: list[str] = []
    for name, value in ORDINARY_VARIABLES:
        text = f"the value is {value}"
        found += [name] if Secrets.of(["t.py"], {name: value}).masked(text) != text else []
    for name, value in ORDINARY_OPTIONS:
        for argv in ([name, value], [f"{name}={value}"]):
            found += [" ".join(argv)] if redacted_argv(argv, {}) != argv else []
    return found + [text for text in ORDINARY_TEXTS if Secrets().masked(text) != text]


def _rows() -> Iterator[tuple[str, int, list[str], int]]:
    yield "secret variables and options missed", len(VARIABLES) + 3 * len(OPTIONS), missed_names(), 3
    yield "shapes of secrets missed", len(shapes()), missed_shapes(), 3
    ordinary = len(ORDINARY_VARIABLES) + 2 * len(ORDINARY_OPTIONS) + len(ORDINARY_TEXTS)
    yield "ordinary values and texts falsely withheld", ordinary, falsely_withheld(), 5


def measure() -> list[dict[str, Any]]:
    """The rows of the page of results."""
    return [
        {
            "name": name,
            "measured": len(wrong),
            "target": target,
            "unit": f"of {cases}, at most",
            "ok": len(wrong) <= target,
            "detail": ", ".join(wrong[:8]) or "none",
        }
        for name, cases, wrong, target in _rows()
    ]


if __name__ == "__main__":
    for row in measure():
        print(row["name"], row["measured"], row["unit"], row["detail"])
