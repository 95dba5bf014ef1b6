"""Following one run or one comparison opens few files: counted by the modules loaded when a command has ended."""

import subprocess
import sys

import pytest

# What is loaded today; the aim is 40 and 20. Lower a number when a room got fuller. The first two rose by 2 and 4
# when three files of 700 to 850 lines, each with two thoughts, were parted; a file that is merely new is no reason to.
CEILINGS = {
    ("run", "--", "true"): 42,
    ("run", "--", "python", "-c", "print('accuracy: 0.75')"): 53,
    ("compare", "runs.csv", "--value", "acc", "--by", "model"): 25,
    ("--help",): 4,
}
COUNTED = """
import sys
from isorun.cli.main import main
try:
    code = main()
except SystemExit as end:
    code = end.code
print("loaded", *sorted(name for name in sys.modules if name.partition(".")[0] == "isorun"), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("words", CEILINGS, ids=" ".join)
def test_a_command_loads_few_modules(words, tmp_path):
    rows = [f"{'ab'[number % 2]},{0.9 + number / 100}" for number in range(20)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,acc", *rows]))
    command = [sys.executable, "-c", COUNTED, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = done.stderr.splitlines()[-1].removeprefix("loaded ").split()
    assert "isorun.cli.main" in loaded
    assert len(loaded) <= CEILINGS[words], f"{len(loaded)}:\n" + "\n".join(loaded)


def test_a_run_that_overwrites_a_model_file_loads_no_statistics(tmp_path):
    (tmp_path / "model.pt").write_text("of an earlier run")
    training = "open('model.pt', 'w').write('new'); print('val_loss: 0.75')"
    command = [sys.executable, "-c", COUNTED, "run", "--", "python", "-c", training]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = done.stderr.splitlines()[-1].removeprefix("loaded ").split()
    assert "isorun.analysis.evidence.shared_files" in loaded
    assert "isorun.analysis.studies.conditions" not in loaded
