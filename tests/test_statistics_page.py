"""The examples on the page about statistics run as they stand."""

import re
from pathlib import Path

from isorun.cli.main import COMMANDS

PAGE = (Path(__file__).parent.parent / "docs" / "statistics.md").read_text()


def test_the_python_examples_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    for example in examples:
        exec(example, names)  # our own page
    drawn = set(re.findall(r'"(\w+\.svg)"', "".join(examples)))
    assert drawn == {path.name for path in tmp_path.iterdir()}
    assert len(drawn) >= 9


def test_every_statistics_command_has_a_section():
    for command in ("summarize", "compare", "mixed", "decide", "power", "rank", "agree"):
        assert command in COMMANDS
        assert f"\n## `isorun {command}`\n" in PAGE
