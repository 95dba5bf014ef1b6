"""Tables and formulas that nobody would write: every question answers or refuses in words; nothing crashes or hangs."""

import json
import random
import time

import pytest

from isorun import questions
from isorun.errors import IsorunError

NUMBERS = [
    *("0.91", "0.92", "0.93", "0.5", "1", "0", "-0.0", "1e-300", "1e300", "1e400", "nan", "inf", "-inf", "", " ", "NA"),
    *("0,5", "1_000", "0x10", "٣", "½", "1e", "--1", "true", "None", "9" * 400, "1e-400", "\x00", "0.1.2", "1/2"),
]
LABELS = ["a", "b", "c", "", " a", "a ", "A", "1", "1.0", "01", "é", "\ud7ff", "x" * 500, "a,b", "nan", "None", "<b>"]
NAMES = [
    "model",
    "acc",
    "seed",
    "loss",
    "",
    "a b",
    "acc ",
    "mo~del",
    "1",
    "repeat",
    "unit",
    "run",
    "(1|seed)",
    "x" * 300,
]
SIGNS = [*"~+-*:/()|^ `.,0123456789", "||", "factor(", "C(", "I(", "model", "acc", "seed", "loss", "\t", "\n", "é"]
FIXED = ["model", "model + loss", "model*seed", "0 + model", "1", "(model)", "-1", "loss:model", "nothing"]
RANDOM = ["(1|seed)", "(1 + loss|seed)", "(loss||seed)", "(1|model/seed)", "(1|nothing)", "(0|seed)", ""]
SECONDS = 20.0


def table(rng):
    """Columns of any content; mostly what a table of results looks like, so that questions get past the header."""
    rows = mostly(rng, rng.choice([8, 12, 16, 30]), 0, 1, 2, 3)
    odd = rng.choice([0.0, 0.0, 0.05])
    if rng.random() < 0.2:
        return {name: [rng.choice([*LABELS, *NUMBERS]) for _ in range(rows)] for name in rng.sample(NAMES, 3)}
    return {
        "model": [rng.choice(LABELS) if rng.random() < odd else "ab"[row % 2] for row in range(rows)],
        "acc": [number(rng, odd) for _ in range(rows)],
        "seed": [str(mostly(rng, row // 2, 1, row)) for row in range(rows)],
        "loss": [number(rng, odd) for _ in range(rows)],
    }


def number(rng, odd):
    return rng.choice(NUMBERS) if rng.random() < odd else f"{rng.gauss(0.9, 0.01):.{rng.choice([2, 17])}f}"


def mostly(rng, sensible, *others):
    return sensible if rng.random() < 0.93 else rng.choice(others)


def written(rng, columns, path):
    """The table as a file of some kind, sometimes damaged; or as it is."""
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    kind = rng.choice([".csv", ".jsonl", ".json", ".tsv", "rows", "columns"])
    if kind in {"rows", "columns"}:
        return rows if kind == "rows" else columns
    sign = "\t" if kind == ".tsv" else ","
    lines = [sign.join(columns), *(sign.join(row.values()) for row in rows)]
    text = {".jsonl": "\n".join(map(json.dumps, rows)), ".json": json.dumps(rows)}.get(kind, "\n".join(lines))
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data and rng.random() < 0.1:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.05:
        data = data[: rng.randrange(len(data) + 1)]
    file = path.with_suffix(kind)
    file.write_bytes(data)
    return str(file)


def formula(rng):
    if rng.random() < 0.5:
        left = mostly(rng, "acc", "loss", "model", "y", "")
        return f"{left} ~ {rng.choice(FIXED)} + {rng.choice(RANDOM)}"
    deep = rng.choice([0, 0, 0, 45, 1_000])
    return "acc ~ " + "(" * deep + "".join(rng.choice(SIGNS) for _ in range(rng.randint(0, 30))) + ")" * deep


def question(rng):
    """One of the questions, with arguments of which most are sensible."""
    some = {
        "value": mostly(rng, "acc", "loss", "model", "nothing", None, "acc,loss"),
        "by": mostly(rng, "model", "seed", "nothing", None),
        "unit": mostly(rng, None, "seed", "repeat", "model", "nothing"),
        "drop_missing": rng.random() < 0.5,
        "where": mostly(rng, None, {}, {"model": "a"}, {"nothing": "a"}, {"model": "zzz"}),
    }
    pair = rng.choice([None, "seed", mostly(rng, "seed", "model", "nothing")])
    direction = mostly(rng, rng.choice([None, "higher", "lower"]), "sideways")
    size = mostly(rng, rng.choice([None, 0.01]), 0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf"))
    sides = {"a": mostly(rng, "a", None, "b", "zzz"), "b": mostly(rng, "b", None, "a")}
    test = rng.choice([None, "brunner-munzel", "mann-whitney", "signed-rank", "welch", "sequential", "nothing"])
    adjust = mostly(rng, rng.choice(["holm", "tukey", "none"]), "dunnett", "x")
    judged = {"pair": pair, "direction": direction, **some}
    planned = {"pair": pair, "difference": size, "runs": rng.choice([None, 5, 0]), "test": test or "welch", **some}
    return rng.choice(
        [
            lambda data: questions.summarize(data, **some),
            lambda data: questions.compare(data, margin=size, test=rng.choice([None, test]), **sides, **judged),
            lambda data: questions.rank(data, repetitions=50, **judged),
            lambda data: questions.agree(data, **judged),
            lambda data: questions.power(data, **sides, **planned),
            lambda data: questions.mixed_model(data, formula(rng), adjust=adjust, drop_missing=some["drop_missing"]),
        ]
    )


def asked(seed, path):
    """One question about one table: what went wrong; "" where it was refused in words, "answered" where not."""
    rng = random.Random(seed)
    data, ask = written(rng, table(rng), path), question(rng)
    before = time.process_time()
    try:
        answer = ask(data)
        groups = answer if isinstance(answer, tuple) else getattr(answer, "groups", (answer,))
        json.dumps([one.to_json() for one in groups], allow_nan=False)
    except IsorunError:
        return ""
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    took = time.process_time() - before
    return "answered" if took < SECONDS else f"seed {seed}: {took:.0f} s"


@pytest.mark.parametrize("count", [250, pytest.param(6_000, marks=pytest.mark.slow)])
def test_any_table_and_any_question(count, tmp_path):
    said = [asked(seed, tmp_path / "t") for seed in range(count)]
    assert [wrong for wrong in said if wrong not in {"", "answered"}] == []
    assert said.count("answered") > 0.2 * count  # not only what is refused at the door
