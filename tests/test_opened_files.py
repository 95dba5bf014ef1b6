"""Following one run or one comparison opens few files: counted by what a command loads."""

import subprocess
import sys

import pytest

# What is loaded today; the aim is 40 and 20. Lower a number when a room got fuller, never raise it.
CEILINGS = {
    ("run", "--", "true"): 77,
    ("compare", "runs.csv", "--value", "acc", "--by", "model"): 40,
    ("--help",): 5,
}


@pytest.mark.parametrize("words", CEILINGS, ids=" ".join)
def test_a_command_loads_few_modules(words, tmp_path):
    rows = [f"{'ab'[number % 2]},{0.9 + number / 100}" for number in range(20)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,acc", *rows]))
    command = [sys.executable, "-X", "importtime", "-m", "isorun", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    names = {line.rpartition("|")[2].strip() for line in lines}
    loaded = sorted(name for name in names if name == "isorun" or name.startswith("isorun."))
    assert len(loaded) <= CEILINGS[words], "\n".join(loaded)
