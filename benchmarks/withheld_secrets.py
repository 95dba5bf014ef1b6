"""How many secrets are withheld, and how many ordinary values with them: names of variables and options, shapes, texts.

A secret is found when it can be read neither in the recorded command nor in what is kept of the output; an ordinary
value is falsely withheld when it cannot be read in one of them. The names are in `secret_cases.toml`, all values are
made up here.
"""

from __future__ import annotations

import random
import string
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from isorun.execution.output import Secrets
from isorun.worker.redaction import redacted_argv

_CASES: Final = tomllib.loads((Path(__file__).parent / "secret_cases.toml").read_text(encoding="utf-8"))
VARIABLES: Final[list[str]] = _CASES["variables"].split()
OPTIONS: Final[list[str]] = _CASES["options"].split()
ORDINARY_VARIABLES: Final[dict[str, str]] = _CASES["ordinary_variables"]
ORDINARY_OPTIONS: Final[dict[str, str]] = _CASES["ordinary_options"]
ORDINARY_TEXTS: Final[list[str]] = _CASES["ordinary"]["texts"]


def _made(rng: random.Random, length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(rng.choice(alphabet) for _ in range(length - 2)) + rng.choice(string.digits) + rng.choice("Xyz")


def shapes(seed: int = 1) -> dict[str, tuple[str, str]]:
    """For each shape a text that a training may print, and the part of it that is secret."""
    rng = random.Random(seed)
    hexa = "0123456789abcdef"

    def made(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
        return _made(rng, length, alphabet)

    prefixed: dict[str, str] = _CASES["starts"]
    made_up = {name: start + made(32) for name, start in prefixed.items()}
    found = {name: (f"using {value} now", value[len(prefixed[name]) :]) for name, value in made_up.items()}
    jwt = f"eyJhbGciOiJIUzI1NiJ9.{made(40)}.{made(43)}"
    pem = f"-----BEGIN PRIVATE KEY-----\n{made(64)}\n{made(64)}\n-----END PRIVATE KEY-----"
    rsa = f"-----BEGIN RSA PRIVATE KEY-----\n{made(64)}\n-----END RSA PRIVATE KEY-----"
    texts = {
        "Bearer header": ("Authorization: Bearer {}", made(40)),
        "bearer in code": ("headers={{'Authorization': 'Bearer {}'}}", made(40)),
        "Basic header": ("Authorization: Basic {}", made(24) + "="),
        "token header": ("Authorization: token {}", made(40)),
        "X-Api-Key header": ("X-Api-Key: {}", made(32)),
        "PRIVATE-TOKEN header": ("PRIVATE-TOKEN: {}", made(20)),
        "signature in an address": ("GET https://h.example/x?sv=1&sig={}&se=2", made(43)),
        "token in an address": ("GET https://h.example/x?token={}", made(30)),
        "key in an address": ("https://maps.example/api?key={}", made(39)),
        "AWS signature": ("https://s3.example/x?X-Amz-Signature={}", made(64, hexa)),
        "login in an address": ("postgresql://me:{}@db.example/x", made(16)),
        "user token in an address": ("git clone https://{}@git.example/x.git", made(36)),
        "Redis address": ("redis://:{}@h.example:6379/0", made(20)),
        "MongoDB address": ("mongodb+srv://me:{}@c.example/x", made(20)),
        "Sentry DSN": ("https://{}@o1.ingest.example/2", made(32, hexa)),
        "Slack webhook": ("https://hooks.slack.com/services/T00/B00/{}", made(24)),
        "Discord webhook": ("https://discord.com/api/webhooks/1234/{}", made(68)),
        "Telegram bot": ("bot 123456789:AA{}", made(33)),
        "Azure connection string": ("AccountName=x;AccountKey={};EndpointSuffix=y", made(86) + "=="),
        "ADO connection string": ("Server=h;Database=d;User Id=me;Password={};", made(16)),
        "password in code": ("password = '{}'", made(16)),
        "password in YAML": ("db_password: {}", made(16)),
        "API key in JSON": ('{{"api_key": "{}"}}', made(32)),
        "secret in a shell": ("export AWS_SECRET_ACCESS_KEY={}", made(40)),
        "Weights & Biases login": ("wandb login {}", made(40, hexa)),
        "Weights & Biases in a shell": ("WANDB_API_KEY={} python train.py", made(40, hexa)),
    }
    found |= {name: (text.format(value), value) for name, (text, value) in texts.items()}
    found["JWT"] = (f"token is {jwt}", jwt)
    found["private key"] = (f"loaded\n{pem}\nok", pem.split("\n")[1])
    found["RSA key"] = (f"loaded\n{rsa}\nok", rsa.split("\n")[1])
    return found


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


def missed_shapes() -> list[str]:
    """Shapes whose secret part can still be read in the output or in a command that holds the text."""
    nothing = Secrets()
    return [
        name
        for name, (text, secret) in shapes().items()
        if secret in nothing.masked(text) + " ".join(redacted_argv(["bash", "-c", text], {}))
    ]


def falsely_withheld() -> list[str]:
    """Ordinary variables, options and texts that cannot be read any more."""
    found: list[str] = []
    for name, value in ORDINARY_VARIABLES.items():
        text = f"the value is {value}"
        found += [name] if Secrets.of(["t.py"], {name: value}).masked(text) != text else []
    for name, value in ORDINARY_OPTIONS.items():
        for argv in ([name, value], [f"{name}={value}"]):
            found += [" ".join(argv)] if redacted_argv(argv, {}) != argv else []
    return found + [text for text in ORDINARY_TEXTS if Secrets().masked(text) != text]


def _rows() -> Iterator[tuple[str, int, list[str], int]]:
    yield "secret variables and options missed", len(VARIABLES) + 3 * len(OPTIONS), missed_names(), 0
    yield "shapes of secrets missed", len(shapes()), missed_shapes(), 0
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
